"""Race tests: the real apps over an engine with real atomicity, a clock that stands still, and a fresh table a run."""

from collections.abc import Iterator

import pytest

from controlplane import clock
from controlplane.store.table import table
from tests.races.stage import Stage
from tests.support.engines import Engine, engine

__all__ = ["engine"]


@pytest.fixture(autouse=True)
def _still_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "source", lambda: 1_772_600_767.0)


@pytest.fixture
def stage(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    # Both are put back afterwards: other suites of the same process have a client and a table of their own.
    monkeypatch.setattr(table, "_client", engine.client)
    monkeypatch.setattr(table, "name", table.name)
    made = Stage(engine.client)
    yield made
    made.close()
