"""Limits on organizations and invitations hold under concurrent creations, acceptances, and grants."""

from collections import Counter
from collections.abc import Callable

import pytest

from controlplane.core.ids import InvitationId, MemberId
from controlplane.core.settings import settings
from controlplane.store import invitations, invitees, organizations, users
from controlplane.store.invitees import OwnsTooMany
from controlplane.store.table import table
from tests.races.stage import RACE_TIME, Stage
from tests.support.api import Reply
from tests.support.faults import Case, Trial
from tests.support.outcomes import Outcome
from tests.support.schedules import Race
from tests.support.threads import run_repeatedly
from tests.support.world import Company, Person, World

pytestmark = pytest.mark.races

LIMIT = 2
GRACE = "grace@example.com"
EIGHT_DAYS = 8 * 86_400


@pytest.fixture(autouse=True)
def _limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("organizations_per_person", "invitations_per_organization", "invitations_per_address"):
        monkeypatch.setitem(settings.__dict__, name, LIMIT)


def owned(person: Person) -> int:
    return sum(held.role == "owner" for held in organizations.get_account(person.user_id).memberships)


class Grants:
    """Ways to become an owner, for a user who can own one more organization."""

    def __init__(self, stage: Stage, world: World) -> None:
        self.api = stage.api
        self.person = world.person(GRACE)
        self.own = world.company(owner=self.person)
        self.company = world.company()
        world.member(self.company, "admin", self.person)
        inviting = world.company()
        body = {"email": GRACE, "role": "owner"}
        invitation_id = self.api.post("/v1/invitations", inviting.owner.token, json_body=body).data["id"]
        self.invitation_id = InvitationId.stored(invitation_id)

    def create(self) -> bool:
        reply = self.api.post("/v1/organizations", self.person.token, json_body={"name": "Acme", "slug": "acme"})
        assert reply.status == 201 or reply.error["details"]["reason"] == "organization_limit"
        return reply.status == 201

    def grant(self) -> bool:
        member = MemberId.of_user(self.company.organization_id, self.person.user_id)
        reply = self.api.patch(f"/v1/members/{member}", self.company.owner.token, json_body={"role": "owner"})
        assert reply.status == 200 or reply.error["details"]["reason"] == "owner_limit"
        return reply.status == 200

    def accept(self) -> bool:
        profile = users.find_user(self.person.user_id)
        assert profile is not None
        try:
            invitees.accept_invitation(self.invitation_id, profile.user_id, LIMIT)
        except OwnsTooMany:
            return False
        return True


WAYS = [Grants.create, Grants.grant, Grants.accept]


class TestOwnedOrganizations:
    @pytest.mark.parametrize("counted", [False, True], ids=["not counted before", "counted"])
    @pytest.mark.parametrize("ways", [(0, 1), (0, 2), (1, 2)], ids=str)
    def test_of_two_ways_to_own_one_more_organization_one_succeeds(
        self, stage: Stage, ways: tuple[int, int], counted: bool
    ) -> None:
        def scenario(world: World) -> Race:
            grants = Grants(stage, world)
            if not counted:
                item = {
                    key: {"S": value} for key, value in (("pk", f"USER#{grants.person.user_id}"), ("sk", "PROFILE"))
                }
                table.client.update_item(TableName=table.name, Key=item, UpdateExpression="REMOVE ownerships")

            def check(outcomes: list[Outcome]) -> None:
                assert sorted(outcome.get() for outcome in outcomes) == [False, True]
                assert owned(grants.person) == LIMIT

            return Race([lambda way=WAYS[way]: way(grants) for way in ways], check)

        stage.race(scenario)

    def test_sixteen_threads_create_organizations_up_to_the_limit(self, stage: Stage) -> None:
        person = stage.fresh().person()

        def create(number: int) -> Callable[[], Reply]:
            body = {"name": "Acme", "slug": f"acme-{number}"}
            return lambda: stage.api.post("/v1/organizations", person.token, json_body=body)

        statuses = Counter(outcome.get().status for outcome in run_repeatedly([create(number) for number in range(16)]))
        # A thread with too much contention gets a 429.
        assert statuses[201] == LIMIT
        assert set(statuses) <= {201, 409, 429}
        assert owned(person) == LIMIT
        stage.check_invariants()

    def test_a_creation_interrupted_anywhere_counts_once(self, stage: Stage) -> None:
        def scenario(world: World) -> Trial:
            person = world.person()
            body = {"name": "Acme", "slug": "acme"}
            headers = {"Idempotency-Key": "once"}

            def create() -> Reply:
                return stage.api.post("/v1/organizations", person.token, json_body=body, headers=headers)

            def check(case: Case) -> None:
                assert case.second.get().status in {201, 409}  # 409: the first one's lease hasn't expired
                assert owned(person) <= 1
                profile = users.find_user(person.user_id)
                assert profile is not None
                assert (profile.ownerships or 0) == owned(person)

            return Trial(create, check)

        assert stage.faults(scenario) > 10


class Inviters:
    """Organizations whose owners invite users."""

    def __init__(self, stage: Stage, world: World, count: int) -> None:
        self.api = stage.api
        self.companies: list[Company] = [world.company() for _ in range(count)]

    def invite(self, company: int, email: str) -> Callable[[], Reply]:
        body = {"email": email, "role": "member"}
        return lambda: self.api.post("/v1/invitations", self.companies[company].owner.token, json_body=body)

    def cancel(self, company: int, invitation_id: str) -> Callable[[], Reply]:
        return lambda: self.api.delete(f"/v1/invitations/{invitation_id}", self.companies[company].owner.token)

    def sent(self, company: int) -> int:
        return len(invitations.list_invitations(self.companies[company].organization_id, 50, None).invitations)


def pending_for(email: str) -> int:
    return len(invitees.list_for_address(email))


class TestPendingInvitations:
    @pytest.mark.parametrize("expired", [False, True], ids=["first", "after expired ones"])
    def test_of_two_addresses_one_gets_an_organizations_last_invitation(
        self, stage: Stage, thread_clock: Callable[[float], None], expired: bool
    ) -> None:
        def scenario(world: World) -> Race:
            inviters = Inviters(stage, world, 1)
            if expired:
                thread_clock(RACE_TIME - EIGHT_DAYS)
                for number in range(LIMIT):
                    assert inviters.invite(0, f"old{number}@example.com")().status == 201
                thread_clock(RACE_TIME)
            assert inviters.invite(0, "first@example.com")().status == 201

            def check(outcomes: list[Outcome]) -> None:
                assert sorted(outcome.get().status for outcome in outcomes) == [201, 409]
                assert inviters.sent(0) == LIMIT

            return Race([inviters.invite(0, "ada@example.com"), inviters.invite(0, GRACE)], check)

        stage.race(scenario)

    def test_of_two_organizations_one_gets_an_addresss_last_invitation(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            inviters = Inviters(stage, world, 3)
            assert inviters.invite(0, GRACE)().status == 201

            def check(outcomes: list[Outcome]) -> None:
                assert sorted(outcome.get().status for outcome in outcomes) == [201, 409]
                assert pending_for(GRACE) == LIMIT

            return Race([inviters.invite(1, GRACE), inviters.invite(2, GRACE)], check)

        stage.race(scenario)

    def test_a_canceled_invitation_makes_room_for_one(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            inviters = Inviters(stage, world, 4)
            made = inviters.invite(0, GRACE)().data["id"]
            assert inviters.invite(1, GRACE)().status == 201

            def check(outcomes: list[Outcome]) -> None:
                canceled, *invited = (outcome.get().status for outcome in outcomes)
                assert canceled == 200
                assert invited in ([201, 409], [409, 201], [409, 409])
                assert pending_for(GRACE) == 1 + invited.count(201)

            acts = [inviters.cancel(0, made), inviters.invite(2, GRACE), inviters.invite(3, GRACE)]
            return Race(acts, check)

        stage.race(scenario)

    def test_sixteen_threads_send_invitations_up_to_the_limit(self, stage: Stage) -> None:
        inviters = Inviters(stage, stage.fresh(), 1)
        acts = [inviters.invite(0, f"guest{number}@example.com") for number in range(16)]
        statuses = Counter(outcome.get().status for outcome in run_repeatedly(acts))
        assert statuses[201] == LIMIT
        assert set(statuses) <= {201, 409, 429}
        assert inviters.sent(0) == LIMIT
        stage.check_invariants()
