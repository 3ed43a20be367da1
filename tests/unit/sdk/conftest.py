"""Clients of the SDK without a network, and a clock that pauses move."""

import time

import pytest

from tests.support.sdk import Pauses


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Pauses:
    made = Pauses()
    monkeypatch.setattr(time, "sleep", made.sleep)
    monkeypatch.setattr(time, "monotonic", made.monotonic)
    return made
