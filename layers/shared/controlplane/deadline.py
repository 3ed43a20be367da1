"""How long a request may still wait for what it depends on: the table, queues, the sign-in issuer.

A request has a budget of seconds for all of its calls and their retries together. Only time inside such a call counts,
so an endpoint that waits for a worker, and asks the table now and then, isn't cut short. Transports ask `bounded` for
the timeout of every connect, send and receive, which also ends a call whose answer trickles in. Workers and the sweeper
have no budget: each of their calls has its own timeouts, and Lambda ends the function.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Tests set it. It must not jump, as the time of day does.
source: Callable[[], float] = time.monotonic
# A socket's timeout of 0 means "don't block", so a budget that is used up becomes this.
_SHORTEST_SECONDS = 0.001


class _Budget:
    __slots__ = ("left", "until")

    def __init__(self, seconds: float) -> None:
        self.left = seconds
        # When the budget ends, while a call is running.
        self.until: float | None = None


_budget: ContextVar[_Budget | None] = ContextVar("budget", default=None)


@contextmanager
def budget(seconds: float) -> Iterator[None]:
    """While open, calls together take at most that long, and no longer than the budget around this one allows."""
    outer = _budget.get()
    inner = _Budget(seconds if outer is None else min(seconds, _left(outer)))
    granted = inner.left
    token = _budget.set(inner)
    try:
        yield
    finally:
        _budget.reset(token)
        if outer is not None and outer.until is None:
            outer.left -= granted - inner.left


@contextmanager
def spending() -> Iterator[None]:
    """Around one call with its retries: charges the time it takes to the budget."""
    current = _budget.get()
    if current is None or current.until is not None:
        yield
        return
    current.until = source() + current.left
    try:
        yield
    finally:
        current.left, current.until = current.until - source(), None


def remaining() -> float | None:
    """Seconds left, less than 0 if overdrawn. None without a budget."""
    current = _budget.get()
    return None if current is None else _left(current)


def is_over() -> bool:
    left = remaining()
    return left is not None and left <= 0


def bounded(seconds: float | None) -> float | None:
    """A timeout of so many seconds (None: endless), or as many as the budget has left."""
    left = remaining()
    if left is None:
        return seconds
    return max(left if seconds is None else min(seconds, left), _SHORTEST_SECONDS)


def _left(budget: _Budget) -> float:
    return budget.left if budget.until is None else budget.until - source()
