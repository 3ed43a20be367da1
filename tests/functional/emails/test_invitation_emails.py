"""The email of an invitation: once, with the link that leads to its answer, and stopped by what SES reports."""

import json
import re

import pytest
from botocore.exceptions import ClientError

from controlplane.core import clock
from controlplane.core.settings import settings
from controlplane.queues.messages import Queue
from controlplane.store import invitations, keys, mail_addresses
from controlplane.store.table import Delete, table
from emails.delivery import ses
from sweeper.service import sweep
from tests.functional.conftest import FakeClock
from tests.support.api import Api
from tests.support.browser import Browser, text_of
from tests.support.logs import captured_logs
from tests.support.mailbox import Mailbox, PostOffice
from tests.support.scripted_server import answer, scripted_server
from tests.support.table import PREPARED
from tests.support.world import Company, Person, World, table_dump

GRACE = "Grace.Hopper@example.com"
DAY = 86_400


@pytest.fixture
def company(world: World, mailbox: Mailbox) -> Company:
    company = world.company()
    company.owner.token = world.token(company.owner.user_id, lifetime_seconds=30 * DAY)
    return company


def invite(api: Api, company: Company, email: str = GRACE, role: str = "member", by: Person | None = None) -> str:
    body = {"email": email, "role": role}
    return str(api.post("/v1/invitations", (by or company.owner).token, json_body=body).data["id"])


def outcome(company: Company) -> str | None:
    (invitation,) = invitations.list_invitations(company.organization_id, 50, None).invitations
    return invitation.mail


class TestSending:
    def test_an_invited_person_joins_through_the_email(
        self, api: Api, world: World, company: Company, post_office: PostOffice
    ):
        guest = world.person(GRACE)
        invite(api, company, GRACE, "admin")
        (email,) = post_office.work()
        counters = [it for it in table_dump() if it["sk"]["S"].startswith(("DAY#", "MAILDAY#"))]
        assert [int(it["expiresAt"]["N"]) for it in counters] == [int(clock.now()) + 2 * DAY] * 2
        assert (email.to, email.subject) == (GRACE, "Invitation to Acme on Assent")
        assert "invites you to be an admin of Acme" in email.text
        assert email.request["FromEmailAddress"] == "Assent <no-reply@assent.test>"
        assert email.request["ConfigurationSetName"] == "assent"
        assert "List-Unsubscribe" not in email.headers
        assert outcome(company) == "sent"
        browser = Browser(api).signed_in(guest.user_id)
        assert email.link("Open the invitation") in email.html
        browser.get(email.link("Open the invitation"))
        joined = browser.follow(browser.press("Accept"))
        assert "You are now a member of Acme, as admin" in text_of(joined)
        assert post_office.work(3600) == []

    def test_its_message_waits_for_no_delivery_to_a_webhook(
        self, api: Api, company: Company, post_office: PostOffice, now: FakeClock
    ):
        """Deliveries have another queue: emails leave even if no worker takes them."""
        invite(api, company)
        now.advance(1)
        sweep()
        assert [letter.queue_url for letter in post_office.sqs.letters] == [Queue.EMAILS.url]

    def test_no_address_is_in_a_message_or_a_log(self, api: Api, company: Company, post_office: PostOffice):
        with captured_logs() as logs:
            invite(api, company)
            queued = [str(item) for item in table_dump() if item["pk"]["S"].startswith("OUTBOX#")]
            post_office.mailbox.refuse("TooManyRequestsException", 429)
            post_office.mailbox.refuse("MessageRejected")
            post_office.mailbox.be_silent(takes=False)
            for _ in range(8):
                post_office.work(200)
            (email,) = post_office.mailbox.emails
            post_office.report(email, "bounced", "Permanent")
            queued += [letter.body for letter in post_office.sqs.letters]
            post_office.work()
        logged = logs.getvalue()
        assert "address stopped" in logged
        for text in (*queued, logged):
            assert "grace" not in text.lower()
            assert "[redacted]" not in text

    def test_an_invitation_that_ended_before_it_was_sent_sends_nothing(
        self, api: Api, world: World, company: Company, post_office: PostOffice
    ):
        canceled = invite(api, company)
        api.delete(f"/v1/invitations/{canceled}", company.owner.token)
        admin = world.member(company, "admin")
        invite(api, company, "void@example.com", by=admin)
        world.leave(company, admin)
        former = world.company()
        invite(api, former)
        table.delete(Delete(keys.organization(former.organization_id)), PREPARED)
        assert post_office.work_until_quiet() == []
        invite(api, company, "late@example.com")
        assert post_office.work(8 * DAY) == []
        assert post_office.dead_letters == []

    def test_a_blocked_organization_sends_nothing_and_doesnt_learn_that(
        self, api: Api, world: World, company: Company, post_office: PostOffice
    ):
        guest = world.person(GRACE)
        invitation_id = invite(api, company)
        browser = Browser(api).signed_in(guest.user_id)
        browser.get(f"/invitations/{invitation_id}")
        browser.press("Decline and block")
        invite(api, company)
        assert post_office.work() == []
        assert outcome(company) == "sent"

    def test_sending_again_sends_another_email_with_the_same_link(
        self, api: Api, company: Company, post_office: PostOffice
    ):
        invitation_id = invite(api, company)
        (first,) = post_office.work()
        for _ in range(2):
            api.post(f"/v1/invitations/{invitation_id}/resend", company.owner.token)
        (again,) = post_office.work()  # the message of the first resend is superseded
        assert again.tag != first.tag
        assert again.link("Open the invitation") == first.link("Open the invitation")

    def test_emails_of_an_organization_and_to_an_address_are_limited_for_a_day(
        self, api: Api, world: World, company: Company, post_office: PostOffice, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setitem(settings.__dict__, "invitation_emails_per_address", 2)
        for _ in range(3):  # what an abuser would do: cancel, and invite again
            invitation_id = invite(api, company)
            post_office.work()
            last = outcome(company)
            api.delete(f"/v1/invitations/{invitation_id}", company.owner.token)
        assert (len(post_office.mailbox.emails), last) == (2, "limited")
        monkeypatch.setitem(settings.__dict__, "invitation_emails_per_organization", 3)
        for number in range(2):
            invite(api, company, f"other{number}@example.com")
            post_office.work()
        assert len(post_office.mailbox.emails) == 3
        other = world.company()
        invite(api, other, "third@example.com")
        assert len(post_office.work()) == 1
        post_office.advance(DAY)
        invite(api, company)
        assert len(post_office.work()) == 1


class TestFeedback:
    def test_a_permanent_bounce_or_a_complaint_stops_emails_and_is_shown(
        self, api: Api, company: Company, post_office: PostOffice
    ):
        browser = Browser(api).signed_in(company.owner.user_id)
        for number, (event, kind, reason, shown) in enumerate(
            (
                ("bounced", "Permanent", "returned", "Email returned"),
                ("complained", "", "complained", "Reported as spam"),
            )
        ):
            address = f"guest{number}@example.com"
            invitation_id = invite(api, company, address)
            (email,) = post_office.work()
            post_office.report(email, "bounced", "Transient")
            post_office.work()
            assert mail_addresses.find_stops([address]) == {}
            for _ in range(2):
                post_office.report(email, event, kind)
            post_office.report(email, "sent")
            post_office.work()
            assert mail_addresses.find_stops([address])[address].reason == reason
            page = browser.get(f"/organizations/{company.slug}/members")
            assert shown in text_of(page)
            api.delete(f"/v1/invitations/{invitation_id}", company.owner.token)
            invite(api, company, address.upper())
            assert post_office.work() == []
            assert shown in text_of(browser.get(f"/organizations/{company.slug}/members"))

    def test_the_link_in_the_email_stops_all_emails_to_the_address(
        self, api: Api, company: Company, post_office: PostOffice
    ):
        invitation_id = invite(api, company)
        (email,) = post_office.work()
        link = email.link("to this address")
        browser = Browser(api)
        browser.get(link)
        assert mail_addresses.find_stops([GRACE]) == {}
        browser.press("Stop all emails")
        api.post(f"/v1/invitations/{invitation_id}/resend", company.owner.token)
        assert post_office.work() == []
        assert outcome(company) == "stopped"

    def test_reports_about_unknown_emails_change_nothing(self, company: Company, post_office: PostOffice):
        before = table_dump()
        for mail in ([], ["x"], ["usr_5w1n8q2k7m3r9t4v-"], ["-0"], ["usr_5w1n8q2k7m3r9t4v-0"], ["inv_x-y"]):
            post_office.post({"version": 1, "kind": "mail-report", "event": "complained", "mail": mail})
        post_office.work()
        assert table_dump() == before
        assert post_office.dead_letters == []


class TestFailures:
    def test_an_email_of_unknown_outcome_is_sent_again_only_after_two_minutes_without_a_report(
        self, api: Api, company: Company, post_office: PostOffice
    ):
        invite(api, company)
        post_office.mailbox.be_silent(takes=False)
        assert post_office.work() == []
        assert post_office.work(119) == []
        assert len(post_office.work(20)) == 1
        assert post_office.work_until_quiet() == []

    def test_an_email_that_ses_took_is_settled_by_its_report_and_not_sent_twice(
        self, api: Api, company: Company, post_office: PostOffice
    ):
        invite(api, company)
        post_office.mailbox.be_silent(takes=True)
        (email,) = post_office.work()
        post_office.report(email, "sent")
        assert post_office.work_until_quiet() == []
        assert outcome(company) == "sent"

    def test_refusals_are_retried_and_end_as_dead_letters_with_their_code(
        self, api: Api, company: Company, post_office: PostOffice
    ):
        invite(api, company)
        post_office.mailbox.refuse("TooManyRequestsException", 429)
        post_office.mailbox.refuse("SendingPausedException")
        sent = [*post_office.work(), *post_office.work(130), *post_office.work(200)]
        assert len(sent) == 1
        invite(api, company, "b@example.com")
        for _ in range(5):
            post_office.mailbox.refuse("MessageRejected")
        assert post_office.work_until_quiet() == []
        assert post_office.dead_letters == ["SES: MessageRejected"]
        invite(api, company, "c@example.com")
        post_office.mailbox.refuse("BadRequestException")
        assert post_office.work_until_quiet() == []
        assert post_office.dead_letters[-1] == "SES: BadRequestException"

    def test_ses_gets_a_valid_request_and_only_one_attempt(
        self, api: Api, company: Company, post_office: PostOffice, monkeypatch: pytest.MonkeyPatch
    ):
        invite(api, company)
        (email,) = post_office.work()
        with scripted_server(answer({}, 503), answer({"MessageId": "1"})) as server:
            monkeypatch.setenv("AWS_ENDPOINT_URL_SESV2", server.url)
            client = ses.__wrapped__()  # a client of its own, for this address
            with pytest.raises(ClientError):
                client.send_email(**email.request)
            assert len(server.requests) == 1
            assert client.send_email(**email.request)["MessageId"] == "1"
            assert json.loads(server.requests[1].body) == email.request

    def test_a_duplicate_message_sends_nothing(self, api: Api, company: Company, post_office: PostOffice):
        invitation_id = invite(api, company)
        message = {"version": 1, "kind": "send-invitation", "invitationId": invitation_id, "number": 0}
        for _ in range(2):
            post_office.post(message)
        assert len(post_office.work_until_quiet()) == 1


class TestAbuse:
    def test_names_cant_be_links_headers_or_markup(self, api: Api, world: World, post_office: PostOffice):
        hostile = "evil.example/win http://evil.example \u202egnp @bcc: x@evil.example <b>{{7*7}}</b>"
        owner = world.person(name=hostile + "\r\nBcc: victim@example.com\u2028" + "x" * 500)
        company = world.company(name=hostile, owner=owner)
        invite(api, company)
        (email,) = post_office.work()
        assert len(email.subject) < 100
        assert "\n" not in email.subject
        assert "\r" not in email.subject
        for text in (email.subject, email.text, email.html):
            assert "evil.example" not in text
            assert "@evil" not in text
            assert "://evil" not in text
            assert "\u202e" not in text
            assert "49" not in re.sub(r"https://\S+", "", text)
        assert "<b>" not in email.html
        assert len(email.text) < 2_000
        assert "victim@example" not in email.text
