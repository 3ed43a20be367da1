"""Emails to members: new P0 findings, low credits, disabled webhooks, leaked API keys, and the weekly digest."""

import re
from collections.abc import Callable

import pytest

from controlplane.core import clock, tokens
from controlplane.core.settings import settings
from controlplane.queues import messages
from controlplane.store import (
    billing,
    events,
    inbox,
    keys,
    leaked_keys,
    leaked_tokens,
    mail_addresses,
    mail_choices,
    members,
    sessions,
)
from controlplane.store.leaked_keys import Leak
from controlplane.store.mail_choices import Choice
from controlplane.store.table import Delete, table
from emails.app import handler
from tests.support.api import FORM, Api
from tests.support.browser import Browser
from tests.support.each import each
from tests.support.mailbox import DEAD_LETTERS, Email, Mailbox, PostOffice
from tests.support.sweeping import swept
from tests.support.table import PREPARED
from tests.support.world import Company, Person, World, table_dump

# From Wednesday, March 4, to the next Monday.
UNTIL_MONDAY = 5 * 86_400 + 6 * 3600
MINUTE, DAY = 60, 86_400


@pytest.fixture
def company(world: World, mailbox: Mailbox) -> Company:
    return world.company()


def tell(company: Company, event: events.EventName) -> None:
    entry = events.entry(company.organization_id, event)
    table.transact({"event": entry.leg}, PREPARED)


def credits_low(company: Company) -> None:
    tell(company, "credits.low")


LEAK = Leak("commit", "https://github.com/octocat/hello-world/blob/1f0c2b9e/.env#L3")


def leak(world: World, company: Company) -> None:
    """Reports the secret of a new key as found in public."""
    assert leaked_keys.revoke(tokens.digest(world.key(company)), LEAK)


def lifetimes(*prefixes: str) -> dict[str, int]:
    """Returns the seconds until items expire, by the prefix of a key."""
    found = [(key["S"], item) for item in table_dump() for key in (item["pk"], item["sk"])]
    return {
        key.partition("#")[0]: int(item["expiresAt"]["N"]) - int(clock.now())
        for key, item in found
        if key.startswith(prefixes)
    }


class TestFindings:
    def test_new_p0_findings_of_a_few_minutes_are_one_email_to_each_member(
        self, world: World, company: Company, post_office: PostOffice
    ):
        repository = world.connected_repository(company)
        member = world.member(company)
        world.company()
        for number in range(3):
            title = f"Segment {number} loads on shop.example before <consent>"
            world.finding(company, repository, title=title, priority="P0")
            post_office.work(30)
        world.finding(company, repository, priority="P1")
        decided = world.finding(company, repository, title="Decided since", priority="P0")
        inbox.change_status(decided, "dismissed", decided.version, company.owner.user_id, None)
        assert post_office.mailbox.emails == []
        sent = post_office.work(6 * MINUTE)
        assert sorted(email.to for email in sent) == sorted([company.owner.email, member.email])
        email = sent[0]
        assert email.subject == "3 new P0 findings in Acme"
        assert "Segment 2 loads on shop. example before <consent> (" in email.text
        assert "before &lt;consent&gt;" in email.html
        assert "Decided since" not in email.text
        for forbidden in ("<script", "src/index.html", "1f0c2b9e"):  # code and evidence
            assert forbidden not in email.text
            assert forbidden not in email.html
        assert post_office.work(3600) == []

    def test_the_email_waits_a_minute_longer_than_its_findings(
        self, world: World, company: Company, post_office: PostOffice
    ):
        world.finding(company, world.connected_repository(company), priority="P0")
        post_office.work()
        fortnight = lifetimes("MAILBATCH#", "MAILEVENT#", "DIGEST#")
        assert fortnight == {"MAILBATCH": 15 * DAY, "MAILEVENT": 15 * DAY, "DIGEST": 15 * DAY}
        assert post_office.work(289) == []  # 05:10:58
        assert len(post_office.work(5)) == 1
        assert lifetimes("MAILS#") == {"MAILS": 90 * DAY}

    def test_a_repeated_event_isnt_sent_again_and_many_findings_are_counted(
        self, world: World, company: Company, post_office: PostOffice
    ):
        repository = world.connected_repository(company)
        for _ in range(23):
            world.finding(company, repository, priority="P0")
        post_office.work()
        (email,) = post_office.work(7 * MINUTE)
        assert email.subject == "23 new P0 findings in Acme"
        assert "And 3 more." in email.text
        found = world.finding(company, repository, priority="P0")
        entry = events.entry(company.organization_id, "finding.opened", found.item_id)
        for _ in range(2):
            post_office.post(entry.message)
            post_office.work(7 * MINUTE)
        post_office.work(7 * MINUTE)
        # The finding's own event and the one above are two; the repetition adds nothing.
        assert len(post_office.mailbox.emails) <= 3

    def test_findings_that_are_all_decided_send_nothing(self, world: World, company: Company, post_office: PostOffice):
        found = world.finding(company, world.connected_repository(company), priority="P0")
        post_office.work()
        inbox.change_status(found, "accepted", found.version, company.owner.user_id, None)
        assert post_office.work(7 * MINUTE) == []


class TestCredits:
    def test_admins_and_owners_are_told_while_the_credits_are_low(
        self, world: World, company: Company, post_office: PostOffice
    ):
        admin = world.member(company, "admin")
        world.member(company)
        world.credits(company, 60)
        credits_low(company)
        sent = post_office.work()
        assert sorted(email.to for email in sent) == sorted([company.owner.email, admin.email])
        assert sent[0].subject == "Acme has 60 credits left"
        assert "enough for one more scan" in sent[0].text
        world.credits(company, 500)
        credits_low(company)
        assert post_office.work() == []
        assert billing.get_billing(company.organization_id)[1].credits == 560

    def test_a_disabled_webhook_is_told_to_admins_and_owners(
        self, world: World, company: Company, post_office: PostOffice
    ):
        world.member(company)
        tell(company, "webhook.disabled")
        (email,) = post_office.work()
        assert (email.to, email.subject) == (company.owner.email, "A webhook of Acme is disabled")

    def test_a_leaked_key_is_told_to_admins_and_owners(self, world: World, company: Company, post_office: PostOffice):
        world.member(company)
        leak(world, company)
        (email,) = post_office.work()
        assert (email.to, email.subject) == (company.owner.email, "An API key of Acme was found in public")
        assert "the secret of deploy (assent_" in email.text
        assert LEAK.url is not None
        assert LEAK.url in email.text


class TestLeakedToken:
    def test_the_person_is_told_and_nothing_else_stops_it(
        self, world: World, company: Company, post_office: PostOffice
    ):
        owner = company.owner
        mail_choices.save_choices(owner.user_id, {company.organization_id: []})
        assert leaked_tokens.revoke_token(sessions.create(owner.user_id), LEAK)
        (email,) = post_office.work()
        assert (email.to, email.subject) == (owner.email, "A token of your account was found in public")
        assert LEAK.url is not None
        assert LEAK.url in email.text
        assert "a token of dashboard" in email.text
        assert "/sessions" in email.text
        assert post_office.work(DAY) == []

    @each("stopped", ["account", "address"])
    def test_a_deleted_account_and_a_stopped_address_get_nothing(
        self, stopped: str, world: World, mailbox: Mailbox, post_office: PostOffice
    ):
        person = world.person()
        assert leaked_tokens.revoke_token(sessions.create(person.user_id), LEAK)
        if stopped == "account":
            table.delete(Delete(keys.user(person.user_id)), PREPARED)
        else:
            mail_addresses.stop(person.email, "returned")
        assert post_office.work() == []


class TestDigest:
    def test_a_week_with_activity_has_one_digest_on_monday(
        self, world: World, company: Company, post_office: PostOffice
    ):
        quiet = world.company()
        repository = world.connected_repository(company)
        for _ in range(2):
            world.finding(company, repository, priority="P0", title="Pixel fires")
            tell(company, "scan.completed")
            post_office.work(7 * MINUTE)
        post_office.work(7 * MINUTE)
        post_office.mailbox.emails.clear()
        assert post_office.work(4 * 86_400) == []
        (email,) = post_office.work(86_400 + 6 * 3600)
        assert (email.to, email.subject) == (company.owner.email, "Acme: March 2 to March 8")
        assert "Open P0 findings: 2" in email.text
        assert "- Pixel fires" in email.text
        assert post_office.work(8 * 86_400) == []
        assert quiet.owner.email not in post_office.mailbox.addresses


class TestChoice:
    SENDS: tuple[tuple[Choice, Callable[[World, Company], object], float], ...] = (
        ("finding", lambda world, company: world.finding(company, priority="P0"), 7 * MINUTE),
        ("credits", lambda world, company: credits_low(company), 0),
        ("webhook", lambda world, company: tell(company, "webhook.disabled"), 0),
        ("key", leak, 0),
        ("digest", lambda world, company: tell(company, "scan.completed"), UNTIL_MONDAY),
    )

    def test_every_kind_has_both_parts_and_a_working_unsubscribe_header(
        self, api: Api, world: World, company: Company, post_office: PostOffice
    ):
        for choice, cause, seconds in self.SENDS:
            cause(world, company)
            post_office.work()
            post_office.work(seconds)
            email = post_office.mailbox.emails[-1]
            _check_parts(email)
            link = re.fullmatch(r"<https://dashboard\.assent\.test(/\S+)>", email.headers["List-Unsubscribe"])
            assert email.headers["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
            assert link is not None
            assert link[1] == email.link("Unsubscribe")
            body = b"List-Unsubscribe=One-Click"
            assert api.call("POST", link[1], raw_body=body, headers={"Content-Type": FORM}).status == 200
            chosen = mail_choices.find_choices(company.owner.user_id, [company.organization_id])
            assert choice not in chosen[company.organization_id]
            sent = len(post_office.mailbox.emails)
            cause(world, company)
            post_office.work()
            post_office.work(max(seconds, 8 * 86_400 if choice == "digest" else 0))
            assert len(post_office.mailbox.emails) == sent

    def test_a_choice_counts_when_the_email_is_sent(self, world: World, company: Company, post_office: PostOffice):
        """Between the fan-out and the email, a person unsubscribes, leaves, or is demoted."""
        people = [world.member(company, "admin") for _ in range(4)]
        off, left, demoted, stopped = people
        credits_low(company)
        post_office.advance(1)
        swept(messages.resend)
        while "notify-members" not in post_office.sqs.letters[0].body:
            _deliver_first(post_office)
        _deliver_first(post_office)
        assert len(post_office.sqs.letters) == 5
        mail_choices.turn_off(off.user_id, company.organization_id, "credits")
        world.leave(company, left)
        _demote(company, demoted)
        mail_addresses.stop(stopped.email, "returned")
        assert [email.to for email in post_office.work()] == [company.owner.email]

    def test_a_large_organization_is_told_page_by_page(self, world: World, company: Company, post_office: PostOffice):
        people = [world.member(company, "admin") for _ in range(60)]
        mail_choices.turn_off(people[7].user_id, company.organization_id, "credits")
        credits_low(company)
        sent = post_office.work()
        assert len(sent) == 60
        assert len({email.to for email in sent}) == 60
        assert people[7].email not in post_office.mailbox.addresses

    def test_a_bounce_is_shown_on_the_persons_page_and_to_admins(
        self, api: Api, world: World, company: Company, post_office: PostOffice
    ):
        admin = world.member(company, "admin")
        credits_low(company)
        email = next(it for it in post_office.work() if it.to == admin.email)
        post_office.report(email, "bounced", "Permanent")
        post_office.work()
        assert "came back" in Browser(api).signed_in(admin.user_id).get("/account/notifications").text
        page = Browser(api).signed_in(company.owner.user_id).get(f"/organizations/{company.slug}/members")
        assert page.text.count("Email returned") == 1
        credits_low(company)
        assert [it.to for it in post_office.work()] == [company.owner.email]
        browser = Browser(api).signed_in(admin.user_id)
        browser.get("/account/notifications")
        browser.press("Turn emails on again")
        credits_low(company)
        assert len(post_office.work()) == 2

    def test_without_a_sender_events_leave_nothing(
        self, world: World, company: Company, post_office: PostOffice, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setitem(settings.__dict__, "email_sender", None)
        world.finding(company, priority="P0")
        credits_low(company)
        assert post_office.work() == []
        assert post_office.work(UNTIL_MONDAY) == []


def _check_parts(email: Email) -> None:
    """Checks what every email has, and that it loads nothing and tracks no one."""
    assert email.text.strip()
    assert email.html.startswith("<!doctype html>")
    assert "color-scheme" in email.html
    assert not re.search(r"<img|<script|<link|<iframe|url\(|@import|src=", email.html)
    assert {it.split("/")[2] for it in re.findall(r'href="(https?://[^"]+)"', email.html)} == {"dashboard.assent.test"}
    assert "/organizations/" in email.text
    assert len(email.subject) <= 120


def _demote(company: Company, person: Person) -> None:
    member = members.get_member(company.organization_id, person.user_id)
    members.change_role(member, "member", company.owner.user_id, "owner")


def _deliver_first(post_office: PostOffice) -> None:
    post_office.sqs.deliver(post_office.sqs.letters[0], handler, DEAD_LETTERS)
