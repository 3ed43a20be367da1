"""Reads that don't depend on each other run at the same time, in the context of the request."""

from contextvars import ContextVar
from threading import Barrier

import pytest

from controlplane.platform.table.parallel import read_both, read_each

REQUEST: ContextVar[str] = ContextVar("REQUEST")


def test_each_read_runs_at_the_same_time_and_results_keep_their_order():
    # Broken, unless all reads are waiting at once.
    barrier = Barrier(3, timeout=20)
    REQUEST.set("r1")

    def read(number: int) -> str:
        barrier.wait()
        return f"{REQUEST.get()}-{number}"

    assert read_each(read, range(3)) == ["r1-0", "r1-1", "r1-2"]
    both = Barrier(2, timeout=20)
    first, second = read_both(both.wait, lambda: (both.wait(), REQUEST.get()))
    assert (first + second[0], second[1]) == (1, "r1")


def test_an_error_of_a_read_is_raised():
    with pytest.raises(ZeroDivisionError):
        read_each(lambda number: 1 / number, [1, 0])
    with pytest.raises(ZeroDivisionError):
        read_both(lambda: 1, lambda: 1 / 0)
    assert read_each(str, []) == []
