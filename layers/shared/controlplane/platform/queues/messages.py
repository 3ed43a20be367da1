"""Messages between functions, and how they are sent to their queues.

A message has a kind, a version, and ids. It contains no personal data, tokens, or keys, because operators read queues
and dead letters. The receiver reads everything else from the table.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from awsclient.errors import AwsError, ServiceError
from controlplane.platform.core import acting, clock, deadline, ids
from controlplane.platform.core.aws_clients import create_client
from controlplane.platform.core.observability import describe, logger
from controlplane.platform.core.settings import settings
from controlplane.platform.queues import outbox
from controlplane.platform.queues.events import MOST_SUBJECTS, EventName
from controlplane.platform.queues.outbox import Entry
from controlplane.platform.queues.sweep_runs import SweepRun
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.parallel import read_both
from controlplane.platform.table.table import StoreError

# Time limit for sending one message, including retries. After that, the sweep sends it.
_DISPATCH_SECONDS = 1.5
# The queues' maxReceiveCount in the template: after that, SQS moves a message to the dead-letter queue.
MAX_RECEIVES = 5

# The newest version of messages that this release reads.
VERSION: Literal[1] = 1

_OWNED_ID = r"^[a-z]{3}_[0-9a-hjkmnp-tv-z]{34}$"
# Also the id of a member, or of an audit.
_SUBJECT_ID = r"^[a-z]{3}_[0-9a-hjkmnp-tv-z]{18,34}$"


class Queue(StrEnum):
    """A queue of the template. Settings of the same name contain the URLs of the queue and its dead-letter queue."""

    SCAN_PREPARATION = "scan-preparation"
    SCAN_EXECUTION = "scan-execution"
    ISSUE_CREATION = "issue-creation"
    FINDING_INTAKE = "finding-intake"
    GITHUB_EVENTS = "github-events"
    NOTIFICATIONS = "notifications"
    EMAILS = "emails"
    WEBSITE_AUDITS = "website-audits"
    AUDIT_REPORTS = "audit-reports"

    @property
    def url(self) -> str:
        """The queue's URL. Raises Unreachable if this function's settings don't contain it."""
        return self._setting("queue_url")

    @property
    def dead_letters_url(self) -> str:
        """The URL of the queue's dead-letter queue. Raises Unreachable if the settings don't contain it."""
        return self._setting("dead_letters_url")

    def _setting(self, name: str) -> str:
        url: str | None = getattr(settings, f"{self.value.replace('-', '_')}_{name}")
        if url is None:
            raise Unreachable(f"no address for {self.value}")
        return url


class Unreachable(Exception):
    """The message couldn't be sent. It isn't lost if it is in the outbox."""


class Message(BaseModel):
    """Base of messages: camelCase in JSON.

    Unknown fields are ignored, because functions of two releases run at the same time. A release that adds a field
    which receivers must not ignore also increments the version.
    """

    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=to_camel, validate_by_name=True, defer_build=True
    )

    version: Literal[1] = VERSION


class PrepareScan(Message):
    """Resolve the scan request's branch to a commit, and create the scan."""

    kind: Literal["prepare-scan"] = "prepare-scan"
    request_id: str = Field(pattern=_OWNED_ID)


class ExecuteScan(Message):
    """Run the scan."""

    kind: Literal["execute-scan"] = "execute-scan"
    scan_id: str = Field(pattern=_OWNED_ID)


class PublishScan(Message):
    """The scan was unlocked: add the findings that were locked to the inbox."""

    kind: Literal["publish-scan"] = "publish-scan"
    scan_id: str = Field(pattern=_OWNED_ID)


class CreateIssue(Message):
    """Open the issue of the item's attempt, or find out whether it was already opened."""

    kind: Literal["create-issue"] = "create-issue"
    item_id: str = Field(pattern=_OWNED_ID)


type HostEventName = Literal["installation", "repository", "push", "pull_request", "issues", "check_run"]


# DynamoDB's numbers have fewer digits than JSON's.
HostNumber = Annotated[int, Field(ge=1, lt=2**63)]


class HostEvent(Message):
    """Something has changed on GitHub: read its current state, and act on that.

    Numbers are GitHub's. subject: the number of the pull request or issue, or the id of the check run.
    ref: the digest of the name that was pushed to, so that other branches aren't read. until: when retries end.
    """

    kind: Literal["host-event"] = "host-event"
    event: HostEventName
    installation_id: HostNumber
    hosted_id: HostNumber | None = None
    subject: HostNumber | None = None
    ref: str | None = Field(None, pattern=r"^[0-9a-f]{16}$")
    until: int


def ref_digest(ref: str) -> str:
    """Returns the digest that a message contains instead of a branch's name, which may contain anything."""
    return hashlib.sha256(ref.encode(errors="replace")).hexdigest()[:16]


class ReportPullRequest(Message):
    """Report the state of the pull request's scan on GitHub. `code_host.pull_requests` writes the message."""

    kind: Literal["report-pull-request"] = "report-pull-request"
    repository_id: str = Field(pattern=_OWNED_ID)
    project_id: str = Field(pattern=_OWNED_ID)
    number: int = Field(ge=1)
    until: int


class OrganizationEvent(Message):
    """Tell the organization's webhooks and members about an event. `queues.events` writes the message.

    event_id: unique, and the same in each copy of the message. at: when it happened, RFC 3339.
    subjects: the ids of what the event is about; none if it is about the organization.
    """

    kind: Literal["organization-event"] = "organization-event"
    event_id: str = Field(pattern=_OWNED_ID)
    event: EventName
    at: str = Field(max_length=30)
    subjects: tuple[Annotated[str, Field(pattern=_SUBJECT_ID)], ...] = Field(max_length=MOST_SUBJECTS)


class RunAudit(Message):
    """Audit the website, and report to the intake. The worker reads no table.

    claim: the report repeats it, which shows that it is from the worker that got this message. token: what the website
    shows to prove ownership. consent_url: the base of the requests that prove it, if the project has consent.
    """

    kind: Literal["run-audit"] = "run-audit"
    run_id: str = Field(pattern=_OWNED_ID)
    audit_id: str
    project_id: str = Field(pattern=_OWNED_ID)
    url: str
    claim: str
    token: str
    consent_url: str | None = None


class DeliverWebhook(Message):
    """Make the attempt with this number at delivering an event to an endpoint. `notify.webhook_deliveries` writes
    it."""

    kind: Literal["deliver-webhook"] = "deliver-webhook"
    webhook_id: str = Field(pattern=_OWNED_ID)
    event_id: str = Field(pattern=_OWNED_ID)
    attempt: int = Field(ge=1)


# Fields with the id of an item that an organization owns.
_OWNED = ("scanId", "requestId", "itemId", "repositoryId", "eventId", "invitationId", "runId")


def organization_of(message: Mapping[str, Any]) -> str | None:
    """Returns the organization that the message is about, or None if the message doesn't say."""
    owned = next((str(message[name]) for name in _OWNED if name in message), None)
    return ids.organization_of(owned) if owned else message.get("organizationId")


def is_newer(body: str, error: ValidationError) -> bool:
    """Returns whether an invalid message has a version or a kind that this release doesn't know, but may be valid."""
    if any(found["type"] == "union_tag_invalid" or found["loc"] == ("kind",) for found in error.errors()):
        return True
    try:
        return int(json.loads(body)["version"]) > VERSION
    except (KeyError, TypeError, ValueError):
        return False


class _Sender:
    @cached_property
    def client(self) -> Any:
        """The client of SQS, which is created on first use."""
        return create_client("sqs")


sender = _Sender()


def entry(queue: Queue, message: Message, after_seconds: int = outbox.RESEND_AFTER_SECONDS) -> Entry:
    """Returns the message as an outbox entry. Add its leg to the transaction that the message is about.

    The sweep sends it `after_seconds`, if no function did.
    """
    return outbox.new_entry(queue.value, message.model_dump(by_alias=True), after_seconds)


def send(queue: str, message: Mapping[str, Any], delay_seconds: int = 0) -> None:
    """Sends a message to a queue, except in a dry run. Raises Unreachable."""
    if acting.is_dry_run():
        return
    url = Queue(queue).url
    # SQS shares out the queue among groups: see `queues.shares`.
    group = organization_of(message) or message.get("installationId")
    options: dict[str, Any] = {"DelaySeconds": delay_seconds} if delay_seconds else {}
    if group is not None:
        options["MessageGroupId"] = str(group)
    try:
        sender.client.send_message(QueueUrl=url, MessageBody=json.dumps(message), **options)
    except AwsError as error:
        raise Unreachable(queue) from error


def dispatch(*written: Entry) -> None:
    """Sends entries that transactions have written, and deletes them from the outbox.

    Errors are only logged: the sweep sends the message later.
    """
    for it in written:
        if _is_sent(it):
            _forget(it)


def dispatch_and_read[R](written: Entry, read: Callable[[], R]) -> R:
    """Like `dispatch`, and returns the result of `read`, which runs while the entry is deleted. Raises its errors."""
    if not _is_sent(written):
        return read()
    _, found = read_both(lambda: _forget(written), read)
    return found


def _is_sent(written: Entry) -> bool:
    """Sends the entry's message. Returns False if it stays in the outbox."""
    try:
        with deadline.budget(_DISPATCH_SECONDS), deadline.spending():
            send(written.queue, written.message)
    except (Unreachable, StoreError, AwsError) as error:
        _note_unfinished(written, error)
        return False
    return True


def _forget(written: Entry) -> None:
    """Deletes the entry of a message that was sent. If that fails, the sweep sends it again."""
    try:
        outbox.delete_entry(written)
    except (StoreError, AwsError) as error:
        _note_unfinished(written, error)


def _note_unfinished(written: Entry, error: Exception) -> None:
    logger.warning("message left in the outbox", extra={"queue": written.queue, **describe(error)})


def resend(run: SweepRun) -> None:
    """Sends the messages that have been in the outbox for a minute, and deletes their entries, as a step of the sweep.

    The entry of a message that its queue doesn't accept is kept. A queue that doesn't respond is skipped for the rest
    of the run, so that its timeouts don't delay the others.
    """
    unresponsive: set[str] = set()
    for item in run.entries(keys.OUTBOX_PKS, before=clock.timestamp(clock.now() - outbox.RESEND_AFTER_SECONDS)):
        with run.isolating(item):
            entry = Entry(Key(item["pk"], item["sk"]), item["queue"], item["message"])
            if entry.queue in unresponsive:
                raise Unreachable(entry.queue)
            try:
                send(entry.queue, entry.message)
            except Unreachable as failure:
                if failure.__cause__ is not None and not isinstance(failure.__cause__, ServiceError):
                    unresponsive.add(entry.queue)
                raise
            outbox.delete_entry(entry)
            run.finished += 1
