"""An address has one pending invitation, which creates exactly one member, within the limits, in every order of acts.

An invariant counts each organization's invitations of an address, ignoring case, after each run.
"""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.organizations import invitations, invitees
from controlplane.organizations import store as organizations
from controlplane.organizations.members import remove_member
from controlplane.platform.core.ids import InvitationId, MemberId
from controlplane.platform.core.settings import settings
from tests.races.faults import check_first
from tests.races.stage import RACE_TIME, Stage, faults, race
from tests.races.yields import writes_a_membership
from tests.support.api import Reply
from tests.support.world import Company, Person, World, get_profile

LIMIT = 2
GRACE = "grace@example.com"
EIGHT_DAYS = 8 * 86_400
GONE = (invitees.InvitationGone, invitees.AlreadyMember)


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("invitations_per_organization", "invitations_per_address"):
        monkeypatch.setitem(settings.__dict__, name, LIMIT)


class Inviters:
    """The owners of some organizations, and the addresses that they invite."""

    def __init__(self, world: World, stage: Stage, count: int = 1) -> None:
        self.api = stage.api
        self.companies: list[Company] = [world.company() for _ in range(count)]

    def invite(self, email: str = GRACE, company: int = 0) -> Callable[[], Reply]:
        path = f"/v1/invitations?organizationId={self.companies[company].organization_id}"
        body = {"email": email, "role": "member"}
        return lambda: self.api.post(path, self.companies[company].owner.token, json_body=body)

    def cancels(self) -> Callable[[], Reply]:
        """Invites Grace, and returns the request that cancels the invitation."""
        path = f"/v1/invitations/{self.invite()().data['id']}"
        return lambda: self.api.delete(path, self.companies[0].owner.token)

    def pending(self) -> list[str]:
        """Returns the addresses that are listed: those that haven't expired."""
        path = f"/v1/invitations?organizationId={self.companies[0].organization_id}"
        return [shown["email"].lower() for shown in self.api.get(path, self.companies[0].owner.token).data]

    def sent(self) -> int:
        return len(invitations.list_invitations(self.companies[0].organization_id, 50, None).items)


@pytest.mark.parametrize("expired", [False, True], ids=["first", "after an expired one"])
@race()
def test_two_letter_cases_create_one_invitation(world, stage, thread_clock, expired):
    inviters = Inviters(world, stage)
    if expired:
        thread_clock(RACE_TIME - EIGHT_DAYS)
        assert inviters.invite("Grace@example.com")().status == 201
        thread_clock(RACE_TIME)
    assert not inviters.pending()
    replies = yield [inviters.invite("Grace@Example.com"), inviters.invite("grace@example.COM")]
    assert sorted(reply.status for reply in replies) == [201, 409]
    assert {reply.code for reply in replies if reply.status == 409} == {"CONFLICT"}
    assert inviters.pending() == [GRACE]


@race()
def test_an_invitation_is_canceled_once(world, stage):
    inviters = Inviters(world, stage)
    replies = yield [inviters.cancels()] * 2
    assert sorted(reply.status for reply in replies) == [200, 404]
    assert inviters.pending() == []


@race()
def test_a_canceled_address_can_be_invited_again(world, stage):
    inviters = Inviters(world, stage)
    canceled, invited = yield [inviters.cancels(), inviters.invite("GRACE@example.com")]
    assert canceled.status == 200
    assert invited.status in {201, 409}
    assert inviters.pending() == ([GRACE] if invited.status == 201 else [])


@faults()
def test_under_every_fault_an_invitation_never_conflicts_with_itself(world, stage):
    inviters = Inviters(world, stage)
    case = yield inviters.invite("Grace@example.com")
    assert case.second.get().status in ({409} if check_first(case, 201) else {201, 409})
    assert inviters.pending() == [GRACE]


@faults()
def test_under_every_fault_a_cancellation_is_final(world, stage):
    inviters = Inviters(world, stage)
    case = yield inviters.cancels()
    check_first(case, 200)
    assert case.second.get().status in {200, 404}
    assert inviters.pending() == []


@pytest.mark.parametrize("expired", [False, True], ids=["first", "after expired ones"])
@race()
def test_of_two_addresses_one_gets_an_organizations_last_invitation(world, stage, limited, thread_clock, expired):
    inviters = Inviters(world, stage)
    if expired:
        thread_clock(RACE_TIME - EIGHT_DAYS)
        for number in range(LIMIT):
            assert inviters.invite(f"old{number}@example.com")().status == 201
        thread_clock(RACE_TIME)
    assert inviters.invite("first@example.com")().status == 201
    replies = yield [inviters.invite("ada@example.com"), inviters.invite()]
    assert sorted(reply.status for reply in replies) == [201, 409]
    assert inviters.sent() == LIMIT


@race()
def test_of_two_organizations_one_gets_an_addresss_last_invitation(world, stage, limited):
    inviters = Inviters(world, stage, 3)
    assert inviters.invite()().status == 201
    replies = yield [inviters.invite(company=1), inviters.invite(company=2)]
    assert sorted(reply.status for reply in replies) == [201, 409]
    assert len(invitees.list_for_address(GRACE)) == LIMIT


@race()
def test_a_canceled_invitation_makes_room_for_one(world, stage, limited):
    inviters = Inviters(world, stage, 4)
    cancel = inviters.cancels()
    assert inviters.invite(company=1)().status == 201
    replies = yield [cancel, inviters.invite(company=2), inviters.invite(company=3)]
    canceled, *invited = (reply.status for reply in replies)
    assert canceled == 200
    assert invited in ([201, 409], [409, 201], [409, 409])
    assert len(invitees.list_for_address(GRACE)) == 1 + invited.count(201)


class Invited:
    """A user who is invited to an organization by its second owner."""

    def __init__(self, world: World, stage: Stage, role: str) -> None:
        self.api, self.role = stage.api, role
        self.company = world.company()
        self.second = world.member(self.company, "owner")
        self.person: Person = world.person()
        body = {"email": self.person.email, "role": role}
        self.invitation_id: Any = InvitationId.stored(
            stage.api.post("/v1/invitations", self.second.token, json_body=body).data["id"]
        )
        self.profile = get_profile(self.person.user_id)
        member_id = MemberId.of_user(self.company.organization_id, self.second.user_id)
        self._inviter_path = f"/v1/members/{member_id}"

    def accept(self) -> object:
        return invitees.accept_invitation(self.invitation_id, self.person.user_id, 20)

    def decline(self) -> object:
        return invitees.decline_invitation(self.invitation_id, self.profile)

    def cancel(self) -> object:
        return self.api.delete(f"/v1/invitations/{self.invitation_id}", self.company.owner.token)

    def block(self) -> object:
        return invitees.block_organization(self.invitation_id, self.profile)

    def remove_inviter(self) -> object:
        return self.api.delete(self._inviter_path, self.company.owner.token)

    def demote_inviter(self) -> object:
        return self.api.patch(self._inviter_path, self.company.owner.token, json_body={"role": "member"})

    def delete_inviter(self) -> object:
        """Runs the part of account deletion that ends memberships."""
        return remove_member(self.company.organization_id, self.second.user_id)

    def is_member(self) -> bool:
        membership = organizations.find_membership(self.person.user_id, self.company.organization_id)
        return membership is not None and membership.role == self.role

    def is_pending(self) -> bool:
        return bool(invitees.list_received(self.profile, 50).pending)


@pytest.mark.parametrize("role", ["member", "owner"])
@pytest.mark.parametrize("other", ["accept", "decline", "cancel", "block"])
@race(*GONE)
def test_an_invitation_is_accepted_once_or_ends(world, stage, role, other):
    invited = Invited(world, stage, role)
    accepted, ended = yield [invited.accept, getattr(invited, other)]
    refused = [isinstance(it, GONE) or getattr(it, "status", 200) == 404 for it in (accepted, ended)]
    assert sorted(refused) == [False, True]
    assert invited.is_member() is (other == "accept" or not refused[0])
    assert not invited.is_pending()


@pytest.mark.parametrize("role", ["member", "admin", "owner"])
@pytest.mark.parametrize("other", ["remove_inviter", "demote_inviter", "delete_inviter"])
@race(invitees.InvitationVoid)
def test_accepting_uses_the_inviters_role_at_that_moment(world, stage, role, other):
    invited = Invited(world, stage, role)
    accepted, ended = yield [invited.accept, getattr(invited, other)]
    assert getattr(ended, "status", 200) == 200
    is_void = isinstance(accepted, invitees.InvitationVoid)
    decided = [number for number, call in stage.ran.steps if writes_a_membership(call)]
    assert is_void is (decided[-1] == 0)
    assert invited.is_member() is not is_void
    if is_void:
        assert not invited.is_pending()
        with pytest.raises(invitees.InvitationVoid):
            invited.accept()
