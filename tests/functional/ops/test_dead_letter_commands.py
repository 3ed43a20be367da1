"""`assent-ops dead-letters`."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.session import Session

from controlplane.queues.messages import ExecuteScan, Message, PrepareScan, Queue
from local.template import load_template
from ops.commands.dead_letters import QUEUES
from tests.functional.ops.conftest import Ops
from tests.support.audits import make_request, make_scan, stored_repository
from tests.support.world import World

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


class Queues:
    """A work queue and its dead-letter queue, separate for each test."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.work = client.create_queue(QueueName="work")["QueueUrl"]
        self.dead = client.create_queue(QueueName="dead")["QueueUrl"]

    def add_dead_letter(self, body: str, **attributes: Any) -> str:
        return str(
            self.client.send_message(QueueUrl=self.dead, MessageBody=body, MessageAttributes=attributes)["MessageId"]
        )

    def waiting(self, url: str) -> list[dict[str, Any]]:
        """Returns the messages that can be received from it now."""
        answer = self.client.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=0, MessageAttributeNames=["All"]
        )
        return sorted(answer.get("Messages", []), key=lambda message: message["Body"])


@pytest.fixture
def queues(monkeypatch: pytest.MonkeyPatch) -> Iterator[Queues]:
    client = Session().create_client("sqs", region_name="eu-central-1")
    made = Queues(client)
    monkeypatch.setenv("FINDING_INTAKE_QUEUE_URL", made.work)
    monkeypatch.setenv("FINDING_INTAKE_DEAD_LETTERS_URL", made.dead)
    yield made
    for url in (made.work, made.dead):
        client.delete_queue(QueueUrl=url)


def test_every_queue_of_the_product_is_a_choice():
    assert set(QUEUES) == {queue.value for queue in Queue}


def test_a_stack_has_the_queues_under_these_names():
    resources = load_template()["Resources"]
    for queue in Queue:
        name = "".join(part.title() for part in queue.value.split("-"))
        assert resources[f"{name}Queue"]["Type"] == resources[f"{name}DeadLetters"]["Type"] == "AWS::SQS::Queue"


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
    def test_dead_letter_list_shows_messages_with_their_reasons(self, ops: Ops, queues: Queues):
        message_id = queues.add_dead_letter('{"kind":  "advisory"}', **REASON)
        (shown,) = ops("dead-letters", "list", NAME).document
        assert shown["sentAt"].endswith("Z")
        assert shown == {
            "queue": NAME,
            "messageId": message_id,
            "sentAt": shown["sentAt"],
            "reason": "unknown organization",
            "message": '{"kind": "advisory"}',
        }

    def test_dead_letter_list_shows_no_reason_for_messages_that_sqs_moved(self, ops: Ops, queues: Queues):
        queues.add_dead_letter("no JSON")
        (shown,) = ops("dead-letters", "list", NAME).document
        assert shown["reason"].startswith("not recorded")
        assert shown["message"] == "no JSON"

    def test_dead_letter_list_shows_an_event_that_eventbridge_could_not_deliver_without_addresses(
        self, ops: Ops, queues: Queues
    ):
        queues.add_dead_letter(json.dumps(BOUNCED), ERROR_CODE={"DataType": "String", "StringValue": "NO_PERMISSIONS"})
        (shown,) = ops("dead-letters", "list", NAME).document
        assert shown["reason"] == "undelivered: NO_PERMISSIONS"
        assert json.loads(shown["message"]) == REPORT

    def test_dead_letter_list_consumes_and_hides_nothing(self, ops: Ops, queues: Queues):
        for number in range(23):
            queues.add_dead_letter(str(number), **REASON)
        assert len(ops("dead-letters", "list", NAME).document) == 23
        assert len(ops("dead-letters", "list", NAME).document) == 23
        assert len(ops("dead-letters", "list", NAME, "--limit", "2").document) == 2
        assert len(queues.waiting(queues.dead)) == 10

    def test_dead_letter_list_is_empty_without_messages(self, ops: Ops, queues: Queues):
        assert ops("dead-letters", "list", NAME).document == []

    def test_dead_letter_list_shows_all_queues_by_default(
        self, ops: Ops, queues: Queues, monkeypatch: pytest.MonkeyPatch
    ):
        for queue in QUEUES:
            variable = queue.replace("-", "_").upper()
            monkeypatch.setenv(f"{variable}_QUEUE_URL", queues.work)
            monkeypatch.setenv(f"{variable}_DEAD_LETTERS_URL", queues.dead)
        queues.add_dead_letter("x", **REASON)
        assert [shown["queue"] for shown in ops("dead-letters", "list").document] == list(QUEUES)

    def test_dead_letter_list_exits_2_for_an_unknown_or_missing_queue(self, ops: Ops, monkeypatch: pytest.MonkeyPatch):
        assert ops("dead-letters", "list", "nowhere").exit_code == 2
        monkeypatch.delenv("FINDING_INTAKE_DEAD_LETTERS_URL", raising=False)
        assert ops("dead-letters", "list", NAME).exit_code == 2


class TestRedrive:
    def test_dead_letter_redrive_sends_the_message_that_the_rule_would_have_sent(self, ops: Ops, queues: Queues):
        queues.add_dead_letter(json.dumps(BOUNCED))
        assert ops("dead-letters", "redrive", NAME, "--yes").document["redriven"] == 1
        (sent,) = queues.waiting(queues.work)
        assert json.loads(sent["Body"]) == REPORT

    def test_dead_letter_redrive_returns_all_messages_unchanged(self, ops: Ops, queues: Queues):
        ids = {queues.add_dead_letter(json.dumps({"n": number}), **REASON) for number in range(3)}
        done = ops("dead-letters", "redrive", NAME, "--yes").document
        assert (done["redriven"], set(done["messageIds"]), done["left"]) == (3, ids, 0)
        back = queues.waiting(queues.work)
        assert [message["Body"] for message in back] == ['{"n": 0}', '{"n": 1}', '{"n": 2}']
        assert not any(message.get("MessageAttributes") for message in back)
        assert queues.waiting(queues.dead) == []

    def test_dead_letter_redrive_returns_only_the_named_messages(self, ops: Ops, queues: Queues):
        queues.add_dead_letter("stays", **REASON)
        wanted = queues.add_dead_letter("goes", **REASON)
        done = ops("dead-letters", "redrive", NAME, "--message", wanted, "--yes").document
        assert (done["messageIds"], done["left"]) == ([wanted], 1)
        assert [message["Body"] for message in queues.waiting(queues.work)] == ["goes"]
        assert [message["Body"] for message in queues.waiting(queues.dead)] == ["stays"]

    def test_dead_letter_redrive_skips_messages_that_fail_at_once(
        self, ops: Ops, queues: Queues, monkeypatch: pytest.MonkeyPatch
    ):
        def send_to_a_quick_worker(send: Call, **sent: Any) -> Any:
            queues.add_dead_letter(sent["MessageBody"], **REASON)
            return send(**sent)

        queues.add_dead_letter("bad", **REASON)
        wrap(monkeypatch, "send_message", send_to_a_quick_worker)
        done = ops("dead-letters", "redrive", NAME, "--yes").document
        assert (done["redriven"], done["left"]) == (1, 1)

    def test_dead_letter_redrive_exits_3_for_an_unknown_message_and_moves_nothing(self, ops: Ops, queues: Queues):
        queues.add_dead_letter("stays", **REASON)
        assert ops("dead-letters", "redrive", NAME, "--message", "nonsense", "--yes").exit_code == 3
        assert queues.waiting(queues.work) == []
        assert len(queues.waiting(queues.dead)) == 1

    def test_dead_letter_redrive_asks_first(self, ops: Ops, queues: Queues):
        queues.add_dead_letter("stays", **REASON)
        assert ops("dead-letters", "redrive", NAME).exit_code == 2
        assert len(queues.waiting(queues.dead)) == 1


class TestNothingIsLost:
    """Whatever fails, and at whichever message: each message is in one of the two queues, or at worst in both."""

    @pytest.mark.parametrize("operation", ["send_message", "delete_message", "change_message_visibility_batch"])
    @pytest.mark.parametrize("good", [0, 1, 2])
    def test_an_interrupted_redrive_loses_no_message(
        self, operation: str, good: int, ops: Ops, queues: Queues, monkeypatch: pytest.MonkeyPatch
    ):
        bodies = {"a", "b", "c"}
        for body in bodies:
            queues.add_dead_letter(body, **REASON)
        left = iter(range(good))

        def call_until_it_breaks(call: Call, **sent: Any) -> Any:
            if next(left, None) is None:
                raise ClientError({"Error": {"Code": "Broken", "Message": "broken"}}, operation)
            return call(**sent)

        with monkeypatch.context() as broken:
            wrap(broken, operation, call_until_it_breaks)
            outcome = ops("dead-letters", "redrive", NAME, "--yes")
        working = {message["Body"] for message in queues.waiting(queues.work)}
        dead = {message["Body"] for message in queues.waiting(queues.dead)}
        assert working | dead == bodies
        if operation != "change_message_visibility_batch":
            assert outcome.exit_code == 1
            assert f"{good} messages were redriven" in outcome.error["message"]
            assert len(dead) == len(bodies) - good
            assert ops("dead-letters", "redrive", NAME, "--yes").document["left"] == 0


class TestDiscard:
    @pytest.mark.parametrize("status", ["starting", "queued", "running"])
    def test_dead_letter_discard_fails_the_scan_that_waits_for_the_message(
        self, status: str, ops: Ops, queues: Queues, world: World, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv("SCAN_EXECUTION_QUEUE_URL", queues.work)
        monkeypatch.setenv("SCAN_EXECUTION_DEAD_LETTERS_URL", queues.dead)
        repository = world.connected_repository(world.company())
        if status == "starting":
            message: Message = PrepareScan(request_id=make_request(repository))
        else:
            message = ExecuteScan(scan_id=make_scan(repository, status=status).scan_id)
        message_id = queues.add_dead_letter(message.model_dump_json(by_alias=True))
        assert (
            ops("dead-letters", "discard", "scan-execution", "--message", message_id, "--yes").document["discarded"]
            == 1
        )
        # A worker has the running one: if the worker dies, the sweep queues the scan again.
        assert ("activeRequestId" in stored_repository(repository)) is (status == "running")

    def test_dead_letter_discard_deletes_only_the_named_messages(self, ops: Ops, queues: Queues):
        queues.add_dead_letter("stays", **REASON)
        doomed = queues.add_dead_letter("goes", **REASON)
        done = ops("dead-letters", "discard", NAME, "--message", doomed, "--yes").document
        assert (done["discarded"], done["left"]) == (1, 1)
        assert [message["Body"] for message in queues.waiting(queues.dead)] == ["stays"]
        assert queues.waiting(queues.work) == []

    def test_dead_letter_discard_exits_2_without_a_message_id(self, ops: Ops, queues: Queues):
        queues.add_dead_letter("stays", **REASON)
        assert ops("dead-letters", "discard", NAME, "--yes").exit_code == 2
        assert len(queues.waiting(queues.dead)) == 1

    def test_dead_letter_discard_exits_3_for_an_unknown_message(self, ops: Ops, queues: Queues):
        queues.add_dead_letter("stays", **REASON)
        assert ops("dead-letters", "discard", NAME, "--message", "nonsense", "--yes").exit_code == 3
        assert len(queues.waiting(queues.dead)) == 1
