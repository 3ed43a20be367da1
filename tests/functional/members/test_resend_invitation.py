"""POST /v1/invitations/{invitationId}/resend: renews an invitation, and sends its email again."""

import json
from typing import Any

from controlplane.organizations import invitations, resends
from controlplane.organizations.items import InvitationItem, Resends
from controlplane.platform.core.ids import InvitationId
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.table import Delete, table
from tests.functional.members.conftest import DAY, GRACE, OWNER_REQUIRED, WEEK, Organization, check_invariants
from tests.support.calls import before_the_transaction
from tests.support.table import PREPARED


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
        resends.record_mail(earlier, "returned")
    assert stored(invitation_id) == found[-1]
    acme.cancel(invitation_id)
    for earlier in found:
        resends.record_mail(earlier, "returned")
    assert invitations.find_invitation(InvitationId.stored(invitation_id)) is None


def test_only_an_owner_sends_the_invitation_of_an_owner_again_and_nobody_a_canceled_or_void_one(acme):
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
