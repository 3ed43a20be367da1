"""Race tests: the real apps over an engine with real atomicity, a clock that stands still, and a fresh table a run."""

from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest

from controlplane import clock
from controlplane.store.table import table
from tests.support import invariants
from tests.support.asgi import DirectApi
from tests.support.engines import Engine, engine
from tests.support.invariants import Items
from tests.support.table import create_table
from tests.support.world import World

__all__ = ["engine"]

type Fresh = Callable[[], World]
type Hold = Callable[[], Items]


@pytest.fixture(autouse=True)
def _still_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "source", lambda: 1_772_600_767.0)


@pytest.fixture
def fresh(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fresh]:
    """Makes a new table and points the product at it: the start of every run of a scenario."""
    monkeypatch.setattr(table, "_client", engine.client)
    made: list[str] = []

    def make() -> World:
        if made:
            engine.client.delete_table(TableName=made.pop())
        made.append(f"races-{uuid4().hex}")
        create_table(engine.client, made[-1])
        monkeypatch.setattr(table, "name", made[-1])
        return World()

    yield make
    for name in made:
        engine.client.delete_table(TableName=name)


@pytest.fixture
def hold(engine: Engine) -> Hold:
    """Reads the whole table and checks every invariant of it. Returns the items."""

    def read_and_check() -> Items:
        items = invariants.read_items(engine.client, table.name)
        invariants.check_all(items)
        return items

    return read_and_check


@pytest.fixture
def api() -> DirectApi:
    return DirectApi()
