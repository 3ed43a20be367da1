"""`assent-ops dead-letters`."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.session import Session

from controlplane.platform.queues.messages import ExecuteScan, Message, PrepareScan
from ops.dead_letters import QUEUES
from tests.functional.ops.conftest import Queue
from tests.support.audits import make_request, make_scan, stored_repository

REASON = {"reason": {"DataType": "String", "StringValue": "unknown organization"}}
NAME = "finding-intake"
# An event of SES that EventBridge couldn't deliver, and what its rule would have sent.
BOUNCED = {
    "source": "aws.ses",
    "detail-type": "Email Bounced",
    "detail": {
        "mail": {"destination": ["ada@example.com"], "tags": {"mail": ["usr_0-1"]}},
        "bounce": {"bounceType": "Permanent", "bouncedRecipients": [{"emailAddress": "ada@example.com"}]},
    },
}
REPORT = {"version": 1, "kind": "mail-report", "event": "bounced", "mail": ["usr_0-1"], "bounceType": "Permanent"}


@dataclass
class Queues:
    """A work queue and its dead-letter queue."""

    work: Queue
    dead: Queue

    def add(self, body: str) -> str:
        return self.dead.send(body, **REASON)


@pytest.fixture
def queues(make_queue: Callable[[str], Queue]) -> Queues:
    return Queues(make_queue("FINDING_INTAKE_QUEUE_URL"), make_queue("FINDING_INTAKE_DEAD_LETTERS_URL"))


type Call = Callable[..., Any]


class Wrapped:
    """An SQS client that passes calls of one operation to `around`, together with the original method."""

    def __init__(self, client: Any, operation: str, around: Callable[..., Any]) -> None:
        self._client = client
        self._operation = operation
        self._around = around

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)
        return partial(self._around, call) if name == self._operation else call


def wrap(monkeypatch: pytest.MonkeyPatch, operation: str, around: Callable[..., Any]) -> None:
    """Wraps that operation in every client created from now on."""
    create = Session.create_client
    monkeypatch.setattr(
        Session,
        "create_client",
        lambda self, *words, **named: Wrapped(create(self, *words, **named), operation, around),
    )


class TestList:
    def test_shows_messages_with_their_reasons_and_the_report_in_an_undelivered_event(self, ops, queues):
        first = queues.add('{"kind":  "advisory"}')
        queues.dead.send("no JSON")
        undelivered = {"DataType": "String", "StringValue": "NO_PERMISSIONS"}
        queues.dead.send(json.dumps(BOUNCED), ERROR_CODE=undelivered)
        shown = {it["reason"].partition(":")[0]: it for it in ops("dead-letters", "list", NAME).document}
        sent_at = shown["unknown organization"]["sentAt"]
        assert sent_at.endswith("Z")
        assert shown["unknown organization"] == {
            "queue": NAME,
            "messageId": first,
            "sentAt": sent_at,
            "reason": "unknown organization",
            "message": '{"kind": "advisory"}',
        }
        assert shown["not recorded"]["message"] == "no JSON"
        assert shown["undelivered"]["reason"] == "undelivered: NO_PERMISSIONS"
        assert json.loads(shown["undelivered"]["message"]) == REPORT

    def test_consumes_and_hides_nothing(self, ops, queues):
        assert ops("dead-letters", "list", NAME).document == []
        for number in range(23):
            queues.add(str(number))
        for limit, count in (("100", 23), ("100", 23), ("2", 2)):
            assert len(ops("dead-letters", "list", NAME, "--limit", limit).document) == count
        assert len(queues.dead.waiting()) == 10

    def test_shows_all_queues_by_default(self, ops, queues, monkeypatch):
        for queue in QUEUES:
            variable = queue.replace("-", "_").upper()
            monkeypatch.setenv(f"{variable}_QUEUE_URL", queues.work.url)
            monkeypatch.setenv(f"{variable}_DEAD_LETTERS_URL", queues.dead.url)
        queues.add("x")
        assert [shown["queue"] for shown in ops("dead-letters", "list").document] == list(QUEUES)


class TestRedrive:
    def test_returns_all_messages_unchanged_and_of_an_event_its_report(self, ops, queues):
        ids = {queues.add('{"n": 0}'), queues.add('{"n": 1}'), queues.add(json.dumps(BOUNCED))}
        done = ops("dead-letters", "redrive", NAME, "--yes").document
        assert (done["redriven"], set(done["messageIds"]), done["left"]) == (3, ids, 0)
        back = queues.work.waiting()
        assert [json.loads(message["Body"]) for message in back] == [{"n": 0}, {"n": 1}, REPORT]
        assert not any(message.get("MessageAttributes") for message in back)
        assert queues.dead.waiting() == []

    def test_skips_messages_that_fail_at_once(self, ops, queues, monkeypatch):
        def send_to_a_quick_worker(send: Call, **sent: Any) -> Any:
            queues.dead.client.send_message(QueueUrl=queues.dead.url, MessageBody=sent["MessageBody"])
            return send(**sent)

        queues.add("bad")
        wrap(monkeypatch, "send_message", send_to_a_quick_worker)
        done = ops("dead-letters", "redrive", NAME, "--yes").document
        assert (done["redriven"], done["left"]) == (1, 1)

    @pytest.mark.parametrize("operation", ["send_message", "delete_message", "change_message_visibility_batch"])
    @pytest.mark.parametrize("good", [0, 1, 2])
    def test_loses_no_message_when_it_is_interrupted(self, operation, good, ops, queues, monkeypatch):
        """Each message is in one of the two queues, or at worst in both."""
        bodies = {"a", "b", "c"}
        for body in bodies:
            queues.add(body)
        left = iter(range(good))

        def call_until_it_breaks(call: Call, **sent: Any) -> Any:
            if next(left, None) is None:
                raise ClientError({"Error": {"Code": "Broken", "Message": "broken"}}, operation)
            return call(**sent)

        with monkeypatch.context() as broken:
            wrap(broken, operation, call_until_it_breaks)
            outcome = ops("dead-letters", "redrive", NAME, "--yes")
        dead = {*queues.dead.bodies()}
        assert {*queues.work.bodies()} | dead == bodies
        if operation != "change_message_visibility_batch":
            assert outcome.exit_code == 1
            assert f"{good} messages were redriven" in outcome.error["message"]
            assert len(dead) == len(bodies) - good
            assert ops("dead-letters", "redrive", NAME, "--yes").document["left"] == 0


@pytest.mark.parametrize(("verb", "done", "sent"), [("redrive", "redriven", ["goes"]), ("discard", "discarded", [])])
def test_acts_on_the_named_messages_alone_and_asks_first(verb, done, sent, ops, queues):
    queues.add("stays")
    wanted = queues.add("goes")
    assert "one dead letter of" in ops("dead-letters", verb, NAME, "--message", wanted).error["message"]
    assert ops("dead-letters", verb, NAME, "--message", "nonsense", "--yes").exit_code == 3
    assert (queues.work.bodies(), queues.dead.bodies()) == ([], ["goes", "stays"])
    acted = ops("dead-letters", verb, NAME, "--message", wanted, "--yes").document
    assert acted == {done: 1, "messageIds": [wanted], "left": 1}
    assert (queues.work.bodies(), queues.dead.bodies()) == (sent, ["stays"])


@pytest.mark.parametrize("status", ["starting", "queued", "running"])
def test_discard_fails_the_scan_that_waits_for_the_message(status, ops, make_queue, world):
    make_queue("SCAN_EXECUTION_QUEUE_URL")
    repository = world.connected_repository(world.company())
    if status == "starting":
        message: Message = PrepareScan(request_id=make_request(repository))
    else:
        message = ExecuteScan(scan_id=make_scan(repository, status=status).scan_id)
    message_id = make_queue("SCAN_EXECUTION_DEAD_LETTERS_URL").send(message.model_dump_json(by_alias=True))
    done = ops("dead-letters", "discard", "scan-execution", "--message", message_id, "--yes").document
    assert done["discarded"] == 1
    # A worker has the running one: if the worker dies, the sweep queues the scan again.
    assert ("activeRequestId" in stored_repository(repository)) is (status == "running")
