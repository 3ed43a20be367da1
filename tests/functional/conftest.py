"""Functional tests: the real handlers, a table from the template for each test, a clock that tests set."""

from itertools import count

import pytest

from analysis_testing.warm_sandbox import warm_sandboxes
from consent_instances import service as configurations
from controlplane.access import authentication
from controlplane.platform.core import clock, deadline
from controlplane.platform.table import refusals
from controlplane.platform.table.table import table
from tests.support import attributes, permissions
from tests.support.api import Api
from tests.support.engines import sequential_engine
from tests.support.few_shards import few_shards
from tests.support.issue_host import host
from tests.support.mailbox import mailbox, post_office
from tests.support.sqs import sqs
from tests.support.table import create_table
from tests.support.world import World

__all__ = ["host", "mailbox", "post_office", "sqs"]

_TABLES = count(1)


class FakeClock:
    """A clock that moves only when told to. Starts at 2026-03-04T05:06:07Z."""

    def __init__(self) -> None:
        self.seconds = 1_772_600_767.0

    def __call__(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture(scope="session")
def _client(pytestconfig):
    with sequential_engine(pytestconfig.getoption("engine")) as client:
        yield client


@pytest.fixture(autouse=True)
def _fresh_table(_client):
    table.name = f"assent-test-{next(_TABLES)}"
    # Clears the counts per client that the environment kept from the previous test, whose clock had the same
    # time.
    authentication._malformed.clear()
    configurations._counts.clear()
    refusals._full.clear()
    table.client = _client
    create_table(table.client, table.name)
    yield
    table.client.delete_table(TableName=table.name)


@pytest.fixture(scope="module", autouse=True)
def _few_shards():
    with few_shards():
        yield


@pytest.fixture(scope="session", autouse=True)
def _watched():
    with permissions.watched():
        yield


@pytest.fixture(scope="session", autouse=True)
def _shared_sandbox():
    with warm_sandboxes():
        yield


@pytest.fixture(autouse=True)
def _permitted():
    """Fails the first test in which a function does something that its policy doesn't allow, as AWS would deny it."""
    before = permissions.missing()
    yield
    assert permissions.missing() == before


@pytest.fixture(autouse=True)
def _named():
    """Fails the first test in which an expression names an attribute that nothing else uses."""
    before = {*attributes.unknown}
    yield
    assert attributes.unknown == before


@pytest.fixture(autouse=True)
def now(monkeypatch):
    fake = FakeClock()
    monkeypatch.setattr(clock, "source", fake)
    # A busy machine takes no time, so no request ends for it.
    monkeypatch.setattr(deadline, "source", lambda: 0.0)
    return fake


@pytest.fixture
def api():
    return Api()


@pytest.fixture
def world():
    return World()
