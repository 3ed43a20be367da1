"""Retries of messages that GitHub doesn't let us process: for a day, which is longer than the queue retries.

A message that is delivered for the last time is written to the outbox, and the sweeper sends it again. If GitHub limits
the requests of an installation, its other messages wait too, and those of other installations don't.
"""

from collections.abc import Callable

from controlplane.core import clock
from controlplane.github import errors as host
from controlplane.queues import messages
from controlplane.queues.messages import HostEvent, Queue, ReportPullRequest
from controlplane.queues.worker import LeftToSweep, Postponed, Rejected, is_last_delivery
from controlplane.store import host_limits, outbox

_UNAVAILABLE_SECONDS = 60
_KEY_SECONDS = 300
_LIMITED = "rate limited by the code host"


def persistently(message: HostEvent | ReportPullRequest, installation_id: int, process: Callable[[], None]) -> None:
    """Processes the message, and postpones it if GitHub limits requests, doesn't respond, or rejects our key.

    Raises Postponed, LeftToSweep, and Rejected after the time until which the message is retried.
    """
    try:
        _wait_for_limit(installation_id)
        process()
    except host.RateLimitedByHost as error:
        host_limits.limit(installation_id, error.retry_after_seconds)
        _postpone(message, error.retry_after_seconds, _LIMITED, error)
    except host.HostUnavailable as error:
        _postpone(message, _UNAVAILABLE_SECONDS, "code host unavailable", error)
    except (host.AppKeyUnreadable, host.AppNotConfigured, host.Refused) as error:
        _postpone(message, _KEY_SECONDS, "the App's key isn't accepted", error)
    except Postponed as postponed:
        _postpone(message, postponed.seconds, postponed.reason, postponed)


def _wait_for_limit(installation_id: int) -> None:
    """Raises Postponed while GitHub limits the installation's requests."""
    if seconds := host_limits.seconds_left(installation_id):
        raise Postponed(seconds, _LIMITED)


def _postpone(message: HostEvent | ReportPullRequest, seconds: int, reason: str, cause: Exception) -> None:
    if clock.now() >= message.until:
        raise Rejected(reason) from cause
    if is_last_delivery():
        outbox.write(messages.entry(Queue.GITHUB_EVENTS, message))
        raise LeftToSweep(reason) from cause
    raise Postponed(seconds, reason) from cause
