"""Decides whether and when a request is sent again, for both clients."""

import random

import httpx

from openassent._calls import Call
from openassent.errors import ApiError, AssentError, ConnectionFailed, TimedOut

_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 8.0
# An hourly quota says so in Retry-After: better an error than a program that hangs.
_LONGEST_RETRY_AFTER_SECONDS = 60.0
# The server, or a gateway in front of it, may have performed the request.
_UNKNOWN_OUTCOMES = {500, 502, 503, 504}
# In these cases, the request was never sent.
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


def failure_of(call: Call, error: httpx.TransportError) -> ConnectionFailed:
    """Returns the error to raise for a failure of the connection. Its message has no query and no credential."""
    unknown = not isinstance(error, _NOT_SENT)
    if isinstance(error, httpx.TimeoutException):
        return TimedOut(f"{call.method} {call.url}: the service didn't respond in time", outcome_unknown=unknown)
    reason = str(error) or type(error).__name__
    return ConnectionFailed(f"{call.method} {call.url}: {reason}", outcome_unknown=unknown)


def pause_before_retry(
    call: Call, error: AssentError, *, attempt: int, max_retries: int, elapsed_seconds: float
) -> float | None:
    """Returns the seconds to wait before the next attempt, or None if the error is final.

    The pause is a random part of a backoff that doubles (full jitter), on top of what Retry-After says.

    attempt: how many requests were sent. elapsed_seconds: since the first one was.
    """
    if attempt > max_retries or not _may_repeat(call, error):
        return None
    asked = error.retry_after if isinstance(error, ApiError) else None
    if asked is not None and asked > _LONGEST_RETRY_AFTER_SECONDS:
        return None
    backoff = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2 ** (attempt - 1))
    pause = (asked or 0.0) + random.uniform(0, backoff)  # nosec B311  # noqa: S311
    if call.repeat_within_seconds is not None and elapsed_seconds + pause > call.repeat_within_seconds:
        return None
    return pause


def _may_repeat(call: Call, error: AssentError) -> bool:
    if isinstance(error, ConnectionFailed):
        return call.repeatable or not error.outcome_unknown
    if not isinstance(error, ApiError):
        return False
    if error.status == 429:  # refused before anything was done
        return True
    if error.status in _UNKNOWN_OUTCOMES:
        return call.repeatable
    # The first attempt with this key is still running.
    in_flight = isinstance(error.details, dict) and error.details.get("reason") == "in_flight"
    return error.status == 409 and in_flight and call.has_idempotency_key
