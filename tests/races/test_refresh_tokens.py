"""A refresh token works once, however often it is sent concurrently, and a revoked family has no live token."""

from typing import Any

import pytest

from controlplane.store import leaked_tokens
from controlplane.store.leaked_keys import Leak
from tests.functional.device_auth.devices import REVOKE, refresh, request_code, works
from tests.races.stage import Stage
from tests.races.verdicts import check_first
from tests.support.api import Reply
from tests.support.asgi import DirectApi
from tests.support.faults import Case, Trial
from tests.support.outcomes import Outcome
from tests.support.schedules import Race, every_call
from tests.support.threads import run_repeatedly
from tests.support.world import World

pytestmark = pytest.mark.races


def first_pair(world: World, api: DirectApi) -> dict[str, Any]:
    """Returns the tokens of an approved device."""
    pair: dict[str, Any] = request_code(api).approved(world.person().user_id).redeem().data
    return pair


class TestTwoRefreshes:
    def test_two_refreshes_of_one_token_get_the_same_pair(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            first = first_pair(world, stage.api)

            def check(outcomes: list[Outcome]) -> None:
                one, other = (outcome.get().data for outcome in outcomes)
                assert one == other
                assert works(stage.api, one["accessToken"])
                assert refresh(stage.api, one["refreshToken"]).status == 200

            return Race([lambda: refresh(stage.api, first["refreshToken"])] * 2, check)

        stage.race(scenario)

    def test_refreshing_a_token_and_its_successor_leaves_one_live_family_or_none(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            first = first_pair(world, stage.api)
            second = refresh(stage.api, first["refreshToken"]).data

            def check(outcomes: list[Outcome]) -> None:
                repeated, next_one = (outcome.get() for outcome in outcomes)
                pairs = [first, second, *(reply.data for reply in (repeated, next_one) if reply.status == 200)]
                alive = [works(stage.api, pair["accessToken"]) for pair in pairs]
                if repeated.status == 200:
                    assert repeated.data == second
                    assert next_one.status == 200
                    assert all(alive)
                else:
                    assert repeated.status == 401
                    assert not any(alive)

            acts = [first["refreshToken"], second["refreshToken"]]
            return Race([lambda token=token: refresh(stage.api, token) for token in acts], check)

        stage.race(scenario)

    def test_sixteen_refreshes_of_one_token_get_the_same_pair(self, stage: Stage) -> None:
        first = first_pair(stage.fresh(), stage.api)
        outcomes = run_repeatedly([lambda: refresh(stage.api, first["refreshToken"])] * 16)
        assert len({outcome.get().text for outcome in outcomes}) == 1
        assert works(stage.api, outcomes[0].get().data["accessToken"])
        stage.check_invariants()


class TestRevocation:
    @pytest.mark.parametrize("kind", ["accessToken", "refreshToken"])
    def test_a_revocation_during_a_refresh_leaves_no_live_token(self, kind: str, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            first = first_pair(world, stage.api)

            def check(outcomes: list[Outcome]) -> None:
                refreshed: Reply = outcomes[0].get()
                assert outcomes[1].get().status == 200
                assert refreshed.status in {200, 401}
                assert not works(stage.api, first["accessToken"])
                if refreshed.status == 200:
                    assert not works(stage.api, refreshed.data["accessToken"])
                    assert refresh(stage.api, refreshed.data["refreshToken"]).status == 401

            revoke = {"token": first[kind]}
            return Race(
                [
                    lambda: refresh(stage.api, first["refreshToken"]),
                    lambda: stage.api.post(REVOKE, json_body=revoke),
                ],
                check,
            )

        stage.race(scenario)

    @pytest.mark.parametrize("kind", ["accessToken", "refreshToken"])
    def test_a_leak_report_during_a_refresh_leaves_no_live_token(self, kind: str, stage: Stage) -> None:
        revoke = leaked_tokens.revoke_token if kind == "accessToken" else leaked_tokens.revoke_refresh_token

        def scenario(world: World) -> Race:
            first = first_pair(world, stage.api)

            def check(outcomes: list[Outcome]) -> None:
                refreshed: Reply = outcomes[0].get()
                assert sorted(outcome.get() for outcome in outcomes[1:]) == [False, True]
                assert refreshed.status in {200, 401}
                assert not works(stage.api, first["accessToken"])
                if refreshed.status == 200:
                    assert not works(stage.api, refreshed.data["accessToken"])
                    assert refresh(stage.api, refreshed.data["refreshToken"]).status == 401

            leak = lambda: revoke(first[kind], Leak("commit", None))  # noqa: E731
            return Race([lambda: refresh(stage.api, first["refreshToken"]), leak, leak], check)

        stage.race(scenario)

    def test_a_revocation_during_a_request_leaves_no_token_behind(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            first = first_pair(world, stage.api)

            def check(outcomes: list[Outcome]) -> None:
                assert outcomes[0].get().status in {200, 401}
                assert not works(stage.api, first["accessToken"])

            revoke = {"token": first["refreshToken"]}
            return Race(
                [
                    lambda: stage.api.get("/v1/me", first["accessToken"]),
                    lambda: stage.api.post(REVOKE, json_body=revoke),
                ],
                check,
            )

        stage.race(scenario, yields_at=every_call)


class TestEveryFault:
    def test_under_every_fault_a_retried_refresh_gets_its_pair(self, stage: Stage) -> None:
        def scenario(world: World) -> Trial:
            first = first_pair(world, stage.api)

            def check(case: Case) -> None:
                came, again = check_first(case, 200), case.second.get()
                assert again.status == 200
                if came is not None and came.status == 200:
                    assert came.data == again.data
                assert works(stage.api, again.data["accessToken"])
                assert refresh(stage.api, again.data["refreshToken"]).status == 200

            return Trial(lambda: refresh(stage.api, first["refreshToken"]), check)

        assert stage.faults(scenario) > 20

    def test_under_every_fault_a_retried_revocation_succeeds(self, stage: Stage) -> None:
        def scenario(world: World) -> Trial:
            first = first_pair(world, stage.api)
            second = refresh(stage.api, first["refreshToken"]).data

            def check(case: Case) -> None:
                check_first(case, 200)
                assert case.second.get().status == 200
                assert not works(stage.api, first["accessToken"])
                assert not works(stage.api, second["accessToken"])

            return Trial(lambda: stage.api.post(REVOKE, json_body={"token": first["refreshToken"]}), check)

        assert stage.faults(scenario) > 20
