"""The scheduler finds every order, detects the races of the wrong cap, and accepts the right one."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.support import schedules
from tests.support.outcomes import Outcome
from tests.support.schedules import NotRepeatable, Race, Stuck, explore
from tests.unit.support.cap import CAP, Cap

pytestmark = pytest.mark.races


def read(client: Any, table: str, times: int) -> Callable[[], None]:
    """Returns an act with this many calls that change nothing."""

    def act() -> None:
        for _ in range(times):
            client.get_item(TableName=table, Key={"pk": {"S": "NOBODY"}, "sk": {"S": "NOTHING"}})

    return act


def race_of_creates(client: Any, table: str, create: Callable[[Cap], bool], creators: int) -> Race:
    """Returns a race to create keys for an owner who has 49."""
    cap = Cap(client, table)
    cap.fill(CAP - 1)

    def check(outcomes: list[Outcome]) -> None:
        assert cap.stored() <= CAP
        assert [outcome.get() for outcome in outcomes].count(True) == 1

    return Race([lambda: create(cap)] * creators, check)


class TestOrders:
    def test_two_acts_of_three_and_two_calls_have_ten_orders(self, client: Any, engine_table: str) -> None:
        acts = [read(client, engine_table, 3), read(client, engine_table, 2)]
        explored = explore(client, lambda: Race(acts, lambda outcomes: None))
        assert explored == schedules.Explored(10, exhaustive=True)

    def test_a_limit_samples_that_many_different_orders(self, client: Any, engine_table: str) -> None:
        acts = [read(client, engine_table, 2)] * 3
        explored = explore(client, lambda: Race(acts, lambda outcomes: None), limit=20, seed=7)
        assert explored == schedules.Explored(20, exhaustive=False)

    def test_independent_calls_are_left_out(self, client: Any, engine_table: str) -> None:
        def act() -> None:
            cap = Cap(client, engine_table)
            cap.fill(0)
            cap.create()
            cap.stored()

        race = Race([act, act], lambda outcomes: None)
        explored = explore(client, lambda: race, yields_at=lambda call: call.operation == "TransactWriteItems")
        assert explored == schedules.Explored(2, exhaustive=True)

    def test_an_exception_of_an_act_is_its_outcome(self, client: Any, engine_table: str) -> None:
        seen: list[Outcome] = []

        def fail() -> None:
            raise ValueError("no")

        explore(client, lambda: Race([read(client, engine_table, 1), fail], seen.extend))
        assert [type(outcome.error) for outcome in seen] == [type(None), ValueError]

    def test_a_call_from_an_unknown_thread_is_refused(self, client: Any, engine_table: str) -> None:
        outcomes: list[Outcome] = []

        def stray() -> None:
            thread = threading.Thread(
                target=lambda: outcomes.append(Outcome.of(read(client, engine_table, 1))), daemon=True
            )
            thread.start()
            thread.join()

        explore(client, lambda: Race([stray], lambda _: None))
        assert "no act owns" in str(outcomes[0].error)

    def test_an_act_that_behaves_differently_is_reported(self, client: Any, engine_table: str) -> None:
        lengths = iter([1, 2, 2, 2])

        def fickle() -> None:
            read(client, engine_table, next(lengths))()

        with pytest.raises(NotRepeatable):
            explore(client, lambda: Race([fickle, read(client, engine_table, 2)], lambda _: None))

    def test_an_act_that_waits_for_another_act_is_reported(
        self, client: Any, engine_table: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(schedules, "_STUCK_SECONDS", 0.2)
        lock = threading.Lock()

        def locked() -> None:
            with lock:
                read(client, engine_table, 1)()

        with pytest.raises(Stuck):
            explore(client, lambda: Race([locked, locked], lambda _: None))

    def test_the_client_is_restored_afterward(self, client: Any, engine_table: str) -> None:
        explore(client, lambda: Race([read(client, engine_table, 1)], lambda _: None))
        assert "call" not in client.__dict__


class TestTwin:
    def test_the_correct_counter_passes_in_every_order(self, client: Any, engine_table: str) -> None:
        explored = explore(client, lambda: race_of_creates(client, engine_table, Cap.create, 3))
        assert explored == schedules.Explored(6, exhaustive=True)

    def test_the_incorrect_counter_is_caught_and_the_order_named(
        self, client: Any, engine_table: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def scenario() -> Race:
            return race_of_creates(client, engine_table, Cap.create_by_count, 2)

        with pytest.raises(AssertionError) as caught:
            explore(client, scenario)
        order = caught.value.__notes__[-1].partition("REPLAY_SCHEDULE=")[2].partition("\n")[0]
        assert order in {"0101", "0110", "1001", "1010"}

        monkeypatch.setenv("REPLAY_SCHEDULE", order)
        with pytest.raises(AssertionError):
            explore(client, scenario)

        monkeypatch.setenv("REPLAY_SCHEDULE", "0011")
        explore(client, scenario)
