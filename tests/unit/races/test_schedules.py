"""The scheduler finds every order, detects the races of the wrong cap, and accepts the right one."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.races import schedules, starts
from tests.races.orders import NotRepeatable
from tests.races.schedules import NoRace, Race, Stuck, explore
from tests.support.calls import touch_outside
from tests.support.outcomes import Outcome
from tests.unit.races.cap import CAP, Cap


def write(client: Any, table: str, times: int, name: str = "SHARED") -> Callable[[], None]:
    """Returns an act that writes an item this many times."""

    def act() -> None:
        for _ in range(times):
            client.put_item(TableName=table, Item={"pk": {"S": "RACE"}, "sk": {"S": name}})

    return act


def race_of_creates(client: Any, table: str, create: Callable[[Cap], bool], creators: int) -> Race:
    """Returns a race to create keys for an owner who has 49."""
    cap = Cap(client, starts.begin(lambda: table))
    cap.fill(CAP - 1)

    def check(outcomes: list[Outcome]) -> None:
        assert cap.stored() <= CAP
        assert [outcome.get() for outcome in outcomes].count(True) == 1

    return Race([lambda: create(cap)] * creators, check)


class TestOrders:
    def test_two_acts_of_three_and_two_calls_have_ten_orders(self, client, engine_table):
        acts = [write(client, engine_table, 3), write(client, engine_table, 2)]
        assert explore(client, lambda: Race(acts, lambda outcomes: None)) == 10

    def test_acts_that_share_nothing_have_one_order(self, client, engine_table):
        acts = [write(client, engine_table, 3, f"OWN{number}") for number in range(3)]
        assert explore(client, lambda: Race(acts, lambda outcomes: None), least=1) == 1
        with pytest.raises(NoRace):
            explore(client, lambda: Race(acts, lambda outcomes: None))

    def test_what_acts_do_outside_the_table_has_every_order(self, client, engine_table):
        seen: list[str] = []

        def act(name: str) -> None:
            for _ in range(2):
                write(client, engine_table, 1, name)()
                touch_outside()
                seen.append(name)

        def scenario() -> Race:
            seen.clear()
            return Race([lambda: act("a"), lambda: act("b")], lambda outcomes: orders.add("".join(seen)))

        orders: set[str] = set()
        assert explore(client, scenario) == 6
        assert orders == {"aabb", "abab", "abba", "baab", "baba", "bbaa"}

    def test_excluded_calls_run_with_the_preceding_call(self, client, engine_table):
        def act() -> None:
            cap.fill(0)
            cap.create()
            cap.stored()

        cap = Cap(client, engine_table)
        race = Race([act, act], lambda outcomes: None)
        explored = explore(client, lambda: race, yields_at=lambda call: call.operation == "TransactWriteItems")
        assert explored == 2

    def test_an_exception_of_an_act_is_its_outcome(self, client, engine_table):
        seen: list[Outcome] = []

        def fail() -> None:
            raise ValueError("no")

        explore(client, lambda: Race([write(client, engine_table, 1), fail], seen.extend), least=1)
        assert [type(outcome.error) for outcome in seen] == [type(None), ValueError]

    def test_a_call_from_an_unknown_thread_is_refused(self, client, engine_table):
        outcomes: list[Outcome] = []

        def stray() -> None:
            thread = threading.Thread(
                target=lambda: outcomes.append(Outcome.of(write(client, engine_table, 1))), daemon=True
            )
            thread.start()
            thread.join()

        explore(client, lambda: Race([stray], lambda _: None), least=1)
        assert "no act owns" in str(outcomes[0].error)

    def test_an_act_that_behaves_differently_is_reported(self, client, engine_table):
        lengths = iter([2, 1])

        def fickle() -> None:
            write(client, engine_table, next(lengths))()

        with pytest.raises(NotRepeatable):
            explore(client, lambda: Race([fickle, write(client, engine_table, 2)], lambda _: None))

    def test_an_act_that_touches_something_else_is_reported(self, client, engine_table):
        names = iter(["SHARED", "OTHER"])

        def fickle() -> None:
            write(client, engine_table, 1, next(names))()
            write(client, engine_table, 1)()

        with pytest.raises(NotRepeatable):
            explore(client, lambda: Race([fickle, write(client, engine_table, 2)], lambda _: None))

    def test_an_act_that_waits_for_another_act_is_reported(self, client, engine_table, monkeypatch):
        monkeypatch.setattr(schedules, "_STUCK_SECONDS", 0.2)
        lock = threading.Lock()

        def locked() -> None:
            with lock:
                write(client, engine_table, 1)()

        with pytest.raises(Stuck):
            explore(client, lambda: Race([locked, locked], lambda _: None))

    def test_the_client_is_restored_afterward(self, client, engine_table):
        explore(client, lambda: Race([write(client, engine_table, 1)], lambda _: None), least=1)
        assert "call" not in client.__dict__


class TestTwin:
    def test_the_correct_counter_passes_in_every_order(self, client, engine_table):
        assert explore(client, lambda: race_of_creates(client, engine_table, Cap.create, 3)) == 6

    def test_the_incorrect_counter_is_caught_and_the_order_named(self, client, engine_table, monkeypatch):
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
