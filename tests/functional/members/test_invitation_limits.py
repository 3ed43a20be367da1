"""POST /v1/invitations: limits on pending invitations, per organization and per address."""

import pytest

from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.table import Delete, table
from tests.functional.members.conftest import DAY, GRACE, WEEK, Organization
from tests.support.browser import Browser
from tests.support.table import PREPARED
from tests.support.world import Person

LIMIT_REACHED = {"reason": "invitation_limit", "limit": 3, "current": 3}


@pytest.fixture
def _three_per_organization(monkeypatch):
    monkeypatch.setitem(settings.__dict__, "invitations_per_organization", 3)


@pytest.mark.usefixtures("_three_per_organization")
class TestOrganization:
    def fill(self, acme: Organization, by: Person | None = None) -> list[str]:
        return [acme.invited(f"guest{number}@example.com", by=by) for number in range(3)]

    def check_full(self, acme: Organization) -> None:
        reply = acme.invite()
        assert (reply.status, reply.code, reply.error["details"]) == (409, "CONFLICT", LIMIT_REACHED)

    def test_returns_409_with_the_limit_of_the_organization(self, acme, api, world):
        self.fill(acme)
        self.check_full(acme)
        assert Organization(api, world).invite().status == 201

    def test_a_repeated_idempotency_key_is_answered_at_the_limit(self, acme):
        first = acme.invite(**{"Idempotency-Key": "once"})
        for number in range(2):
            acme.invite(f"guest{number}@example.com")
        assert acme.invite(**{"Idempotency-Key": "once"}).data == first.data
        assert acme.invite().error["details"]["reason"] == "already_invited"

    def test_a_canceled_declined_or_accepted_invitation_makes_room(self, acme, api, world):
        made = self.fill(acme)
        acme.cancel(made[0])
        assert acme.invite("next0@example.com").status == 201
        self.check_full(acme)
        for number, label in ((1, "Decline"), (2, "Accept")):
            browser = Browser(api).signed_in(world.person(f"guest{number}@example.com").user_id)
            browser.get("/invitations")
            assert browser.press(label).status == 303
            assert acme.invite(f"next{number}@example.com").status == 201
            self.check_full(acme)

    def test_expired_and_void_invitations_make_room_while_still_stored(self, acme, now):
        admin = acme.member("admin")
        self.fill(acme)
        now.advance(WEEK)
        admin.token = acme.world.token(admin.user_id)
        assert {acme.invite(f"next{number}@example.com", by=admin).status for number in range(3)} == {201}
        self.check_full(acme)
        acme.world.leave(acme.company, admin)
        assert acme.invite().status == 201


@pytest.fixture
def inviting(api, world, monkeypatch):
    """Returns two organizations that invited the address, as many as the limit."""
    monkeypatch.setitem(settings.__dict__, "invitations_per_address", 2)
    organizations = [Organization(api, world) for _ in range(2)]
    for organization in organizations:
        organization.invite()
    return organizations


class TestAddress:
    def test_the_response_names_no_other_organization_and_needs_no_counter(self, acme, inviting, now):
        reply = acme.invite("GRACE@example.com")
        assert (reply.status, reply.code) == (409, "CONFLICT")
        assert reply.error["details"] == {"field": "email", "reason": "not_invitable"}
        assert reply.error["message"] == "This address can't be invited at the moment. Try again in a few days."
        assert inviting[0].invite().error["details"]["reason"] == "already_invited"
        # Nothing is stored about the address after its invitations.
        assert table.get(keys.invitations_received(GRACE))["expiresAt"] == int(now.seconds) + WEEK + DAY
        table.delete(Delete(keys.invitations_received(GRACE)), PREPARED)
        assert acme.invite().status == 409

    def test_a_canceled_or_expired_invitation_to_the_address_makes_room(self, acme, inviting, now):
        inviting[0].cancel(inviting[0].pending()[0])
        assert acme.invite().status == 201
        assert inviting[0].invite().status == 409
        now.advance(WEEK)
        assert inviting[0].invite().status == 201

    def test_void_and_blocked_invitations_to_the_address_dont_count(self, acme, api, world, monkeypatch):
        """People can't respond to invitations that they don't see, so they couldn't make room."""
        monkeypatch.setitem(settings.__dict__, "invitations_per_address", 2)
        grace, admin = world.person(GRACE), acme.member("admin")
        assert acme.invite(by=admin).status == 201
        world.leave(acme.company, admin)
        blocked = Organization(api, world)
        assert blocked.invite().status == 201
        browser = Browser(api).signed_in(grace.user_id)
        browser.get("/invitations")
        browser.press("Decline and block")
        assert blocked.invite().status == 201
        assert [Organization(api, world).invite().status for _ in range(3)] == [201, 201, 409]
