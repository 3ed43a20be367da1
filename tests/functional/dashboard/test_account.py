"""A person's account: export, deletion, and the choice of emails, with links that stop them without signing in."""

import json
import re

import pytest

from controlplane.access.sign_in import Claims, sign_in
from controlplane.erasure import deletions
from controlplane.feedback import store as feedback
from controlplane.findings import conversations, inbox
from controlplane.notify import mails, subscriptions
from controlplane.notify.mails import MailId
from controlplane.organizations import members
from controlplane.organizations import store as organizations
from controlplane.organizations.invitees import BlockItem
from controlplane.people import users
from controlplane.platform.core import clock
from controlplane.platform.core.settings import settings
from controlplane.platform.table.table import Put, table
from ops import accounts
from tests.functional.dashboard.conftest import HOSTILE
from tests.support.browser import Browser, text_of
from tests.support.cleanup import finish_deletions
from tests.support.reply import Reply
from tests.support.rings import ADDED_AGAIN, BEFORE, SWITCHED, use_ring
from tests.support.table import PREPARED
from tests.support.trips import counted_trips
from tests.support.world import Company, Person, table_dump

DELETE = "/account/delete"
ADDRESS = "Your email address"
REPORT = {"title": "Too slow", "body": "Scans take long.", "kind": "bug"}


@pytest.fixture
def person(world):
    claims = Claims(
        issuer="https://issuer.example",
        subject="ada",
        email="ada@example.com",
        email_verified=True,
        name="Ada <Lovelace>",
        image=None,
    )
    user_id = sign_in(claims).user_id
    return Person(user_id, "ada@example.com", "Ada <Lovelace>", world.token(user_id))


def delete(visitor: Browser, typed: str) -> Reply:
    visitor.get(DELETE)
    return visitor.press("Delete my account", fill={ADDRESS: typed})


class TestExport:
    def test_contains_everything_that_keys_find_and_no_secret(self, visitor, person, world):
        company, other = world.company(owner=person, name="Acme"), world.company(name="Birch")
        shown = visitor.get("/account")
        for text in ("Ada <Lovelace>", person.email, person.user_id):
            assert text in text_of(shown)
        assert f'href="/organizations/{company.slug}"' in shown.text.partition("<main")[2]
        invitation = world.invitation(other, person.email).invitation_id
        feedback.submit_report(person.user_id, REPORT)
        blocked = world.company(name="Dogwood")
        block = BlockItem(organization_id=blocked.organization_id, name="Dogwood", created_at=clock.timestamp())
        table.put(Put(block.to_item(person.user_id)), PREPARED)
        world.company(name="Cedar")
        reply = visitor.get("/account/export")
        assert reply.headers["content-disposition"] == 'attachment; filename="my-data.json"'
        exported = json.loads(reply.text)
        assert exported["userId"] == person.user_id
        kinds = "account address identity invitation membership feedback credentials blocks"
        assert {item["kind"] for item in exported["items"]} >= {*kinds.split()}
        for text in (person.email, company.organization_id, "Too slow", invitation, blocked.organization_id):
            assert text in reply.text
        for text in ("Cedar", person.token, visitor.secret):
            assert text not in reply.text
        # What the operator's export has, except for what only a search of the table finds.
        assert not any("digest" in item["attributes"] for item in exported["items"])

    def test_contains_the_comments_that_the_person_wrote_on_findings(self, visitor, person, world):
        company = world.company(owner=person)
        item, gone = world.finding(company), world.finding(company)
        for it, text, by in ((item, "mine", person), (item, "theirs", world.member(company)), (gone, "other", person)):
            made = conversations.add_comment(it, text, by.user_id, {})
        conversations.delete_comment(inbox.get_item(gone.item_id), made.id, person.user_id, "member")
        exported = json.loads(visitor.get("/account/export").text)["items"]
        (shown,) = [it["attributes"] for it in exported if it["kind"] == "inbox"]
        assert [it["text"] for it in shown["comments"]] == ["mine"]
        assert "title" not in shown

    def test_contains_comments_in_an_organization_that_the_person_has_left_until_it_is_deleted(
        self, visitor, person, world
    ):
        company = world.company()
        world.member(company, person=person)
        conversations.add_comment(world.finding(company), "mine", person.user_id, {})
        members.remove_member(company.organization_id, person.user_id)
        assert "mine" in visitor.get("/account/export").text
        deletions.delete_organization(company.organization_id)
        finish_deletions()
        assert company.organization_id not in visitor.get("/account/export").text

    def test_many_and_long_reports_take_no_further_round_trip(self, visitor, person):
        for number in range(6):
            feedback.submit_report(person.user_id, {"category": "bug", "message": f"{number} " + "long " * 900})
        visitor.get("/account")  # the first request of a minute
        with counted_trips() as trips:
            reply = visitor.get("/account/export")
        assert trips.taken <= 3
        reports = [it["attributes"] for it in json.loads(reply.text)["items"] if it["attributes"].get("message")]
        assert sorted(it["message"][:7] for it in reports) == [f"{number} long " for number in range(6)]
        assert not any("detached" in it for it in reports)


class TestDeletion:
    def test_the_account_and_every_access_are_gone_after_its_address_is_entered(self, visitor, person, world):
        company = world.company()
        world.member(company, "admin", person)
        before = users.find_user(person.user_id)
        reply = delete(visitor, "eve@example.com")
        assert (reply.status, "Nothing was deleted." in text_of(reply)) == (400, True)
        assert users.find_user(person.user_id) == before
        reply = delete(visitor, " ADA@example.com ")
        assert (reply.status, reply.headers["location"]) == (303, "/signed-out?done=deleted")
        assert visitor.cookies == {}
        assert visitor.api.get("/v1/me", person.token).status == 401
        assert organizations.get_account(person.user_id) == (None, [])
        assert users.find_user_by_email(person.email) is None
        roster = members.list_members(company.organization_id, 10, None).items
        assert [member.user_id for member in roster] == [company.owner.user_id]
        finish_deletions()
        assert not accounts.is_left_over(person.user_id)
        assert "Your account is deleted" in text_of(visitor.get("/signed-out?done=deleted"))

    def test_the_last_owner_of_an_organization_is_refused_by_name(self, visitor, person, world):
        company = world.company(owner=person, name="Acme")
        assert "You are the last owner of Acme" in text_of(visitor.get(DELETE))
        assert "Delete my account" not in visitor.buttons()
        assert visitor.forge(DELETE, {"confirmation": person.email}).status == 409
        assert organizations.find_membership(person.user_id, company.organization_id) is not None
        world.member(company, "owner")
        assert delete(visitor, person.email).status == 303


PAGE = "/account/notifications"
ALL = {"finding", "mention", "credits", "webhook", "key", "digest"}


@pytest.fixture
def _emails(monkeypatch):
    monkeypatch.setitem(settings.__dict__, "email_sender", "no-reply@assent.test")


def choices(person: Person, company: Company) -> set[str]:
    return {*subscriptions.find_choices(person.user_id, [company.organization_id])[company.organization_id]}


def path_of(link: str) -> str:
    return "/" + link.split("/", 3)[3]


def link_of(person: Person, company: Company, choice: subscriptions.Choice = "digest") -> str:
    return path_of(subscriptions.link_of_choice(person.user_id, company.organization_id, choice))


@pytest.mark.usefixtures("_emails")
class TestChoosing:
    def test_everything_is_on_until_a_person_turns_it_off(self, visitor, company, person):
        assert choices(person, company) == ALL
        shown = visitor.get(PAGE)
        assert f"Emails go to {person.email}" in text_of(shown)
        assert len(re.findall("checked", shown.text)) == len(ALL)
        off = ("Assignments and mentions", "Low credits", "Disabled webhooks", "Leaked API keys", "Weekly digest")
        reply = visitor.press("Save", fill=dict.fromkeys(off, False))
        assert (reply.status, reply.headers["location"]) == (303, f"{PAGE}?done=saved")
        assert choices(person, company) == {"finding"}
        shown = visitor.get(reply.headers["location"])
        assert "Your choice is saved." in text_of(shown)
        assert len(re.findall("checked", shown.text)) == 1

    def test_members_choose_only_what_they_get_in_their_organizations_and_keep_the_rest(self, browser, company, world):
        member, other = world.member(company), world.company()
        browser.signed_in(member.user_id)
        shown = browser.get(PAGE)
        assert 'name="credits"' not in shown.text
        assert "Admins and owners also get emails about low credits" in text_of(shown)
        browser.press("Save", fill={"New P0 findings": False, "Weekly digest": False})
        assert choices(member, company) == {"mention", "credits", "webhook", "key"}
        for organization_id in (other.organization_id, HOSTILE, ""):
            assert browser.forge(PAGE, {"organization_id": organization_id}).status == 404
        assert choices(member, other) == ALL
        browser.signed_in(world.member(company, "admin").user_id)
        assert 'name="credits"' in browser.get(PAGE).text

    @pytest.mark.usefixtures("company")
    def test_a_stopped_address_is_shown_and_turned_on_again(self, visitor, person, monkeypatch):
        for reason, message in (
            ("returned", "came back"),
            ("complained", "reported as spam"),
            ("stopped", "You stopped all emails"),
        ):
            subscriptions.stop(person.email.upper(), reason)
            assert message in text_of(visitor.get(PAGE))
            reply = visitor.press("Turn emails on again")
            assert reply.headers["location"] == f"{PAGE}?done=resumed"
            assert message not in text_of(visitor.get(PAGE))
        monkeypatch.setitem(settings.__dict__, "email_sender", None)
        assert "This service doesn't send emails at the moment." in text_of(visitor.get(PAGE))


@pytest.mark.usefixtures("_emails")
class TestUnsubscribing:
    def test_opening_the_link_changes_nothing_and_the_button_stops_one_kind(self, browser, company, person):
        link = link_of(person, company)
        before = table_dump()
        shown = browser.get(link)
        assert (shown.status, "Weekly digest" in text_of(shown)) == (200, True)
        assert person.email not in shown.text
        assert [it for it in table_dump() if not it["pk"]["S"].startswith("IP#")] == before
        reply = browser.press("Stop: Weekly digest")
        assert (reply.status, "You are unsubscribed" in text_of(reply)) == (200, True)
        assert choices(person, company) == ALL - {"digest"}
        assert subscriptions.find_stops([person.email]) == {}

    def test_an_email_program_unsubscribes_with_one_request(self, browser, company, person):
        link = link_of(person, company, "finding")
        for _ in range(2):
            assert browser.forge(link, {"List-Unsubscribe": "One-Click"}).status == 200
        assert choices(person, company) == ALL - {"finding"}
        browser.get(link)
        assert "not even invitations" in text_of(browser.press("Stop all emails"))
        assert subscriptions.find_stops([person.email])[person.email].reason == "stopped"

    def test_the_link_of_an_invitation_stops_emails_to_its_address(self, browser, company):
        mail_id = MailId("inv_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v", "0123")
        link = path_of(subscriptions.link_of_mail(mail_id))
        assert browser.forge(link).status == 404
        mails.claim(mail_id, "Grace@example.com", "invitation", company.organization_id, {})
        browser.get(link)
        assert browser.press("Stop all emails").status == 200
        assert "grace@example.com" in subscriptions.find_stops(["grace@example.com"])

    def test_a_link_is_refused_if_it_was_changed_or_its_secret_was_lost(self, browser, company, person, monkeypatch):
        link = link_of(person, company)
        former = link_of(person, company, "former")  # a kind that a later release doesn't have
        for wrong in (link[:-1] + ("A" if link[-1] != "A" else "B"), link[:-9], "/account/unsubscribe/x", former):
            for reply in (browser.get(wrong), browser.forge(wrong), browser.forge(wrong + "/all")):
                assert (reply.status, "This link can't be used" in text_of(reply)) == (404, True)
        assert choices(person, company) == ALL
        use_ring(monkeypatch, BEFORE)
        link = link_of(person, company)
        for ring, status in ((SWITCHED, 200), (ADDED_AGAIN, 404)):
            use_ring(monkeypatch, ring)
            assert browser.get(link).status == status

    def test_the_link_of_a_deleted_account_leaves_nothing_behind(self, browser, world, company):
        person = world.member(company)
        link = link_of(person, company)
        visitor = Browser(browser.api).signed_in(person.user_id)
        subscriptions.turn_off(person.user_id, company.organization_id, "finding")
        subscriptions.stop(person.email, "returned")
        mails.claim(MailId(person.user_id, "1"), person.email, "digest", company.organization_id, {})
        exported = json.loads(visitor.get("/account/export").text)["items"]
        assert {"account", "email", "email address"} <= {item["kind"] for item in exported}
        page = browser.get(link)
        visitor.get("/account/delete")
        assert visitor.press("Delete my account", fill={"Your email address": person.email}).status == 303
        for label in ("Stop: Weekly digest", "Stop all emails"):
            assert browser.press(label, on=page).status == 200
        finish_deletions()
        kept = [item for item in table_dump() if person.email in str(item) or "'MAIL" in str(item)]
        assert kept == []
        assert table.get(mails.MailId(person.user_id, "1").key) is None
