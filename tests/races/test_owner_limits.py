"""A user's credentials together never exceed the user's rate limit, however their requests race."""

from collections import Counter

import pytest

from controlplane.core.settings import settings
from controlplane.store import keys, sessions, waiting
from tests.races.stage import RACE_TIME, Stage
from tests.support.faults import Case, Trial
from tests.support.outcomes import Outcome
from tests.support.schedules import Race, every_call
from tests.support.threads import run_repeatedly
from tests.support.world import World

pytestmark = pytest.mark.races

MINUTE = int(RACE_TIME) // 60


def limit(monkeypatch: pytest.MonkeyPatch, **numbers: int) -> None:
    for name, number in numbers.items():
        monkeypatch.setitem(settings.__dict__, name, number)


def test_sixteen_threads_with_four_credentials_get_exactly_the_limit(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, requests_per_minute_user=100)
    world = stage.fresh()
    person = world.person()
    secrets = [person.token, world.token(person.user_id), *(sessions.create(person.user_id) for _ in range(2))]
    acts = [lambda secret=secrets[number % 4]: stage.api.get("/v1/me", secret) for number in range(16)]
    replies = [outcome.get() for outcome in run_repeatedly(acts, times=10)]
    assert Counter(reply.status for reply in replies) == {200: 100, 429: 60}
    stage.check_invariants()


def test_with_blocks_threads_get_at_most_the_limit_and_hardly_less(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, requests_per_minute_user=400)  # blocks of 4
    world = stage.fresh()
    person = world.person()
    secrets = [person.token, world.token(person.user_id)]
    acts = [lambda secret=secrets[number % 2]: stage.api.get("/v1/me", secret) for number in range(16)]
    replies = [outcome.get() for outcome in run_repeatedly(acts, times=30)]
    admitted = Counter(reply.status for reply in replies)[200]
    # Blocks end at half of the limit. Some requests that race with that are reserved twice.
    assert 360 <= admitted <= 400
    assert stage.check_invariants()[keys.owner_count(person.user_id, MINUTE)]["hits"] >= admitted


def test_in_every_order_two_credentials_share_the_remainder(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, requests_per_minute_user=2)

    def scenario(world: World) -> Race:
        person = world.person()
        secrets = [person.token, world.token(person.user_id), sessions.create(person.user_id)]

        def check(outcomes: list[Outcome]) -> None:
            assert sorted(outcome.get().status for outcome in outcomes) == [200, 200, 429]

        return Race([lambda secret=secret: stage.api.get("/v1/me", secret) for secret in secrets], check)

    stage.race(scenario, yields_at=every_call)


def test_a_failing_counter_never_admits_more(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, requests_per_minute_user=100)

    def scenario(world: World) -> Trial:
        person = world.person()

        def check(case: Case) -> None:
            admitted = [outcome.get().status for outcome in (case.first, case.second) if outcome.error is None].count(
                200
            )
            assert case.second.get().status == 200
            assert stage.check_invariants()[keys.owner_count(person.user_id, MINUTE)]["hits"] >= admitted

        return Trial(lambda: stage.api.get("/v1/me", person.token), check)

    assert stage.faults(scenario) > 10


class TestWaitingSlots:
    def test_sixteen_threads_hold_at_most_the_available_slots(
        self, stage: Stage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        limit(monkeypatch, account_concurrency=50)
        stage.fresh()
        held = [outcome.get() for outcome in run_repeatedly([lambda: waiting.acquire_slot(8)] * 16, times=4)]
        numbers = [slot[0] for slot in held if slot is not None]
        assert sorted(numbers) == [0, 1, 2, 3, 4]

    def test_in_every_order_one_of_two_gets_the_last_slot(self, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
        limit(monkeypatch, account_concurrency=10)

        def scenario(world: World) -> Race:
            def check(outcomes: list[Outcome]) -> None:
                assert [outcome.get() is None for outcome in outcomes].count(False) == 1

            return Race([lambda: waiting.acquire_slot(8)] * 3, check)

        stage.race(scenario, yields_at=every_call)
