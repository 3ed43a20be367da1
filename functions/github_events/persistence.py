"""Retries of messages that GitHub doesn't let us process: for a day, which is longer than the queue retries.

A message that is delivered for the last time is written to the outbox, and the sweeper sends it again.
"""

from collections.abc import Callable

from controlplane.core import clock
from controlplane.github import errors as host
from controlplane.queues import messages
from controlplane.queues.messages import Message, Queue
from controlplane.queues.worker import LeftToSweep, Postponed, Rejected, is_last_delivery
from controlplane.store import outbox

_UNAVAILABLE_SECONDS = 60


def persistently[M: Message](message: M, until: int, process: Callable[[M], None]) -> None:
    """Processes the message, and postpones it if GitHub limits requests or doesn't respond.

    until: the Unix time of the last attempt. Raises Postponed, LeftToSweep, Rejected.
    """
    try:
        process(message)
    except host.RateLimitedByHost as error:
        _postpone(message, until, error.retry_after_seconds, "rate limited by the code host", error)
    except host.HostUnavailable as error:
        _postpone(message, until, _UNAVAILABLE_SECONDS, "code host unavailable", error)
    except Postponed as postponed:
        _postpone(message, until, postponed.seconds, postponed.reason, postponed)


def _postpone(message: Message, until: int, seconds: int, reason: str, cause: Exception) -> None:
    if clock.now() >= until:
        raise Rejected(reason) from cause
    if is_last_delivery():
        outbox.write(messages.entry(Queue.GITHUB_EVENTS, message))
        raise LeftToSweep(reason) from cause
    raise Postponed(seconds, reason) from cause
