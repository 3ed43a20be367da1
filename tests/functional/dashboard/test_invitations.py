"""The invitations to a person: their links, answers, what makes one void, and organizations that are blocked."""

import pytest

from controlplane.organizations import invitees
from controlplane.organizations import store as organizations
from controlplane.people import users
from controlplane.platform.core.ids import InvitationId, MemberId
from controlplane.platform.core.roles import Role
from controlplane.platform.table import keys
from controlplane.platform.table.table import Delete, table
from tests.functional.dashboard.conftest import pages_of
from tests.support.browser import Browser, text_of
from tests.support.calls import intercepted
from tests.support.reply import Reply
from tests.support.table import PREPARED
from tests.support.world import Company, Person, get_profile

ACCEPT, DECLINE = "/invitations/accept", "/invitations/decline"
WEEK = 7 * 24 * 3600
NOT_OPEN, VOID = "This invitation isn't open", "This invitation is no longer valid"


@pytest.fixture
def company(world):
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
    return organizations.get_organization(company.organization_id).owners


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
    def test_the_link_of_an_invitation_leads_through_the_sign_in_to_its_answer(self, browser, world, company):
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
        assert "You are now a" in text_of(browser.follow(browser.press("Accept")))
        for closed in (path, "/invitations/inv_unknown"):
            assert NOT_OPEN in text_of(browser.get(closed))

    def test_an_invitation_that_can_not_be_accepted_isnt_open(self, visitor, world, person, company, now):
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
    def test_lists_the_open_invitations_to_the_users_address(self, visitor, company, person, world, now):
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
    def test_declining_removes_the_invitation_and_accepting_makes_one_member(self, visitor, company, person, role):
        invite(visitor, company, person.email, role)
        page = visitor.get("/invitations")
        assert "You declined the invitation." in text_of(visitor.follow(visitor.press("Decline")))
        assert (role_of(person, company), pending(visitor, company)) == (None, [])
        assert table.get(keys.invitee(person.email, company.organization_id)) is None
        assert visitor.press("Decline", on=page).status == 404
        invite(visitor, company, person.email, role)
        page = visitor.get("/invitations")
        reply = visitor.follow(visitor.press("Accept"))
        assert f"You are now {'a member' if role == 'member' else f'an {role}'} of Acme." in text_of(reply)
        assert role_of(person, company) == role
        roster = table.get(keys.member(company.organization_id, person.user_id))
        assert (roster["role"], roster["email"], roster["name"]) == (role, person.email, person.name)
        assert pending(visitor, company) == []
        assert visitor.press("Accept", on=page).status == 404
        assert owners(company) == (2 if role == "owner" else 1)

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

    def test_an_unknown_canceled_expired_or_foreign_invitation_is_404(self, visitor, company, person, action, now):
        others = [invite(visitor, company, "someone@example.com"), "", "x", "inv_x", "org_" + "0" * 16, "é" * 50]
        assert {self._post(visitor, action, named) for named in (*others, "inv_" + "0" * 34)} == {404}
        made = invite(visitor, company, person.email)
        assert len(pending(visitor, company)) == 2
        visitor.api.delete(f"/v1/invitations/{made}", company.owner.token)
        expiring = invite(visitor, company, person.email)
        assert self._post(visitor, action, made) == 404
        now.advance(WEEK)
        visitor.signed_in(person.user_id)
        assert self._post(visitor, action, expiring) == 404
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

    @pytest.mark.parametrize(
        ("inviter", "role", "changes"),
        [("admin", "member", ["member", None]), ("admin", "admin", [None]), ("owner", "owner", ["admin", None])],
    )
    def test_an_invitation_is_void_if_its_inviter_left_or_was_demoted(  # noqa: PLR0917
        self, visitor, company, person, world, inviter, role, changes
    ):
        second = world.member(company, inviter)
        invitation_id = invite(visitor, company, person.email, role, by=second)
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

    def test_a_demoted_owners_invitation_to_an_admins_roles_remains_valid(self, visitor, company, person, world):
        second = world.member(company, "owner")
        invite(visitor, company, person.email, "admin", by=second)
        give(visitor, company, second, "admin")
        assert answer(visitor, "Accept").status == 303
        assert role_of(person, company) == "admin"


BLOCK, BLOCKED, UNBLOCK = "/invitations/block", "/invitations/blocked", "/invitations/unblock"
HINT = "There are more invitations. Answer some of these to see them."


@pytest.fixture
def blocker(visitor, company, person):
    """Returns a browser whose person has blocked the company."""
    invite(visitor, company, person.email)
    visitor.get("/invitations")
    reply = visitor.follow(visitor.press("Decline and block"))
    assert "You declined the invitation and blocked the organization." in text_of(reply)
    return visitor


class TestBlocked:
    def test_blocking_hides_invitations_of_that_organization_until_it_is_unblocked(
        self, blocker, company, person, world
    ):
        assert (pending(blocker, company), role_of(person, company)) == ([], None)
        friend, invitation_id = world.person(), invite(blocker, company, person.email)
        assert [shown["id"] for shown in pending(blocker, company)] == [invitation_id]  # it isn't told
        assert "Acme" not in blocker.get("/invitations").text
        invite(blocker, company, friend.email)
        assert "Acme" in Browser(blocker.api).signed_in(friend.user_id).get("/invitations").text
        assert "waiting for you" not in text_of(blocker.get("/"))
        page = blocker.get(BLOCKED)
        assert "Acme Blocked on March 4, 2026." in text_of(page)
        assert "You unblocked Acme." in text_of(blocker.press("Unblock"))
        assert "You have not blocked any organization." in text_of(blocker.get(BLOCKED))
        assert "Acme" in blocker.get("/invitations").text
        assert blocker.press("Unblock", on=page).status == 404

    def test_only_your_own_invitation_can_be_blocked_and_a_blocked_organization_unblocked(self, visitor, company):
        for named in (invite(visitor, company, "someone@example.com"), "", "x", "inv_" + "0" * 34):
            assert visitor.forge(BLOCK, {"invitation_id": named}).status == 404
        assert len(pending(visitor, company)) == 1
        for named in ("", "x", "org_" + "0" * 16, "é"):
            reply = visitor.forge(UNBLOCK, {"organization_id": named})
            assert (reply.status, "You haven't blocked this organization." in text_of(reply)) == (404, True)

    def test_blocked_organizations_are_paginated(self, blocker, company, monkeypatch, world, person):
        monkeypatch.setattr("dashboard.account.invitations.BLOCKED_PER_PAGE", 2)
        profile, others = get_profile(person.user_id), [world.company(name=name) for name in ("Birch", "Cedar")]
        for it in others:
            invitees.block_organization(world.invitation(it, person.email).invitation_id, profile)
        pages = [text_of(page) for page in pages_of(blocker, BLOCKED)]
        shown = [[it.name for it in (company, *others) if it.name in page] for page in pages]
        assert sorted(name for page in shown for name in page) == ["Acme", "Birch", "Cedar"]
        assert [len(page) for page in shown] == [2, 1]
        assert blocker.get(f"{BLOCKED}?after=x").status == 400


class TestManyInvitations:
    @pytest.fixture
    def flooded(self, visitor, world, person, monkeypatch):
        """Returns the browser of a person with nine invitations, of which each page and query gets about two."""
        for name in ("dashboard.account.invitations.ON_PAGE", "dashboard.account.invitations.ON_OVERVIEW"):
            monkeypatch.setattr(name, 2)
        monkeypatch.setattr(invitees, "_PAGE", 2)
        self.inviting = [world.company(name=f"Acme {number}") for number in range(9)]
        for company in self.inviting:
            world.invitation(company, person.email)
        return visitor

    def test_only_some_of_many_invitations_are_shown(self, flooded, monkeypatch):
        for per_query in (2, 50):
            monkeypatch.setattr(invitees, "_PAGE", per_query)
            assert HINT in text_of(flooded.get("/invitations"))
        assert flooded.offers("Accept") == 2
        first = next(it.name for it in self.inviting if it.name in text_of(flooded.last))
        flooded.follow(flooded.press("Decline", near=first))
        assert flooded.offers("Accept") == 2

    def test_void_invitations_are_no_further_ones_unless_not_all_were_read(self, flooded, world, monkeypatch):
        *void, last, _, _ = self.inviting
        for company in void:
            world.leave(company, company.owner)
        assert HINT in text_of(flooded.get("/invitations"))
        world.leave(last, last.owner)
        assert HINT not in text_of(flooded.get("/invitations"))
        assert flooded.offers("Accept") == 2
        monkeypatch.setattr(invitees, "_MAX_PAGES", 1)
        assert HINT in text_of(flooded.get("/invitations"))

    def test_counting_invitations_doesnt_read_them_all(self, flooded):
        read: list[str] = []

        def around(call, proceed):
            answer = proceed()
            found = answer.get("Items", []) if call.operation == "Query" else []
            read.extend(item["pk"]["S"] for item in found if item["pk"]["S"].startswith("INVITEE#"))
            return answer

        with intercepted(table.client, around):
            text = text_of(flooded.get("/"))
        assert "2+ invitations are waiting for you" in text
        assert 2 < len(read) < len(self.inviting)
