"""During a rotation of the signing secret, functions with the old and the new current key run concurrently."""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.core.settings import SigningSecret
from tests.functional.device_auth.devices import refresh, works
from tests.races.stage import RACE_TIME, Stage
from tests.races.test_idempotency_keys import LATER_SECONDS, Client, check_replies
from tests.races.test_refresh_tokens import first_pair
from tests.support.api import Reply
from tests.support.faults import Case, Trial
from tests.support.outcomes import Outcome
from tests.support.rings import BEFORE, MIXED_FLEETS, use_ring_of_thread
from tests.support.schedules import Race
from tests.support.threads import run_repeatedly
from tests.support.world import World

pytestmark = pytest.mark.races

type SetSecret = Callable[[SigningSecret], None]
type Mixed = tuple[SigningSecret, SigningSecret]


@pytest.fixture
def set_secret(monkeypatch: pytest.MonkeyPatch) -> SetSecret:
    return use_ring_of_thread(monkeypatch)


@pytest.fixture(params=MIXED_FLEETS, ids=["added later", "added first", "switched later", "switched first"])
def mixed(request: pytest.FixtureRequest) -> Mixed:
    both: Mixed = request.param
    return both


class TestACreationIsRepeatedByAnotherVersion:
    def test_a_creation_repeated_concurrently_by_another_version_takes_effect_once(
        self, stage: Stage, set_secret: SetSecret, mixed: Mixed
    ) -> None:
        def scenario(world: World) -> Race:
            client = Client(world, stage.api)

            def create(secret: SigningSecret) -> Reply:
                set_secret(secret)
                return client.create()

            def check(outcomes: list[Outcome]) -> None:
                replies: list[Reply] = [outcome.get() for outcome in outcomes]
                assert 201 in {reply.status for reply in replies}
                check_replies(client, replies)

            return Race([lambda secret=secret: create(secret) for secret in mixed], check)

        stage.race(scenario)

    def test_a_creation_repeated_after_the_lease_by_another_version_takes_effect_once(
        self, stage: Stage, set_secret: SetSecret, mixed: Mixed, thread_clock: Callable[[float], None]
    ) -> None:
        def scenario(world: World) -> Race:
            client = Client(world, stage.api)

            def create() -> Reply:
                set_secret(mixed[0])
                return client.create()

            def repeat_later() -> Reply:
                set_secret(mixed[1])
                thread_clock(RACE_TIME + LATER_SECONDS)
                return client.create()

            def check(outcomes: list[Outcome]) -> None:
                check_replies(client, [outcome.get() for outcome in outcomes])

            return Race([create, repeat_later], check)

        stage.race(scenario)

    @pytest.mark.parametrize("wait_seconds", [0, LATER_SECONDS], ids=["at once", "after the lease"])
    def test_a_creation_repeated_by_another_version_after_every_fault_takes_effect_once(
        self,
        wait_seconds: int,
        stage: Stage,
        set_secret: SetSecret,
        mixed: Mixed,
        thread_clock: Callable[[float], None],
    ) -> None:
        def scenario(world: World) -> Trial:
            client = Client(world, stage.api)
            thread_clock(RACE_TIME)
            set_secret(mixed[0])

            def again() -> Reply:
                thread_clock(RACE_TIME + wait_seconds)
                set_secret(mixed[1])
                return client.create()

            def check(case: Case) -> None:
                replies = [case.second.get()]
                if case.first.error is None:
                    replies.append(case.first.get())
                check_replies(client, replies)
                if wait_seconds and not client.made():
                    assert replies[0].status != 409

            return Trial(client.create, check, again)

        assert stage.faults(scenario) > 20

    def test_sixteen_threads_of_both_versions_create_one(
        self, stage: Stage, set_secret: SetSecret, mixed: Mixed
    ) -> None:
        client = Client(stage.fresh(), stage.api)

        def create(secret: SigningSecret) -> Reply:
            set_secret(secret)
            return client.create()

        acts = [lambda secret=secret: create(secret) for secret in mixed * 8]
        replies: list[Reply] = [outcome.get() for outcome in run_repeatedly(acts)]
        assert 201 in {reply.status for reply in replies}
        check_replies(client, replies)
        stage.check_invariants()


class TestTwoVersionsRefreshOneToken:
    def test_two_versions_that_refresh_one_token_return_the_same_pair(
        self, stage: Stage, set_secret: SetSecret, mixed: Mixed
    ) -> None:
        def scenario(world: World) -> Race:
            set_secret(BEFORE)
            first: dict[str, Any] = first_pair(world, stage.api)

            def act(secret: SigningSecret) -> Reply:
                set_secret(secret)
                return refresh(stage.api, first["refreshToken"])

            def check(outcomes: list[Outcome]) -> None:
                one, other = (outcome.get().data for outcome in outcomes)
                assert one == other
                assert works(stage.api, one["accessToken"])
                set_secret(mixed[0])
                assert refresh(stage.api, one["refreshToken"]).status == 200

            return Race([lambda secret=secret: act(secret) for secret in mixed], check)

        stage.race(scenario)
