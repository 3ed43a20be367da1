"""The email of an invitation: once, with the link that leads to its answer, and stopped by what SES reports."""

import json
import re

import pytest
from botocore.exceptions import ClientError

from controlplane.notify import subscriptions
from controlplane.platform.core import clock
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.table import Delete, table
from emails.delivery import ses
from tests.functional.emails.conftest import DAY, GRACE, Office
from tests.support.browser import Browser, text_of
from tests.support.each import each
from tests.support.logs import captured_logs
from tests.support.scripted_server import answer, scripted_server
from tests.support.table import PREPARED
from tests.support.world import table_dump


class TestSending:
    def test_an_invited_person_joins_through_the_email(self, office, world):
        guest = world.person(GRACE)
        office.invite(role="admin")
        (email,) = office.post.work()
        counters = [it for it in table_dump() if it["sk"]["S"].startswith(("DAY#", "MAILDAY#"))]
        assert [int(it["expiresAt"]["N"]) for it in counters] == [int(clock.now()) + 2 * DAY] * 2
        assert (email.to, email.subject) == (GRACE, "Invitation to Acme on Assent")
        assert "invites you to be an admin of Acme" in email.text
        assert email.request["FromEmailAddress"] == "Assent <no-reply@assent.test>"
        assert email.request["ConfigurationSetName"] == "assent"
        assert "List-Unsubscribe" not in email.headers
        assert office.outcome == "sent"
        browser, link = office.browser(guest), email.link("Open the invitation")
        assert link in email.html
        browser.get(link)
        assert "You are now an admin of Acme" in text_of(browser.follow(browser.press("Accept")))
        assert office.post.work(3600) == []

    def test_no_address_is_in_a_message_or_a_log(self, office):
        post = office.post
        with captured_logs() as logs:
            office.invite()
            queued = [str(item) for item in table_dump() if item["pk"]["S"].startswith("OUTBOX#")]
            post.mailbox.refuse("TooManyRequestsException", 429)
            post.mailbox.refuse("MessageRejected")
            post.mailbox.be_silent(takes=False)
            for _ in range(8):
                post.work(200)
            (email,) = post.mailbox.emails
            post.report(email, "bounced", "Permanent")
            queued += [letter.body for letter in post.sqs.letters]
            post.work()
        assert "address stopped" in logs.getvalue()
        for text in (*queued, logs.getvalue()):
            assert not re.search(r"grace|\[redacted\]", text.lower())

    def test_an_invitation_that_ended_before_it_was_sent_sends_nothing(self, office, api, world):
        office.cancel(office.invite())
        admin = world.member(office.company, "admin")
        office.invite("void@example.com", by=admin)
        world.leave(office.company, admin)
        former = Office(api, world, office.post)
        former.invite()
        table.delete(Delete(keys.organization(former.id)), PREPARED)
        assert office.post.work_until_quiet() == []
        office.invite("late@example.com")
        assert office.post.work(8 * DAY) == []
        assert office.post.dead_letters == []

    def test_a_blocked_organization_sends_nothing_and_doesnt_learn_that(self, office, world):
        browser = office.browser(world.person(GRACE))
        browser.get(f"/invitations/{office.invite()}")
        browser.press("Decline and block")
        office.invite()
        assert (office.post.work(), office.outcome) == ([], "sent")

    def test_sending_again_sends_another_email_with_the_same_link(self, office):
        invitation_id = office.invite()
        (first,) = office.post.work()
        for _ in range(2):
            office.resend(invitation_id)
        (again,) = office.post.work()  # the message of the first resend is superseded
        assert again.tag != first.tag
        assert again.link("Open the invitation") == first.link("Open the invitation")

    def test_emails_of_an_organization_and_to_an_address_are_limited_for_a_day(self, office, api, world, monkeypatch):
        monkeypatch.setitem(settings.__dict__, "invitation_emails_per_address", 2)
        for _ in range(3):  # what an abuser would do: cancel, and invite again
            invitation_id = office.invite()
            office.post.work()
            last = office.outcome
            office.cancel(invitation_id)
        assert (len(office.post.mailbox.emails), last) == (2, "limited")
        monkeypatch.setitem(settings.__dict__, "invitation_emails_per_organization", 3)
        for number in range(2):
            office.invite(f"other{number}@example.com")
            office.post.work()
        assert len(office.post.mailbox.emails) == 3
        Office(api, world, office.post).invite("third@example.com")
        assert len(office.post.work()) == 1
        office.post.advance(DAY)
        office.invite()
        assert len(office.post.work()) == 1


class TestFeedback:
    @each(
        ("event", "kind", "reason", "shown"),
        [
            ("bounced", "Permanent", "returned", "Email returned"),
            ("complained", "", "complained", "Reported as spam"),
        ],
    )
    def test_a_permanent_bounce_or_a_complaint_stops_emails_and_is_shown(self, office, event, kind, reason, shown):
        address = f"{event}@example.com"
        invitation_id = office.invite(address)
        (email,) = office.post.work()
        office.post.report(email, "bounced", "Transient")
        office.post.work()
        assert subscriptions.find_stops([address]) == {}
        for report in ((event, kind), (event, kind), ("sent",)):
            office.post.report(email, *report)
        office.post.work()
        assert subscriptions.find_stops([address])[address].reason == reason
        assert shown in text_of(office.members_page())
        office.cancel(invitation_id)
        office.invite(address.upper())
        assert office.post.work() == []
        assert shown in text_of(office.members_page())

    def test_the_link_in_the_email_stops_all_emails_to_the_address(self, office, api):
        invitation_id = office.invite()
        (email,) = office.post.work()
        browser = Browser(api)
        browser.get(email.link("to this address"))
        assert subscriptions.find_stops([GRACE]) == {}
        browser.press("Stop all emails")
        office.resend(invitation_id)
        assert (office.post.work(), office.outcome) == ([], "stopped")

    def test_reports_about_unknown_emails_change_nothing(self, office):
        before = table_dump()
        for mail in ([], ["x"], ["usr_5w1n8q2k7m3r9t4v-"], ["-0"], ["usr_5w1n8q2k7m3r9t4v-0"], ["inv_x-y"]):
            office.post.post({"version": 1, "kind": "mail-report", "event": "complained", "mail": mail})
        office.post.work()
        assert (table_dump(), office.post.dead_letters) == (before, [])


class TestFailures:
    def test_an_email_of_unknown_outcome_is_sent_again_only_after_two_minutes_without_a_report(self, office):
        office.invite()
        office.post.mailbox.be_silent(takes=False)
        assert [len(office.post.work(seconds)) for seconds in (0, 119, 20)] == [0, 0, 1]
        assert office.post.work_until_quiet() == []

    def test_an_email_that_ses_took_is_settled_by_its_report_and_not_sent_twice(self, office):
        office.invite()
        office.post.mailbox.be_silent(takes=True)
        (email,) = office.post.work()
        office.post.report(email, "sent")
        assert (office.post.work_until_quiet(), office.outcome) == ([], "sent")

    def test_refusals_are_retried_and_end_as_dead_letters_with_their_code(self, office):
        refuse = office.post.mailbox.refuse
        office.invite()
        refuse("TooManyRequestsException", 429)
        refuse("SendingPausedException")
        assert sum(len(office.post.work(seconds)) for seconds in (0, 130, 200)) == 1
        for code, times in (("MessageRejected", 5), ("BadRequestException", 1)):
            office.invite(f"{code}@example.com")
            for _ in range(times):
                refuse(code)
            assert office.post.work_until_quiet() == []
        assert office.post.dead_letters == ["SES: MessageRejected", "SES: BadRequestException"]

    def test_ses_gets_a_valid_request_and_only_one_attempt(self, office, monkeypatch):
        office.invite()
        (email,) = office.post.work()
        with scripted_server(answer({}, 503), answer({"MessageId": "1"})) as server:
            monkeypatch.setenv("AWS_ENDPOINT_URL_SESV2", server.url)
            client = ses.__wrapped__()  # a client of its own, for this address
            with pytest.raises(ClientError):
                client.send_email(**email.request)
            assert len(server.requests) == 1
            assert client.send_email(**email.request)["MessageId"] == "1"
            assert json.loads(server.requests[1].body) == email.request


def test_names_cant_be_links_headers_or_markup(api, world, post_office):
    hostile = "evil.example/win http://evil.example \u202egnp @bcc: x@evil.example <b>{{7*7}}</b>"
    owner = world.person(name=hostile + "\r\nBcc: victim@example.com\u2028" + "x" * 500)
    office = Office(api, world, post_office, world.company(name=hostile, owner=owner))
    office.invite()
    (email,) = post_office.work()
    for text in (email.subject, email.text, email.html):
        assert not re.search("evil\\.example|@evil|://evil|\u202e", text)
        assert "49" not in re.sub(r"https://\S+", "", text)
    assert not re.search(r"[\r\n]", email.subject)
    assert (len(email.subject) < 100, len(email.text) < 2_000) == (True, True)
    assert "<b>" not in email.html
    assert "victim@example" not in email.text
