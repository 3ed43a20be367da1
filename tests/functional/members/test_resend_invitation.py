"""POST /v1/invitations/{invitationId}/resend, and the limits on pending invitations."""

import json
from typing import Any

import pytest

from controlplane.organizations import invitations, sending
from controlplane.organizations.items import InvitationItem, Resends
from controlplane.platform.core.ids import InvitationId
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.table import Delete, table
from tests.functional.members.conftest import DAY, GRACE, OWNER_REQUIRED, WEEK, Organization, check_invariants
from tests.support.browser import Browser
from tests.support.calls import before_the_transaction
from tests.support.table import PREPARED
from tests.support.world import Person


def messages() -> list[dict[str, Any]]:
    queued = (table.query(pk).items for pk in keys.OUTBOX_PKS)
    return [item["message"] for items in queued for item in items]


def stored(invitation_id: str) -> InvitationItem:
    found = invitations.find_invitation(InvitationId.stored(invitation_id))
    assert found is not None
    return found


def test_an_invitation_is_renewed_with_its_lock_and_keeps_its_link(acme, now):
    invitation_id = acme.invited()
    now.advance(WEEK - 1)
    reply = acme.resend(invitation_id)
    assert (reply.status, reply.data["id"]) == (200, invitation_id)
    assert reply.data["createdAt"] == "2026-03-04T05:06:07.000Z"
    assert reply.data["expiresAt"] == "2026-03-18T05:06:06.000Z"
    lock = acme.lock_of(GRACE)
    assert lock is not None
    assert lock["expiresAt"] == int(now.seconds) + WEEK
    assert stored(invitation_id).resends == Resends(1, "2026-03-11", 1)
    # It is listed, and the address stays taken, after the time at which it would have expired.
    now.advance(WEEK - 1)
    assert (acme.pending(), acme.invite("Grace@example.com").status) == ([invitation_id], 409)
    now.advance(1)
    assert (acme.pending(), acme.resend(invitation_id).status) == ([], 404)
    check_invariants()


def test_an_invitation_is_not_renewed_past_28_days(acme, now):
    invitation_id = acme.invited()
    for _ in range(4):
        now.advance(WEEK - 1)
        last = acme.resend(invitation_id)
    assert last.data["expiresAt"] == "2026-04-01T05:06:07.000Z"
    now.advance(3.5)
    assert acme.pending() == [invitation_id]
    now.advance(0.5)
    assert (acme.pending(), acme.resend(invitation_id).status) == ([], 404)


def test_an_email_is_queued_by_ids_when_an_invitation_is_created_and_sent_again(acme, monkeypatch):
    assert (acme.resend(acme.invited("ada@example.com")).status, messages()) == (200, [])
    monkeypatch.setitem(settings.__dict__, "email_sender", "no-reply@assent.test")
    invitation_id = acme.invited()
    acme.resend(invitation_id)
    sent = sorted(messages(), key=lambda message: message["number"])
    assert sent == [
        {"version": 1, "kind": "send-invitation", "invitationId": invitation_id, "number": number} for number in (0, 1)
    ]
    assert "example.com" not in json.dumps(sent)


def test_the_outcome_of_an_earlier_or_canceled_email_isnt_recorded(acme):
    invitation_id = acme.invited()
    found = [stored(invitation_id)]
    for _ in range(2):
        acme.resend(invitation_id)
        found.append(stored(invitation_id))
    for earlier in found[:-1]:
        sending.record_mail(earlier, "returned")
    assert stored(invitation_id) == found[-1]
    acme.cancel(invitation_id)
    for earlier in found:
        sending.record_mail(earlier, "returned")
    assert invitations.find_invitation(InvitationId.stored(invitation_id)) is None


def test_only_an_owner_resends_an_owners_invitation_and_a_canceled_or_void_one_is_never_resent(acme):
    admin, for_an_owner, for_a_member = acme.member("admin"), acme.invited(role="owner"), acme.invited("b@example.com")
    assert acme.resend(for_an_owner, by=admin).error["details"] == OWNER_REQUIRED
    assert acme.resend(for_an_owner, by=acme.member()).code == "FORBIDDEN"
    assert [acme.resend(for_an_owner).status, acme.resend(for_a_member, by=admin).status] == [200, 200]
    acme.cancel(for_an_owner)
    canceled, void = acme.invited(), acme.invited("void@example.com", by=admin)
    item = Delete(keys.invitation(*InvitationId.stored(canceled).location))
    with before_the_transaction(table.client, lambda: table.delete(item, PREPARED)):
        assert acme.resend(canceled).code == "NOT_FOUND"
    with before_the_transaction(table.client, lambda: acme.world.leave(acme.company, admin)):
        assert acme.resend(for_a_member, by=admin).code == "FORBIDDEN"
    assert [acme.resend(it).code for it in (for_an_owner, canceled, void)] == ["NOT_FOUND"] * 3


def test_an_invitation_is_sent_again_three_times_a_day(acme, now):
    invitation_id = acme.invited()
    assert [acme.resend(invitation_id).status for _ in range(4)] == [200, 200, 200, 409]
    details = {"reason": "resend_limit", "scope": "invitation", "limit": 3}
    assert acme.resend(invitation_id).error["details"] == details
    now.advance(DAY)
    assert acme.resend(invitation_id).status == 200


def test_an_organization_has_a_limit_for_all_of_its_invitations(acme, api, world, now, monkeypatch):
    monkeypatch.setitem(settings.__dict__, "invitation_resends_per_day", 2)
    first, second, other = acme.invited(), acme.invited("b@example.com"), Organization(api, world)
    assert [acme.resend(invitation_id).status for invitation_id in (first, second, first)] == [200, 200, 409]
    assert acme.resend(second).error["details"]["scope"] == "organization"
    assert other.resend(other.invited()).status == 200
    now.advance(DAY)
    assert acme.resend(first).status == 200


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

    def test_a_canceled_declined_or_accepted_invitation_makes_room(self, acme, api, world):
        made = self.fill(acme)
        self.check_full(acme)
        assert Organization(api, world).invite().status == 201
        acme.cancel(made[0])
        assert acme.invite("next0@example.com").status == 201
        for number, label in ((1, "Decline"), (2, "Accept")):
            self.check_full(acme)
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
