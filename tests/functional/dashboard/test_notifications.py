"""The page on which a person chooses emails, and the links that stop them without signing in."""

import json
import re

import pytest

from controlplane.notify import mails, subscriptions
from controlplane.notify.mails import MailId
from controlplane.platform.core.settings import settings
from controlplane.platform.table.table import table
from tests.functional.dashboard.conftest import HOSTILE
from tests.support.browser import Browser, text_of
from tests.support.cleanup import finish_deletions
from tests.support.rings import ADDED_AGAIN, BEFORE, SWITCHED, use_ring
from tests.support.world import Company, Person, table_dump

PAGE = "/account/notifications"
ALL = {"finding", "credits", "webhook", "key", "digest"}


@pytest.fixture(autouse=True)
def _emails(monkeypatch):
    monkeypatch.setitem(settings.__dict__, "email_sender", "no-reply@assent.test")


def choices(person: Person, company: Company) -> set[str]:
    return {*subscriptions.find_choices(person.user_id, [company.organization_id])[company.organization_id]}


def path_of(link: str) -> str:
    return "/" + link.split("/", 3)[3]


def link_of(person: Person, company: Company, choice: subscriptions.Choice = "digest") -> str:
    return path_of(subscriptions.link_of_choice(person.user_id, company.organization_id, choice))


class TestChoosing:
    def test_everything_is_on_until_a_person_turns_it_off(self, visitor, company, person):
        assert choices(person, company) == ALL
        shown = visitor.get(PAGE)
        assert f"Emails go to {person.email}" in text_of(shown)
        assert len(re.findall("checked", shown.text)) == len(ALL)
        off = ("Low credits", "Disabled webhooks", "Leaked API keys", "Weekly digest")
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
        assert choices(member, company) == {"credits", "webhook", "key"}
        for organization_id in (other.organization_id, HOSTILE, ""):
            reply = browser.forge(PAGE, {"organization_id": organization_id})
            assert (reply.status, "<script>alert" in reply.text) == (404, False)
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

    def test_a_changed_or_foreign_link_is_refused_and_one_with_a_lost_secret(
        self, browser, company, person, monkeypatch
    ):
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
