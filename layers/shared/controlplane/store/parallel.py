"""Reads that don't depend on each other, in one round trip's time."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context


def read_both[A, B](first: Callable[[], A], second: Callable[[], B]) -> tuple[A, B]:
    """Returns the results of two reads, which run at the same time. Raises the errors of either."""
    with ThreadPoolExecutor(max_workers=1) as executor:
        # In the request's context, which has its time budget.
        reading = executor.submit(copy_context().run, second)
        return first(), reading.result()
