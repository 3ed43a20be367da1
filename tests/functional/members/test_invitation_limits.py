"""POST /v1/invitations: limits on pending invitations, per organization and per address."""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.core.settings import settings
from controlplane.store import keys
from controlplane.store.table import Delete, table
from tests.functional.conftest import FakeClock
from tests.support.api import Api, Reply
from tests.support.browser import Browser
from tests.support.table import PREPARED
from tests.support.world import Company, Person, World

PATH = "/v1/invitations"
WEEK = 7 * 24 * 3600
GRACE = "grace@example.com"


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def change(**values: int) -> None:
        for name, value in values.items():
            monkeypatch.setitem(settings.__dict__, name, value)

    return change


def invite(api: Api, company: Company, email: str, by: Person | None = None, **headers: str) -> Reply:
    target = f"{PATH}?organizationId={company.organization_id}"
    body = {"email": email, "role": "member"}
    return api.post(target, (by or company.owner).token, json_body=body, headers=headers)


def test_the_limits_default_to_100_and_20():
    assert (settings.invitations_per_organization, settings.invitations_per_address) == (100, 20)


class TestOrganization:
    LIMIT = 3

    @pytest.fixture(autouse=True)
    def _limit(self, limit: Callable[..., None]):
        limit(invitations_per_organization=self.LIMIT)

    def fill(self, api: Api, company: Company) -> list[str]:
        made = [invite(api, company, f"guest{number}@example.com") for number in range(self.LIMIT)]
        assert {reply.status for reply in made} == {201}
        return [reply.data["id"] for reply in made]

    def refused(self, api: Api, company: Company, by: Person | None = None) -> dict[str, Any]:
        reply = invite(api, company, GRACE, by)
        assert (reply.status, reply.code) == (409, "CONFLICT")
        return reply.error["details"]

    def test_returns_409_with_the_limit_of_the_organization(self, api: Api, world: World):
        company = world.company()
        self.fill(api, company)
        assert self.refused(api, company) == {"reason": "invitation_limit", "limit": 3, "current": 3}
        assert invite(api, world.company(), GRACE).status == 201

    def test_a_repeated_idempotency_key_is_answered_at_the_limit(self, api: Api, world: World):
        company = world.company()
        first = invite(api, company, GRACE, **{"Idempotency-Key": "once"})
        for number in range(self.LIMIT - 1):
            invite(api, company, f"guest{number}@example.com")
        assert invite(api, company, GRACE, **{"Idempotency-Key": "once"}).data == first.data
        assert invite(api, company, GRACE).error["details"]["reason"] == "already_invited"

    def test_a_canceled_declined_or_accepted_invitation_makes_room(self, api: Api, world: World):
        company = world.company()
        made = self.fill(api, company)
        assert api.delete(f"{PATH}/{made[0]}", company.owner.token).status == 200
        assert invite(api, company, GRACE).status == 201
        self.refused(api, company)
        for number, label in ((1, "Decline"), (2, "Accept")):
            person = world.person(f"guest{number}@example.com")
            browser = Browser(api).signed_in(person.user_id)
            browser.get("/invitations")
            assert browser.press(label).status == 303
            assert invite(api, company, f"next{number}@example.com").status == 201
            self.refused(api, company)

    def test_expired_invitations_make_room_while_still_stored(self, api: Api, world: World, now: FakeClock):
        company = world.company()
        self.fill(api, company)
        now.advance(WEEK)
        token = world.token(company.owner.user_id)
        company.owner.token = token
        assert {invite(api, company, f"next{number}@example.com").status for number in range(3)} == {201}
        assert self.refused(api, company)["current"] == 3

    def test_void_invitations_make_room(self, api: Api, world: World):
        company = world.company()
        admin = world.member(company, "admin")
        for number in range(self.LIMIT):
            assert invite(api, company, f"guest{number}@example.com", admin).status == 201
        self.refused(api, company)
        world.leave(company, admin)
        assert invite(api, company, GRACE).status == 201


class TestAddress:
    LIMIT = 2

    @pytest.fixture(autouse=True)
    def _limit(self, limit: Callable[..., None]):
        limit(invitations_per_address=self.LIMIT)

    def fill(self, api: Api, world: World) -> list[tuple[Company, str]]:
        companies = [world.company() for _ in range(self.LIMIT)]
        return [(company, invite(api, company, GRACE).data["id"]) for company in companies]

    def test_the_address_limit_returns_409_without_naming_other_organizations(self, api: Api, world: World):
        self.fill(api, world)
        reply = invite(api, world.company(), "GRACE@example.com")
        assert (reply.status, reply.code) == (409, "CONFLICT")
        assert reply.error["details"] == {"field": "email", "reason": "not_invitable"}
        assert reply.error["message"] == "This address can't be invited at the moment. Try again in a few days."

    def test_an_organization_that_already_invited_the_address_is_told_so(self, api: Api, world: World):
        (company, _), *_ = self.fill(api, world)
        assert invite(api, company, GRACE).error["details"]["reason"] == "already_invited"

    def test_a_canceled_or_expired_invitation_to_the_address_makes_room(self, api: Api, world: World, now: FakeClock):
        (company, invitation_id), *_ = self.fill(api, world)
        api.delete(f"{PATH}/{invitation_id}", company.owner.token)
        last = world.company()
        assert invite(api, last, GRACE).status == 201
        assert invite(api, world.company(), GRACE).status == 409
        now.advance(WEEK)
        assert invite(api, world.company(), GRACE).status == 201

    def test_void_and_blocked_invitations_to_the_address_dont_count(self, api: Api, world: World):
        """People can't respond to invitations that they don't see, so they couldn't make room."""
        grace = world.person(GRACE)
        company, blocked = world.company(), world.company()
        admin = world.member(company, "admin")
        assert invite(api, company, GRACE, admin).status == 201
        world.leave(company, admin)
        assert invite(api, blocked, GRACE).status == 201
        browser = Browser(api).signed_in(grace.user_id)
        browser.get("/invitations")
        browser.press("Decline and block")
        assert invite(api, blocked, GRACE).status == 201
        for expected in (201, 201, 409):
            assert invite(api, world.company(), GRACE).status == expected

    def test_invitations_to_the_address_count_without_a_counter(self, api: Api, world: World):
        self.fill(api, world)
        table.delete(Delete(keys.invitations_received(GRACE)), PREPARED)
        assert invite(api, world.company(), GRACE).status == 409

    def test_nothing_is_stored_about_the_address_after_its_invitations(self, api: Api, world: World, now: FakeClock):
        self.fill(api, world)
        count = table.get(keys.invitations_received(GRACE))
        assert count["expiresAt"] == int(now.seconds) + WEEK + 24 * 3600
