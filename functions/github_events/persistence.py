"""Retries of messages that GitHub doesn't let us process: for a day, which is longer than the queue retries.

A message that is delivered for the last time is sent again by the sweeper. If GitHub limits the requests of an
installation, its other messages wait too, and those of other installations don't.
"""

from collections.abc import Callable

from controlplane.code_host.github import errors as host
from controlplane.code_host.requests import KEY_SECONDS, LIMITED, NO_KEY, within_limits
from controlplane.platform.core import clock
from controlplane.platform.queues.messages import HostEvent, ReportPullRequest
from controlplane.platform.queues.worker import Delayed, Postponed, Rejected, is_last_delivery

_UNAVAILABLE_SECONDS = 60


def persistently(message: HostEvent | ReportPullRequest, installation_id: int, process: Callable[[], None]) -> None:
    """Processes the message, and postpones it if GitHub limits requests, doesn't respond, or rejects our key.

    Raises Postponed, Delayed, and Rejected after the time until which the message is retried.
    """
    try:
        with within_limits(installation_id):
            process()
    except host.RateLimitedByHost as error:
        raise _until(message, Delayed(error.retry_after_seconds, LIMITED)) from error
    except host.HostUnavailable as error:
        raise _until(message, Postponed(_UNAVAILABLE_SECONDS, "code host unavailable")) from error
    except (host.AppKeyUnreadable, host.AppNotConfigured, host.Refused) as error:
        raise _until(message, Postponed(KEY_SECONDS, NO_KEY)) from error
    except Postponed as postponed:
        raise _until(message, postponed) from postponed


def _until(message: HostEvent | ReportPullRequest, later: Postponed | Delayed) -> Postponed | Delayed | Rejected:
    """Returns the exception to raise: `later`, or Rejected if the message isn't retried anymore."""
    if clock.now() >= message.until:
        return Rejected(later.reason)
    return Delayed(later.seconds, later.reason) if is_last_delivery() else later
