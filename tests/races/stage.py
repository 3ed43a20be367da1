"""The setting of race tests: the product on a table of the engine, which is new for every run."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock
from uuid import uuid4

from controlplane.core import clock
from controlplane.store.table import table
from tests.support import invariants, starts
from tests.support.asgi import DirectApi
from tests.support.faults import Trial, explore_faults
from tests.support.invariants import Items
from tests.support.operations import operations
from tests.support.schedules import Race, explore
from tests.support.table import create_table
from tests.support.world import World

# 2026-03-04T05:06:07Z: the time of every race, unless an act has a clock of its own.
RACE_TIME = 1_772_600_767.0


@contextmanager
def clock_advanced(milliseconds: int) -> Iterator[None]:
    """Moves the clock while an item is created, to determine the order of lists."""
    with mock.patch.object(clock, "source", return_value=RACE_TIME + milliseconds / 1000):
        yield


class Stage:
    """`client` is the product's client; `api` calls the product's apps. `ran`: the race whose check runs."""

    ran: Race

    def __init__(self, client: Any) -> None:
        operations()  # imports the functions in this thread, which then owns their handlers
        self.client = client
        self.api = DirectApi()
        self._made: list[str] = []

    def fresh(self) -> World:
        """Connects the product to an empty table, at the start of every run of a scenario."""
        table.name = starts.begin(self._new_table)
        return World()

    def _new_table(self) -> str:
        self.close()
        name = f"races-{uuid4().hex}"
        create_table(self.client, name)
        self._made.append(name)
        return name

    def race(self, scenario: Callable[[World], Race], *, invariants: bool = True, **options: Any) -> int:
        """Explores a race that starts in a fresh world. Checks the invariants after each check, unless told otherwise.

        options: of `explore`.
        """

        def begin() -> Race:
            self.ran = self._begin(scenario, invariants=invariants)
            return self.ran

        return explore(self.client, begin, **options)

    def faults(self, scenario: Callable[[World], Trial], *, invariants: bool = True, **options: Any) -> int:
        """Explores every fault of a trial in the same way. options: of `explore_faults`."""
        return explore_faults(self.client, lambda: self._begin(scenario, invariants=invariants), **options)

    def _begin[T: (Race, Trial)](self, scenario: Callable[[World], T], *, invariants: bool) -> T:
        begun = scenario(self.fresh())

        def check(result: Any) -> None:
            begun.check(result)
            self.check_invariants()

        return replace(begun, check=check) if invariants else begun

    def check_invariants(self) -> Items:
        """Reads the whole table and checks all invariants. Returns the items."""
        items = invariants.read_items(self.client, table.name)
        invariants.check_all(items)
        return items

    def close(self) -> None:
        while self._made:
            self.client.delete_table(TableName=self._made.pop())
