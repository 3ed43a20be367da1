"""The sweep of each test's table."""

from collections.abc import Callable
from typing import Any

import pytest

from sweeper.app import handler
from sweeper.service import STEPS
from tests.support.world import Company, World

NOTHING = dict.fromkeys(STEPS, 0)

type Sweep = Callable[[], dict[str, int]]


@pytest.fixture
def sweep() -> Sweep:
    """Returns a function that runs the sweeper once, as its schedule does."""

    def run() -> dict[str, int]:
        event: dict[str, Any] = {"detail-type": "Scheduled Event"}
        return handler(event, None)

    return run


@pytest.fixture
def company(world: World) -> Company:
    return world.company()
