"""Optimistic writes: read, decide, write on the condition that nothing has changed, and start over if it has."""

import secrets
import time
from collections.abc import Callable

from controlplane.platform.table.errors import StoreError, Throttled

_ATTEMPTS = 8
_FIRST_PAUSE_SECONDS = 0.025


class WriteConflict(StoreError):
    """Another write came first, so the attempt's decision is outdated. Nothing was written."""


def retry_on_conflict[T](attempt: Callable[[], T], subject: str) -> T:
    """Calls `attempt` until it doesn't raise WriteConflict, and returns its result.

    attempt: reads the current state, decides, and writes on the condition that the state is unchanged. It translates
    its own ConditionFailed or LegFailed: into WriteConflict if the state changed, or into the error for the caller.
    subject: what keeps changing, for the log. Raises Throttled after eight attempts. The second attempt follows at
    once, and each later one after a pause, so that writers who meet again and again spread out.
    """
    for conflicts in range(_ATTEMPTS):
        if conflicts > 1:
            pause(conflicts - 2)
        try:
            return attempt()
        except WriteConflict:
            continue
    raise Throttled(f"{subject} keeps changing")


def pause(attempt: int) -> None:
    """Waits before a retry: a random time of at most 25 ms, twice as much with each attempt (the first is 0)."""
    # Not `random`: instances restored from one snapshot would all use the same jitter.
    time.sleep(_FIRST_PAUSE_SECONDS * 2**attempt * secrets.randbelow(1000) / 1000)
