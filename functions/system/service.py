"""The rules of `system`: which organizations a credential reaches, and whether the database answers."""

from botocore.exceptions import BotoCoreError, ClientError

from controlplane.access import Principal, key_organization
from controlplane.errors import ServiceUnavailable
from controlplane.store import organizations
from controlplane.store.organizations import Membership
from controlplane.store.table import StoreError, table


class DatabaseUnreachable(ServiceUnavailable):
    message = "The database does not answer. Try again shortly."


def check_database() -> None:
    """Raises DatabaseUnreachable unless a read of the table succeeds."""
    try:
        table.ping()
    except (ClientError, BotoCoreError, StoreError) as error:
        raise DatabaseUnreachable(reason=type(error).__name__) from error


def list_reachable(principal: Principal) -> tuple[list[Membership], Membership | None]:
    """The organizations the credential reaches, by slug, and the one acted in where none is named."""
    if principal.user_id is None:
        own = key_organization(principal)
        return [own], own
    account = organizations.get_account(principal.user_id)
    return sorted(account.memberships, key=lambda membership: membership.slug), account.active
