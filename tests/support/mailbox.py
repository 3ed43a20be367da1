"""SES as tests see it: it keeps the emails that it accepts, and can refuse, or take an email and not answer."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from controlplane.platform.core import clock
from controlplane.platform.core.settings import settings
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import Queue
from emails import delivery
from emails.app import handler
from notifications.app import handler as tell
from tests.support import permissions
from tests.support.calls import touch_outside
from tests.support.cleanup import swept
from tests.support.sqs import FakeSqs

SENDER = "no-reply@assent.test"
QUEUE, DEAD_LETTERS = Queue.EMAILS.url, Queue.EMAILS.dead_letters_url


@dataclass
class Email:
    """An email that SES accepted, by the parts that tests look at."""

    request: dict[str, Any]
    to: str
    subject: str
    text: str
    html: str
    headers: dict[str, str]
    tag: str

    @classmethod
    def of(cls, request: dict[str, Any]) -> "Email":
        (to,), (tag,) = request["Destination"]["ToAddresses"], request["EmailTags"]
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,256}", tag["Value"]), "SES takes no other characters"
        simple = request["Content"]["Simple"]
        body = {kind: part["Data"] for kind, part in simple["Body"].items()}
        headers = {header["Name"]: header["Value"] for header in simple["Headers"]}
        return cls(request, to, simple["Subject"]["Data"], body["Text"], body["Html"], headers, tag["Value"])

    def link(self, label: str) -> str:
        """Returns the path of the link that the plain text shows after this label."""
        (url,) = re.findall(rf"{label}: (\S+)", self.text)
        return "/" + url.split("/", 3)[3]


@dataclass
class Mailbox:
    """SES's client. `fails`: what the next calls raise; after a timeout or a 5xx, the email may have been taken."""

    emails: list[Email] = field(default_factory=list)
    fails: list[Exception] = field(default_factory=list)
    takes_before_failing: bool = False

    def send_email(self, **sent: Any) -> dict[str, Any]:
        touch_outside()
        permissions.record_call("ses", "SendEmail", sent)
        if not self.fails or self.takes_before_failing:
            self.emails.append(Email.of(sent))
        if self.fails:
            raise self.fails.pop(0)
        return {"MessageId": f"message-{len(self.emails)}"}

    def refuse(self, code: str, status: int = 400) -> None:
        response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
        self.fails.append(ClientError(response, "SendEmail"))

    def be_silent(self, *, takes: bool) -> None:
        self.fails.append(ReadTimeoutError(endpoint_url="https://email.example"))
        self.takes_before_failing = takes

    @property
    def addresses(self) -> list[str]:
        return sorted(email.to for email in self.emails)


@dataclass
class PostOffice:
    """The outbox, both queues, their workers, and SES, connected as deployed. `advance` moves the clock."""

    sqs: FakeSqs
    mailbox: Mailbox
    advance: Callable[[float], None]

    def work(self, seconds: float = 0) -> list[Email]:
        """Lets time pass, then sweeps and works until nothing is due. Returns the emails sent by that."""
        before = len(self.mailbox.emails)
        self.advance(seconds + 1)  # the sweep sends what was due before the present
        swept(messages.resend)
        for letter in self.sqs.due(Queue.NOTIFICATIONS.url):
            self.sqs.deliver(letter, tell, Queue.NOTIFICATIONS.dead_letters_url)
        while letters := self.sqs.due(QUEUE):
            self.sqs.deliver(letters[0], handler, DEAD_LETTERS)
        return self.mailbox.emails[before:]

    def work_until_quiet(self) -> list[Email]:
        """Works until no retries are left in the queue. Returns the emails sent by that."""
        sent = self.work()
        while (moment := self.sqs.next_at(QUEUE)) is not None:
            sent += self.work(max(0.0, moment - clock.now()))
        return sent

    @property
    def dead_letters(self) -> list[str]:
        """The reasons of messages that couldn't be processed."""
        return [letter.attributes["reason"]["StringValue"] for letter in self.sqs.at(DEAD_LETTERS)]

    def report(self, email: Email, event: str, bounce_type: str = "") -> None:
        """Passes on what SES reports, as the template's rules do."""
        message = {"version": 1, "kind": "mail-report", "event": event, "mail": [email.tag]}
        self.post({**message, **({"bounceType": bounce_type} if bounce_type else {})})

    def post(self, message: dict[str, Any]) -> None:
        self.sqs.send_message(QueueUrl=QUEUE, MessageBody=json.dumps(message))


@pytest.fixture
def mailbox(monkeypatch: pytest.MonkeyPatch) -> Mailbox:
    """Installs SES's stand-in, and a sender, so that emails are sent."""
    made = Mailbox()
    monkeypatch.setattr(delivery, "ses", lambda: made)
    monkeypatch.setitem(settings.__dict__, "email_sender", SENDER)
    monkeypatch.setitem(settings.__dict__, "email_configuration_set", "assent")
    return made


@pytest.fixture
def post_office(sqs: FakeSqs, mailbox: Mailbox, now: Any) -> PostOffice:
    return PostOffice(sqs, mailbox, now.advance)
