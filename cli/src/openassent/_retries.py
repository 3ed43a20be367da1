"""Decides whether and when a request is sent again, for both clients."""

import asyncio
import random
import socket
import ssl
import time
from collections.abc import Iterator

import httpx

from openassent._calls import Call
from openassent.errors import ApiError, AssentError, ConnectionFailed, InvalidArgument, MalformedResponse, TimedOut

_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 8.0
# An hourly quota says so in Retry-After: better an error than a program that hangs.
_LONGEST_RETRY_AFTER_SECONDS = 60.0
# The server, or a gateway in front of it, may have performed the request.
_UNKNOWN_OUTCOMES = {500, 502, 503, 504}
# These requests can't be sent at all.
_NEVER_SENT = (httpx.LocalProtocolError, httpx.UnsupportedProtocol)
# In these cases, the request was never sent, but could be later.
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
# The kinds of failures, most special first. Their own texts can quote a header or an address.
_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (ssl.SSLCertVerificationError, "the service's certificate can't be verified"),
    (ssl.SSLError, "no encrypted connection can be made"),
    (socket.gaierror, "the name of the host isn't known"),
    (ConnectionRefusedError, "the host refused the connection"),
    (httpx.ProxyError, "the proxy refused the connection"),
    (httpx.ConnectError, "the host can't be reached"),
    (httpx.RemoteProtocolError, "the connection was closed, or the response isn't HTTP"),
)


def failure_of(call: Call, error: Exception) -> AssentError:
    """Returns the error to raise for a failure of httpx. Its message has no query and nothing of the error's text.

    Raise it outside of `except`: the failure would be part of its context.
    """
    if isinstance(error, httpx.DecodingError):
        return MalformedResponse(f"{call}: the response can't be decoded")
    unknown = not isinstance(error, _NOT_SENT)
    if isinstance(error, httpx.TimeoutException):
        return TimedOut(f"{call}: the service didn't respond in time", outcome_unknown=unknown)
    if not isinstance(error, httpx.TransportError) or isinstance(error, _NEVER_SENT):
        return InvalidArgument(f"{call}: not sent, because its address, a header, or a value isn't valid")
    causes = [*_causes(error)]
    found = (reason for kind, reason in _REASONS if any(isinstance(it, kind) for it in causes))
    return ConnectionFailed(f"{call}: {next(found, 'the connection was lost')}", outcome_unknown=unknown)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


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


_LONGEST_SLEEP_SECONDS = 3_600.0


def monotonic() -> float:
    """Returns seconds since an arbitrary moment, unaffected by changes of the system's clock."""
    return time.monotonic()


async def sleep_async(seconds: float) -> None:
    await asyncio.sleep(_bounded(seconds))


def sleep(seconds: float) -> None:
    time.sleep(_bounded(seconds))


def _bounded(seconds: float) -> float:
    """Returns the waiting time that the service requests, within bounds."""
    return min(max(seconds, 0.0), _LONGEST_SLEEP_SECONDS)
