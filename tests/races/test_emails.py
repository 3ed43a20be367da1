"""Emails under races and faults: none is lost, and none is sent twice except as decision 0067 says."""

import json
from typing import Any

import pytest

from controlplane.notify import mail_messages, subscriptions
from controlplane.organizations import invitations
from controlplane.platform.core.settings import settings
from controlplane.platform.queues import events, messages
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from emails import delivery
from emails.app import handler
from tests.races.stage import RACE_TIME, Stage, faults, race
from tests.support.api import Reply
from tests.support.mailbox import SENDER, Mailbox
from tests.support.sqs import FakeSqs, SqsMessage
from tests.support.world import Company, World

# Longer than an email of unknown outcome isn't sent again.
LATER = RACE_TIME + 200
MONDAY = "2026-03-09"


@pytest.fixture
def mailbox(monkeypatch: pytest.MonkeyPatch) -> Mailbox:
    made = Mailbox()
    monkeypatch.setattr(delivery, "ses", lambda: made)
    monkeypatch.setitem(vars(messages.sender), "client", FakeSqs())
    monkeypatch.setitem(settings.__dict__, "email_sender", SENDER)
    return made


def work(message: dict[str, Any]) -> bool:
    """Delivers the message to the worker. Returns whether it is done."""
    letter = SqsMessage(messages.Queue.EMAILS.url, json.dumps({"version": 1, **message}), RACE_TIME, receives=1)
    return not handler({"Records": [letter.record]}, None)["batchItemFailures"]


def notification(company: Company) -> dict[str, Any]:
    about = {"about": "webhook", "subject": "0123", "userId": company.owner.user_id}
    return {"kind": "send-notification", "organizationId": company.organization_id, **about}


def queued() -> list[dict[str, Any]]:
    return [item["message"] for pk in keys.OUTBOX_PKS for item in table.query(pk, consistent=True).items]


@race()
def test_two_deliveries_of_a_message_send_one_email(world, mailbox):
    message = notification(world.company())
    mailbox.emails.clear()
    # Which is done isn't known here: a function processes one batch at a time.
    yield [lambda: work(message)] * 2
    assert len(mailbox.emails) == 1


@race(ends={0, 1})
def test_after_an_unsubscription_no_email_is_claimed(world, mailbox):
    company = world.company()
    user_id = company.owner.user_id
    mailbox.emails.clear()

    def unsubscribe() -> int:
        subscriptions.turn_off(user_id, company.organization_id, "webhook")
        return len(table.query(keys.mails_pk(user_id), consistent=True).items)

    _, claimed = yield [lambda: work(notification(company)), unsubscribe]
    # What wasn't claimed when the unsubscription was confirmed is never sent.
    assert len(mailbox.emails) == claimed
    return claimed


@faults()
def test_under_every_fault_an_email_is_sent_once(world, mailbox, thread_clock):
    """A worker that dies between SES's response and its record sends it again, unless SES's report comes first."""
    thread_clock(RACE_TIME)
    message = notification(world.company())
    mailbox.emails.clear()

    def again() -> bool:
        for email in list(mailbox.emails):  # SES reports what it accepted
            work({"kind": "mail-report", "event": "sent", "mail": [email.tag]})
        thread_clock(LATER)
        return work(message)

    case = yield lambda: work(message), again
    assert case.second.get() is True
    assert len(mailbox.emails) == 1


class Invited:
    """An organization that has invited an address."""

    def __init__(self, world: World, stage: Stage) -> None:
        self.api, self.company = stage.api, world.company()
        self.invitation_id = world.invitation(self.company, "grace@example.com").invitation_id

    def resend(self) -> Reply:
        return self.api.post(f"/v1/invitations/{self.invitation_id}/resend", self.company.owner.token)

    def resends(self) -> Any:
        listed = invitations.list_invitations(self.company.organization_id, 50, None, consistent=True)
        (invitation,) = listed.items
        return invitation.resends


@race()
def test_resends_at_once_count_and_queue_one_email_each(world, stage, mailbox):
    invited = Invited(world, stage)
    invited.resend()
    invited.resend()
    replies = yield [invited.resend] * 2
    assert sorted(reply.status for reply in replies) == [200, 409]
    assert sorted(message["number"] for message in queued()) == [1, 2, 3]
    assert invited.resends().on_day == 3


@faults()
def test_under_every_fault_an_invitation_is_renewed_with_its_email_or_not_at_all(world, stage, mailbox):
    invited = Invited(world, stage)
    case = yield invited.resend
    assert case.second.get().status == 200
    total = invited.resends().total
    assert total in {1, 2}
    assert sorted(message["number"] for message in queued()) == [*range(1, total + 1)]


@race()
def test_findings_at_once_are_in_one_email_with_one_message(world, mailbox):
    organization_id = world.company().organization_id
    ids = [events.entry(organization_id, "finding.opened").message["eventId"] for _ in range(2)]

    def add(event_id: str) -> None:
        mail_messages.add_findings(organization_id, event_id, [f"item of {event_id}"])

    yield [lambda it=it: add(it) for it in (*ids, ids[0])]
    (window,) = [it["subject"] for it in queued() if it["kind"] == "notify-members"]
    batch: Any = mail_messages.find_batch(organization_id, window)
    assert (batch.size, {*batch.item_ids}) == (2, {f"item of {event_id}" for event_id in ids})


@race()
def test_events_at_once_leave_one_digest_to_the_sweep(world):
    organization_id = world.company().organization_id
    yield [lambda: mail_messages.schedule_digest(organization_id, MONDAY, 0)] * 2
    assert [message["subject"] for message in queued()] == [MONDAY]
