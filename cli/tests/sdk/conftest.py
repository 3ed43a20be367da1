"""Clients of the SDK without a network, and a clock that pauses move."""

import time

import pytest

from cli.tests.support.script import Pauses


@pytest.fixture
def pauses(monkeypatch):
    made = Pauses()
    monkeypatch.setattr(time, "sleep", made.sleep)
    monkeypatch.setattr(time, "monotonic", made.monotonic)
    return made
