"""Race tests: the real apps over an engine with real atomicity, a clock that stands still, and a fresh table a run."""

import threading
from collections.abc import Callable, Iterator

import pytest

from controlplane import clock
from controlplane.store.table import table
from tests.races.stage import STILL_AT, Stage
from tests.support.engines import Engine, engine
from tests.support.issue_host import host
from tests.support.mailbox import mailbox

__all__ = ["engine", "host", "mailbox"]


@pytest.fixture(autouse=True)
def own_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the clock of the calling thread alone, as each instance has its own; the others stand still."""
    own = threading.local()
    monkeypatch.setattr(clock, "source", lambda: getattr(own, "seconds", STILL_AT))

    def set_seconds(seconds: float) -> None:
        own.seconds = seconds

    return set_seconds


@pytest.fixture
def stage(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    # Both are put back afterwards: other suites of the same process have a client and a table of their own.
    monkeypatch.setattr(table, "_client", engine.client)
    monkeypatch.setattr(table, "name", table.name)
    made = Stage(engine.client)
    yield made
    made.close()
