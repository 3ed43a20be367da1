"""The health check, for monitors and for the page about the service's status."""

from awsclient.errors import AwsError
from controlplane.platform.core import deadline
from controlplane.platform.core.errors import ServiceUnavailable
from controlplane.platform.table.table import StoreError, table

# Short, so that monitors fail fast.
_HEALTH_SECONDS = 1.2


class DatabaseUnreachable(ServiceUnavailable):
    message = "The database is unavailable. Try again shortly."


def check_database() -> None:
    """Raises DatabaseUnreachable unless a read of the table succeeds."""
    try:
        with deadline.budget(_HEALTH_SECONDS):
            table.ping()
    except (AwsError, StoreError) as error:
        raise DatabaseUnreachable(reason=type(error).__name__) from error
