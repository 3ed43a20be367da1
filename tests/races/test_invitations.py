"""One pending invitation per address, ignoring case, and a retry never conflicts with its own first attempt."""

from collections import Counter
from collections.abc import Callable

import pytest

from tests.races.stage import RACE_TIME, Stage
from tests.races.verdicts import check_first
from tests.support.api import Reply
from tests.support.asgi import DirectApi
from tests.support.faults import Case, Trial
from tests.support.outcomes import Outcome
from tests.support.schedules import Race
from tests.support.threads import run_repeatedly
from tests.support.world import Company, World

pytestmark = pytest.mark.races

EIGHT_DAYS = 8 * 86_400


class Inviter:
    """The owner of an organization, and the addresses that they invite."""

    def __init__(self, company: Company, api: DirectApi) -> None:
        self.company = company
        self.api = api

    def invite(self, email: str) -> Callable[[], Reply]:
        body = {"email": email, "role": "member"}
        return lambda: self.api.post(self._path(""), self.company.owner.token, json_body=body)

    def cancel(self, invitation_id: str) -> Callable[[], Reply]:
        return lambda: self.api.delete(self._path(f"/{invitation_id}"), self.company.owner.token)

    def pending(self) -> list[str]:
        return [shown["email"].lower() for shown in self.api.get(self._path(""), self.company.owner.token).data]

    def _path(self, rest: str) -> str:
        query = "" if rest else f"?organizationId={self.company.organization_id}"
        return f"/v1/invitations{rest}{query}"


@pytest.mark.parametrize("expired", [False, True], ids=["first", "after an expired one"])
def test_two_letter_cases_create_one_invitation(
    expired: bool, stage: Stage, thread_clock: Callable[[float], None]
) -> None:
    def scenario(world: World) -> Race:
        inviter = Inviter(world.company(), stage.api)
        if expired:
            thread_clock(RACE_TIME - EIGHT_DAYS)
            assert inviter.invite("Grace@example.com")().status == 201
            thread_clock(RACE_TIME)
        assert not inviter.pending()

        def check(outcomes: list[Outcome]) -> None:
            replies: list[Reply] = [outcome.get() for outcome in outcomes]
            assert sorted(reply.status for reply in replies) == [201, 409]
            assert {reply.code for reply in replies if reply.status == 409} == {"CONFLICT"}
            assert inviter.pending() == ["grace@example.com"]

        return Race([inviter.invite("Grace@Example.com"), inviter.invite("grace@example.COM")], check)

    stage.race(scenario)


def test_an_invitation_is_canceled_once(stage: Stage) -> None:
    def scenario(world: World) -> Race:
        inviter = Inviter(world.company(), stage.api)
        invitation_id = inviter.invite("grace@example.com")().data["id"]

        def check(outcomes: list[Outcome]) -> None:
            assert sorted(outcome.get().status for outcome in outcomes) == [200, 404]
            assert inviter.pending() == []

        return Race([inviter.cancel(invitation_id)] * 2, check)

    stage.race(scenario)


def test_a_canceled_address_can_be_invited_again(stage: Stage) -> None:
    def scenario(world: World) -> Race:
        inviter = Inviter(world.company(), stage.api)
        invitation_id = inviter.invite("grace@example.com")().data["id"]

        def check(outcomes: list[Outcome]) -> None:
            cancelled, invited = (outcome.get() for outcome in outcomes)
            assert cancelled.status == 200
            assert invited.status in {201, 409}
            assert inviter.pending() == (["grace@example.com"] if invited.status == 201 else [])

        return Race([inviter.cancel(invitation_id), inviter.invite("GRACE@example.com")], check)

    stage.race(scenario)


def test_sixteen_threads_create_one_invitation(stage: Stage) -> None:
    inviter = Inviter(stage.fresh().company(), stage.api)
    addresses = ["grace@example.com", "Grace@example.com", "GRACE@EXAMPLE.COM", "gracE@example.com"] * 4
    replies = [outcome.get() for outcome in run_repeatedly([inviter.invite(address) for address in addresses])]
    assert Counter(reply.status for reply in replies) == {201: 1, 409: 15}
    stage.check_invariants()


class TestEveryFault:
    def test_under_every_fault_an_invitation_never_conflicts_with_itself(self, stage: Stage) -> None:
        def scenario(world: World) -> Trial:
            inviter = Inviter(world.company(), stage.api)

            def check(case: Case) -> None:
                first = check_first(case, 201)
                expected = {409} if first is not None and first.status == 201 else {201, 409}
                assert case.second.get().status in expected
                assert inviter.pending() == ["grace@example.com"]

            return Trial(inviter.invite("Grace@example.com"), check)

        assert stage.faults(scenario) > 10

    def test_under_every_fault_a_cancellation_is_final(self, stage: Stage) -> None:
        def scenario(world: World) -> Trial:
            inviter = Inviter(world.company(), stage.api)
            invitation_id = inviter.invite("grace@example.com")().data["id"]

            def check(case: Case) -> None:
                check_first(case, 200)
                assert case.second.get().status in {200, 404}
                assert inviter.pending() == []

            return Trial(inviter.cancel(invitation_id), check)

        assert stage.faults(scenario) > 10
