"""Where races are played: the product on one table of the engine, which every run starts anew."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock
from uuid import uuid4

from controlplane import clock
from controlplane.store.table import table
from tests.support import invariants
from tests.support.api import operations
from tests.support.asgi import DirectApi
from tests.support.invariants import Items
from tests.support.table import create_table
from tests.support.world import World

# 2026-03-04T05:06:07Z: the time at which every race begins, and stands still unless an act has a clock of its own.
STILL_AT = 1_772_600_767.0


@contextmanager
def moments_later(milliseconds: int) -> Iterator[None]:
    """Moves the clock while something is made, so that lists have it in a certain order."""
    with mock.patch.object(clock, "source", return_value=STILL_AT + milliseconds / 1000):
        yield


class Stage:
    """`client` is the product's own botocore client, `api` calls the product's apps."""

    def __init__(self, client: Any) -> None:
        operations()  # imports the functions in this thread, to which their handlers then belong
        self.client = client
        self.api = DirectApi()
        self._made: list[str] = []

    def fresh(self) -> World:
        """Points the product at a new table: the start of every run of a scenario."""
        self.close()
        name = f"races-{uuid4().hex}"
        create_table(self.client, name)
        self._made.append(name)
        table.name = name
        return World()

    def hold(self) -> Items:
        """Reads the whole table and checks every invariant of it. Returns the items."""
        items = invariants.read_items(self.client, table.name)
        invariants.check_all(items)
        return items

    def close(self) -> None:
        while self._made:
            self.client.delete_table(TableName=self._made.pop())
