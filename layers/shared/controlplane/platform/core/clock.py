"""The only source of time: `clock.now()`, `clock.monotonic()`, and `clock.pause()`, which tests can replace."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

_DAY_SECONDS = 86_400

source: Callable[[], float] = time.time
monotonic_source: Callable[[], float] = time.monotonic
pause: Callable[[float], Awaitable[None]] = asyncio.sleep


def now() -> float:
    """Returns Unix time in seconds."""
    return source()


def monotonic() -> float:
    """Returns seconds since an arbitrary start, never going backward, for deadlines within one process."""
    return monotonic_source()


def timestamp(seconds: float | None = None) -> str:
    """Returns RFC 3339 in UTC with milliseconds: 2026-01-02T03:04:05.678Z. Text order is chronological order."""
    moment = datetime.fromtimestamp(now() if seconds is None else seconds, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def month() -> str:
    """Returns the current calendar month in UTC: 2026-01. Text order is chronological order."""
    return timestamp()[:7]


def expiry(days: int, moment: float | None = None) -> dict[str, int]:
    """Returns the TTL attribute of an item that expires `days` after the moment (default: now), or {} for 0 days.

    Settings give the number of days that data is kept, and DynamoDB deletes items by `expiresAt`.
    """
    return {"expiresAt": int(now() if moment is None else moment) + days * _DAY_SECONDS} if days else {}
