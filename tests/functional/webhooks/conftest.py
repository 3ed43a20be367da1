"""A company, and the line from an event to its endpoints."""

import pytest

from tests.support.endpoints import Line, Receiver
from tests.support.sqs import FakeSqs
from tests.support.world import Company, World


@pytest.fixture
def company(world: World) -> Company:
    return world.company()


@pytest.fixture
def line(world: World, company: Company, sqs: FakeSqs, monkeypatch: pytest.MonkeyPatch) -> Line:
    return Line(sqs, world, company, Receiver().install(monkeypatch))
