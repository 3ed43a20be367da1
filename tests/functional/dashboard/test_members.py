"""The page of members and invitations."""

import re
from dataclasses import replace

from controlplane.organizations import invitations, members
from controlplane.platform.core.settings import settings
from controlplane.platform.table.table import Put, table
from tests.functional.dashboard.conftest import HOSTILE, pages_in, pages_of
from tests.support.browser import Browser, text_of
from tests.support.reply import Reply
from tests.support.table import PREPARED
from tests.support.world import Company, Person

path = pages_in("members")


def roles(company: Company) -> dict[str, str]:
    return {it.user_id: it.role for it in members.list_members(company.organization_id, 50, None).items}


def member_id(company: Company, person: Person) -> str:
    return f"mem_{company.organization_id[4:]}{person.user_id[4:]}"


def forge_change(browser: Browser, company: Company, person: Person, **fields: str) -> Reply:
    return browser.forge(path(company, "/change"), {"member_id": member_id(company, person), **fields})


def invite(visitor: Browser, company: Company, email: str, role: str = "Member") -> Reply:
    visitor.get(path(company))
    return visitor.press("Invite", fill={"Email address": email, "Role": role})


class TestInvite:
    def test_an_invited_person_accepts_through_the_link(self, visitor, company, world):
        guest = world.person()
        reply = invite(visitor, company, f" {guest.email} ", "Admin")
        assert (reply.status, reply.headers["location"]) == (303, path(company, "?done=invited"))
        reply = visitor.follow(reply)
        for words in ("The invitation is created.", guest.email):
            assert words in text_of(reply)
        (link,) = re.findall(r'<code id="link">([^<]+)</code>', reply.text)
        browser = Browser(visitor.api).signed_in(guest.user_id)
        browser.get("/" + link.split("/", 3)[3])
        browser.press("Accept")
        assert roles(company)[guest.user_id] == "admin"

    def test_a_refused_invitation_says_why_and_keeps_the_address(self, visitor, company):
        for email, role, status, message in (
            ("x", "member", 400, "Enter an email address"),
            (HOSTILE, "member", 400, "Enter an email address"),
            ("new@example.com", "chief", 400, "Choose a role"),
            (company.owner.email, "member", 409, "belongs to a member"),
        ):
            reply = visitor.forge(path(company), {"email": email, "role": role})
            assert (reply.status, message in text_of(reply)) == (status, True)
            assert visitor.entered("Email address") == email
            assert "<script>alert" not in reply.text
        assert invitations.list_invitations(company.organization_id, 50, None).items == []

    def test_an_invitation_is_renewed_up_to_its_limit_and_withdrawn(self, visitor, company, now):
        invite(visitor, company, "new@example.com")
        now.advance(7 * 3600)
        for times in ("1 time", "2 times", "3 times"):
            assert "No email is sent. Send this link yourself" in text_of(visitor.get(path(company)))
            reply = visitor.press("Renew")
            assert reply.headers["location"] == path(company, "?done=renewed")
            shown = text_of(visitor.get(reply.headers["location"]))
            assert f"expires on March 11, 2026 · sent again {times}" in shown
        reply = visitor.press("Renew")
        assert (reply.status, "Try again tomorrow" in text_of(reply)) == (409, True)
        page = visitor.get(path(company))
        assert visitor.press("Withdraw").headers["location"] == path(company, "?done=withdrawn")
        assert "No invitation is pending." in text_of(visitor.get(path(company)))
        assert visitor.press("Withdraw", on=page).status == 404
        assert visitor.forge(path(company, "/withdraw"), {"invitation_id": "x"}).status == 404

    def test_with_emails_the_page_says_what_became_of_each(self, visitor, company, monkeypatch):
        monkeypatch.setitem(settings.__dict__, "email_sender", "no-reply@assent.test")
        reply = invite(visitor, company, "new@example.com")
        assert reply.headers["location"] == path(company, "?done=mailed")
        assert "Invited people get an email" in text_of(visitor.get(reply.headers["location"]))
        (invitation,) = invitations.list_invitations(company.organization_id, 50, None).items
        table.put(Put(replace(invitation, mail="returned").to_item()), PREPARED)
        assert "Email returned: the address" in text_of(visitor.get(path(company)))
        assert visitor.press("Resend").headers["location"] == path(company, "?done=resent")
        assert "Email returned" not in text_of(visitor.get(path(company)))


class TestChange:
    def test_an_owner_changes_a_role_and_removes_the_member(self, visitor, company, world):
        other = world.member(company, person=world.person(name="Grace Hopper"))
        visitor.get(path(company))
        reply = visitor.press("Change the role of Grace Hopper", fill={"Role of Grace Hopper": "Owner"})
        assert reply.headers["location"] == path(company, "?done=changed")
        assert roles(company)[other.user_id] == "owner"
        page = visitor.follow(reply)
        assert visitor.press("Remove Grace Hopper").headers["location"] == path(company, "?done=removed")
        assert other.user_id not in roles(company)
        reply = visitor.press("Remove Grace Hopper", on=page)
        assert (reply.status, "no longer a member" in text_of(reply)) == (404, True)

    def test_the_last_owner_stays_and_a_member_is_told_who_may_change_members(self, visitor, company, person, world):
        assert "Owner, the only one" in text_of(visitor.get(path(company)))
        for fields, message in (({"role": "admin"}, "last owner"), ({"action": "remove"}, "You can't remove yourself")):
            reply = forge_change(visitor, company, person, **fields)
            assert (reply.status, message in text_of(reply)) == (403, True)
        assert roles(company) == {person.user_id: "owner"}
        visitor.signed_in(world.member(company).user_id)
        assert "Admins and owners can invite people" in text_of(visitor.get(path(company)))
        assert visitor.buttons() == {"Sign out"}

    def test_an_admin_is_offered_only_what_an_admin_may_do(self, browser, company, world):
        admin = world.member(company, "admin", world.person(name="Grace Hopper"))
        member = world.member(company, person=world.person(name="Alan Turing"))
        browser.signed_in(admin.user_id)
        shown = browser.get(path(company))
        assert "Only owners can change owners" in text_of(shown)
        assert '<option value="owner"' not in shown.text
        assert browser.offers("Change") == 2
        for fields in ({"role": "member"}, {"action": "remove"}):
            reply = forge_change(browser, company, company.owner, **fields)
            assert (reply.status, "Only an owner" in text_of(reply)) == (403, True)
        assert forge_change(browser, company, member, role="owner").status == 403
        browser.get(path(company))
        assert browser.press("Change", near="Alan Turing", fill={"Role of Alan Turing": "Admin"}).status == 303
        assert roles(company)[member.user_id] == "admin"


def test_members_are_listed_in_pages_and_their_names_escaped(visitor, company, world, monkeypatch):
    monkeypatch.setattr("dashboard.organizations.members.PER_PAGE", 2)
    for _ in range(2):
        world.member(company, person=world.person(name=HOSTILE))
    pages = [*pages_of(visitor, path(company))]
    shown = "".join(page.text.partition("<main")[2].partition('id="invitations-title"')[0] for page in pages)
    assert ("{{739*911}}" in shown, "<script>alert" in shown) == (True, False)
    seen = re.findall(r"person\d+@example.com", shown)
    assert len({*seen}) == len(seen) == 3
