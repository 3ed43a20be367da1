"""`assent-ops dead-letters`: messages that workers failed to process.

A redrive sends a message before it removes it, so that none is lost. If it is interrupted in between, the message is
delivered twice, which the workers tolerate. Listing hides the messages for a few minutes at most and then releases
them; after a crash, they reappear when the visibility timeout ends.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any, NamedTuple

import typer
from botocore.exceptions import BotoCoreError, ClientError
from pydantic import ValidationError

from controlplane.platform.core import clock
from controlplane.platform.core.ids import ScanId, ScanRequestId
from controlplane.platform.queues.messages import ExecuteScan, PrepareScan, Queue
from controlplane.scans import failures
from ops.arguments import Yes, new_group, one_of
from ops.output import Misused, NotFound, Refused, Result, confirm
from ops.target import create_client, find_resource

app = new_group("Messages that workers failed to process, kept for 14 days.")

QUEUES = tuple(queue.value for queue in Queue)
_parse_queue = one_of(QUEUES)
_HELP = f"One of {', '.join(QUEUES)}."
QueueName = Annotated[str, typer.Argument(metavar="QUEUE", parser=_parse_queue, help=_HELP)]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="The maximum number of messages per queue.")]


@app.command("list")
def list_letters(
    queue: Annotated[
        str | None, typer.Argument(metavar="QUEUE", parser=_parse_queue, help=f"{_HELP} Default: all.")
    ] = None,
    limit: Limit = 100,
) -> Result:
    """List dead letters and the reason for each, oldest first. Nothing is removed.

    If a worker rejected the message, its reason is shown. Messages that SQS moved itself, after five attempts in which
    a worker crashed or timed out, have no reason.
    """
    shown: list[dict[str, Any]] = []
    for name in [queue] if queue else QUEUES:
        with DeadLetters(Queue(name)).receive(limit) as letters:
            shown += [_document(letter) for letter in letters]
    return Result(shown)


@app.command("redrive")
def redrive(
    queue: QueueName,
    message: Annotated[
        list[str] | None, typer.Option("--message", metavar="ID", help="A message's id; repeatable. Default: all.")
    ] = None,
    limit: Limit = 1000,
    yes: Yes = False,
) -> Result:
    """Send dead letters back to their work queue. Fix the cause first.

    Each message is sent before it is removed here: it may be delivered twice, but is never lost. Workers skip a message
    whose work is already done. A message that fails again returns here with its new reason.
    """
    confirm(f"Redrive {_named(message)} of {queue}?", yes=yes)
    letters = DeadLetters(Queue(queue))
    return _each(letters, message or [], limit, letters.resend, "redriven")


@app.command("discard")
def discard(
    queue: QueueName,
    message: Annotated[
        list[str] | None, typer.Option("--message", metavar="ID", help="A message's id; repeatable.")
    ] = None,
    limit: Limit = 1000,
    yes: Yes = False,
) -> Result:
    """Permanently delete dead letters that can never succeed, such as malformed messages.

    A scan that waits for a deleted message is marked as failed, unless a worker is processing it.
    """
    if not message:
        raise Misused("Select the messages to discard with --message.")
    confirm(f"Discard {_named(message)} of {queue}?", yes=yes)
    letters = DeadLetters(Queue(queue))

    def discard_one(letter: DeadLetter) -> None:
        _end_scan(letter.body)
        letters.remove(letter)

    return _each(letters, message, limit, discard_one, "discarded")


def _named(message: list[str] | None) -> str:
    if not message:
        return "all dead letters"
    return "one dead letter" if len(message) == 1 else f"{len(message)} dead letters"


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
        self._client = create_client("sqs")
        self._url = find_resource(f"{name}DeadLetters", f"{variable}_DEAD_LETTERS_URL")
        self._work_url = find_resource(f"{name}Queue", f"{variable}_QUEUE_URL")

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


def _document(letter: DeadLetter) -> dict[str, Any]:
    return {
        "queue": letter.queue.value,
        "messageId": letter.message_id,
        "sentAt": letter.sent_at,
        "reason": letter.reason,
        "message": _compact(letter.body),
    }


def _end_scan(body: str) -> None:
    """Ends the scan request or scan that the message belongs to: no other message will start it."""
    with suppress(ValidationError):
        failures.fail_waiting(ScanRequestId.stored(PrepareScan.model_validate_json(body).request_id))
    with suppress(ValidationError):
        failures.fail_waiting(ScanId.stored(ExecuteScan.model_validate_json(body).scan_id))


def _each(
    letters: DeadLetters, message_ids: list[str], limit: int, act: Callable[[DeadLetter], None], done: str
) -> Result:
    """Acts on the messages with these ids, or on all. Raises NotFound, or Refused if it failed partway."""
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
    return Result({done: len(acted), "messageIds": acted, "left": letters.count()})


def _compact(body: str) -> str:
    """Returns the body as single-line JSON, or unchanged if it isn't JSON."""
    try:
        return json.dumps(json.loads(body), ensure_ascii=False)
    except ValueError:
        return body
