"""Optimistic writes: read, decide, write on the condition that nothing has changed, and start over if it has."""

from collections.abc import Callable

from controlplane.store.errors import StoreError, Throttled

_ATTEMPTS = 8


class WriteConflict(StoreError):
    """Another write came first, so the attempt's decision is outdated. Nothing was written."""


def retry_on_conflict[T](attempt: Callable[[], T], subject: str) -> T:
    """Calls `attempt` until it doesn't raise WriteConflict, and returns its result.

    attempt: reads the current state, decides, and writes on the condition that the state is unchanged. It translates
    its own ConditionFailed or LegFailed: into WriteConflict if the state changed, or into the error for the caller.
    subject: what keeps changing, for the log. Raises Throttled after eight attempts.
    """
    for _ in range(_ATTEMPTS):
        try:
            return attempt()
        except WriteConflict:
            continue
    raise Throttled(f"{subject} keeps changing")
