"""GET /invitations, POST /invitations/accept, POST /invitations/decline."""

import pytest

from controlplane.core.ids import InvitationId, MemberId
from controlplane.store import keys, organizations, users
from controlplane.store.table import Delete, Put, table
from tests.support import invariants
from tests.support.api import Api
from tests.support.browser import Browser, text_of
from tests.support.calls import before_the_transaction
from tests.support.each import each
from tests.support.table import PREPARED
from tests.support.world import Company, Person, World

ACCEPT, DECLINE = "/invitations/accept", "/invitations/decline"


@pytest.fixture
def company(world: World) -> Company:
    return world.company(name="Acme")


def invite(browser: Browser, company: Company, email: str, role: str = "member", by: Person | None = None) -> str:
    body = {"email": email, "role": role}
    return browser.api.post("/v1/invitations", (by or company.owner).token, json_body=body).data["id"]


def pending(browser: Browser, company: Company) -> list[dict]:
    return browser.api.get(f"/v1/invitations?organizationId={company.organization_id}", company.owner.token).data


def role_of(person: Person, company: Company) -> str | None:
    membership = organizations.find_membership(person.user_id, company.organization_id)
    return membership.role if membership else None


def owners(company: Company) -> int:
    organization = organizations.find_organization(company.organization_id)
    assert organization is not None
    return organization.owners


class TestLink:
    def test_the_link_of_an_invitation_leads_through_the_sign_in_to_its_answer(self, browser: Browser, world, api):
        company, guest, stranger = world.company(), world.person(), world.person()
        body = {"email": guest.email.upper(), "role": "admin"}
        invitation_id = api.post("/v1/invitations", company.owner.token, json_body=body).data["id"]
        path = f"/invitations/{invitation_id}"
        assert browser.get(path).headers["location"] == f"/sign-in?return_to=%2Finvitations%2F{invitation_id}"
        for outsider in (stranger, company.owner):
            shown = Browser(api).signed_in(outsider.user_id).get(path)
            assert (shown.status, "This invitation isn't open" in text_of(shown)) == (200, True)
            assert guest.email not in shown.text
            assert company.owner.name not in text_of(shown) or outsider is company.owner
        browser.signed_in(guest.user_id)
        assert "invites you to be an admin" in text_of(browser.get(path))
        assert "You are now a member" in text_of(browser.follow(browser.press("Accept")))
        assert "This invitation isn't open" in text_of(browser.get(path))
        assert "This invitation isn't open" in text_of(browser.get("/invitations/inv_unknown"))

    def test_a_void_or_blocked_invitation_isnt_open(self, visitor: Browser, world: World, person: Person, api: Api):
        company = world.company()
        admin = world.member(company, "admin")
        body = {"email": person.email, "role": "member"}
        void = api.post("/v1/invitations", admin.token, json_body=body).data["id"]
        world.leave(company, admin)
        assert "This invitation isn't open" in text_of(visitor.get(f"/invitations/{void}"))
        other = world.company()
        blocked = api.post("/v1/invitations", other.owner.token, json_body=body).data["id"]
        visitor.get(f"/invitations/{blocked}")
        visitor.press("Decline and block")
        again = api.post("/v1/invitations", other.owner.token, json_body=body).data["id"]
        assert "This invitation isn't open" in text_of(visitor.get(f"/invitations/{again}"))

    def test_an_invitation_that_expired_or_whose_organization_is_gone_isnt_open(self, visitor, world, person, now):
        former = world.company()
        expired, gone = (invite(visitor, company, person.email) for company in (world.company(), former))
        table.delete(Delete(keys.organization(former.organization_id)), PREPARED)
        assert "This invitation isn't open" in text_of(visitor.get(f"/invitations/{gone}"))
        assert visitor.forge(ACCEPT, {"invitation_id": gone}).status == 404
        now.advance(7 * 24 * 3600)
        visitor.signed_in(person.user_id)
        assert "This invitation isn't open" in text_of(visitor.get(f"/invitations/{expired}"))


class TestShown:
    def test_lists_the_invitations_to_the_users_address(self, visitor: Browser, company: Company, person: Person):
        invite(visitor, company, person.email.upper(), "admin")
        text = text_of(visitor.get("/invitations"))
        assert "Acme" in text
        assert "Ada Lovelace invites you to be an admin. Open until March 11, 2026." in text
        assert "1 invitation is waiting for you" in text_of(visitor.get("/"))

    def test_omits_invitations_to_other_addresses(self, visitor: Browser, company: Company):
        invite(visitor, company, "someone@example.com")
        assert "Acme" not in visitor.get("/invitations").text

    def test_omits_invitations_that_are_gone(self, visitor: Browser, company: Company, person: Person):
        invitation_id = invite(visitor, company, person.email)
        table.delete(Delete(keys.invitation(company.organization_id, invitation_id[20:])), PREPARED)
        shown = visitor.get("/invitations")
        assert (shown.status, "Acme" in shown.text) == (200, False)

    def test_omits_expired_invitations(self, visitor: Browser, company: Company, person: Person, now):
        invite(visitor, company, person.email)
        now.advance(7 * 24 * 3600)
        visitor.signed_in(person.user_id)
        assert "Acme" not in visitor.get("/invitations").text


@pytest.mark.parametrize("role", ["member", "admin", "owner"])
class TestAccepted:
    def test_accepting_creates_one_membership(self, visitor: Browser, company: Company, person: Person, role: str):
        invite(visitor, company, person.email, role)
        page = visitor.get("/invitations")
        reply = visitor.follow(visitor.press("Accept"))
        assert f"You are now a member of Acme, as {role}." in text_of(reply)
        assert role_of(person, company) == role
        roster = table.get(keys.member(company.organization_id, person.user_id))
        assert (roster["role"], roster["email"], roster["name"]) == (role, person.email, person.name)
        assert owners(company) == (2 if role == "owner" else 1)
        assert pending(visitor, company) == []
        assert visitor.press("Accept", on=page).status == 404
        assert owners(company) == (2 if role == "owner" else 1)

    def test_an_organization_that_is_deleted_concurrently_gets_no_member(self, visitor: Browser, company, person, role):
        invite(visitor, company, person.email, role)
        visitor.get("/invitations")
        organization = Delete(keys.organization(company.organization_id))
        with before_the_transaction(table.client, lambda: table.delete(organization, PREPARED)):
            assert visitor.press("Accept").status == 404
        assert role_of(person, company) is None

    def test_accepting_frees_the_address_for_another_invitation(self, visitor: Browser, company, person, role):
        for answer in ("Decline", "Accept"):
            invite(visitor, company, person.email, role)
            visitor.get("/invitations")
            visitor.press(answer)
        assert role_of(person, company) == role


class TestDeclined:
    def test_declining_removes_the_invitation_without_a_membership(self, visitor: Browser, company, person):
        invite(visitor, company, person.email)
        page = visitor.get("/invitations")
        assert "You declined the invitation." in text_of(visitor.follow(visitor.press("Decline")))
        assert role_of(person, company) is None
        assert pending(visitor, company) == []
        assert table.get(keys.invitee(person.email, company.organization_id)) is None
        assert visitor.press("Decline", on=page).status == 404


@pytest.mark.parametrize("action", [ACCEPT, DECLINE])
class TestRefused:
    def _post(self, visitor: Browser, action: str, invitation_id: str) -> int:
        return visitor.forge(action, {"invitation_id": invitation_id}).status

    def test_an_invitation_to_another_address_returns_404_and_remains(self, visitor: Browser, company, person, action):
        other = invite(visitor, company, "someone@example.com")
        assert self._post(visitor, action, other) == 404
        assert len(pending(visitor, company)) == 1
        assert role_of(person, company) is None

    @each("named", ["", "x", "inv_x", "org_" + "0" * 16, "inv_" + "0" * 34, "é" * 50])
    def test_an_unknown_invitation_returns_404(self, visitor: Browser, action: str, named: str):
        assert self._post(visitor, action, named) == 404

    def test_a_canceled_invitation_returns_404(self, visitor: Browser, company: Company, person: Person, action: str):
        made = invite(visitor, company, person.email)
        visitor.api.delete(f"/v1/invitations/{made}", company.owner.token)
        assert self._post(visitor, action, made) == 404

    @pytest.mark.parametrize("ended", ["invitation", "lock"])
    def test_an_invitation_that_ends_concurrently_returns_404(self, visitor: Browser, company, person, action, ended):
        made = InvitationId.stored(invite(visitor, company, person.email))
        lock = keys.invitee(person.email, company.organization_id)
        gone = Delete(keys.invitation(*made.location) if ended == "invitation" else lock)
        with before_the_transaction(table.client, lambda: table.delete(gone, PREPARED)):
            assert self._post(visitor, action, made) == 404
        assert role_of(person, company) is None

    def test_an_expired_invitation_that_is_still_stored_returns_404(self, visitor, company, person, action, now):
        made = invite(visitor, company, person.email)
        now.advance(7 * 24 * 3600)
        visitor.signed_in(person.user_id)
        assert self._post(visitor, action, made) == 404
        assert role_of(person, company) is None


class TestAlreadyAMember:
    def test_accepting_as_a_member_returns_409_keeps_the_role_and_removes_the_invitation(
        self, visitor: Browser, company: Company, person: Person, world: World
    ):
        invite(visitor, company, person.email, "owner")
        world.member(company, "member", person)
        visitor.get("/invitations")
        reply = visitor.press("Accept")
        assert reply.status == 409
        assert "already" in text_of(reply)
        assert role_of(person, company) == "member"
        assert owners(company) == 1
        assert pending(visitor, company) == []


class TestInviter:
    @pytest.mark.parametrize("is_member", [True, False])
    def test_an_inviter_who_takes_over_the_invited_address_can_not_accept(self, visitor, company, world, is_member):
        made = invite(visitor, company, "new@example.com", "member")
        users.change_address(users.find_user(company.owner.user_id), "new@example.com")
        if not is_member:
            table.delete(Delete(keys.membership(company.owner.user_id, company.organization_id)), PREPARED)
        visitor.signed_in(company.owner.user_id)
        visitor.get("/invitations")
        reply = visitor.forge(ACCEPT, {"invitation_id": made})
        assert reply.status == 409
        text = "You are already a member" if is_member else "This invitation is no longer valid"
        assert text in text_of(reply)
        assert (table.get(keys.invitation(*InvitationId.stored(made).location)) is None) is is_member

    def test_an_owner_invitation_requires_that_its_inviter_is_still_an_owner(self, visitor, company, person, world):
        second = world.member(company, "owner")
        made = invite(visitor, company, person.email, "owner", by=second)
        key, own = (
            keys.member(company.organization_id, second.user_id),
            table.get(keys.membership(second.user_id, company.organization_id)),
        )
        table.put(Put({**own, "role": "admin"}), PREPARED)
        reply = visitor.forge(ACCEPT, {"invitation_id": made})
        assert reply.status == 409
        assert "This invitation is no longer valid" in text_of(reply)
        table.delete(Delete(key), PREPARED)
        assert role_of(person, company) is None
        assert owners(company) == 2

    @pytest.mark.parametrize("role", ["member", "admin"])
    def test_an_invitation_of_a_removed_or_demoted_admin_is_void_and_the_page_says_why(
        self, visitor: Browser, company: Company, person: Person, world: World, role: str
    ):
        second = world.member(company, "admin")
        invitation_id = invite(visitor, company, person.email, role, by=second)
        member = MemberId.of_user(company.organization_id, second.user_id)
        for change in (
            lambda: visitor.api.patch(f"/v1/members/{member}", company.owner.token, json_body={"role": "member"}),
            lambda: visitor.api.delete(f"/v1/members/{member}", company.owner.token),
        ):
            assert change().status == 200
            text = text_of(visitor.get("/invitations"))
            assert "No longer valid" in text
            assert "The people who sent these can't invite anyone to that role anymore." in text
            assert not visitor.offers("Accept")
            assert "waiting for you" not in text_of(visitor.get("/"))
            assert pending(visitor, company) == []
            reply = visitor.forge(ACCEPT, {"invitation_id": invitation_id})
            assert reply.status == 409
            assert "This invitation is no longer valid" in text_of(reply)
            assert role_of(person, company) is None

    def test_a_demoted_owners_invitation_remains_valid_for_roles_an_admin_can_grant(
        self, visitor: Browser, company: Company, person: Person, world: World
    ):
        second = world.member(company, "owner")
        invite(visitor, company, person.email, "admin", by=second)
        member = MemberId.of_user(company.organization_id, second.user_id)
        visitor.api.patch(f"/v1/members/{member}", company.owner.token, json_body={"role": "admin"})
        visitor.get("/invitations")
        assert visitor.press("Accept").status == 303
        assert role_of(person, company) == "admin"

    def test_a_void_invitation_can_be_removed_and_replaced(self, visitor: Browser, company, person, world):
        second = world.member(company, "admin")
        void = invite(visitor, company, person.email, by=second)
        world.leave(company, second)
        again = invite(visitor, company, person.email)
        assert again != void
        assert [shown["id"] for shown in pending(visitor, company)] == [again]
        visitor.get("/invitations")
        visitor.press("Decline")
        assert pending(visitor, company) == []
        invariants.check_all(invariants.read_items(table.client, table.name))
