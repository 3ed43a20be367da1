"""A person's default organization doesn't change when the person joins another one, whatever happens concurrently."""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.organizations import invitees
from controlplane.organizations import store as organizations
from controlplane.organizations.members import remove_member
from controlplane.organizations.store import find_organization
from ops import members
from ops.output import Conflict
from tests.races.faults import Kind
from tests.races.schedules import beyond_the_token
from tests.races.stage import faults, race
from tests.races.verdicts import check_first
from tests.races.yields import writes_a_membership
from tests.support.world import World

JOINS = ["accept", "create", "add"]


class Member:
    """A person and other people's organizations, to which the person is invited. None of them is saved."""

    def __init__(self, world: World, others: int, joined: int = 1) -> None:
        self.world, self.person = world, world.person()
        joined_ones = [world.company() for _ in range(joined)]
        for company in joined_ones:
            world.member(company, person=self.person)
        self.companies = [company.organization_id for company in joined_ones]
        self.others = [world.company() for _ in range(others)]
        self.invitations = [world.invitation(company, self.person.email).invitation_id for company in self.others]

    def join(self, how: str, number: int = 0) -> Callable[[], str]:
        """Returns the act that makes the person a member of another organization, or of a new one for `create`."""

        user_id = self.person.user_id
        if how == "accept":
            return lambda: invitees.accept_invitation(self.invitations[number], user_id, 20).organization_id
        if how == "create":
            made = lambda: organizations.create_organization("New", f"new-{number}", user_id, limit=20)  # noqa: E731
            return lambda: made().organization_id
        return self.add(self.others[number].organization_id, "owner")

    def add(self, organization_id: str, role: Any = "member") -> Callable[[], str]:
        organization: Any = find_organization(organization_id)
        return lambda: (members.add_member(organization, self.person.user_id, role), organization_id)[1]

    def leave(self, number: int = 0) -> None:
        remove_member(self.companies[number], self.person.user_id)

    def save(self, number: int = 0) -> None:
        organizations.save_default(self.person.user_id, self.companies[number])

    @property
    def default(self) -> str | None:
        active = organizations.get_account(self.person.user_id).active
        return active.organization_id if active else None

    @property
    def memberships(self) -> set[str]:
        return {held.organization_id for held in organizations.get_account(self.person.user_id).memberships}

    def check_default(self, expected: str | None) -> None:
        """Checks the default, also after the person has joined another organization."""
        assert self.default == expected
        self.add(self.world.company().organization_id)()
        assert self.default == expected


@pytest.mark.parametrize("joined", [0, 1])
@pytest.mark.parametrize("how", JOINS)
@race()
def test_of_two_organizations_joined_at_once_neither_replaces_the_default(world, stage, how, joined):
    member = Member(world, others=2, joined=joined)
    made = yield [member.join(how, 0), member.join(how, 1)]
    assert len(member.memberships) == joined + 2
    member.check_default(member.companies[0] if joined else made[0 if stage.came_first(0) else 1])


@pytest.mark.parametrize("how", JOINS)
@race()
def test_joining_while_the_only_organization_is_lost_leaves_a_default(world, how):
    member = Member(world, others=1)
    yield [member.join(how), member.leave]
    (remaining,) = member.memberships
    member.check_default(remaining)


@pytest.mark.parametrize("saved", [True, False])
@race()
def test_joining_while_one_of_two_organizations_is_lost_keeps_the_remaining_one(world, stage, saved):
    member = Member(world, others=1, joined=2)
    if saved:
        member.save()
    yield [member.join("accept"), member.leave]
    applied = [number for number, call in stage.ran.steps if writes_a_membership(call)]
    # If the person joins first, two organizations remain, and nothing may be chosen between them.
    lost_first = applied.index(1) < len(applied) - 1 - applied[::-1].index(0)
    member.check_default(member.companies[1] if lost_first else None)


@pytest.mark.parametrize("joined", [1, 2])
@race()
def test_joining_never_replaces_an_organization_that_is_saved_concurrently(world, joined):
    member = Member(world, others=1, joined=joined)
    yield [member.join("accept"), lambda: member.save(joined - 1)]
    assert member.default == member.companies[-1]


@race(organizations.NotMember)
def test_saving_an_organization_that_is_lost_concurrently_never_makes_it_the_default(world):
    member = Member(world, others=0, joined=2)
    _, lost = yield [member.save, member.leave]
    assert lost is None
    member.check_default(member.companies[1])


# The audit log has no entry of the first membership, which was prepared.
@race(Conflict, invariants=False)
def test_a_default_that_is_saved_after_rejoining_is_not_cleared_by_the_earlier_removal(world):
    member = Member(world, others=0, joined=2)
    member.save()
    add = member.add(member.companies[0])
    lost, rejoined = yield [member.leave, lambda: (add(), member.save())[1]]
    assert lost is None
    assert member.default == member.companies[0 if rejoined is None else 1]


@pytest.mark.parametrize("how", JOINS)
@faults()
def test_under_every_fault_the_only_organization_becomes_the_default_with_the_second(world, how):
    member = Member(world, others=1)
    case = yield member.join(how)
    assert case.fault.kind is not Kind.NONE or case.first.error is None
    assert len(member.memberships) == 2
    saved: Any = organizations.get_account(member.person.user_id).profile
    assert saved.saved_organization_id == member.companies[0]


@faults(5, breaks=beyond_the_token)
def test_under_every_fault_an_organization_is_saved_or_the_client_is_told(world, stage):
    person = world.person()
    _, second = world.company(owner=person), world.company(owner=person)
    body = {"organizationId": second.organization_id}
    case = yield lambda: stage.api.call("PUT", "/v1/me/active-organization", person.token, json_body=body)
    check_first(case, 200)
    assert case.second.get().status == 200
    active: Any = organizations.get_account(person.user_id).active
    assert active.organization_id == second.organization_id
