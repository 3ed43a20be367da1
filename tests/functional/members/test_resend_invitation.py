"""POST /v1/invitations/{invitationId}/resend: renews an invitation, and sends its email again."""

import json
from typing import Any

import pytest

from controlplane.core.ids import InvitationId
from controlplane.core.settings import settings
from controlplane.store import invitations, keys, resends
from controlplane.store.table import Delete, table
from tests.functional.conftest import FakeClock
from tests.support import invariants
from tests.support.api import Api, Reply
from tests.support.calls import before_the_transaction
from tests.support.table import PREPARED
from tests.support.world import Company, Person, World

PATH = "/v1/invitations"
DAY = 86_400
WEEK = 7 * DAY


@pytest.fixture
def company(world: World) -> Company:
    company = world.company()
    company.owner.token = world.token(company.owner.user_id, lifetime_seconds=9 * WEEK)
    return company


@pytest.fixture
def _emails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(settings.__dict__, "email_sender", "no-reply@assent.test")


def invite(api: Api, person: Person, role: str = "member", email: str = "grace@example.com") -> str:
    return str(api.post(PATH, person.token, json_body={"email": email, "role": role}).data["id"])


def resend(api: Api, person: Person, invitation_id: str) -> Reply:
    return api.post(f"{PATH}/{invitation_id}/resend", person.token)


def messages() -> list[dict[str, Any]]:
    queued = (table.query(pk).items for pk in keys.OUTBOX_PKS)
    return [item["message"] for items in queued for item in items]


class Test200:
    def test_an_invitation_is_renewed_with_its_lock_and_keeps_its_link(
        self, api: Api, company: Company, now: FakeClock
    ):
        invitation_id = invite(api, company.owner)
        now.advance(WEEK - 1)
        reply = resend(api, company.owner, invitation_id)
        assert (reply.status, reply.data["id"]) == (200, invitation_id)
        assert reply.data["expiresAt"] == "2026-03-18T05:06:06.000Z"
        assert reply.data["createdAt"] == "2026-03-04T05:06:07.000Z"
        lock = table.get(keys.invitee("grace@example.com", company.organization_id))
        assert lock is not None
        assert lock["expiresAt"] == int(now.seconds) + WEEK
        found = invitations.find_invitation(InvitationId.stored(invitation_id))
        assert found is not None
        assert found.resends == (1, "2026-03-11", 1)
        # It is listed, and the address stays taken, after the time at which it would have expired.
        now.advance(WEEK - 1)
        assert [it["id"] for it in api.get(PATH, company.owner.token).data] == [invitation_id]
        assert (
            api.post(PATH, company.owner.token, json_body={"email": "Grace@example.com", "role": "member"}).status
            == 409
        )
        now.advance(1)
        assert api.get(PATH, company.owner.token).data == []
        assert resend(api, company.owner, invitation_id).status == 404
        invariants.check_all(invariants.read_items(table.client, table.name))

    def test_an_invitation_is_not_renewed_past_28_days(self, api: Api, company: Company, now: FakeClock):
        invitation_id = invite(api, company.owner)
        for _ in range(4):
            now.advance(WEEK - 1)
            last = resend(api, company.owner, invitation_id)
        assert last.data["expiresAt"] == "2026-04-01T05:06:07.000Z"
        now.advance(3.5)
        assert [it["id"] for it in api.get(PATH, company.owner.token).data] == [invitation_id]
        now.advance(0.5)
        assert api.get(PATH, company.owner.token).data == []
        assert resend(api, company.owner, invitation_id).status == 404

    @pytest.mark.usefixtures("_emails")
    def test_an_email_is_queued_by_ids_when_an_invitation_is_created_and_sent_again(self, api: Api, company: Company):
        invitation_id = invite(api, company.owner)
        resend(api, company.owner, invitation_id)
        sent = sorted(messages(), key=lambda message: message["number"])
        assert sent == [
            {"version": 1, "kind": "send-invitation", "invitationId": invitation_id, "number": number}
            for number in (0, 1)
        ]
        assert "example.com" not in json.dumps(sent)

    def test_the_outcome_of_an_earlier_or_canceled_email_isnt_recorded(self, api: Api, company: Company):
        invitation_id = InvitationId.parse(invite(api, company.owner))
        assert invitation_id is not None
        found = [invitations.find_invitation(invitation_id)]
        for _ in range(2):
            resend(api, company.owner, invitation_id)
            found.append(invitations.find_invitation(invitation_id))
        assert None not in found
        *earlier, latest = filter(None, found)
        for invitation in earlier:
            resends.record_mail(invitation, "returned")
        assert invitations.find_invitation(invitation_id) == latest
        api.delete(f"{PATH}/{invitation_id}", company.owner.token)
        for invitation in (*earlier, latest):
            resends.record_mail(invitation, "returned")
        assert invitations.find_invitation(invitation_id) is None

    def test_nothing_is_queued_if_no_emails_are_sent(self, api: Api, company: Company):
        assert resend(api, company.owner, invite(api, company.owner)).status == 200
        assert messages() == []


class Test403:
    def test_only_an_owner_sends_the_invitation_of_an_owner_again(self, api: Api, world: World, company: Company):
        admin, member = world.member(company, "admin"), world.member(company)
        invitation_id = invite(api, company.owner, "owner")
        assert resend(api, admin, invitation_id).error["details"] == {"reason": "owner_required"}
        assert resend(api, member, invitation_id).status == 403
        assert resend(api, admin, invite(api, company.owner, "member", "b@example.com")).status == 200

    def test_a_caller_who_leaves_concurrently_is_refused(self, api: Api, world: World, company: Company):
        admin = world.member(company, "admin")
        invitation_id = invite(api, company.owner)
        with before_the_transaction(table.client, lambda: world.leave(company, admin)):
            assert resend(api, admin, invitation_id).code == "FORBIDDEN"


class Test404:
    def test_an_invitation_that_is_canceled_concurrently_is_not_sent(self, api: Api, company: Company):
        invitation_id = invite(api, company.owner)
        canceled = Delete(keys.invitation(*InvitationId.stored(invitation_id).location))
        with before_the_transaction(table.client, lambda: table.delete(canceled, PREPARED)):
            assert resend(api, company.owner, invitation_id).code == "NOT_FOUND"

    def test_unknown_canceled_void_and_foreign_invitations_are_not_sent(self, api: Api, world: World, company: Company):
        canceled = invite(api, company.owner)
        api.delete(f"{PATH}/{canceled}", company.owner.token)
        admin = world.member(company, "admin")
        void = invite(api, admin, "member", "void@example.com")
        world.leave(company, admin)
        other = world.company()
        for invitation_id in (canceled, void, invite(api, other.owner), "inv_x"):
            assert resend(api, company.owner, invitation_id).code == "NOT_FOUND"


class Test409:
    def test_an_invitation_is_sent_again_three_times_a_day(self, api: Api, company: Company, now: FakeClock):
        invitation_id = invite(api, company.owner)
        assert [resend(api, company.owner, invitation_id).status for _ in range(4)] == [200, 200, 200, 409]
        refused = resend(api, company.owner, invitation_id)
        assert refused.error["details"] == {"reason": "resend_limit", "scope": "invitation", "limit": 3}
        now.advance(DAY)
        assert resend(api, company.owner, invitation_id).status == 200

    def test_an_organization_has_a_limit_for_all_of_its_invitations(
        self, api: Api, world: World, company: Company, now: FakeClock, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setitem(settings.__dict__, "invitation_resends_per_day", 2)
        first, second = invite(api, company.owner), invite(api, company.owner, "member", "b@example.com")
        assert [resend(api, company.owner, it).status for it in (first, second, first)] == [200, 200, 409]
        assert resend(api, company.owner, second).error["details"]["scope"] == "organization"
        other = world.company()
        assert resend(api, other.owner, invite(api, other.owner)).status == 200
        now.advance(DAY)
        assert resend(api, company.owner, first).status == 200
