"""A key is never admitted more often per minute than its limit, and exactly that often if enough requests arrive."""

from collections import Counter
from collections.abc import Callable

import pytest

from controlplane.core.tokens import digest
from controlplane.store import keys
from controlplane.store.table import Update, table
from tests.races.stage import RACE_TIME, Stage
from tests.support.api import Reply
from tests.support.faults import Case, Kind, Trial
from tests.support.outcomes import Outcome
from tests.support.schedules import Race
from tests.support.table import PREPARED
from tests.support.threads import run_repeatedly
from tests.support.world import World

pytestmark = pytest.mark.races

MINUTE = int(RACE_TIME) // 60


def key_with_limit(world: World, limit: int) -> str:
    """Creates a key with this limit and returns its secret."""
    secret = world.key(world.company())
    table.update(Update(keys.key_secret(digest(secret)), "SET #rateLimit = :limit", values={"limit": limit}), PREPARED)
    return secret


def test_sixteen_threads_get_exactly_the_limit(stage: Stage) -> None:
    secret = key_with_limit(stage.fresh(), 100)
    replies: list[Reply] = [
        outcome.get() for outcome in run_repeatedly([lambda: stage.api.get("/v1/me", secret)] * 16, times=10)
    ]
    assert Counter(reply.status for reply in replies) == {200: 100, 429: 60}
    admitted = [int(reply.headers["x-ratelimit-remaining"]) for reply in replies if reply.status == 200]
    assert sorted(admitted) == list(range(100))
    assert stage.check_invariants()[keys.key_secret(digest(secret))]["hits"] == 160


class TestMinuteBoundary:
    """Requests before and after the minute ends, by the clocks of the instances that serve them."""

    @pytest.mark.parametrize("opened", [False, True], ids=["first use", "window open"])
    def test_no_minute_admits_more_or_fewer_than_the_limit(
        self, opened: bool, stage: Stage, thread_clock: Callable[[float], None]
    ) -> None:
        def scenario(world: World) -> Race:
            secret = key_with_limit(world, 2)
            if opened:
                stage.api.get("/v1/me", secret)

            def request(seconds: float) -> Callable[[], Reply]:
                def act() -> Reply:
                    thread_clock(seconds)
                    return stage.api.get("/v1/me", secret)

                return act

            def check(outcomes: list[Outcome]) -> None:
                replies = [outcome.get() for outcome in outcomes]
                windows: dict[str, list[int]] = {}
                for reply in replies:
                    windows.setdefault(reply.headers["x-ratelimit-reset"], []).append(reply.status)
                before, after = (str((MINUTE + minutes) * 60) for minutes in (1, 2))
                assert set(windows) <= {before, after}
                room = 1 if opened else 2
                assert windows.get(before, []).count(200) == min(room, len(windows.get(before, [])))
                assert windows[after].count(200) == min(2, len(windows[after]))
                assert {reply.status for reply in replies} <= {200, 429}

            late, early = MINUTE * 60 + 59.999, (MINUTE + 1) * 60 + 0.0
            return Race([request(late), request(early), request(early)], check)

        stage.race(scenario, yields_at=lambda call: call.operation == "UpdateItem")


def test_a_counter_that_cant_be_written_never_admits_for_free(stage: Stage) -> None:
    def scenario(world: World) -> Trial:
        secret = key_with_limit(world, 100)

        def check(case: Case) -> None:
            replies = [outcome.get() for outcome in (case.first, case.second) if outcome.error is None]
            item = table.get(keys.key_secret(digest(secret)))
            assert item is not None
            assert item["hits"] >= sum(reply.status == 200 for reply in replies)
            assert case.second.get().status == 200
            if case.fault.kind in {Kind.CONFLICT, Kind.LOST_ON_THE_WIRE}:
                assert case.first.get().status == 200
            if case.fault.kind is Kind.THROTTLED:
                assert case.first.get().status in {200, 429}

        return Trial(lambda: stage.api.get("/v1/me", secret), check)

    assert stage.faults(scenario) > 10
