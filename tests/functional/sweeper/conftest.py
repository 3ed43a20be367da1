"""The sweep over the table of each test, with the queues it sends to."""

from collections.abc import Callable
from typing import Any

import pytest

from sweeper.app import handler
from tests.support.mailbox import Mailbox


@pytest.fixture
def queues_of_test(monkeypatch: pytest.MonkeyPatch) -> Mailbox:
    made = Mailbox()
    made.install(monkeypatch)
    return made


@pytest.fixture
def sweep(queues_of_test: Mailbox) -> Callable[[], dict[str, int]]:
    """One call of the function, as the schedule makes it."""

    def run() -> dict[str, int]:
        event: dict[str, Any] = {"detail-type": "Scheduled Event"}
        return handler(event, None)

    return run
