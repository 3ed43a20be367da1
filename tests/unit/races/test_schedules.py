"""The scheduler finds every order, detects a planted race and names its order, and reports what it can't repeat."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.races import schedules
from tests.races.orders import NotRepeatable
from tests.races.schedules import NoRace, Race, Stuck, explore
from tests.support.calls import touch_outside
from tests.support.outcomes import Outcome
from tests.unit.races.test_orders import P_A, P_B, Q_A, Client, Item, call_of


@pytest.fixture
def client() -> Client:
    return Client()


def make(client: Client, kind: str, item: Item = P_A) -> Any:
    call = call_of((kind, item, item), 1)
    return client.call(call.operation, call.parameters)


def write(client: Client, times: int, item: Item = P_A) -> Callable[[], None]:
    """Returns an act that writes an item this many times."""

    def act() -> None:
        for _ in range(times):
            make(client, "put", item)

    return act


def orders_of(client: Client, *acts: Callable[[], Any], **options: Any) -> int:
    """Explores the acts without checks, and returns the number of orders."""
    return explore(client, lambda: Race(acts, lambda _: None), **options)


class TestOrders:
    def test_only_acts_that_share_something_race(self, client):
        assert orders_of(client, write(client, 3), write(client, 2)) == 10
        apart = [write(client, 3, item) for item in (P_A, P_B, Q_A)]
        assert orders_of(client, *apart, least=1) == 1
        with pytest.raises(NoRace):
            orders_of(client, *apart)

    def test_what_acts_do_outside_the_table_has_every_order(self, client):
        seen: list[str] = []
        orders: set[str] = set()

        def act(name: str, item: Item) -> None:
            for _ in range(2):
                make(client, "put", item)
                touch_outside()
                seen.append(name)

        def scenario() -> Race:
            seen.clear()
            return Race([lambda: act("a", P_A), lambda: act("b", P_B)], lambda _: orders.add("".join(seen)))

        assert explore(client, scenario) == 6
        assert orders == {"aabb", "abab", "abba", "baab", "baba", "bbaa"}

    def test_excluded_calls_run_with_the_preceding_call(self, client):
        def act() -> None:
            for kind in ("put", "put if absent", "query"):
                make(client, kind)

        assert orders_of(client, act, act, yields_at=lambda call: call.operation == "TransactWriteItems") == 2

    def test_an_exception_of_an_act_is_its_outcome(self, client):
        seen: list[Outcome] = []
        explore(client, lambda: Race([write(client, 1), lambda: int("x")], seen.extend), least=1)
        assert [type(outcome.error) for outcome in seen] == [type(None), ValueError]
        assert "call" not in client.__dict__


class TestReports:
    def test_a_call_from_an_unknown_thread_is_refused(self, client):
        outcomes: list[Outcome] = []

        def stray() -> None:
            thread = threading.Thread(target=lambda: outcomes.append(Outcome.of(write(client, 1))), daemon=True)
            thread.start()
            thread.join()

        orders_of(client, stray, least=1)
        assert "no act owns" in str(outcomes[0].error)

    @pytest.mark.parametrize("made", [[P_A], [P_B, P_A]], ids=["fewer calls", "another item"])
    def test_an_act_that_isnt_repeatable_is_reported(self, client, made):
        runs = iter([[P_A, P_A], made])

        def fickle() -> None:
            for item in next(runs):
                make(client, "put", item)

        with pytest.raises(NotRepeatable):
            orders_of(client, fickle, write(client, 2))

    def test_an_act_that_waits_for_another_act_is_reported(self, client, monkeypatch):
        monkeypatch.setattr(schedules, "_STUCK_SECONDS", 0.2)
        lock = threading.Lock()

        def locked() -> None:
            with lock:
                make(client, "put")

        with pytest.raises(Stuck):
            orders_of(client, locked, locked)


class TestTwin:
    """Acts take an item that only one may have: in one conditional write, or wrongly, after looking."""

    def taking(self, client: Client, acts: int, take: Callable[[], bool]) -> Race:
        client.state.clear()
        return Race([take] * acts, lambda outcomes: self.check([outcome.get() for outcome in outcomes]))

    def check(self, taken: list[bool]) -> None:
        assert taken.count(True) == 1

    def test_the_correct_write_passes_in_every_order(self, client):
        assert explore(client, lambda: self.taking(client, 3, lambda: make(client, "put if absent"))) == 6

    def test_the_incorrect_write_is_caught_and_the_order_named(self, client, monkeypatch):
        def scenario() -> Race:
            return self.taking(client, 2, lambda: make(client, "get") is None and make(client, "put") is None)

        with pytest.raises(AssertionError) as caught:
            explore(client, scenario)
        order = caught.value.__notes__[-1].partition("REPLAY_SCHEDULE=")[2].partition("\n")[0]
        assert order in {"0101", "0110", "1001", "1010"}
        monkeypatch.setenv("REPLAY_SCHEDULE", order)
        with pytest.raises(AssertionError):
            explore(client, scenario)
        monkeypatch.setenv("REPLAY_SCHEDULE", "0011")
        explore(client, scenario)
