"""Emails to members: new P0 findings, low credits, disabled webhooks, leaked API keys, and the weekly digest."""

import re
from typing import Any

import pytest

from controlplane.api_keys import leaked
from controlplane.api_keys.leaked import Leak
from controlplane.billing import store as billing
from controlplane.findings import conversations, inbox
from controlplane.notify import subscriptions
from controlplane.organizations import members
from controlplane.people import sessions
from controlplane.platform.core import clock, tokens
from controlplane.platform.core.settings import settings
from controlplane.platform.queues import events, messages
from controlplane.platform.table import keys
from controlplane.platform.table.table import Delete, table
from emails.app import handler
from tests.functional.emails.conftest import DAY
from tests.support.api import FORM
from tests.support.cleanup import swept
from tests.support.each import each
from tests.support.mailbox import DEAD_LETTERS, Email
from tests.support.table import PREPARED
from tests.support.world import table_dump

MINUTE = 60
# From Wednesday, March 4, to the next Monday.
UNTIL_MONDAY = 5 * DAY + 6 * 3600
PLACE = "https://github.com/octocat/hello-world/blob/1f0c2b9e/.env#L3"
LEAK = Leak("commit", PLACE)


def credits_low(office) -> None:
    office.tell("credits.low")


def leak(office) -> None:
    """Reports the secret of a new key as found in public."""
    assert leaked.revoke_key(tokens.digest(office.world.key(office.company)), LEAK)


def mention(office, text: str = "@{} look") -> tuple[Any, str]:
    """Lets another member comment on a finding. Returns the finding and the comment's ID."""
    item, author = office.find(priority="P1"), office.world.member(office.company)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(settings.__dict__, "email_sender", "no-reply@assent.test")
        return item, conversations.add_comment(item, text.format(office.owner.email), author.user_id, {}).id


def lifetimes(*prefixes: str) -> dict[str, int]:
    """Returns the seconds until items expire, by the prefix of a key."""
    found = [(key["S"], item) for item in table_dump() for key in (item["pk"], item["sk"])]
    return {
        key.partition("#")[0]: int(item["expiresAt"]["N"]) - int(clock.now())
        for key, item in found
        if key.startswith(prefixes)
    }


class TestFindings:
    def test_new_p0_findings_of_a_few_minutes_are_one_email_to_each_member(self, office, world):
        repository = world.connected_repository(office.company)
        member = world.member(office.company)
        world.company()
        for number in range(3):
            office.find(repository=repository, title=f"Segment {number} loads on shop.example before <consent>")
            office.post.work(30)
        office.find(repository=repository, priority="P1")
        decided = office.find(repository=repository, title="Decided since")
        inbox.change_status(decided, "dismissed", decided.version, office.owner.user_id, None)
        assert office.post.mailbox.emails == []
        sent = office.post.work(6 * MINUTE)
        assert sorted(email.to for email in sent) == sorted([office.owner.email, member.email])
        email = sent[0]
        assert email.subject == "3 new P0 findings in Acme"
        assert "Segment 2 loads on shop. example before <consent> (" in email.text
        assert "before &lt;consent&gt;" in email.html
        assert "Decided since" not in email.text
        # Neither code nor evidence.
        assert not re.search("<script|src/index.html|1f0c2b9e", email.text + email.html)
        assert office.post.work(3600) == []

    def test_the_email_waits_a_minute_longer_than_its_findings_and_is_dropped_if_they_are_decided(self, office):
        office.find()
        office.post.work()
        fortnight = lifetimes("MAILBATCH#", "MAILEVENT#", "DIGEST#")
        assert fortnight == dict.fromkeys(("MAILBATCH", "MAILEVENT", "DIGEST"), 15 * DAY)
        assert [len(office.post.work(seconds)) for seconds in (289, 5)] == [0, 1]  # 05:10:58
        assert lifetimes("MAILS#") == {"MAILS": 90 * DAY}
        decided = office.find()
        office.post.work()
        inbox.change_status(decided, "accepted", decided.version, office.owner.user_id, None)
        assert office.post.work(7 * MINUTE) == []

    def test_a_repeated_event_isnt_sent_again_and_many_findings_are_counted(self, office):
        for _ in range(23):
            office.find()
        office.post.work()
        (email,) = office.post.work(7 * MINUTE)
        assert email.subject == "23 new P0 findings in Acme"
        assert "And 3 more." in email.text
        entry = events.entry(office.id, "finding.opened", office.find().item_id)
        for _ in range(2):
            office.post.post(entry.message)
            office.post.work(7 * MINUTE)
        office.post.work(7 * MINUTE)
        # The finding's own event and the one above are two; the repetition adds nothing.
        assert len(office.post.mailbox.emails) <= 3


class TestConversations:
    def test_those_whom_a_comment_mentions_are_told_without_its_text(self, office):
        mention(office, "@{0} @{0} secret plan")
        (email,) = office.post.work()
        assert (email.to, email.subject) == (office.owner.email, "Ada Lovelace mentioned you in Acme")
        assert "secret" not in email.text + email.html

    def test_no_one_is_told_of_what_is_gone_or_more_than_50_times_a_day(self, office):
        mention(office, "@usr_0000000000000000 look")
        item, comment_id = mention(office)
        conversations.delete_comment(inbox.get_item(item.item_id), comment_id, office.owner.user_id, "admin")
        assert office.post.work() == []
        for _ in range(51):
            mention(office)
        assert len(office.post.work()) == 50

    def test_another_assignee_is_told(self, office, monkeypatch):
        monkeypatch.setitem(settings.__dict__, "email_sender", "no-reply@assent.test")
        item, member = office.find(priority="P1"), office.world.member(office.company)
        for user_id in (office.owner.user_id, member.user_id):
            change = inbox.ItemChange(assignee=user_id)
            item = inbox.change_item(item, change, item.version, office.owner.user_id)
        (email,) = office.post.work()
        assert (email.to, email.subject) == (member.email, "A finding is assigned to you in Acme")

    @pytest.mark.parametrize("on_page", [False, True])
    def test_the_assignee_of_many_findings_gets_one_email(self, office, monkeypatch, on_page):
        monkeypatch.setitem(settings.__dict__, "email_sender", "no-reply@assent.test")
        items, member = [office.find(priority="P1") for _ in range(3)], office.world.member(office.company)

        def assign(to) -> None:
            if on_page:
                chosen = {f"item-{it.item_id}": it.version for it in items}
                fields = {**chosen, "action": "assign", "assignee": to.user_id}
                reply = office.browser().forge(f"/organizations/{office.company.slug}/inbox", fields)
            else:
                changes = [{"id": it.item_id, "version": it.version, "assigneeId": to.user_id} for it in items]
                path = f"/v1/inbox?organizationId={office.id}"
                reply = office.api.patch(path, office.owner.token, json_body={"items": changes})
            assert reply.status == 200

        assign(member)
        assign(member)  # changes nothing
        (email,) = office.post.work()
        assert (email.to, email.subject) == (member.email, "3 findings are assigned to you in Acme")
        assert "And 2 more." in email.text
        assert "/inbox?assignee=me" in email.text
        items = [inbox.get_item(it.item_id) for it in items]
        assign(office.owner)
        assert office.post.work() == []


class TestAdministration:
    def test_admins_and_owners_are_told_while_the_credits_are_low(self, office, world):
        admin, _ = world.member(office.company, "admin"), world.member(office.company)
        world.credits(office.company, 60)
        credits_low(office)
        sent = office.post.work()
        assert sorted(email.to for email in sent) == sorted([office.owner.email, admin.email])
        assert sent[0].subject == "Acme has 60 credits left"
        assert "enough for one more scan" in sent[0].text
        world.credits(office.company, 500)
        credits_low(office)
        assert office.post.work() == []
        assert billing.get_billing(office.id)[1].credits == 560

    @each(
        ("cause", "subject", "texts"),
        [
            (lambda office: office.tell("webhook.disabled"), "A webhook of Acme is disabled", ()),
            (leak, "An API key of Acme was found in public", ("the secret of deploy (assent_", PLACE)),
        ],
    )
    def test_a_disabled_webhook_and_a_leaked_key_are_told_to_admins_and_owners(
        self, cause, subject, texts, office, world
    ):
        world.member(office.company)
        cause(office)
        (email,) = office.post.work()
        assert (email.to, email.subject) == (office.owner.email, subject)
        assert all(text in email.text for text in texts)


class TestLeakedToken:
    def test_the_person_is_told_and_no_choice_stops_it(self, office):
        subscriptions.save_choices(office.owner.user_id, {office.id: []})
        assert leaked.revoke_token(sessions.create(office.owner.user_id), LEAK)
        (email,) = office.post.work()
        assert (email.to, email.subject) == (office.owner.email, "A token of your account was found in public")
        assert all(text in email.text for text in (PLACE, "a token of dashboard", "/sessions"))
        assert office.post.work(DAY) == []

    def test_a_deleted_account_and_a_stopped_address_get_nothing(self, world, post_office):
        deleted, stopped = world.person(), world.person()
        for person in (deleted, stopped):
            assert leaked.revoke_token(sessions.create(person.user_id), LEAK)
        table.delete(Delete(keys.user(deleted.user_id)), PREPARED)
        subscriptions.stop(stopped.email, "returned")
        assert post_office.work() == []


def test_a_week_with_activity_has_one_digest_on_monday(office, world):
    quiet = world.company()
    for _ in range(2):
        office.find(title="Pixel fires")
        office.tell("scan.completed")
        office.post.work(7 * MINUTE)
    office.post.work(7 * MINUTE)
    office.post.mailbox.emails.clear()
    assert office.post.work(4 * DAY) == []
    (email,) = office.post.work(DAY + 6 * 3600)
    assert (email.to, email.subject) == (office.owner.email, "Acme: March 2 to March 8")
    assert "Open P0 findings: 2" in email.text
    assert "- Pixel fires" in email.text
    assert office.post.work(8 * DAY) == []
    assert quiet.owner.email not in office.post.mailbox.addresses


class TestChoice:
    @pytest.mark.parametrize(
        ("choice", "cause", "seconds", "later"),
        [
            ("finding", lambda office: office.find(), 7 * MINUTE, 7 * MINUTE),
            ("mention", mention, 0, 0),
            ("credits", credits_low, 0, 0),
            ("webhook", lambda office: office.tell("webhook.disabled"), 0, 0),
            ("key", leak, 0, 0),
            ("digest", lambda office: office.tell("scan.completed"), UNTIL_MONDAY, 8 * DAY),
        ],
    )
    def test_every_kind_has_both_parts_and_a_working_unsubscribe_header(self, choice, cause, seconds, later, office):
        cause(office)
        office.post.work()
        office.post.work(seconds)
        email = office.post.mailbox.emails[-1]
        check_parts(email)
        link = re.fullmatch(r"<https://dashboard\.assent\.test(/\S+)>", email.headers["List-Unsubscribe"])[1]
        assert email.headers["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
        assert link == email.link("Unsubscribe")
        form = {"raw_body": b"List-Unsubscribe=One-Click", "headers": {"Content-Type": FORM}}
        assert office.api.call("POST", link, **form).status == 200
        assert choice not in subscriptions.find_choices(office.owner.user_id, [office.id])[office.id]
        sent = len(office.post.mailbox.emails)
        cause(office)
        office.post.work()
        office.post.work(later)
        assert len(office.post.mailbox.emails) == sent

    def test_a_choice_counts_when_the_email_is_sent(self, office, world):
        """Between the fan-out and the email, a person unsubscribes, leaves, or is demoted."""
        off, left, demoted, stopped = (world.member(office.company, "admin") for _ in range(4))
        credits_low(office)
        office.post.advance(1)
        swept(messages.resend)
        letters = office.post.sqs.letters
        is_fanned_out = False
        while not is_fanned_out:
            is_fanned_out = "notify-members" in letters[0].body
            office.post.sqs.deliver(letters[0], handler, DEAD_LETTERS)
        assert len(letters) == 5
        subscriptions.turn_off(off.user_id, office.id, "credits")
        world.leave(office.company, left)
        member = members.get_member(office.id, demoted.user_id)
        members.change_role(member, "member", office.owner.user_id, "owner")
        subscriptions.stop(stopped.email, "returned")
        assert [email.to for email in office.post.work()] == [office.owner.email]

    def test_a_large_organization_is_told_page_by_page(self, office, world):
        people = [world.member(office.company, "admin") for _ in range(60)]
        subscriptions.turn_off(people[7].user_id, office.id, "credits")
        credits_low(office)
        addresses = [email.to for email in office.post.work()]
        assert sorted(addresses) == sorted({office.owner.email, *(it.email for it in people)} - {people[7].email})

    def test_a_bounce_is_shown_on_the_persons_page_and_to_admins(self, office, world):
        admin = world.member(office.company, "admin")
        credits_low(office)
        email = next(it for it in office.post.work() if it.to == admin.email)
        office.post.report(email, "bounced", "Permanent")
        office.post.work()
        browser = office.browser(admin)
        assert "came back" in browser.get("/account/notifications").text
        assert office.members_page().text.count("Email returned") == 1
        credits_low(office)
        assert [it.to for it in office.post.work()] == [office.owner.email]
        browser.press("Turn emails on again")
        credits_low(office)
        assert len(office.post.work()) == 2

    def test_without_a_sender_events_leave_nothing(self, office, monkeypatch):
        monkeypatch.setitem(settings.__dict__, "email_sender", None)
        office.find()
        credits_low(office)
        assert office.post.work() == []
        assert office.post.work(UNTIL_MONDAY) == []


def check_parts(email: Email) -> None:
    """Checks what every email has, and that it loads nothing and tracks no one."""
    assert email.text.strip()
    assert email.html.startswith("<!doctype html>")
    assert "color-scheme" in email.html
    assert not re.search(r"<img|<script|<link|<iframe|url\(|@import|src=", email.html)
    assert {it.split("/")[2] for it in re.findall(r'href="(https?://[^"]+)"', email.html)} == {"dashboard.assent.test"}
    assert "/organizations/" in email.text
    assert len(email.subject) <= 120
