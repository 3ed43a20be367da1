"""An invitation creates exactly one member, even if others decide about it concurrently."""

from collections import Counter
from collections.abc import Callable

import pytest

from controlplane.core.ids import InvitationId, MemberId
from controlplane.store import invitees, members, organizations
from tests.races.stage import Stage
from tests.races.yields import writes_a_membership
from tests.support.asgi import DirectApi
from tests.support.outcomes import Outcome
from tests.support.schedules import Race
from tests.support.threads import run_repeatedly
from tests.support.world import Person, World, get_profile

pytestmark = pytest.mark.races

GONE = (invitees.InvitationGone, invitees.AlreadyMember)


class Invited:
    """A user who is invited to an organization by its second owner."""

    def __init__(self, world: World, api: DirectApi, role: str) -> None:
        self.api, self.role = api, role
        self.company = world.company()
        self.second = world.member(self.company, "owner")
        self.person: Person = world.person()
        body = {"email": self.person.email, "role": role}
        invitation_id = api.post("/v1/invitations", self.second.token, json_body=body).data["id"]
        self.invitation_id = InvitationId.stored(invitation_id)
        self.profile = get_profile(self.person.user_id)

    def accept(self) -> object:
        return invitees.accept_invitation(self.invitation_id, self.person.user_id, 20)

    def decline(self) -> object:
        return invitees.decline_invitation(self.invitation_id, self.profile)

    def cancel(self) -> object:
        return self.api.delete(f"/v1/invitations/{self.invitation_id}", self.company.owner.token)

    def block(self) -> object:
        return invitees.block_organization(self.invitation_id, self.profile)

    def remove_inviter(self) -> object:
        return self.api.delete(self._inviter_path(), self.company.owner.token)

    def demote_inviter(self) -> object:
        return self.api.patch(self._inviter_path(), self.company.owner.token, json_body={"role": "member"})

    def delete_inviter(self) -> object:
        """Runs the part of account deletion that ends memberships."""
        return members.remove_member(self.company.organization_id, self.second.user_id)

    def _inviter_path(self) -> str:
        return f"/v1/members/{MemberId.of_user(self.company.organization_id, self.second.user_id)}"

    def is_member(self) -> bool:
        membership = organizations.find_membership(self.person.user_id, self.company.organization_id)
        return membership is not None and membership.role == self.role

    def is_pending(self) -> bool:
        return bool(invitees.list_received(self.profile, 50).pending)


@pytest.fixture
def race(stage: Stage) -> Callable[..., None]:
    def run(role: str, other: Callable[[Invited], object], check: Callable[[Invited, list[Outcome]], None]) -> None:
        def scenario(world: World) -> Race:
            invited = Invited(world, stage.api, role)
            return Race([invited.accept, lambda: other(invited)], lambda outcomes: check(invited, outcomes))

        stage.race(scenario)

    return run


@pytest.mark.parametrize("role", ["member", "owner"])
class TestAccepting:
    def test_accepting_twice_creates_one_membership(self, race: Callable[..., None], role: str) -> None:
        def check(invited: Invited, outcomes: list[Outcome]) -> None:
            errors = [outcome.error for outcome in outcomes if outcome.error is not None]
            assert len(errors) == 1
            assert isinstance(errors[0], GONE)
            assert invited.is_member()
            assert not invited.is_pending()

        race(role, Invited.accept, check)

    @pytest.mark.parametrize(
        "other", [Invited.decline, Invited.cancel, Invited.block], ids=["declined", "canceled", "blocked"]
    )
    def test_accepting_an_invitation_that_ends_concurrently_does_one_of_both(
        self, race: Callable[..., None], role: str, other: Callable[[Invited], object]
    ) -> None:
        def check(invited: Invited, outcomes: list[Outcome]) -> None:
            accepted, ended = outcomes
            assert invited.is_member() is (accepted.error is None)
            refused = ended.error is not None or getattr(ended.value, "status", 200) == 404
            assert refused is invited.is_member()
            assert not invited.is_pending()

        race(role, other, check)


@pytest.mark.parametrize("role", ["member", "admin", "owner"])
@pytest.mark.parametrize("other", [Invited.remove_inviter, Invited.demote_inviter, Invited.delete_inviter])
def test_accepting_uses_the_inviters_role_at_that_moment(
    stage: Stage, race: Callable[..., None], role: str, other: Callable[[Invited], object]
) -> None:
    def check(invited: Invited, outcomes: list[Outcome]) -> None:
        accepted, ended = outcomes
        assert ended.error is None
        assert getattr(ended.value, "status", 200) == 200
        decided = [number for number, call in stage.ran.steps if writes_a_membership(call)]
        assert (accepted.error is not None) is (decided[-1] == 0)
        assert invited.is_member() is (accepted.error is None)
        if accepted.error is not None:
            assert isinstance(accepted.error, invitees.InvitationVoid)
            assert not invited.is_pending()
            with pytest.raises(invitees.InvitationVoid):
                invited.accept()

    race(role, other, check)


def test_sixteen_accepting_threads_create_one_membership(stage: Stage) -> None:
    invited = Invited(stage.fresh(), stage.api, "owner")
    outcomes = run_repeatedly([invited.accept] * 16)
    assert Counter(outcome.error is None for outcome in outcomes) == {True: 1, False: 15}
    assert all(outcome.error is None or isinstance(outcome.error, GONE) for outcome in outcomes)
    assert invited.is_member()
    stage.check_invariants()
