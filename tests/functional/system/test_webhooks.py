"""POST /v1/github/webhooks: which deliveries are accepted, and what is sent to the worker."""

import hmac
import json
from typing import Any

import pytest

from controlplane.code_host import signed_requests as webhooks
from controlplane.code_host.signed_requests import Delivery
from controlplane.platform.core.settings import settings
from controlplane.platform.queues.messages import Queue
from tests.support.api import Api, Reply
from tests.support.sqs import FakeSqs
from tests.support.world import table_dump

PATH = "/v1/github/webhooks"
SECRET, NEXT = "webhook-secret-of-enough-length-1", "webhook-secret-of-enough-length-2"
PUSH = {"ref": "refs/heads/ada/private", "installation": {"id": 7}, "repository": {"id": 9, "name": "shop"}}


@pytest.fixture(autouse=True)
def _secret(monkeypatch):
    configure(monkeypatch, current=SECRET, next=NEXT)


def configure(monkeypatch: pytest.MonkeyPatch, **keys: str) -> None:
    secret = type(settings)(table_name="any", github_webhook_secret=json.dumps(keys) if keys else "")
    monkeypatch.setattr(webhooks, "settings", secret)


def deliver(
    api: Api, event: str, content: Any, delivery_id: str = "d-1", secret: str = SECRET, **headers: str
) -> Reply:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    signature = f"sha256={hmac.digest(secret.encode(), body, 'sha256').hex()}"
    named = {"X-GitHub-Event": event, "X-GitHub-Delivery": delivery_id, "X-Hub-Signature-256": signature, **headers}
    return api.post(PATH, raw_body=body, headers={"Content-Type": "application/json", **named})


def sent(sqs: FakeSqs) -> list[dict[str, Any]]:
    return [json.loads(letter.body) for letter in sqs.at(Queue.GITHUB_EVENTS.url)]


class TestAccepted:
    def test_a_push_becomes_a_message_that_contains_numbers_and_a_digest_only(self, api, sqs, now):
        reply = deliver(api, "push", PUSH)
        assert (reply.status, reply.data) == (202, {"accepted": True})
        (message,) = sent(sqs)
        ref = message.pop("ref")
        assert message == {
            "version": 1,
            "kind": "host-event",
            "event": "push",
            "installationId": 7,
            "hostedId": 9,
            "subject": None,
            "until": int(now()) + 86_400,
        }
        assert len(ref) == 16
        assert "ada" not in str(table_dump())

    def test_each_kind_of_event_names_what_it_is_about(self, api, sqs):
        common = {"installation": {"id": 7}, "repository": {"id": 9}}
        events = [
            ("installation", {"action": "suspend", **common}, "installation", None),
            ("installation_repositories", {"action": "removed", **common}, "installation", None),
            ("repository", {"action": "renamed", **common}, "repository", None),
            ("pull_request", {"action": "synchronize", "pull_request": {"number": 12}, **common}, "pull_request", 12),
            ("issues", {"action": "reopened", "issue": {"number": 3}, **common}, "issues", 3),
            ("check_run", {"action": "rerequested", "check_run": {"id": 88}, **common}, "check_run", 88),
        ]
        for number, (name, content, event, subject) in enumerate(events):
            assert deliver(api, name, content, f"d-{number}").data == {"accepted": True}
            assert (sent(sqs)[-1]["event"], sent(sqs)[-1]["subject"]) == (event, subject)
            assert sent(sqs)[-1]["hostedId"] == (None if event == "installation" else 9)

    def test_a_body_of_more_than_a_megabyte_is_accepted(self, api):
        assert deliver(api, "push", {**PUSH, "commits": ["x" * 1_000] * 2_000}).data == {"accepted": True}
        assert deliver(api, "push", {**PUSH, "commits": ["x" * 1_000] * 7_000}, "d-2").status == 413

    def test_a_delivery_is_accepted_once_in_seven_days(self, api, sqs, now):
        deliver(api, "push", PUSH)
        now.advance(7 * 86_400 - 1)
        assert deliver(api, "push", PUSH).data == {"accepted": False}
        assert len(sent(sqs)) == 1
        now.advance(1)
        assert deliver(api, "push", PUSH).data == {"accepted": True}

    def test_a_message_that_the_queue_does_not_take_stays_in_the_outbox(self, api, sqs):
        sqs.broken = True
        assert deliver(api, "push", PUSH).status == 202
        assert [it["queue"]["S"] for it in table_dump() if it["pk"]["S"].startswith("OUTBOX#")] == ["github-events"]

    def test_irrelevant_events_and_actions_write_nothing(self, api):
        common = {"installation": {"id": 7}, "repository": {"id": 9}}
        for event, content in [
            ("star", {"action": "created", **common}),
            ("ping", {"zen": "Keep it logically awesome."}),
            ("pull_request", {"action": "labeled", "pull_request": {"number": 12}, **common}),
            ("push", {"ref": "refs/heads/main", "repository": {"id": 9}}),
        ]:
            reply = deliver(api, event, content)
            assert (reply.status, reply.data) == (202, {"accepted": False})
        assert table_dump() == []


class TestRejected:
    def test_401_unless_a_key_of_the_ring_signed_exactly_this_body_before_it_is_parsed(self, api, monkeypatch):
        for changed in ("", "sha256=" + "0" * 64, "sha1=" + "0" * 40, "sha256=\u00e9"):
            assert deliver(api, "push", PUSH, **{"X-Hub-Signature-256": changed}).status == 401
        for body in (PUSH, b"{"):
            assert deliver(api, "push", body, secret="another-secret-of-enough-length-00").status == 401
        assert deliver(api, "push", b"{").status == 400
        signature = hmac.digest(SECRET.encode(), json.dumps(PUSH).encode(), "sha256").hex()
        assert deliver(api, "push", b"{}", **{"X-Hub-Signature-256": f"sha256={signature}"}).status == 401
        assert table_dump() == []
        configure(monkeypatch)
        assert deliver(api, "push", PUSH).status == 404

    def test_400_for_bodies_that_are_no_event_and_ids_that_are_no_delivery(self, api):
        for content in ([], None, {}, {"installation": 7}, {**PUSH, "ref": 5}, {**PUSH, "installation": {"id": "x"}}):
            assert deliver(api, "push", content).status in (400, 202)
        assert deliver(api, "push", {**PUSH, "ref": 5}).status == 400
        assert deliver(api, "push", b"[" * 100_000).status == 400
        for number in (int("9" * 400), 2**63, -1, 1.5):
            issue = {
                "action": "closed",
                "installation": {"id": 7},
                "repository": {"id": 9},
                "issue": {"number": number},
            }
            for event, content in (
                ("push", {**PUSH, "installation": {"id": number}}),
                ("push", {**PUSH, "repository": {"id": number}}),
                ("issues", issue),
            ):
                assert deliver(api, event, content).code == "INVALID_PAYLOAD"
        for wrong in ("", "a/b", "x" * 65):
            assert deliver(api, "push", PUSH, wrong).status == 400
        assert table_dump() == []

    def test_both_keys_verify_during_a_rotation_and_only_the_current_one_after_it(self, api, monkeypatch):
        assert deliver(api, "push", PUSH, "d-1", NEXT).status == 202
        configure(monkeypatch, current=NEXT, previous=SECRET)
        assert deliver(api, "push", PUSH, "d-2", SECRET).status == 202
        configure(monkeypatch, current=NEXT)
        assert deliver(api, "push", PUSH, "d-3", SECRET).status == 401
        assert deliver(api, "push", PUSH, "d-4", NEXT).status == 202


def test_a_deliverys_repr_has_no_content():
    assert "ada@" not in repr(Delivery("id", "push", b"ada@example.com"))
