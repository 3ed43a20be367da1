"""Emails under races and faults: none is lost, and none is sent twice except as decision 0067 says."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from controlplane.core.settings import settings
from controlplane.queues import messages
from controlplane.queues.mail_messages import NotifyMembers, later
from controlplane.store import events, invitations, keys, mail_batches, mail_choices, outbox
from controlplane.store.invitation_items import InvitationItem
from controlplane.store.table import table
from emails import delivery
from emails.app import handler
from tests.races.stage import RACE_TIME, Stage
from tests.support.api import Reply
from tests.support.asgi import DirectApi
from tests.support.faults import Case, Trial
from tests.support.mailbox import SENDER, Mailbox
from tests.support.outcomes import Outcome
from tests.support.schedules import Race
from tests.support.sqs import FakeSqs, SqsMessage
from tests.support.world import Company, World

pytestmark = pytest.mark.races

# Longer than an email of unknown outcome isn't sent again.
LATER = RACE_TIME + 200
MONDAY = "2026-03-09"


@pytest.fixture
def mailbox(monkeypatch: pytest.MonkeyPatch) -> Mailbox:
    made = Mailbox()
    monkeypatch.setattr(delivery, "ses", lambda: made)
    monkeypatch.setattr(messages.sender, "_client", FakeSqs())
    monkeypatch.setitem(settings.__dict__, "email_sender", SENDER)
    return made


def work(message: dict[str, Any]) -> bool:
    """Delivers the message to the worker. Returns whether it is done."""
    letter = SqsMessage(messages.Queue.EMAILS.url, json.dumps(message), RACE_TIME, receives=1)
    return not handler({"Records": [letter.record]}, None)["batchItemFailures"]


def notification(company: Company, choice: str = "webhook") -> dict[str, Any]:
    return {
        "version": 1,
        "kind": "send-notification",
        "organizationId": company.organization_id,
        "about": choice,
        "subject": "0123",
        "userId": company.owner.user_id,
    }


def queued() -> list[dict[str, Any]]:
    return [item["message"] for pk in keys.OUTBOX_PKS for item in table.query(pk, consistent=True).items]


class TestSending:
    def test_two_deliveries_of_a_message_send_one_email(self, stage: Stage, mailbox: Mailbox) -> None:
        def scenario(world: World) -> Race:
            message = notification(world.company())
            mailbox.emails.clear()

            def check(outcomes: list[Outcome]) -> None:
                # Which is done isn't known here: a function processes one batch at a time.
                for outcome in outcomes:
                    outcome.get()
                assert len(mailbox.emails) == 1

            return Race([lambda: work(message)] * 2, check)

        stage.race(scenario)

    def test_after_an_unsubscription_no_email_is_claimed(self, stage: Stage, mailbox: Mailbox) -> None:
        def scenario(world: World) -> Race:
            company = world.company()
            mailbox.emails.clear()
            sent_at_confirmation: list[int] = []

            def unsubscribe() -> None:
                mail_choices.turn_off(company.owner.user_id, company.organization_id, "webhook")
                claimed = table.query(keys.mails_pk(company.owner.user_id), consistent=True).items
                sent_at_confirmation.append(len(claimed))

            def check(outcomes: list[Outcome]) -> None:
                for outcome in outcomes:
                    outcome.get()
                # What wasn't claimed when the unsubscription was confirmed is never sent.
                assert len(mailbox.emails) == sent_at_confirmation[0]

            return Race([lambda: work(notification(company)), unsubscribe], check)

        stage.race(scenario)

    def test_under_every_fault_an_email_is_sent_once(
        self, stage: Stage, mailbox: Mailbox, thread_clock: Callable[[float], None]
    ) -> None:
        """A worker that dies between SES's response and its record sends it again, unless SES's report comes first."""

        def scenario(world: World) -> Trial:
            thread_clock(RACE_TIME)
            message = notification(world.company())
            mailbox.emails.clear()

            def again() -> bool:
                for email in list(mailbox.emails):  # SES reports what it accepted
                    report = {"version": 1, "kind": "mail-report", "event": "sent", "mail": [email.tag]}
                    work(report)
                thread_clock(LATER)
                return work(message)

            def check(case: Case) -> None:
                assert case.second.get() is True
                assert len(mailbox.emails) == 1

            return Trial(lambda: work(message), check, again)

        assert stage.faults(scenario) > 20


class TestInvitations:
    def invited(self, world: World, api: DirectApi) -> tuple[Company, str]:
        company = world.company()
        body = {"email": "grace@example.com", "role": "member"}
        return company, api.post("/v1/invitations", company.owner.token, json_body=body).data["id"]

    def test_resends_at_once_count_and_queue_one_email_each(self, stage: Stage, mailbox: Mailbox) -> None:
        def scenario(world: World) -> Race:
            company, invitation_id = self.invited(world, stage.api)

            def resend() -> Reply:
                return stage.api.post(f"/v1/invitations/{invitation_id}/resend", company.owner.token)

            resend()
            resend()

            def check(outcomes: list[Outcome]) -> None:
                assert sorted(outcome.get().status for outcome in outcomes) == [200, 409]
                assert sorted(message["number"] for message in queued()) == [0, 1, 2, 3]
                (invitation,) = _stored(company)
                assert invitation.resends.on_day == 3

            return Race([resend] * 2, check)

        stage.race(scenario)

    def test_under_every_fault_an_invitation_is_renewed_with_its_email_or_not_at_all(
        self, stage: Stage, mailbox: Mailbox
    ) -> None:
        def scenario(world: World) -> Trial:
            company, invitation_id = self.invited(world, stage.api)

            def check(case: Case) -> None:
                (invitation,) = _stored(company)
                assert case.second.get().status == 200
                assert invitation.resends.total in {1, 2}
                assert sorted(message["number"] for message in queued()) == [*range(invitation.resends.total + 1)]

            resend = f"/v1/invitations/{invitation_id}/resend"
            return Trial(lambda: stage.api.post(resend, company.owner.token), check)

        assert stage.faults(scenario) > 20


class TestFindings:
    def test_findings_at_once_are_in_one_email_with_one_message(self, stage: Stage, mailbox: Mailbox) -> None:
        def scenario(world: World) -> Race:
            company = world.company()
            ids = [events.entry(company.organization_id, "finding.opened").message["eventId"] for _ in range(2)]

            def message(window: str, seconds: int) -> outbox.Entry:
                told = NotifyMembers(organization_id=company.organization_id, about="finding", subject=window)
                return later(told, seconds)

            def add(event_id: str) -> None:
                mail_batches.add_findings(company.organization_id, event_id, [f"item of {event_id}"], message)

            def check(outcomes: list[Outcome]) -> None:
                for outcome in outcomes:
                    outcome.get()
                (window,) = [it["subject"] for it in queued() if it["kind"] == "notify-members"]
                batch = mail_batches.find_batch(company.organization_id, window)
                assert batch is not None
                assert (batch.size, {*batch.item_ids}) == (2, {f"item of {event_id}" for event_id in ids})

            return Race([lambda it=it: add(it) for it in (*ids, ids[0])], check)

        stage.race(scenario)


def test_events_at_once_leave_one_digest_to_the_sweep(stage: Stage) -> None:
    def scenario(world: World) -> Race:
        organization_id = world.company().organization_id

        def schedule() -> None:
            digest = NotifyMembers(organization_id=organization_id, about="digest", subject=MONDAY)
            mail_batches.schedule_digest(organization_id, MONDAY, lambda: later(digest, 0))

        def check(outcomes: list[Outcome]) -> None:
            assert [outcome.error for outcome in outcomes] == [None, None]
            assert [message["subject"] for message in queued()] == [MONDAY]

        return Race([schedule, schedule], check)

    stage.race(scenario)


def _stored(company: Company) -> list[InvitationItem]:
    return invitations.list_invitations(company.organization_id, 50, None, consistent=True).invitations
