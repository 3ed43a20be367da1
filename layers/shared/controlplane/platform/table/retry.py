"""Failures of calls to the table, and optimistic writes, which start over if something has changed.

The errors are internal: clients get those of `controlplane.platform.core.errors`.
"""

import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any

_ATTEMPTS = 8
_FIRST_PAUSE_SECONDS = 0.025

# The error to raise if a leg of a transaction fails, by the leg's name.
type Errors = Mapping[str, Exception | type[Exception]]


class StoreError(Exception):
    """The base class of errors raised by the store."""


class Throttled(StoreError):
    """The table, or one of its items, is throttled or contended."""


class TableUnavailable(StoreError):
    """The table timed out or failed, and no retries or no time is left.

    A write may or may not have been applied.
    """


class ConditionFailed(StoreError):
    """The condition was false. `item` is the existing item, or None if it doesn't exist."""

    def __init__(self, item: dict[str, Any] | None) -> None:
        super().__init__("condition failed")
        self.item = item


class LegFailed(StoreError):
    """A transaction's conditions failed. `leg` names the first failed leg; `items` has each failed leg's item."""

    def __init__(self, items: dict[str, dict[str, Any] | None]) -> None:
        super().__init__("conditions failed: " + ", ".join(items))
        self.items = items
        self.leg = next(iter(items))

    @property
    def item(self) -> dict[str, Any] | None:
        return self.items[self.leg]

    def mapped(self, errors: Errors, otherwise: type[Exception] | None = None) -> Exception | type[Exception]:
        """Returns the error for the first failed leg: the one of its name, or `otherwise`, or this one."""
        return errors.get(self.leg, otherwise) or self


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
