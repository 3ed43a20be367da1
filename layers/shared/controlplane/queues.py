"""Messages between functions: what each says, and how it gets onto its queue.

A message has a kind, a version and ids. It holds no personal data, no token and no key, because queues and dead letters
are read by people. Whoever receives one reads the rest from the table.
"""

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import Session
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from controlplane import connections, deadline
from controlplane.observability import describe, logger
from controlplane.settings import settings
from controlplane.store import outbox
from controlplane.store.outbox import Entry
from controlplane.store.sweep_runs import SweepRun
from controlplane.store.table import StoreError

_ATTEMPTS = 3
_CONFIG = Config(connect_timeout=1, read_timeout=3, retries={"mode": "standard", "total_max_attempts": _ATTEMPTS})
# How long one message may take, with all attempts. What takes longer is left to the sweep.
_DISPATCH_SECONDS = 1.5
# After so many receives a queue of the template hands a message to its dead letters.
MAX_RECEIVES = 5

_OWNED_ID = r"^[a-z]{3}_[0-9a-hjkmnp-tv-z]{34}$"


class Queue(StrEnum):
    """A queue of the template. Settings of the same name say where it and its dead letters are."""

    SCAN_PREPARATION = "scan-preparation"
    SCAN_EXECUTION = "scan-execution"
    ISSUE_CREATION = "issue-creation"
    FINDING_INTAKE = "finding-intake"

    @property
    def url(self) -> str:
        """Raises Unreachable where this function was not told."""
        return self._setting("queue_url")

    @property
    def dead_letters_url(self) -> str:
        """The same."""
        return self._setting("dead_letters_url")

    def _setting(self, name: str) -> str:
        url: str | None = getattr(settings, f"{self.value.replace('-', '_')}_{name}")
        if url is None:
            raise Unreachable(f"no address for {self.value}")
        return url


class Unreachable(Exception):
    """The queue took no message. Nothing is lost by it that stands in the outbox."""


class Message(BaseModel):
    """A message on the wire: camelCase, and no field that it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    version: Literal[1] = 1


class PrepareScan(Message):
    """Find out what the request asks to have scanned, and make the scan."""

    kind: Literal["prepare-scan"] = "prepare-scan"
    request_id: str = Field(pattern=_OWNED_ID)


class ExecuteScan(Message):
    """Run the scan."""

    kind: Literal["execute-scan"] = "execute-scan"
    scan_id: str = Field(pattern=_OWNED_ID)


class PublishScan(Message):
    """The scan was unlocked: put the findings into the inbox that were locked till now."""

    kind: Literal["publish-scan"] = "publish-scan"
    scan_id: str = Field(pattern=_OWNED_ID)


class CreateIssue(Message):
    """Open the issue that the item's attempt stands for, or find out whether it was opened."""

    kind: Literal["create-issue"] = "create-issue"
    item_id: str = Field(pattern=_OWNED_ID)


class _Sender:
    """A client of SQS that is made when it is first needed."""

    def __init__(self) -> None:
        self._client: Any = None

    @property
    def client(self) -> Any:
        if self._client is None:
            self._client = Session().create_client("sqs", config=_CONFIG)
            connections.bound(self._client, _ATTEMPTS)
        return self._client

    @client.setter
    def client(self, client: Any) -> None:
        self._client = client


sender = _Sender()


def entry(queue: Queue, message: Message) -> Entry:
    """The message as an entry of the outbox: its leg goes into the transaction of what the message speaks of."""
    return outbox.new_entry(queue.value, message.model_dump(by_alias=True))


def send(queue: str, message: Mapping[str, Any]) -> None:
    """Puts a message onto a queue. Raises Unreachable."""
    url = Queue(queue).url
    try:
        sender.client.send_message(QueueUrl=url, MessageBody=json.dumps(message))
    except (ClientError, BotoCoreError) as error:
        raise Unreachable(queue) from error


def dispatch(written: Entry) -> None:
    """Sends what a transaction has written, and removes it from the outbox. It never fails: a sweep sends the rest."""
    try:
        with deadline.budget(_DISPATCH_SECONDS), deadline.spending():
            send(written.queue, written.message)
        outbox.delete_entry(written)
    except (Unreachable, StoreError, ClientError, BotoCoreError) as error:
        logger.warning("message left in the outbox", extra={"queue": written.queue, **describe(error)})


def resend(run: SweepRun) -> None:
    """A step of the sweep: sends the messages that have waited in the outbox for a minute.

    A queue that didn't respond is left out for the rest of the run, so that its timeouts don't take the others' time.
    """
    silent: set[str] = set()

    def send_unless_silent(queue: str, message: Mapping[str, Any]) -> None:
        if queue in silent:
            raise Unreachable(queue)
        try:
            send(queue, message)
        except Unreachable as failure:
            if isinstance(failure.__cause__, BotoCoreError):
                silent.add(queue)
            raise

    outbox.resend(run, send_unless_silent)
