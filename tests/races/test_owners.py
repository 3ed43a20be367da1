"""An organization exists completely and has an owner, only owners make others owners, and a person owns so many.

An invariant compares the number of owners, and both sides of each membership, after each run.
"""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.organizations import invitees
from controlplane.organizations import store as organizations
from controlplane.people import users
from controlplane.platform.core.ids import InvitationId, MemberId
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.table import Update, table
from tests.races.faults import check_first
from tests.races.stage import Stage, faults, race
from tests.support.api import Reply
from tests.support.table import PREPARED
from tests.support.world import Person, World

LIMIT = 2


class Team:
    """An organization with two owners, A and B, and a member, M."""

    def __init__(self, world: World, stage: Stage) -> None:
        self.api, self.company = stage.api, world.company()
        self.people = {
            "A": self.company.owner,
            "B": world.member(self.company, "owner"),
            "M": world.member(self.company),
        }

    def act(self, caller: str, target: str, role: str | None) -> Callable[[], Reply]:
        """Returns the request of a caller that gives the target a role, or removes it."""
        return self.request(self.people[caller], self.people[target], role)

    def request(self, caller: Person, person: Person, role: str | None) -> Callable[[], Reply]:
        path = f"/v1/members/{MemberId.of_user(self.company.organization_id, person.user_id)}"
        if role is None:
            return lambda: self.api.delete(path, caller.token)
        return lambda: self.api.patch(path, caller.token, json_body={"role": role})

    def role(self, name: str) -> str | None:
        item = table.get(keys.member(self.company.organization_id, self.people[name].user_id))
        return item["role"] if item else None


@pytest.mark.parametrize(
    "acts",
    [
        pytest.param((("A", "B", "admin"), ("B", "A", "admin")), id="demote each other"),
        pytest.param((("A", "B", None), ("B", "A", None)), id="remove each other"),
        pytest.param((("A", "A", "admin"), ("B", "B", "member")), id="demote themselves"),
        pytest.param((("A", "B", "member"), ("B", "A", None)), id="demote against remove"),
    ],
)
@race()
def test_two_owners_cant_both_step_down(world, stage, acts):
    team = Team(world, stage)
    replies = yield [team.act(*act) for act in acts]
    # The later caller is no longer an owner (403), or not even a member (404).
    assert sorted(reply.status for reply in replies) in ([200, 403], [200, 404])
    assert [team.role("A"), team.role("B")].count("owner") == 1


@race()
def test_two_demotions_of_the_same_owner_leave_an_owner(world, stage):
    team = Team(world, stage)
    replies = yield [team.act("A", "B", "admin"), team.act("A", "B", "member")]
    assert {reply.status for reply in replies} <= {200, 403}
    assert team.role("B") in {"admin", "member"}


@pytest.mark.parametrize("role", ["admin", None], ids=["demoted", "removed"])
@race()
def test_owner_is_granted_only_by_a_current_owner(world, stage, role):
    team = Team(world, stage)
    ended, granted = yield [team.act("A", "B", role), team.act("B", "M", "owner")]
    refused = {403} if role else {403, 404}
    assert ended.status == 200
    assert granted.status in (refused if stage.came_first(0) else {200})
    assert (team.role("M") == "owner") == (granted.status == 200)


@race()
def test_a_member_is_removed_or_promoted_and_removed(world, stage):
    team = Team(world, stage)
    promoted, removed = yield [team.act("A", "M", "admin"), team.act("B", "M", None)]
    assert promoted.status in {200, 404}
    assert removed.status in {200, 409}
    assert removed.status == 409 or team.role("M") is None


@pytest.mark.parametrize("act", [("A", "B", "admin"), ("A", "M", "owner"), ("A", "B", None)])
@faults()
def test_under_every_fault_a_retried_change_ends_as_requested(world, stage, act):
    team = Team(world, stage)
    case = yield team.act(*act)
    check_first(case, 200)
    assert case.second.get().status in ({200, 404} if act[2] is None else {200})
    assert team.role(act[1]) == act[2]


def creator(stage: Stage, person: Person, slug: str = "acme", **headers: str) -> Callable[[], Reply]:
    body = {"name": "Acme", "slug": slug}
    return lambda: stage.api.post("/v1/organizations", person.token, json_body=body, headers=headers)


def listed(stage: Stage, person: Person) -> list[tuple[str, str]]:
    own = stage.api.get("/v1/organizations", person.token).data
    return [(shown["organizationSlug"], shown["role"]) for shown in own]


@race()
def test_of_two_creators_one_gets_the_slug(world, stage):
    people = [world.person(), world.person()]
    replies = yield [creator(stage, person) for person in people]
    assert sorted(reply.status for reply in replies) == [201, 409]
    for person, reply in zip(people, replies, strict=True):
        assert listed(stage, person) == ([("acme", "owner")] if reply.status == 201 else [])
        assert reply.status == 201 or (reply.code, reply.error["details"]["field"]) == ("CONFLICT", "slug")


@faults()
def test_under_every_fault_an_organization_is_complete_or_missing(world, stage):
    person = world.person()
    case = yield creator(stage, person)
    assert case.second.get().status in ({409} if check_first(case, 201) else {201, 409})
    assert listed(stage, person) == [("acme", "owner")]


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(settings.__dict__, "organizations_per_person", LIMIT)


def owned(person: Person) -> int:
    return sum(held.role == "owner" for held in organizations.get_account(person.user_id).memberships)


class Grants:
    """Ways to become an owner, for a user who can own one more organization. Each returns whether it succeeded."""

    def __init__(self, world: World, stage: Stage) -> None:
        self.stage, self.person = stage, world.person()
        world.company(owner=self.person)
        self.company = world.company()
        world.member(self.company, "admin", self.person)
        self.invitation_id: InvitationId = world.invitation(world.company(), self.person.email, "owner").invitation_id

    def create(self) -> bool:
        reply = creator(self.stage, self.person)()
        assert reply.status == 201 or reply.error["details"]["reason"] == "organization_limit"
        return reply.status == 201

    def grant(self) -> bool:
        path = f"/v1/members/{MemberId.of_user(self.company.organization_id, self.person.user_id)}"
        reply = self.stage.api.patch(path, self.company.owner.token, json_body={"role": "owner"})
        assert reply.status == 200 or reply.error["details"]["reason"] == "owner_limit"
        return reply.status == 200

    def accept(self) -> bool:
        try:
            invitees.accept_invitation(self.invitation_id, self.person.user_id, LIMIT)
        except invitees.OwnsTooMany:
            return False
        return True


@pytest.mark.parametrize("counted", [False, True], ids=["not counted before", "counted"])
@pytest.mark.parametrize("ways", [("create", "grant"), ("create", "accept"), ("grant", "accept")])
@race()
def test_of_two_ways_to_own_one_more_organization_one_succeeds(world, stage, limited, ways, counted):
    grants = Grants(world, stage)
    if not counted:
        table.update(Update(keys.user(grants.person.user_id), "REMOVE #ownerships"), PREPARED)
    succeeded = yield [getattr(grants, way) for way in ways]
    assert sorted(succeeded) == [False, True]
    assert owned(grants.person) == LIMIT


@faults()
def test_a_creation_interrupted_anywhere_counts_once(world, stage, limited):
    person = world.person()
    case = yield creator(stage, person, **{"Idempotency-Key": "once"})
    assert case.second.get().status in {201, 409}  # 409: the first one's lease hasn't expired
    profile: Any = users.find_user(person.user_id)
    assert (profile.ownerships or 0) == owned(person) <= 1
