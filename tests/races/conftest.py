"""Race tests: the real apps on an engine with real atomicity, with a stopped clock and a new table for each run."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from analysis_testing.warm_sandbox import warm_sandboxes
from controlplane.platform.core import clock
from controlplane.platform.table.table import table
from tests.races.stage import RACE_TIME, Stage
from tests.support.engines import Engine, engine
from tests.support.few_shards import few_shards
from tests.support.issue_host import host
from tests.support.sqs import sqs

__all__ = ["engine", "host", "sqs"]

_FOLDER = Path(__file__).parent
_HANGS_AFTER_SECONDS = 2400


@pytest.fixture(scope="session", autouse=True)
def _shared_sandbox() -> Iterator[None]:
    with warm_sandboxes():
        yield


@pytest.fixture(scope="module", autouse=True)
def _few_shards() -> Iterator[None]:
    with few_shards():
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Lets busy machines take longer: races are limited by their steps, and the time only ends a hang."""
    for item in items:
        if item.path.is_relative_to(_FOLDER):
            item.add_marker(pytest.mark.races)
            item.add_marker(pytest.mark.timeout(_HANGS_AFTER_SECONDS))


@pytest.fixture(autouse=True)
def thread_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Returns a function that sets the calling thread's clock, as each instance has its own. Others stay stopped."""
    own = threading.local()
    monkeypatch.setattr(clock, "source", lambda: getattr(own, "seconds", RACE_TIME))

    def set_seconds(seconds: float) -> None:
        own.seconds = seconds

    return set_seconds


@pytest.fixture
def shared_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Returns a function that sets the clock of all threads."""
    seconds = [RACE_TIME]
    monkeypatch.setattr(clock, "source", lambda: seconds[0])

    def set_seconds(moment: float) -> None:
        seconds[0] = moment

    return set_seconds


@pytest.fixture
def stage(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    # monkeypatch restores both: other suites in this process have their own client and table.
    monkeypatch.setitem(vars(table), "client", engine.client)
    monkeypatch.setattr(table, "name", table.name)
    made = Stage(engine.client)
    yield made
    made.close()
