"""A device code is redeemed at most once, and only while it is approved, whatever runs concurrently."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from controlplane.store import device_approvals, keys
from controlplane.store.device_approvals import AlreadyDecided, RequestExpired, TooManyTries, UnknownUserCode
from controlplane.store.rate import TRIES_WINDOW_SECONDS
from controlplane.store.table import table
from tests.functional.device_auth.devices import Device, request_code, works
from tests.races.stage import RACE_TIME, Stage
from tests.races.verdicts import check_first
from tests.support.api import Reply
from tests.support.asgi import DirectApi
from tests.support.faults import Case, Trial
from tests.support.outcomes import Outcome
from tests.support.schedules import Race
from tests.support.threads import run_repeatedly
from tests.support.world import World

pytestmark = pytest.mark.races

EXPIRY = RACE_TIME + 900


def status_of(reply: Reply) -> str:
    """Returns the result of a redemption as one word."""
    if reply.status == 200:
        return "tokens"
    return str((reply.error.get("details") or {}).get("status"))


def outcome_of(outcome: Outcome) -> str:
    """Returns the result of a user's decision as one word."""
    if isinstance(outcome.error, AlreadyDecided):
        return str(outcome.error.context["decision"])
    if isinstance(outcome.error, RequestExpired):
        return "expired"
    outcome.get()
    return "done"


class PendingRequest:
    """A device that has requested access, and two users who may decide."""

    def __init__(self, world: World, api: DirectApi) -> None:
        self.world = world
        self.ada, self.bob = world.person().user_id, world.person().user_id
        self.device: Device = request_code(api, scope="projects.read billing.read")

    def approve(self, user_id: str, *scopes: str) -> Callable[[], None]:
        return lambda: device_approvals.approve(self.device.user_code, user_id, list(scopes or ["projects.read"]))

    def deny(self, user_id: str) -> Callable[[], None]:
        return lambda: device_approvals.deny(self.device.user_code, user_id)


def at(thread_clock: Callable[[float], None], seconds: float, act: Callable[[], Any]) -> Callable[[], Any]:
    """Returns the act, run on an instance with its clock set to this time."""

    def run() -> Any:
        thread_clock(seconds)
        return act()

    return run


class TestRedemptions:
    def test_of_two_redemptions_one_gets_tokens_and_the_other_revokes_them(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            pending = PendingRequest(world, stage.api)
            pending.approve(pending.ada)()

            def check(outcomes: list[Outcome]) -> None:
                replies: list[Reply] = [outcome.get() for outcome in outcomes]
                assert sorted(status_of(reply) for reply in replies) == ["tokens", "used"]
                assert not any(works(stage.api, reply.data["accessToken"]) for reply in replies if reply.status == 200)

            return Race([pending.device.redeem] * 2, check)

        stage.race(scenario)

    def test_of_sixteen_redemptions_one_gets_tokens(self, stage: Stage) -> None:
        world = stage.fresh()
        for number in range(8):
            device = request_code(DirectApi(source_ip=f"203.0.113.{number}")).approved(world.person().user_id)
            outcomes = run_repeatedly([device.redeem] * 16)
            assert Counter(status_of(outcome.get()) for outcome in outcomes) == {"tokens": 1, "used": 15}
        items = stage.check_invariants()
        assert sum(key.pk.startswith("FAMILY#") for key in items) == 8

    def test_either_the_redemption_or_the_denial_succeeds(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            pending = PendingRequest(world, stage.api)
            pending.approve(pending.ada)()

            def check(outcomes: list[Outcome]) -> None:
                reply: Reply = outcomes[0].get()
                came = status_of(reply), outcome_of(outcomes[1])
                assert came in {("tokens", "redeemed"), ("access_denied", "done")}
                if reply.status == 200:
                    assert works(stage.api, reply.data["accessToken"])

            return Race([pending.device.redeem, pending.deny(pending.ada)], check)

        stage.race(scenario)

    def test_at_expiry_only_a_timely_redemption_gets_tokens(
        self, stage: Stage, thread_clock: Callable[[float], None]
    ) -> None:
        def scenario(world: World) -> Race:
            pending = PendingRequest(world, stage.api)
            pending.approve(pending.ada)()

            def check(outcomes: list[Outcome]) -> None:
                in_time, late = (status_of(outcome.get()) for outcome in outcomes)
                assert in_time == "tokens"
                assert late in {"expired", "used"}

            redeem = pending.device.redeem
            return Race([at(thread_clock, EXPIRY - 0.001, redeem), at(thread_clock, EXPIRY, redeem)], check)

        stage.race(scenario)

    def test_under_every_fault_tokens_are_issued_once_and_never_lost_silently(self, stage: Stage) -> None:
        def scenario(world: World) -> Trial:
            pending = PendingRequest(world, stage.api)
            pending.approve(pending.ada)()

            def check(case: Case) -> None:
                first, second = check_first(case, 200), case.second.get()
                assert status_of(second) in {"tokens", "used"}
                if first is not None and first.status == 200:
                    assert status_of(second) == "used"
                for reply in (first, second):
                    if reply is not None and reply.status == 200:
                        assert works(stage.api, reply.data["accessToken"]) is (status_of(second) == "tokens")

            return Trial(pending.device.redeem, check)

        assert stage.faults(scenario) > 20


class TestDecisions:
    def test_one_of_an_approval_and_a_concurrent_denial_by_another_user_succeeds(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            pending = PendingRequest(world, stage.api)

            def check(outcomes: list[Outcome]) -> None:
                came = outcome_of(outcomes[0]), outcome_of(outcomes[1])
                after = status_of(pending.device.redeem())
                assert (*came, after) in {("done", "approved", "tokens"), ("denied", "done", "access_denied")}

            return Race([pending.approve(pending.ada), pending.deny(pending.bob)], check)

        stage.race(scenario)

    def test_of_two_approvals_one_counts_with_its_user_and_scopes(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            pending = PendingRequest(world, stage.api)

            def check(outcomes: list[Outcome]) -> None:
                came = outcome_of(outcomes[0]), outcome_of(outcomes[1])
                assert came in {("done", "approved"), ("approved", "done")}
                me = stage.api.get("/v1/me", pending.device.redeem().data["accessToken"]).data
                expected = (pending.ada, ["projects.read"]) if came[0] == "done" else (pending.bob, ["billing.read"])
                assert (me["principal"]["userId"], me["scopes"]) == expected

            return Race(
                [pending.approve(pending.ada, "projects.read"), pending.approve(pending.bob, "billing.read")], check
            )

        stage.race(scenario)

    @pytest.mark.parametrize("decision", ["approve", "deny"])
    def test_at_expiry_only_a_timely_decision_counts(
        self, decision: str, stage: Stage, thread_clock: Callable[[float], None]
    ) -> None:
        def scenario(world: World) -> Race:
            pending = PendingRequest(world, stage.api)

            def check(outcomes: list[Outcome]) -> None:
                in_time, late = outcome_of(outcomes[0]), outcome_of(outcomes[1])
                assert in_time == "done"
                assert late in {"expired", "approved" if decision == "approve" else "denied"}

            in_time = getattr(pending, decision)(pending.ada)
            late = getattr(pending, decision)(pending.bob)
            return Race([at(thread_clock, EXPIRY - 0.001, in_time), at(thread_clock, EXPIRY, late)], check)

        stage.race(scenario)

    def test_an_approval_that_comes_too_late_grants_nothing(
        self, stage: Stage, thread_clock: Callable[[float], None]
    ) -> None:
        def scenario(world: World) -> Race:
            pending = PendingRequest(world, stage.api)

            def check(outcomes: list[Outcome]) -> None:
                assert outcome_of(outcomes[0]) == "expired"
                assert status_of(outcomes[1].get()) == "authorization_pending"

            redeem = at(thread_clock, EXPIRY - 0.001, pending.device.redeem)
            return Race([at(thread_clock, EXPIRY, pending.approve(pending.ada)), redeem], check)

        stage.race(scenario)

    def test_a_concurrent_poll_loses_no_approval(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            pending = PendingRequest(world, stage.api)

            def check(outcomes: list[Outcome]) -> None:
                polled = status_of(outcomes[0].get())
                assert outcome_of(outcomes[1]) == "done"
                assert polled in {"tokens", "authorization_pending"}
                if polled == "authorization_pending":
                    assert status_of(pending.device.redeem()) == "tokens"

            return Race([pending.device.redeem, pending.approve(pending.ada)], check)

        stage.race(scenario)

    def test_an_interrupted_approval_counts_once_and_is_not_reported_as_another_decision(self, stage: Stage) -> None:
        def scenario(world: World) -> Trial:
            pending = PendingRequest(world, stage.api)

            def check(case: Case) -> None:
                after = outcome_of(case.second)
                if case.first.error is None:
                    assert after == "approved"
                assert not isinstance(case.first.error, AlreadyDecided)
                assert after in {"done", "approved"}
                assert status_of(pending.device.redeem()) == "tokens"

            return Trial(pending.approve(pending.ada), check)

        assert stage.faults(scenario) > 10

    def test_an_interrupted_denial_is_not_reported_as_another_decision(self, stage: Stage) -> None:
        def scenario(world: World) -> Trial:
            pending = PendingRequest(world, stage.api)

            def check(case: Case) -> None:
                assert not isinstance(case.first.error, AlreadyDecided)
                assert outcome_of(case.second) in {"done", "denied"}
                assert status_of(pending.device.redeem()) == "access_denied"

            return Trial(pending.deny(pending.ada), check)

        assert stage.faults(scenario) > 10


class TestTries:
    """The code is looked up while the try is counted. The count decides whether the result is used."""

    def guess(self, pending: PendingRequest) -> Callable[[], Any]:
        wrong = "BBBB-BBBB" if pending.device.user_code != "BBBB-BBBB" else "CCCC-CCCC"
        return lambda: device_approvals.find_by_user_code(wrong, pending.ada)

    def test_of_sixteen_concurrent_guesses_five_are_answered(self, stage: Stage) -> None:
        pending = PendingRequest(stage.fresh(), stage.api)
        outcomes = run_repeatedly([self.guess(pending)] * 16)
        assert Counter(type(outcome.error) for outcome in outcomes) == {UnknownUserCode: 5, TooManyTries: 11}
        for act in (pending.approve(pending.ada), pending.deny(pending.ada)):
            with pytest.raises(TooManyTries):
                act()
        assert status_of(pending.device.redeem()) == "authorization_pending"

    def test_a_person_beyond_the_limit_takes_no_place_among_the_five_of_a_code(self, stage: Stage) -> None:
        pending = PendingRequest(stage.fresh(), stage.api)
        run_repeatedly([self.guess(pending)] * 5)
        with pytest.raises(TooManyTries):
            device_approvals.find_by_user_code(pending.device.user_code, pending.ada)
        people = [pending.world.person().user_id for _ in range(5)]
        for user_id in people:
            assert device_approvals.find_by_user_code(pending.device.user_code, user_id).status == "pending"

    def test_of_eight_concurrent_people_five_can_look_up_a_code(self, stage: Stage) -> None:
        pending = PendingRequest(stage.fresh(), stage.api)
        people = [pending.world.person().user_id for _ in range(8)]
        looks = [lambda it=it: device_approvals.find_by_user_code(pending.device.user_code, it) for it in people]
        outcomes = run_repeatedly(looks)
        assert Counter(type(outcome.error) for outcome in outcomes) == {type(None): 5, UnknownUserCode: 3}

    def test_under_every_fault_an_answered_guess_is_counted(self, stage: Stage) -> None:
        def scenario(world: World) -> Trial:
            pending = PendingRequest(world, stage.api)

            def check(case: Case) -> None:
                answered = sum(isinstance(outcome.error, UnknownUserCode) for outcome in (case.first, case.second))
                counter = table.get(keys.code_tries(pending.ada, int(RACE_TIME) // TRIES_WINDOW_SECONDS))
                assert counter is not None
                assert counter["hits"] >= answered >= 1

            return Trial(self.guess(pending), check)

        assert stage.faults(scenario) > 10


def test_under_every_fault_a_request_has_both_codes(stage: Stage) -> None:
    def scenario(world: World) -> Trial:
        def check(case: Case) -> None:
            for reply in (check_first(case, 201), case.second.get()):
                if reply is not None and reply.status == 201:
                    device = Device(stage.api, reply.data["deviceCode"], reply.data["userCode"])
                    assert device.approved(world.person().user_id).redeem().status == 200

        return Trial(lambda: stage.api.post("/v1/auth/device/code", json_body=_BODY), check)

    assert stage.faults(scenario) > 10


_BODY = {
    "clientId": "assent-cli",
    "codeChallenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
    "codeChallengeMethod": "S256",
}
