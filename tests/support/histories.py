"""Records concurrent operations, and checks that their results are those of some order of them: linearizability.

An operation takes effect at one moment between its call and its response. So an operation that ended before another one
began precedes it, and those that overlap have any order. If no order explains all results, a write was lost, or
something was read that no longer was, or not yet, so.
"""

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import inf
from typing import Any

from tests.support.threads import run_repeatedly


@dataclass(frozen=True)
class Operation:
    """One operation, its result, and the moments between which it took effect. `ended` is infinite if it is unknown."""

    name: str
    argument: Any
    result: Any
    began: float
    ended: float = inf

    def __str__(self) -> str:
        return f"{self.began}-{self.ended}: {self.name}({self.argument}) -> {self.result}"


# The state after the operation, or None if it can't have that result in this state.
type Model[S: Hashable] = Callable[[S, Operation], S | None]


@dataclass
class History:
    """The operations of several threads, in the order of their ends."""

    operations: list[Operation] = field(default_factory=list)
    _moments: Iterator[int] = field(default_factory=count)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, name: str, argument: Any, act: Callable[[], Any]) -> Any:
        """Runs and records one operation. If `act` raises, it may take effect at any later time, or never."""
        with self._lock:
            began = next(self._moments)
        try:
            result = act()
        except Exception as error:  # noqa: BLE001 (any error is an unknown outcome)
            with self._lock:
                self.operations.append(Operation(name, argument, error, began))
            return None
        with self._lock:
            self.operations.append(Operation(name, argument, result, began, next(self._moments)))
        return result

    def run_threads(self, acts: Sequence[Callable[[], Any]], *, times: int = 1) -> None:
        """Runs each act, which records its operations, `times` times in a thread of its own."""
        for outcome in run_repeatedly(acts, times=times):
            outcome.get()

    def check[S: Hashable](self, start: S, model: Model[S]) -> list[Operation]:
        """Returns an order that explains all results. Raises AssertionError with the history without one."""
        order = find_order(self.operations, start, model)
        assert order is not None, "\n".join(["no order explains this history:", *map(str, self.operations)])
        return order


def find_order[S: Hashable](operations: Sequence[Operation], start: S, model: Model[S]) -> list[Operation] | None:
    """Returns a linearization, or None without one: the search of Wing and Gong, with Lowe's memory.

    An operation of unknown outcome may take effect at any moment after its call, or not at all.
    """
    tried: set[tuple[frozenset[int], S]] = set()

    def search(left: frozenset[int], state: S) -> list[Operation] | None:
        if all(operations[at].ended == inf for at in left):
            return []
        if (left, state) in tried:
            return None
        tried.add((left, state))
        first_end = min(operations[at].ended for at in left)
        for at in left:
            if operations[at].began > first_end:
                continue
            after = model(state, operations[at])
            if after is not None and (rest := search(left - {at}, after)) is not None:
                return [operations[at], *rest]
        return None

    return search(frozenset(range(len(operations))), start)
