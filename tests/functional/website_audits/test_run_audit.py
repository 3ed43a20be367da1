"""The worker of website audits: a report for each message, with what the intake checks. The audit itself is a stub."""

import json
from typing import Any

import pytest

from controlplane.platform.core import clock
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import MAX_RECEIVES, Queue, RunAudit
from tests.support.each import each
from tests.support.sqs import FakeSqs, SqsMessage
from website_audits import app

QUEUE, INTAKE = Queue.WEBSITE_AUDITS, Queue.AUDIT_REPORTS.url
OWN = "3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"
MESSAGE = RunAudit(
    run_id=f"run_{OWN}",
    audit_id=f"aud_{OWN}",
    project_id=f"prj_{OWN}",
    url="https://shop.example.com/",
    claim="5f0c2b9e7d3a4a55",
    token="a token",
    consent_url="https://api.assent.test/v1/consent-instances/cin",
)
REPORT = {
    "kind": "website-audit-report",
    "version": 1,
    "outcome": "failed",
    "reason": None,
    "findings": [],
    "vendors": [],
}


class Stub:
    """An audit that ends as told, and what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.error: Exception | None = None

    async def audit(self, url: str, **options: Any) -> "Stub":
        self.asked.append({"url": url, **options})
        if self.error:
            raise self.error
        return self

    async def find_proof(self, _: "Stub", token: str, **options: Any) -> str:
        self.asked.append({"token": token, **options})
        return "file"

    def as_message(self) -> dict[str, Any]:
        return dict(REPORT)


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch, sqs: FakeSqs) -> Stub:
    made = Stub()
    monkeypatch.setattr(app, "audit_website", made.audit)
    monkeypatch.setattr(app, "find_proof", made.find_proof)
    monkeypatch.setattr(app, "_sqs", lambda: sqs)
    return made


def send(sqs: FakeSqs, **changes: Any) -> SqsMessage:
    messages.send(QUEUE.value, MESSAGE.model_dump(by_alias=True) | changes)
    return sqs.at(QUEUE.url)[-1]


def deliver(sqs: FakeSqs, letter: SqsMessage) -> None:
    sqs.deliver(letter, app.handler, QUEUE.dead_letters_url)


def reports(sqs: FakeSqs) -> list[dict[str, Any]]:
    return [json.loads(letter.body) for letter in sqs.at(INTAKE)]


class TestReport:
    def test_the_report_has_what_the_intake_checks(self, sqs, stub):
        deliver(sqs, send(sqs))
        sent = MESSAGE.model_dump(by_alias=True)
        named = {name: sent[name] for name in ("runId", "auditId", "projectId", "claim")}
        assert reports(sqs) == [REPORT | named | {"proof": "file"}]
        assert sqs.at(QUEUE.url) == []

    def test_the_audit_and_the_proof_are_of_the_messages_website(self, sqs, stub):
        deliver(sqs, send(sqs))
        audit, proof = stub.asked
        assert audit["url"] == MESSAGE.url
        assert (proof["token"], proof["brand"], proof["consent_url"]) == ("a token", "assent", MESSAGE.consent_url)
        assert audit["network"] == proof["network"]

    def test_a_repeated_message_makes_a_report_of_its_own_which_the_intake_ignores(self, sqs, stub):
        for _ in range(2):
            deliver(sqs, send(sqs))
        first, second = reports(sqs)
        assert first == second

    def test_a_batch_without_messages_does_nothing(self, sqs, stub):
        assert app.handler({"Records": []}, None) == {"batchItemFailures": []}
        assert stub.asked == reports(sqs) == []


class TestFailure:
    def test_a_failed_audit_is_repeated_after_a_minute_and_then_a_dead_letter(self, sqs, stub, caplog):
        stub.error = RuntimeError("no memory at https://shop.example.com/")
        letter = send(sqs)
        for _ in range(MAX_RECEIVES):
            deliver(sqs, letter)
            assert letter.visible_at == clock.now() + 60
        told = {it.getMessage().partition(", line")[0] for it in caplog.records if it.name == "website_audits"}
        assert told == {"message failed: RuntimeError in audit"}
        deliver(sqs, letter)
        assert [it.body for it in sqs.at(QUEUE.dead_letters_url)] == [letter.body]
        assert reports(sqs) == []

    def test_a_report_that_cant_be_sent_fails_the_delivery(self, sqs, stub):
        letter = send(sqs)
        sqs.broken = True
        deliver(sqs, letter)
        assert sqs.at(QUEUE.url) == [letter]

    @each("changes", [{"version": 2}, {"kind": "another"}], ids=["version", "kind"])
    def test_a_message_of_a_newer_release_waits(self, sqs, stub, changes):
        letter = send(sqs, **changes)
        deliver(sqs, letter)
        assert stub.asked == []
        assert sqs.at(QUEUE.url)[-1] is letter
