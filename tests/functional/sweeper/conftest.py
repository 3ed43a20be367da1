"""The sweep over the table of each test."""

from collections.abc import Callable
from typing import Any

import pytest

from sweeper.app import handler


@pytest.fixture
def sweep() -> Callable[[], dict[str, int]]:
    """One call of the function, as the schedule makes it."""

    def run() -> dict[str, int]:
        event: dict[str, Any] = {"detail-type": "Scheduled Event"}
        return handler(event, None)

    return run
