"""Threads start together, every outcome is returned, and a real engine detects the wrong cap."""

import threading
from typing import Any

import pytest

from tests.support.threads import run_repeatedly
from tests.unit.support.cap import CAP, Cap

pytestmark = pytest.mark.races


class TestHammer:
    def test_acts_run_concurrently(self) -> None:
        together = threading.Barrier(4)
        outcomes = run_repeatedly([lambda: together.wait(10)] * 4, times=2)
        assert [outcome.error for outcome in outcomes] == [None] * 8

    def test_outcomes_are_returned_by_act_including_exceptions(self) -> None:
        def fail() -> None:
            raise ValueError("no")

        outcomes = run_repeatedly([lambda: "first", fail], times=2)
        assert [outcome.value for outcome in outcomes] == ["first", "first", None, None]
        assert [type(outcome.error) for outcome in outcomes[2:]] == [ValueError, ValueError]


class TestTwin:
    def test_the_correct_counter_passes_under_threads(self, client: Any, engine_table: str) -> None:
        cap = Cap(client, engine_table)
        cap.fill(0)
        outcomes = run_repeatedly([cap.create] * 16, times=10)
        assert [outcome.get() for outcome in outcomes].count(True) == cap.stored() == cap.counted() == CAP

    def test_the_incorrect_counter_is_caught_under_threads(self, client: Any, engine_table: str) -> None:
        # Each round nearly always detects it; if none of five does, the engine or the threads don't race.
        stored: list[int] = []
        while len(stored) < 5 and max(stored, default=0) <= CAP:
            cap = Cap(client, engine_table)
            run_repeatedly([cap.create_by_count] * 16, times=10)
            stored.append(cap.stored())
        assert stored[-1] > CAP
