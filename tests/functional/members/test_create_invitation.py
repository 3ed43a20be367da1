"""POST /v1/invitations: invites an email address."""

from typing import Any

import pytest

from controlplane.core import ids
from controlplane.store import invitations, keys
from controlplane.store.table import Delete, Put, table
from tests.functional.conftest import FakeClock
from tests.support import invariants
from tests.support.api import Api, Reply
from tests.support.calls import before_the_transaction
from tests.support.each import each
from tests.support.table import PREPARED
from tests.support.world import ALL_SCOPES, Company, Person, World, table_dump

PATH = "/v1/invitations"
WEEK = 7 * 24 * 3600


def invite(api: Api, person: Person, email: Any = "grace@example.com", role: Any = "member") -> Reply:
    return api.post(PATH, person.token, json_body={"email": email, "role": role})


@pytest.fixture
def company(world: World) -> Company:
    return world.company()


class Test201:
    def test_an_invitation_is_pending_for_seven_days_and_names_its_inviter(self, api: Api, company: Company):
        reply = invite(api, company.owner, "Grace.Hopper@Example.com", "admin")
        assert reply.status == 201
        invitation_id = reply.data["id"]
        assert invitation_id.startswith("inv_" + company.organization_id[4:])
        assert reply.data == {
            "id": invitation_id,
            "email": "Grace.Hopper@Example.com",
            "role": "admin",
            "status": "pending",
            "createdAt": "2026-03-04T05:06:07.000Z",
            "expiresAt": "2026-03-11T05:06:07.000Z",
            "invitedBy": {"id": company.owner.user_id, "name": company.owner.name, "email": company.owner.email},
        }

    def test_the_invitation_and_the_lock_of_its_address_expire_together(
        self, api: Api, company: Company, now: FakeClock
    ):
        invitation_id = invite(api, company.owner, "Grace@Example.com").data["id"]
        listed = table.get(keys.invitation(company.organization_id, invitation_id[20:]))
        lock = table.get(keys.invitee("grace@example.com", company.organization_id))
        assert listed is not None
        assert lock is not None
        assert lock["invitationId"] == listed["invitationId"] == invitation_id
        assert lock["expiresAt"] == listed["expiresAt"] == int(now.seconds) + WEEK

    @pytest.mark.parametrize(
        ("caller", "role"),
        [("owner", "owner"), ("owner", "admin"), ("owner", "member"), ("admin", "admin"), ("admin", "member")],
    )
    def test_each_role_can_invite_the_roles_it_may_grant(
        self, api: Api, world: World, company: Company, caller, role: str
    ):
        assert invite(api, world.member(company, caller), role=role).data["role"] == role

    def test_the_inviter_is_shown_as_they_were(self, api: Api, world: World, company: Company):
        admin = world.member(company, "admin", world.person(name="Grace"))
        first = invite(api, admin).data["invitedBy"]
        roster = table.get(keys.member(company.organization_id, admin.user_id))
        table.put(Put({**roster, "name": "Grace Hopper"}), PREPARED)
        assert api.get(PATH, company.owner.token).data[0]["invitedBy"] == first

    @each(
        "email",
        [
            "a@b.co",
            "first.last+tag@sub.example.co.uk",
            "o'brien@example.com",
            "!#$%&'*+/=?^_`{|}~-@example.com",
            "a" * 64 + "@example.com",
            "a@xn--bcher-kva.example",
            "a@123.example",
            "a" * 64 + "@" + ".".join(["b" * 63, "c" * 63, "d" * 59, "en"]),
        ],
    )
    def test_accepts_addresses_of_every_common_form(self, api: Api, company: Company, email: str):
        assert len(email) <= 255
        assert invite(api, company.owner, email).data["email"] == email

    def test_the_same_address_can_be_invited_to_two_organizations(self, api: Api, world: World, company: Company):
        assert invite(api, company.owner).status == 201
        assert invite(api, world.company().owner).status == 201

    def test_an_address_with_an_account_can_be_invited(self, api: Api, world: World, company: Company):
        assert invite(api, company.owner, world.company().owner.email).status == 201

    def test_invites_to_the_organization_named_in_the_query(self, api: Api, world: World, company: Company):
        other = world.company(owner=company.owner)
        world.clear_default(company.owner)
        body = {"email": "grace@example.com", "role": "member"}
        assert api.post(PATH, company.owner.token, json_body=body).code == "INVALID_PAYLOAD"
        query = f"?organizationId={other.organization_id}"
        assert api.post(PATH + query, company.owner.token, json_body=body).status == 201
        assert len(api.get(PATH + query, company.owner.token).data) == 1

    def test_an_address_can_be_invited_again_after_expiry(
        self, api: Api, world: World, company: Company, now: FakeClock
    ):
        first = invite(api, company.owner, "Grace@example.com").data["id"]
        company.owner.token = world.token(company.owner.user_id, lifetime_seconds=2 * WEEK)
        now.advance(WEEK - 1)
        assert invite(api, company.owner).status == 409
        now.advance(1)
        second = invite(api, company.owner)
        assert second.status == 201
        assert [item["id"] for item in api.get(PATH, company.owner.token).data] == [second.data["id"]]
        assert table.get(keys.invitation(company.organization_id, first[20:])) is None
        invariants.check_all(invariants.read_items(table.client, table.name))

    def test_of_two_invitations_at_once_after_expiry_one_is_sent(
        self, api: Api, world: World, company: Company, now: FakeClock
    ):
        invite(api, company.owner)
        company.owner.token = world.token(company.owner.user_id, lifetime_seconds=2 * WEEK)
        now.advance(WEEK)
        with before_the_transaction(table.client, lambda: world.invitation(company, "grace@example.com")):
            assert invite(api, company.owner).code == "CONFLICT"
        assert len(api.get(PATH, company.owner.token).data) == 1

    def test_an_address_can_be_invited_again_after_a_cancellation(self, api: Api, company: Company):
        first = invite(api, company.owner)
        api.delete(f"{PATH}/{first.data['id']}", company.owner.token)
        assert invite(api, company.owner).status == 201

    def test_an_address_can_be_invited_again_if_its_invitation_is_gone(self, api: Api, company: Company):
        first = invite(api, company.owner).data["id"]
        table.delete(Delete(keys.invitation(company.organization_id, first[20:])), PREPARED)
        assert invite(api, company.owner).status == 201

    def test_an_id_that_is_taken_is_replaced(self, api: Api, company: Company, monkeypatch: pytest.MonkeyPatch):
        first, new_local = invite(api, company.owner).data, ids.new_local
        taken = iter([first["id"][20:]])
        monkeypatch.setattr(ids, "new_local", lambda: next(taken, None) or new_local())
        invite(api, company.owner, "ada@example.com")
        listed = api.get(PATH, company.owner.token).data
        assert {item["email"] for item in listed} == {"grace@example.com", "ada@example.com"}

    def test_an_address_can_be_invited_again_after_its_member_left(self, api: Api, world: World, company: Company):
        person = world.member(company)
        assert invite(api, company.owner, person.email).status == 409
        world.leave(company, person)
        assert invite(api, company.owner, person.email).status == 201

    def test_a_repeated_idempotency_key_returns_the_first_response(self, api: Api, company: Company):
        body = {"email": "grace@example.com", "role": "member"}
        headers = {"Idempotency-Key": "7a3f"}
        first = api.post(PATH, company.owner.token, json_body=body, headers=headers)
        second = api.post(PATH, company.owner.token, json_body=body, headers=headers)
        assert (first.status, second.status) == (201, 201)
        assert second.data == first.data
        assert second.headers["idempotency-replayed"] == "true"
        other = api.post(PATH, company.owner.token, json_body={**body, "role": "admin"}, headers=headers)
        assert other.code == "INVALID_PAYLOAD"

    def test_ignores_unknown_fields(self, api: Api, world: World, company: Company):
        body = {"email": "grace@example.com", "role": "member", "organizationId": "org_x", "expiresAt": "2099-01-01"}
        reply = api.post(PATH, company.owner.token, json_body=body)
        assert reply.data["expiresAt"] == "2026-03-11T05:06:07.000Z"


class Test400:
    @each(
        "email",
        [
            None,
            "",
            " ",
            7,
            True,
            ["a@b.co"],
            {"a": 1},
            "plain",
            "@example.com",
            "a@",
            "a@b",
            "a@@b.co",
            "a@b@c.co",
            " a@b.co",
            "a@b.co ",
            "a b@c.co",
            "a@b.co\n",
            "a\r\nBcc: x@y.zz@b.co",
            ".a@b.co",
            "a.@b.co",
            "a..b@c.co",
            "a@.co",
            "a@b..co",
            "a@b.co.",
            "a@-b.co",
            "a@b-.co",
            "a@b_c.co",
            "a@127.0.0.1",
            "a@[127.0.0.1]",
            '"a b"@c.co',
            "Ada <ada@example.com>",
            "a,b@c.co",
            "a#b@c.co#d",
            "ä@example.com",
            "a@bücher.example",
            "a@example.\u0441om",
            "a\u200b@example.com",
            "a" * 65 + "@example.com",
            "a@" + "b" * 64 + ".com",
            "a" * 64 + "@" + ".".join(["b" * 63, "c" * 63, "d" * 60, "en"]),
            "a@" + "b." * 300_000 + "co",
            "a" * 500_000,
        ],
    )
    def test_returns_400_for_an_invalid_address(self, api: Api, company: Company, email: Any):
        before = len(table_dump())
        reply = invite(api, company.owner, email)
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
        assert [problem["path"] for problem in reply.error["details"]] == [["email"]]
        assert len(table_dump()) == before

    @each("role", [None, "", "OWNER", "guest", 0, ["member"]])
    def test_returns_400_for_an_invalid_role(self, api: Api, company: Company, role: Any):
        assert invite(api, company.owner, role=role).error["details"][0]["path"] == ["role"]

    @each("raw", [b"", b"{}", b"[]", b"null", b"{", b'{"email":"a@b.co","email":"c@d.co"}'])
    def test_returns_400_for_an_invalid_body(self, api: Api, company: Company, raw: bytes):
        before = len(table_dump())
        assert api.post(PATH, company.owner.token, raw_body=raw).code == "INVALID_PAYLOAD"
        assert len(table_dump()) == before


class Test403:
    def test_returns_403_if_a_non_owner_invites_an_owner(self, api: Api, world: World, company: Company):
        reply = invite(api, world.member(company, "admin"), role="owner")
        assert (reply.status, reply.code) == (403, "FORBIDDEN")
        assert reply.error["details"] == {"reason": "owner_required"}

    def test_an_inviter_who_just_left_has_lost_the_role(self, world: World, company: Company):
        limits, stranger = invitations.Limits(1, 1), world.person().user_id
        with pytest.raises(invitations.RoleLost):
            invitations.create_invitation(
                company.organization_id, "a@b.co", "member", inviter_id=stranger, limits=limits, extra_legs={}
            )

    def test_returns_403_if_a_member_invites(self, api: Api, world: World, company: Company):
        assert invite(api, world.member(company)).code == "FORBIDDEN"

    def test_returns_403_for_an_api_key(self, api: Api, world: World, company: Company):
        reply = api.post(PATH, world.key(company), json_body={"email": "grace@example.com", "role": "member"})
        assert reply.error["details"] == {"requiredScope": "members.write"}

    def test_returns_403_without_the_scope(self, api: Api, world: World, company: Company):
        token = world.token(company.owner.user_id, [scope for scope in ALL_SCOPES if scope != "members.write"])
        assert api.post(PATH, token, json_body={}).code == "INSUFFICIENT_SCOPE"

    def test_returns_403_for_an_organization_of_others(self, api: Api, world: World, company: Company):
        path = f"{PATH}?organizationId={world.company().organization_id}"
        body = {"email": "grace@example.com", "role": "member"}
        assert api.post(path, company.owner.token, json_body=body).code == "FORBIDDEN"


class Test409:
    @pytest.mark.parametrize("email", ["grace@example.com", "GRACE@EXAMPLE.COM", "Grace@example.Com"])
    def test_returns_409_for_a_pending_address_in_any_letter_case(
        self, api: Api, world: World, company: Company, email: str
    ):
        first = invite(api, company.owner, "gracE@example.com").data
        before = len(table_dump())
        reply = invite(api, company.owner, email, "admin")
        assert (reply.status, reply.code) == (409, "CONFLICT")
        assert reply.error["details"] == {
            "field": "email",
            "reason": "already_invited",
            "invitationId": first["id"],
            "expiresAt": first["expiresAt"],
        }
        assert len(table_dump()) == before
        assert api.get(PATH, company.owner.token).data == [first]

    def test_returns_409_for_the_address_of_a_member(self, api: Api, world: World, company: Company):
        person = world.member(company)
        for email in (person.email, person.email.upper(), company.owner.email):
            reply = invite(api, company.owner, email)
            assert (reply.status, reply.code) == (409, "CONFLICT")
            assert reply.error["details"] == {"field": "email", "reason": "already_member"}
        assert api.get(PATH, company.owner.token).data == []
