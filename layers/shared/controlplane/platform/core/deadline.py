"""The time that a request may still spend on its dependencies: the table, queues, the sign-in issuer.

A request has a budget in seconds for all of its calls and their retries together. Only time inside these calls counts,
so an endpoint that polls the table while it waits for a worker isn't cut short. Transports use `bounded` for the
timeout of every connect, send, and receive, which also ends a call whose response trickles in. Workers and the sweeper
have no budget: their calls have their own timeouts.

In all functions, calls end shortly before Lambda ends the invocation, so that the function can still say what failed.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from controlplane.platform.core.acting import Setting

# Tests replace it. It must be monotonic, unlike the time of day.
source: Callable[[], float] = time.monotonic
# A socket timeout of 0 means "don't block", so this is the timeout if the budget is used up.
_SHORTEST_SECONDS = 0.001
# The time that a function needs after its last call, to log and to respond.
_LAST_SECONDS = 0.25


class _Budget:
    __slots__ = ("left", "until")

    def __init__(self, seconds: float) -> None:
        self.left = seconds
        # The time when the budget ends. Set while a call is running.
        self.until: float | None = None


_budget: ContextVar[_Budget | None] = ContextVar("budget", default=None)
# When the calls of the invocation end.
_end: ContextVar[float | None] = ContextVar("end", default=None)


def invocation(context: Any) -> Setting[float | None]:
    """Ends the calls in this context before Lambda ends the invocation. context: Lambda's, or None elsewhere."""
    left_ms = getattr(context, "get_remaining_time_in_millis", None)
    return Setting(_end, source() + left_ms() / 1000 - _LAST_SECONDS if left_ms else None)


class budget(Setting[_Budget | None]):  # noqa: N801 (it is used like a function)
    """Limits the total time of the calls in this context. An enclosing budget still applies."""

    __slots__ = ("_granted", "_inner", "_outer")

    def __init__(self, seconds: float) -> None:
        self._outer = outer = _budget.get()
        self._granted = seconds if outer is None else min(seconds, _left(outer))
        self._inner = _Budget(self._granted)
        super().__init__(_budget, self._inner)

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        if self._outer is not None and self._outer.until is None:
            self._outer.left -= self._granted - self._inner.left


@contextmanager
def spending() -> Iterator[None]:
    """Charges the time spent in this context to the budget. Use it around one call with its retries."""
    current = _budget.get()
    if current is None or current.until is not None:
        yield
        return
    # Calls of two threads can share the budget. If both begin at once, the time that they overlap is charged once.
    until = current.until = source() + current.left
    try:
        yield
    finally:
        current.left, current.until = until - source(), None


def remaining() -> float | None:
    """Returns the seconds left, negative if overdrawn, or None without a limit."""
    current, end = _budget.get(), _end.get()
    left = None if current is None else _left(current)
    if end is None:
        return left
    return end - source() if left is None else min(left, end - source())


def is_over() -> bool:
    left = remaining()
    return left is not None and left <= 0


def bounded(seconds: float | None) -> float | None:
    """Returns the timeout in seconds (None: no timeout), capped at the seconds left."""
    left = remaining()
    if left is None:
        return seconds
    return max(left if seconds is None else min(seconds, left), _SHORTEST_SECONDS)


def _left(budget: _Budget) -> float:
    until = budget.until  # read once: a call of another thread may end in between
    return budget.left if until is None else until - source()
