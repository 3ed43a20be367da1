"""Requests of workers to the code host, within the limits of each installation, which all workers share.

One of them learns of a limit from a response. The others read it from the table before they send anything.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from controlplane.code_host.github import client
from controlplane.code_host.github.errors import (
    AppKeyUnreadable,
    AppNotConfigured,
    HostUnavailable,
    RateLimitedByHost,
    Refused,
)
from controlplane.platform.core import clock
from controlplane.platform.queues.worker import Delayed, Postponed
from controlplane.platform.table import keys
from controlplane.platform.table.table import ConditionFailed, Put, Unrecorded, table

LIMITED = "rate limited by the code host"


def limit(installation_id: int, seconds: int) -> None:
    """Records that the installation's requests are limited for that long. A longer limit isn't shortened."""
    until = int(clock.now()) + seconds
    item = {**keys.host_limit(installation_id)._asdict(), "until": until, "expiresAt": until}
    with suppress(ConditionFailed):
        table.put(Put(item, "attribute_not_exists(pk) OR #until < :until", {"until": until}), Unrecorded.COUNTER)


def seconds_left(installation_id: int) -> int:
    """Returns how long the installation's requests are still limited. 0: they aren't."""
    item = table.get(keys.host_limit(installation_id))
    return max(0, item["until"] - int(clock.now())) if item else 0


@contextmanager
def within_limits(installation_id: int) -> Iterator[None]:
    """Records the installation's limits, from responses in the block, for all workers.

    Raises RateLimitedByHost, before the block, while the installation is known to be limited.
    """
    if seconds := seconds_left(installation_id):
        raise RateLimitedByHost(seconds, reason="known")
    try:
        yield
    except RateLimitedByHost as error:
        limit(installation_id, error.retry_after_seconds)
        raise
    finally:
        if seconds := client.get_transport()[1].quotas.seconds_left(installation_id):
            limit(installation_id, seconds)


@contextmanager
def retried_later(installation_id: int, unavailable_seconds: int) -> Iterator[None]:
    """Keeps to the installation's limits. Raises Delayed and Postponed for errors that end by themselves.

    Or that an operator has to end, who replaces the App's key.
    """
    try:
        with within_limits(installation_id):
            yield
    except RateLimitedByHost as error:
        raise Delayed(error.retry_after_seconds, LIMITED) from error
    except HostUnavailable as error:
        raise Postponed(unavailable_seconds, "code host unavailable") from error
    except (AppKeyUnreadable, AppNotConfigured, Refused) as error:
        if isinstance(error, Refused) and error.status != 401:
            raise
        raise Postponed(300, "the App's key isn't accepted") from error
