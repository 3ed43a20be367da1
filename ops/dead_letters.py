"""Dead letters: listing, redriving, and discarding them.

A redrive sends a message before it removes it, so that none is lost. If it is interrupted in between, the message is
delivered twice, which the workers tolerate. Listing hides the messages for a few minutes at most and then releases
them; after a crash, they reappear when the visibility timeout ends.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from botocore.exceptions import BotoCoreError, ClientError
from pydantic import ValidationError

from controlplane.platform.core import clock
from controlplane.platform.core.ids import ScanId, ScanRequestId
from controlplane.platform.queues.messages import ExecuteScan, PrepareScan, Queue
from controlplane.scans import recovery
from ops.errors import NotFound, Refused
from ops.target import find_queue

# Long enough to send a thousand messages one at a time, and short enough to wait out after a crash.
_VISIBILITY_SECONDS = 300
_BATCH = 10  # the SQS maximum
# Long polling queries all SQS servers, so that an empty response means an empty queue.
_LONG_POLL_SECONDS = 2
# The form to which the template's rules reduce SES's events.
_REPORTS = {"Email Sent": "sent", "Email Bounced": "bounced", "Email Complaint Received": "complained"}
_UNKNOWN_REASON = "not recorded: the worker crashed or timed out on every attempt"


class DeadLetter(NamedTuple):
    """A held message and why it failed. `receipt` is the handle to remove or release it."""

    queue: Queue
    message_id: str
    body: str
    reason: str
    sent_at: str
    receipt: str


class DeadLetters:
    """The dead letters of one queue."""

    def __init__(self, queue: Queue) -> None:
        """Raises Misused if the queues' location isn't configured, NotFound if the stack doesn't have them."""
        name = "".join(part.title() for part in queue.value.split("-"))
        variable = queue.value.replace("-", "_").upper()
        self._queue = queue
        self._client, self._url = find_queue(f"{name}DeadLetters", f"{variable}_DEAD_LETTERS_URL")
        _, self._work_url = find_queue(f"{name}Queue", f"{variable}_QUEUE_URL")

    def count(self) -> int:
        """Returns the approximate number of messages. SQS may count a message up to a minute late."""
        names = ["ApproximateNumberOfMessages"]
        found = self._client.get_queue_attributes(QueueUrl=self._url, AttributeNames=names)["Attributes"]
        return int(found[names[0]])

    @contextmanager
    def receive(self, limit: int) -> Iterator[list[DeadLetter]]:
        """Receives up to `limit` of the current messages, hidden from other consumers. Releases those not removed.

        Messages that arrive later are left for the next run, so that a message that fails immediately isn't redriven
        in a loop.
        """
        wanted, found = min(limit, self.count()), dict[str, DeadLetter]()
        try:
            while len(found) < wanted:
                answer = self._client.receive_message(
                    QueueUrl=self._url,
                    MaxNumberOfMessages=min(_BATCH, wanted - len(found)),
                    VisibilityTimeout=_VISIBILITY_SECONDS,
                    WaitTimeSeconds=_LONG_POLL_SECONDS,
                    MessageAttributeNames=["All"],
                    MessageSystemAttributeNames=["SentTimestamp"],
                )
                messages = answer.get("Messages", [])
                if not messages:
                    break
                found |= {message["MessageId"]: self._read(message) for message in messages}
            yield sorted(found.values(), key=lambda letter: letter.sent_at)
        finally:
            self._release(found.values())

    def resend(self, letter: DeadLetter) -> None:
        """Sends the original message to its work queue, and then removes it here."""
        self._client.send_message(QueueUrl=self._work_url, MessageBody=letter.body)
        self.remove(letter)

    def remove(self, letter: DeadLetter) -> None:
        self._client.delete_message(QueueUrl=self._url, ReceiptHandle=letter.receipt)

    def _read(self, message: dict[str, Any]) -> DeadLetter:
        attributes = message.get("MessageAttributes", {})
        reason = attributes.get("reason", {}).get("StringValue", _UNKNOWN_REASON)
        if "ERROR_CODE" in attributes:
            reason = f"undelivered: {attributes['ERROR_CODE']['StringValue']}"
        sent_at = clock.timestamp(int(message["Attributes"]["SentTimestamp"]) / 1000)
        body = reduced(message["Body"])
        return DeadLetter(self._queue, message["MessageId"], body, reason, sent_at, message["ReceiptHandle"])

    def _release(self, letters: Iterable[DeadLetter]) -> None:
        """Makes the messages visible again, except those already removed.

        Never fails: messages that aren't released here reappear when their visibility timeout ends.
        """
        entries = [
            {"Id": str(number), "ReceiptHandle": letter.receipt, "VisibilityTimeout": 0}
            for number, letter in enumerate(letters)
        ]
        for start in range(0, len(entries), _BATCH):
            batch = entries[start : start + _BATCH]
            with suppress(ClientError, BotoCoreError):
                self._client.change_message_visibility_batch(QueueUrl=self._url, Entries=batch)


def reduced(body: str) -> str:
    """Returns the message that a rule makes of an event of SES, without addresses. Other bodies stay as they are.

    EventBridge's dead letters are whole events.
    """
    with suppress(ValueError, KeyError, TypeError):
        event = json.loads(body)
        detail = event["detail"]
        report = {"version": 1, "kind": "mail-report", "event": _REPORTS[event["detail-type"]]}
        bounce = {"bounceType": detail["bounce"]["bounceType"]} if "bounce" in detail else {}
        return json.dumps({**report, "mail": detail["mail"]["tags"]["mail"], **bounce})
    return body


def list_letters(queues: Iterable[Queue], limit: int) -> list[dict[str, Any]]:
    """Returns the dead letters of the queues, each queue's oldest first."""
    shown: list[dict[str, Any]] = []
    for queue in queues:
        with DeadLetters(queue).receive(limit) as letters:
            shown += [document(letter) for letter in letters]
    return shown


def document(letter: DeadLetter) -> dict[str, Any]:
    return {
        "queue": letter.queue.value,
        "messageId": letter.message_id,
        "sentAt": letter.sent_at,
        "reason": letter.reason,
        "message": _compact(letter.body),
    }


def redrive(queue: Queue, message_ids: list[str], limit: int) -> dict[str, Any]:
    """Redrives the given messages, or all. Raises NotFound, or Refused if it failed partway."""
    letters = DeadLetters(queue)
    return _each(letters, message_ids, limit, letters.resend, "redriven")


def discard(queue: Queue, message_ids: list[str], limit: int) -> dict[str, Any]:
    """Deletes the given messages, and ends the scans that wait for them. Raises the same errors."""
    letters = DeadLetters(queue)

    def discard_one(letter: DeadLetter) -> None:
        _end_scan(letter.body)
        letters.remove(letter)

    return _each(letters, message_ids, limit, discard_one, "discarded")


def _end_scan(body: str) -> None:
    """Ends the scan request or scan that the message belongs to: no other message will start it."""
    with suppress(ValidationError):
        recovery.fail_waiting(ScanRequestId.stored(PrepareScan.model_validate_json(body).request_id))
    with suppress(ValidationError):
        recovery.fail_waiting(ScanId.stored(ExecuteScan.model_validate_json(body).scan_id))


def _each(
    letters: DeadLetters, message_ids: list[str], limit: int, act: Callable[[DeadLetter], None], done: str
) -> dict[str, Any]:
    acted: list[str] = []
    with letters.receive(limit) as found:
        missing = set(message_ids) - {letter.message_id for letter in found}
        if missing:
            raise NotFound(f"There is no dead letter {', '.join(sorted(missing))}, or another operator is viewing it.")
        for letter in found:
            if message_ids and letter.message_id not in message_ids:
                continue
            try:
                act(letter)
            except (ClientError, BotoCoreError) as error:
                raise Refused(
                    f"{len(acted)} messages were {done}, then SQS returned an error: {error}. Nothing is lost: list "
                    "the remaining messages, then try again."
                ) from error
            acted.append(letter.message_id)
    return {done: len(acted), "messageIds": acted, "left": letters.count()}


def _compact(body: str) -> str:
    """Returns the body as single-line JSON, or unchanged if it isn't JSON."""
    try:
        return json.dumps(json.loads(body), ensure_ascii=False)
    except ValueError:
        return body
