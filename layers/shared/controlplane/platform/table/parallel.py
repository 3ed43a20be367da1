"""Calls that don't depend on each other, in one round trip's time."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any

_AT_ONCE = 8


def read_both[A, B](first: Callable[[], A], second: Callable[[], B]) -> tuple[A, B]:
    """Returns the results of two reads or writes, which run at the same time. Raises the errors of either."""
    with reading(second) as result:
        found = first()
    return found, result()


@contextmanager
def reading[A](read: Callable[[], A]) -> Iterator[Callable[[], A]]:
    """Starts a read that runs at the same time as the block. Yields the function that returns its result.

    That function raises the read's errors.
    """
    with ThreadPoolExecutor(max_workers=1) as executor:
        # In the request's context, which has its time budget.
        yield executor.submit(copy_context().run, read).result


def read_each[A, B](read: Callable[[A], B], arguments: Iterable[A]) -> list[B]:
    """Returns the result of a read for each argument, in order. Eight run at the same time. Raises their errors."""
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as executor:
        started = [executor.submit(copy_context().run, read, argument) for argument in arguments]
        return [each.result() for each in started]


def read_all(*reads: Callable[[], Any]) -> list[Any]:
    """Returns the results of the reads, in order. Like `read_each`."""
    return read_each(lambda read: read(), reads)
