"""GET /invitations, POST /invitations/accept, POST /invitations/decline."""

import pytest

from controlplane.organizations import store as organizations
from controlplane.people import users
from controlplane.platform.core.ids import InvitationId, MemberId
from controlplane.platform.core.roles import Role
from controlplane.platform.table import keys
from controlplane.platform.table.table import Delete, Put, table
from tests.support import invariants
from tests.support.browser import Browser, text_of
from tests.support.calls import before_the_transaction
from tests.support.each import each
from tests.support.reply import Reply
from tests.support.table import PREPARED
from tests.support.world import Company, Person, World

ACCEPT, DECLINE = "/invitations/accept", "/invitations/decline"
WEEK = 7 * 24 * 3600
NOT_OPEN, VOID = "This invitation isn't open", "This invitation is no longer valid"


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


def answer(visitor: Browser, label: str) -> Reply:
    """Presses the button on the page of invitations."""
    visitor.get("/invitations")
    return visitor.press(label)


def accept(visitor: Browser, invitation_id: str) -> Reply:
    """Accepts an invitation that the page may not offer."""
    return visitor.forge(ACCEPT, {"invitation_id": invitation_id})


def give(browser: Browser, company: Company, person: Person, role: Role | None) -> None:
    """Changes the role of the member, or removes them."""
    member = f"/v1/members/{MemberId.of_user(company.organization_id, person.user_id)}"
    by = company.owner.token
    changed = browser.api.patch(member, by, json_body={"role": role}) if role else browser.api.delete(member, by)
    assert changed.status == 200


class TestLink:
    def test_the_link_of_an_invitation_leads_through_the_sign_in_to_its_answer(self, browser: Browser, world, company):
        guest, stranger = world.person(), world.person()
        invitation_id = invite(browser, company, guest.email.upper(), "admin")
        path = f"/invitations/{invitation_id}"
        assert browser.get(path).headers["location"] == f"/sign-in?return_to=%2Finvitations%2F{invitation_id}"
        for outsider in (stranger, company.owner):
            shown = Browser(browser.api).signed_in(outsider.user_id).get(path)
            assert (shown.status, NOT_OPEN in text_of(shown), guest.email in shown.text) == (200, True, False)
            assert company.owner.name not in text_of(shown) or outsider is company.owner
        browser.signed_in(guest.user_id)
        assert "invites you to be an admin" in text_of(browser.get(path))
        assert "You are now a member" in text_of(browser.follow(browser.press("Accept")))
        for closed in (path, "/invitations/inv_unknown"):
            assert NOT_OPEN in text_of(browser.get(closed))

    def test_an_invitation_that_can_not_be_accepted_isnt_open(self, visitor: Browser, world, person, company, now):
        admin, former, blocking = world.member(company, "admin"), world.company(), world.company()
        void, gone = invite(visitor, company, person.email, by=admin), invite(visitor, former, person.email)
        world.leave(company, admin)
        table.delete(Delete(keys.organization(former.organization_id)), PREPARED)
        visitor.get(f"/invitations/{invite(visitor, blocking, person.email)}")
        visitor.press("Decline and block")
        blocked, expired = (invite(visitor, it, person.email) for it in (blocking, world.company()))
        for invitation_id in (void, gone, blocked):
            assert NOT_OPEN in text_of(visitor.get(f"/invitations/{invitation_id}"))
        assert accept(visitor, gone).status == 404
        now.advance(WEEK)
        visitor.signed_in(person.user_id)
        assert NOT_OPEN in text_of(visitor.get(f"/invitations/{expired}"))


class TestShown:
    def test_lists_the_open_invitations_to_the_users_address(self, visitor: Browser, company, person, world, now):
        invite(visitor, company, person.email.upper(), "admin")
        invite(visitor, world.company(name="Birch"), "someone@example.com")
        gone = world.company(name="Cedar")
        invitation_id = invite(visitor, gone, person.email)
        table.delete(Delete(keys.invitation(gone.organization_id, invitation_id[20:])), PREPARED)
        text = text_of(visitor.get("/invitations"))
        assert "Ada Lovelace invites you to be an admin. Open until March 11, 2026." in text
        assert [name in text for name in ("Acme", "Birch", "Cedar")] == [True, False, False]
        assert "1 invitation is waiting for you" in text_of(visitor.get("/"))
        now.advance(WEEK)
        visitor.signed_in(person.user_id)
        assert "Acme" not in visitor.get("/invitations").text


class TestAnswered:
    @pytest.mark.parametrize("role", ["member", "admin", "owner"])
    def test_accepting_creates_one_membership(self, visitor: Browser, company: Company, person: Person, role: str):
        invite(visitor, company, person.email, role)
        answer(visitor, "Decline")  # which frees the address
        invite(visitor, company, person.email, role)
        page = visitor.get("/invitations")
        reply = visitor.follow(visitor.press("Accept"))
        assert f"You are now a member of Acme, as {role}." in text_of(reply)
        assert role_of(person, company) == role
        roster = table.get(keys.member(company.organization_id, person.user_id))
        assert (roster["role"], roster["email"], roster["name"]) == (role, person.email, person.name)
        assert pending(visitor, company) == []
        assert visitor.press("Accept", on=page).status == 404
        assert owners(company) == (2 if role == "owner" else 1)

    def test_declining_removes_the_invitation_without_a_membership(self, visitor: Browser, company, person):
        invite(visitor, company, person.email)
        page = visitor.get("/invitations")
        assert "You declined the invitation." in text_of(visitor.follow(visitor.press("Decline")))
        assert (role_of(person, company), pending(visitor, company)) == (None, [])
        assert table.get(keys.invitee(person.email, company.organization_id)) is None
        assert visitor.press("Decline", on=page).status == 404

    def test_an_organization_that_is_deleted_concurrently_gets_no_member(self, visitor: Browser, company, person):
        invite(visitor, company, person.email)
        organization = Delete(keys.organization(company.organization_id))
        with before_the_transaction(table.client, lambda: table.delete(organization, PREPARED)):
            assert answer(visitor, "Accept").status == 404
        assert role_of(person, company) is None

    def test_accepting_as_a_member_keeps_the_role_and_removes_the_invitation(self, visitor, company, person, world):
        invite(visitor, company, person.email, "owner")
        world.member(company, "member", person)
        reply = answer(visitor, "Accept")
        assert (reply.status, "already" in text_of(reply)) == (409, True)
        assert (role_of(person, company), owners(company), pending(visitor, company)) == ("member", 1, [])


@pytest.mark.parametrize("action", [ACCEPT, DECLINE])
class TestRefused:
    def _post(self, visitor: Browser, action: str, invitation_id: str) -> int:
        return visitor.forge(action, {"invitation_id": invitation_id}).status

    @each("named", ["", "x", "inv_x", "org_" + "0" * 16, "inv_" + "0" * 34, "é" * 50])
    def test_an_unknown_invitation_returns_404(self, visitor: Browser, action: str, named: str):
        assert self._post(visitor, action, named) == 404

    def test_an_invitation_to_another_address_and_a_canceled_or_expired_one_return_404(
        self, visitor: Browser, company: Company, person: Person, action: str, now
    ):
        assert self._post(visitor, action, invite(visitor, company, "someone@example.com")) == 404
        made = invite(visitor, company, person.email)
        assert len(pending(visitor, company)) == 2
        visitor.api.delete(f"/v1/invitations/{made}", company.owner.token)
        expiring = invite(visitor, company, person.email)
        assert self._post(visitor, action, made) == 404
        now.advance(WEEK)
        visitor.signed_in(person.user_id)
        assert self._post(visitor, action, expiring) == 404
        assert role_of(person, company) is None

    @pytest.mark.parametrize("ended", ["invitation", "lock"])
    def test_an_invitation_that_ends_concurrently_returns_404(self, visitor: Browser, company, person, action, ended):
        made = InvitationId.stored(invite(visitor, company, person.email))
        lock = keys.invitee(person.email, company.organization_id)
        gone = Delete(keys.invitation(*made.location) if ended == "invitation" else lock)
        with before_the_transaction(table.client, lambda: table.delete(gone, PREPARED)):
            assert self._post(visitor, action, made) == 404
        assert role_of(person, company) is None


class TestInviter:
    @pytest.mark.parametrize("is_member", [True, False])
    def test_an_inviter_who_takes_over_the_invited_address_can_not_accept(self, visitor, company, world, is_member):
        made = invite(visitor, company, "new@example.com", "member")
        users.change_address(users.find_user(company.owner.user_id), "new@example.com")
        if not is_member:
            table.delete(Delete(keys.membership(company.owner.user_id, company.organization_id)), PREPARED)
        visitor.signed_in(company.owner.user_id)
        reply = accept(visitor, made)
        text = "You are already a member" if is_member else VOID
        assert (reply.status, text in text_of(reply)) == (409, True)
        assert (table.get(keys.invitation(*InvitationId.stored(made).location)) is None) is is_member

    def test_an_owner_invitation_requires_that_its_inviter_is_still_an_owner(self, visitor, company, person, world):
        second = world.member(company, "owner")
        made = invite(visitor, company, person.email, "owner", by=second)
        own = table.get(keys.membership(second.user_id, company.organization_id))
        table.put(Put({**own, "role": "admin"}), PREPARED)
        reply = accept(visitor, made)
        assert (reply.status, VOID in text_of(reply)) == (409, True)
        assert (role_of(person, company), owners(company)) == (None, 2)

    @pytest.mark.parametrize("role", ["member", "admin"])
    def test_an_invitation_of_a_removed_or_demoted_admin_is_void_and_the_page_says_why(
        self, visitor: Browser, company: Company, person: Person, world: World, role: str
    ):
        second = world.member(company, "admin")
        invitation_id = invite(visitor, company, person.email, role, by=second)
        changes: list[Role | None] = ["member", None]
        for change in changes:
            give(visitor, company, second, change)
            text = text_of(visitor.get("/invitations"))
            assert "No longer valid" in text
            assert "The people who sent these can't invite anyone to that role anymore." in text
            assert not visitor.offers("Accept")
            assert "waiting for you" not in text_of(visitor.get("/"))
            assert pending(visitor, company) == []
            reply = accept(visitor, invitation_id)
            assert (reply.status, VOID in text_of(reply)) == (409, True)
            assert role_of(person, company) is None

    def test_a_demoted_owners_invitation_remains_valid_for_roles_an_admin_can_grant(
        self, visitor: Browser, company: Company, person: Person, world: World
    ):
        second = world.member(company, "owner")
        invite(visitor, company, person.email, "admin", by=second)
        give(visitor, company, second, "admin")
        assert answer(visitor, "Accept").status == 303
        assert role_of(person, company) == "admin"

    def test_a_void_invitation_can_be_removed_and_replaced(self, visitor: Browser, company, person, world):
        second = world.member(company, "admin")
        void = invite(visitor, company, person.email, by=second)
        world.leave(company, second)
        again = invite(visitor, company, person.email)
        assert again != void
        assert [shown["id"] for shown in pending(visitor, company)] == [again]
        answer(visitor, "Decline")
        assert pending(visitor, company) == []
        invariants.check_all(invariants.read_items(table.client, table.name))
