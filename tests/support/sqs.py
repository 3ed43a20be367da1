"""An in-memory SQS with the clock of the tests and the queues of the template.

It replaces the SDK's client. A message that a worker neither completed nor deferred is redelivered when its visibility
timeout ends. A duplicate is a second copy. The test chooses the order of delivery.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest

from awsclient.errors import NoAnswer
from controlplane.platform.core import clock
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import MAX_RECEIVES
from tests.support import permissions
from tests.support.calls import touch_outside

_NUMBERS = count(1)

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]


@dataclass
class SqsMessage:
    """A message, with the time when it is next visible and its number of receives."""

    queue_url: str
    body: str
    visible_at: float
    attributes: dict[str, Any] = field(default_factory=dict)
    group: str | None = None
    receives: int = 0
    number: int = field(default_factory=lambda: next(_NUMBERS))

    @property
    def record(self) -> dict[str, Any]:
        """Returns the record that a function receives."""
        return {
            "messageId": f"message-{self.number}",
            "receiptHandle": str(self.number),
            "body": self.body,
            "attributes": {"ApproximateReceiveCount": str(self.receives), "SentTimestamp": "1772600767000"},
            "messageAttributes": {},
            "md5OfBody": "",
            "eventSource": "aws:sqs",
            "eventSourceARN": f"arn:aws:sqs:eu-central-1:123456789012:{self.queue_url.rpartition('/')[2]}",
            "awsRegion": "eu-central-1",
        }


class FakeSqs:
    """All queues by URL. `broken` makes it reject messages."""

    def __init__(self) -> None:
        self.letters: list[SqsMessage] = []
        self.broken = False
        self.visibility_seconds = 360

    def send_message(self, **sent: Any) -> dict[str, Any]:
        touch_outside()
        if self.broken:
            raise NoAnswer("ConnectionResetError")
        permissions.record_call("sqs", "SendMessage", sent)
        attributes = sent.get("MessageAttributes") or {}
        visible_at = clock.now() + sent.get("DelaySeconds", 0)
        self.letters.append(
            SqsMessage(sent["QueueUrl"], sent["MessageBody"], visible_at, attributes, sent.get("MessageGroupId"))
        )
        return {}

    def change_message_visibility(self, **sent: Any) -> dict[str, Any]:
        touch_outside()
        permissions.record_call("sqs", "ChangeMessageVisibility", sent)
        for letter in self.letters:
            if str(letter.number) == sent["ReceiptHandle"]:
                letter.visible_at = clock.now() + sent["VisibilityTimeout"]
        return {}

    def at(self, queue_url: str) -> list[SqsMessage]:
        touch_outside()
        return [letter for letter in self.letters if letter.queue_url == queue_url]

    def due(self, queue_url: str) -> list[SqsMessage]:
        """Returns the messages that are visible now, oldest first."""
        return [letter for letter in self.at(queue_url) if letter.visible_at <= clock.now()]

    def next_at(self, queue_url: str) -> float | None:
        """Returns the time when the next message is visible."""
        return min((letter.visible_at for letter in self.at(queue_url)), default=None)

    def deliver(self, letter: SqsMessage, handler: Handler, dead_letters_url: str) -> None:
        """Delivers the message to the function, and deletes it if the function reports no failure.

        Exceptions of the function propagate to the test: the function died, and the message is redelivered.
        """
        touch_outside()
        if letter.receives == MAX_RECEIVES:
            letter.queue_url = dead_letters_url
            return
        letter.receives += 1
        letter.visible_at = clock.now() + self.visibility_seconds
        if not handler({"Records": [letter.record]}, None)["batchItemFailures"]:
            touch_outside()
            self.letters.remove(letter)


@pytest.fixture(autouse=True)
def sqs(monkeypatch: pytest.MonkeyPatch) -> FakeSqs:
    """Installs queues that receive the product's messages instead of SQS."""
    made = FakeSqs()
    monkeypatch.setitem(vars(messages.sender), "client", made)
    return made
