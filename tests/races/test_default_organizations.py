"""A person's default organization doesn't change when the person joins another one, whatever happens concurrently."""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.store import default_organizations, invitees, organizations
from controlplane.store.members import remove_member
from controlplane.store.organizations import find_organization
from ops import members
from tests.races.stage import Stage
from tests.races.verdicts import check_first
from tests.races.yields import came_first, writes_a_membership
from tests.support.faults import Case, Kind, Trial
from tests.support.outcomes import Outcome
from tests.support.schedules import Race, beyond_the_token
from tests.support.threads import run_repeatedly
from tests.support.world import Person, World

pytestmark = pytest.mark.races

JOINS = ["accept", "create", "add"]


class Member:
    """A person and other people's organizations, to which the person is invited. None of them is saved."""

    def __init__(self, world: World, others: int, joined: int = 1) -> None:
        self.world, self.person = world, world.person()
        self.companies = [world.company() for _ in range(joined)]
        for company in self.companies:
            world.member(company, person=self.person)
        self.others = [world.company() for _ in range(others)]
        self.invitations = [world.invitation(company, self.person.email).invitation_id for company in self.others]

    def join(self, how: str, number: int = 0) -> Callable[[], Any]:
        """Returns the act that makes the person a member of another organization, or of a new one for `create`."""
        user_id = self.person.user_id
        if how == "accept":
            return lambda: invitees.accept_invitation(self.invitations[number], user_id, 20)
        if how == "create":
            return lambda: organizations.create_organization("New", f"new-{number}", user_id, limit=20)
        organization = find_organization(self.others[number].organization_id)
        assert organization is not None
        return lambda: members.add_member(organization, user_id, "owner")

    def leave(self, number: int) -> Callable[[], Any]:
        return lambda: remove_member(self.companies[number].organization_id, self.person.user_id)

    def save(self, number: int) -> Callable[[], Any]:
        return lambda: default_organizations.save(self.person.user_id, self.companies[number].organization_id)

    @property
    def default(self) -> str | None:
        active = organizations.get_account(self.person.user_id).active
        return active.organization_id if active else None

    @property
    def memberships(self) -> set[str]:
        return {held.organization_id for held in organizations.get_account(self.person.user_id).memberships}

    def check_that_another_one_changes_nothing(self) -> None:
        before = self.default
        members.add_member(_organization(self.world), self.person.user_id, "member")
        assert self.default == before


def _organization(world: World) -> Any:
    return find_organization(world.company().organization_id)


@pytest.mark.parametrize("joined", [0, 1])
@pytest.mark.parametrize("how", JOINS)
def test_of_two_organizations_joined_at_once_neither_replaces_the_default(stage: Stage, how: str, joined: int) -> None:
    def scenario(world: World) -> Race:
        member = Member(world, others=2, joined=joined)

        def check(outcomes: list[Outcome]) -> None:
            for outcome in outcomes:
                outcome.get()
            first = 0 if came_first(stage.ran, 0) else 1
            own = [company.organization_id for company in member.companies]
            created = outcomes[first].get().organization_id if how != "add" else member.others[first].organization_id
            assert member.default == (own[0] if joined else created)
            assert len(member.memberships) == joined + 2
            member.check_that_another_one_changes_nothing()

        return Race([member.join(how, 0), member.join(how, 1)], check)

    stage.race(scenario)


@pytest.mark.parametrize("how", JOINS)
def test_joining_while_the_only_organization_is_lost_leaves_a_default(stage: Stage, how: str) -> None:
    def scenario(world: World) -> Race:
        member = Member(world, others=1)

        def check(outcomes: list[Outcome]) -> None:
            for outcome in outcomes:
                outcome.get()
            assert {member.default} == member.memberships
            member.check_that_another_one_changes_nothing()

        return Race([member.join(how), member.leave(0)], check)

    stage.race(scenario)


@pytest.mark.parametrize("saved", [True, False])
def test_joining_while_one_of_two_organizations_is_lost_keeps_the_remaining_one(stage: Stage, saved: bool) -> None:
    def scenario(world: World) -> Race:
        member = Member(world, others=1, joined=2)
        if saved:
            member.save(0)()

        def check(outcomes: list[Outcome]) -> None:
            for outcome in outcomes:
                outcome.get()
            remaining = member.companies[1].organization_id
            applied = [number for number, call in stage.ran.steps if writes_a_membership(call)]
            # If the person joins first, two organizations remain, and nothing may be chosen between them.
            lost_first = applied.index(1) < len(applied) - 1 - applied[::-1].index(0)
            assert member.default == (remaining if lost_first else None)
            member.check_that_another_one_changes_nothing()

        return Race([member.join("accept"), member.leave(0)], check)

    stage.race(scenario)


@pytest.mark.parametrize("joined", [1, 2])
def test_joining_never_replaces_an_organization_that_is_saved_concurrently(stage: Stage, joined: int) -> None:
    def scenario(world: World) -> Race:
        member = Member(world, others=1, joined=joined)

        def check(outcomes: list[Outcome]) -> None:
            for outcome in outcomes:
                outcome.get()
            assert member.default == member.companies[-1].organization_id

        return Race([member.join("accept"), member.save(joined - 1)], check)

    stage.race(scenario)


def test_saving_an_organization_that_is_lost_concurrently_never_makes_it_the_default(stage: Stage) -> None:
    def scenario(world: World) -> Race:
        member = Member(world, others=0, joined=2)

        def check(outcomes: list[Outcome]) -> None:
            saved, lost = outcomes
            lost.get()
            assert saved.error is None or isinstance(saved.error, default_organizations.NotMember)
            assert member.default == member.companies[1].organization_id
            member.check_that_another_one_changes_nothing()

        return Race([member.save(0), member.leave(0)], check)

    stage.race(scenario)


def test_a_default_that_is_saved_after_rejoining_is_not_cleared_by_the_earlier_removal(stage: Stage) -> None:
    def scenario(world: World) -> Race:
        member = Member(world, others=0, joined=2)
        member.save(0)()
        organization = find_organization(member.companies[0].organization_id)
        assert organization is not None

        def rejoin() -> None:
            members.add_member(organization, member.person.user_id, "member")
            member.save(0)()

        def check(outcomes: list[Outcome]) -> None:
            lost, rejoined = outcomes
            lost.get()
            assert rejoined.error is None or isinstance(rejoined.error, members.AlreadyMember)
            expected = member.companies[0 if rejoined.error is None else 1]
            assert member.default == expected.organization_id

        return Race([member.leave(0), rejoin], check)

    # The audit log has no entry of the first membership, which was prepared.
    stage.race(scenario, invariants=False)


def test_sixteen_organizations_created_at_once_leave_one_default(stage: Stage) -> None:
    world = stage.fresh()
    person = world.person()

    def create(number: int) -> Callable[[], Any]:
        body = {"name": "Acme", "slug": f"acme-{number}"}
        return lambda: stage.api.call("POST", "/v1/organizations", person.token, json_body=body)

    outcomes = run_repeatedly([create(number) for number in range(16)])
    made = [outcome.get() for outcome in outcomes if outcome.get().status == 201]
    assert made
    account = organizations.get_account(person.user_id)
    assert account.active is not None
    assert account.active.organization_id in {reply.data["id"] for reply in made}
    stage.check_invariants()


class TestEveryFault:
    @pytest.mark.parametrize("how", JOINS)
    def test_under_every_fault_the_only_organization_becomes_the_default_with_the_second(
        self, stage: Stage, how: str
    ) -> None:
        def scenario(world: World) -> Trial:
            member = Member(world, others=1)

            def check(case: Case) -> None:
                if case.fault.kind is Kind.NONE:
                    assert case.first.error is None
                assert len(member.memberships) == 2
                saved = organizations.get_account(member.person.user_id).profile
                assert saved is not None
                assert saved.saved_organization_id == member.companies[0].organization_id

            return Trial(member.join(how), check)

        assert stage.faults(scenario) > 10

    def test_under_every_fault_an_organization_is_saved_or_the_client_is_told(self, stage: Stage) -> None:
        def scenario(world: World) -> Trial:
            person: Person = world.person()
            _, second = world.company(owner=person), world.company(owner=person)

            def save() -> Any:
                body = {"organizationId": second.organization_id}
                return stage.api.call("PUT", "/v1/me/active-organization", person.token, json_body=body)

            def check(case: Case) -> None:
                check_first(case, 200)
                assert case.second.get().status == 200
                account = organizations.get_account(person.user_id)
                assert account.active is not None
                assert account.active.organization_id == second.organization_id

            return Trial(save, check)

        assert stage.faults(scenario, breaks=beyond_the_token) > 5
