"""A device code is redeemed at most once, and only while it is approved, whatever runs concurrently."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from controlplane.people import device_approvals
from controlplane.people.device_approvals import AlreadyDecided, RequestExpired, TooManyTries, UnknownUserCode
from controlplane.platform.table import keys
from controlplane.platform.table.rate import TRIES_WINDOW_SECONDS
from controlplane.platform.table.table import table
from tests.functional.device_auth.devices import CODE, Device, code_body, request_code, works
from tests.races.faults import check_first
from tests.races.stage import RACE_TIME, Stage, faults, race
from tests.races.threads import run_repeatedly
from tests.support.api import Reply
from tests.support.asgi import DirectApi
from tests.support.world import World

EXPIRY = RACE_TIME + 900


def status_of(reply: Reply) -> str:
    """Returns the result of a redemption as one word."""
    return "tokens" if reply.status == 200 else str((reply.error.get("details") or {}).get("status"))


class Pending:
    """A device that has requested access, and two users who may decide. Decisions return their result as one word."""

    def __init__(self, world: World, stage: Stage, *, approved: bool = False) -> None:
        self.world, self.stage = world, stage
        self.ada, self.bob = world.person().user_id, world.person().user_id
        self.device: Device = request_code(stage.api, scope="projects.read billing.read")
        if approved:
            self.device.approved(self.ada)

    def redeem(self) -> Reply:
        return self.device.redeem()

    def redeemed(self) -> str:
        return status_of(self.redeem())

    def approve(self, user_id: str | None = None, scope: str = "projects.read") -> str:
        return self._decide(lambda it: device_approvals.approve(it, user_id or self.ada, [scope]))

    def deny(self, user_id: str | None = None) -> str:
        return self._decide(lambda it: device_approvals.deny(it, user_id or self.ada))

    def guess(self) -> Any:
        wrong = "BBBB-BBBB" if self.device.user_code != "BBBB-BBBB" else "CCCC-CCCC"
        return device_approvals.find_by_user_code(wrong, self.ada)

    def works(self, reply: Reply) -> bool:
        return works(self.stage.api, reply.data["accessToken"])

    def _decide(self, decide: Callable[[str], Any]) -> str:
        try:
            decide(self.device.user_code)
        except AlreadyDecided as failure:
            return str(failure.context["decision"])
        except RequestExpired:
            return "expired"
        return "done"


@pytest.fixture
def at(thread_clock: Callable[[float], None]) -> Any:
    """Returns a function that returns the act, run on an instance with its clock set to this time."""
    return lambda seconds, act, *given: lambda: (thread_clock(seconds), act(*given))[1]


@race()
def test_of_two_redemptions_one_gets_tokens_and_the_other_revokes_them(world, stage):
    pending = Pending(world, stage, approved=True)
    replies = yield [pending.redeem] * 2
    assert sorted(status_of(reply) for reply in replies) == ["tokens", "used"]
    assert not any(pending.works(reply) for reply in replies if reply.status == 200)


def test_of_sixteen_redemptions_one_gets_tokens(stage):
    world = stage.fresh()
    for number in range(8):
        device = request_code(DirectApi(source_ip=f"203.0.113.{number}")).approved(world.person().user_id)
        outcomes = run_repeatedly([device.redeem] * 16)
        assert Counter(status_of(outcome.get()) for outcome in outcomes) == {"tokens": 1, "used": 15}
    assert sum(key.pk.startswith("FAMILY#") for key in stage.check_invariants()) == 8


@race(ends={("tokens", "redeemed"), ("access_denied", "done")})
def test_either_the_redemption_or_the_denial_succeeds(world, stage):
    pending = Pending(world, stage, approved=True)
    redeemed, denied = yield [pending.redeem, pending.deny]
    assert redeemed.status != 200 or pending.works(redeemed)
    return status_of(redeemed), denied


@race()
def test_at_expiry_only_a_timely_redemption_gets_tokens(world, stage, at):
    pending = Pending(world, stage, approved=True)
    in_time, late = yield [at(EXPIRY - 0.001, pending.redeemed), at(EXPIRY, pending.redeemed)]
    assert in_time == "tokens"
    assert late in {"expired", "used"}


@faults()
def test_under_every_fault_tokens_are_issued_once_and_never_lost_silently(world, stage):
    pending = Pending(world, stage, approved=True)
    case = yield pending.redeem
    first, second = check_first(case, 200), case.second.get()
    assert status_of(second) in {"tokens", "used"}
    if first:
        assert status_of(second) == "used"
    for reply in (first, second):
        if reply and reply.status == 200:
            assert pending.works(reply) is (status_of(second) == "tokens")


@race(ends={("done", "approved", "tokens"), ("denied", "done", "access_denied")})
def test_one_of_an_approval_and_a_concurrent_denial_by_another_user_succeeds(world, stage):
    pending = Pending(world, stage)
    approved, denied = yield [pending.approve, lambda: pending.deny(pending.bob)]
    return approved, denied, pending.redeemed()


@race(ends={("done", "approved"), ("approved", "done")})
def test_of_two_approvals_one_counts_with_its_user_and_scopes(world, stage):
    pending = Pending(world, stage)
    first, second = yield [pending.approve, lambda: pending.approve(pending.bob, "billing.read")]
    me = stage.api.get("/v1/me", pending.redeem().data["accessToken"]).data
    expected = (pending.ada, ["projects.read"]) if first == "done" else (pending.bob, ["billing.read"])
    assert (me["principal"]["userId"], me["scopes"]) == expected
    return first, second


@pytest.mark.parametrize(("decision", "decided"), [("approve", "approved"), ("deny", "denied")])
@race()
def test_at_expiry_only_a_timely_decision_counts(world, stage, at, decision, decided):
    pending = Pending(world, stage)
    decide = getattr(pending, decision)
    in_time, late = yield [at(EXPIRY - 0.001, decide), at(EXPIRY, decide, pending.bob)]
    assert in_time == "done"
    assert late in {"expired", decided}


@race()
def test_a_concurrent_poll_loses_no_approval(world, stage):
    pending = Pending(world, stage)
    polled, approved = yield [pending.redeemed, pending.approve]
    assert approved == "done"
    assert polled == "tokens" or (polled, pending.redeemed()) == ("authorization_pending", "tokens")


@pytest.mark.parametrize(
    ("decision", "decided", "redeemed"), [("approve", "approved", "tokens"), ("deny", "denied", "access_denied")]
)
@faults()
def test_an_interrupted_decision_counts_once_and_is_not_reported_as_another_one(
    world, stage, decision, decided, redeemed
):
    pending = Pending(world, stage)
    case = yield getattr(pending, decision)
    if case.first.error is None:
        assert (case.first.value, case.second.get()) == ("done", decided)
    assert case.second.get() in {"done", decided}
    assert pending.redeemed() == redeemed


def test_of_sixteen_concurrent_guesses_five_are_answered(stage):
    """The code is looked up while the try is counted. The count decides whether the result is used."""
    pending = Pending(stage.fresh(), stage)
    outcomes = run_repeatedly([pending.guess] * 16)
    assert Counter(type(outcome.error) for outcome in outcomes) == {UnknownUserCode: 5, TooManyTries: 11}
    look = lambda: device_approvals.find_by_user_code(pending.device.user_code, pending.ada)  # noqa: E731
    for act in (pending.approve, pending.deny, look):
        with pytest.raises(TooManyTries):
            act()
    assert pending.redeemed() == "authorization_pending"
    # A person beyond the limit takes no place among the five of a code.
    people = [pending.world.person().user_id for _ in range(8)]
    looks = [lambda it=it: device_approvals.find_by_user_code(pending.device.user_code, it) for it in people]
    outcomes = run_repeatedly(looks)
    assert Counter(type(outcome.error) for outcome in outcomes) == {type(None): 5, UnknownUserCode: 3}


@faults()
def test_under_every_fault_an_answered_guess_is_counted(world, stage):
    pending = Pending(world, stage)
    case = yield pending.guess
    answered = sum(isinstance(outcome.error, UnknownUserCode) for outcome in (case.first, case.second))
    counter = table.get(keys.code_tries(pending.ada, int(RACE_TIME) // TRIES_WINDOW_SECONDS)) or {}
    assert counter["hits"] >= answered >= 1


@faults()
def test_under_every_fault_a_request_has_both_codes(world, stage):
    case = yield lambda: stage.api.post(CODE, json_body=code_body())
    for reply in (check_first(case, 201), case.second.get()):
        if reply and reply.status == 201:
            device = Device(stage.api, reply.data["deviceCode"], reply.data["userCode"])
            assert device.approved(world.person().user_id).redeem().status == 200
