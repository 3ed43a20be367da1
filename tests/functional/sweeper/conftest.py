"""The sweep of each test's table."""

from collections.abc import Callable
from typing import Any

import pytest

from sweeper.app import handler


@pytest.fixture
def sweep() -> Callable[[], dict[str, int]]:
    """Returns a function that runs the sweeper once, as its schedule does."""

    def run() -> dict[str, int]:
        event: dict[str, Any] = {"detail-type": "Scheduled Event"}
        return handler(event, None)

    return run
