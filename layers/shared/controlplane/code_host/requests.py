"""Requests of workers to the code host, within the limits of each installation, which all workers share.

One of them learns of a limit from a response. The others read it from the table before they send anything.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from controlplane.code_host import installations
from controlplane.code_host.github import client, errors
from controlplane.platform.queues.worker import Delayed, Postponed

LIMITED = "rate limited by the code host"


@contextmanager
def within_limits(installation_id: int) -> Iterator[None]:
    """Records the installation's limits, from responses in the block, for all workers.

    Raises RateLimitedByHost, before the block, while the installation is known to be limited.
    """
    if seconds := installations.seconds_left(installation_id):
        raise errors.RateLimitedByHost(seconds, reason="known")
    try:
        yield
    except errors.RateLimitedByHost as error:
        installations.limit(installation_id, error.retry_after_seconds)
        raise
    finally:
        if seconds := client.get_transport()[1].quotas.seconds_left(installation_id):
            installations.limit(installation_id, seconds)


@contextmanager
def retried_later(installation_id: int, unavailable_seconds: int) -> Iterator[None]:
    """Keeps to the installation's limits. Raises Delayed or Postponed for an error that a later delivery may not have.

    That is a limit, an unavailable host, or an App key that an operator has to replace.
    """
    try:
        with within_limits(installation_id):
            yield
    except errors.RateLimitedByHost as error:
        raise Delayed(error.retry_after_seconds, LIMITED) from error
    except errors.HostUnavailable as error:
        raise Postponed(unavailable_seconds, "code host unavailable") from error
    except (errors.AppKeyUnreadable, errors.AppNotConfigured, errors.Refused) as error:
        if isinstance(error, errors.Refused) and error.status != 401:
            raise
        raise Postponed(300, "the App's key isn't accepted") from error
