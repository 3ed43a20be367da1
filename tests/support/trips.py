"""Counts the sequential round trips to the table and the queues: calls that the product overlaps count as one.

Threads are replaced by a logical clock, so the count doesn't depend on how fast anything runs.
"""

import heapq
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from controlplane.platform.queues import messages
from controlplane.platform.table.table import table
from tests.support.calls import Call, Proceed, intercepted
from tests.support.executors import InOrder, in_order


@dataclass
class Trips:
    """How many round trips have been taken one after the other."""

    taken: int = 0


@contextmanager
def counted_trips() -> Iterator[Trips]:
    """While open, counts the round trips of the product's clients of the table and of the queues."""
    trips = Trips()
    send = messages.sender.client.send_message

    def around(_call: Call, proceed: Proceed) -> Any:
        trips.taken += 1
        return proceed()

    def counted_send(**message: Any) -> Any:
        trips.taken += 1
        return send(**message)

    pool = partial(_Executor, trips)
    with pytest.MonkeyPatch.context() as patch, intercepted(table.client, around), in_order(pool):
        patch.setattr(messages.sender.client, "send_message", counted_send)
        yield trips


class _Executor(InOrder):
    """Takes back the round trips of each task until its result is awaited."""

    def __init__(self, trips: Trips, max_workers: int) -> None:
        super().__init__(max_workers)
        self._trips = trips
        self._free_at = [trips.taken] * max_workers

    def __exit__(self, *_: object) -> None:
        self._trips.taken = max(self._trips.taken, *self._free_at)

    def submit(self, task: Callable[..., Any], *arguments: Any) -> Future[Any]:
        submitted_at = self._trips.taken
        self._trips.taken = max(submitted_at, heapq.heappop(self._free_at))
        done = super().submit(task, *arguments)
        heapq.heappush(self._free_at, self._trips.taken)
        self._trips.taken = submitted_at
        return done
