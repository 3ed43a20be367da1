"""The intake worker on each test's queue, and the vendors and items that it creates from messages."""

import json
from typing import Any

import pytest

from controlplane.findings import inbox
from controlplane.findings.items import InboxItem
from controlplane.platform.queues.messages import MAX_RECEIVES, Queue
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from controlplane.projects.items import ProjectItem
from finding_intake.app import handler
from tests.functional.projects.builders import make_project
from tests.support.sqs import FakeSqs
from tests.support.world import Company

URL, DEAD_LETTERS = Queue.FINDING_INTAKE.url, Queue.FINDING_INTAKE.dead_letters_url
AT = "2026-03-04T05:00:00Z"


class Intake:
    """The queue with its worker, and a company with a project, which messages are about."""

    def __init__(self, sqs: FakeSqs, company: Company) -> None:
        self.sqs, self.company = sqs, company
        self.project: ProjectItem = make_project(company)

    def detection(self, **fields: Any) -> dict[str, Any]:
        """Returns a message that reports a vendor on the project."""
        return {
            "kind": "runtime-vendor-detection",
            "version": 1,
            "projectId": self.project.project_id,
            "vendorId": "segment",
            "name": "Segment",
            "domain": "cdn.segment.com",
            "observedAt": AT,
            **fields,
        }

    def advisory(self, **fields: Any) -> dict[str, Any]:
        return {
            "kind": "advisory",
            "version": 1,
            "organizationId": self.company.organization_id,
            "advisoryId": "ADV-2026-014",
            "title": "Consent records lack the policy's version",
            "publishedAt": AT,
            **fields,
        }

    def send(self, *messages: dict[str, Any] | str) -> None:
        """Puts messages on the queue."""
        for message in messages:
            body = message if isinstance(message, str) else json.dumps(message)
            self.sqs.send_message(QueueUrl=URL, MessageBody=body)

    def work(self) -> None:
        """Delivers each message that is due once."""
        for letter in self.sqs.due(URL):
            self.sqs.deliver(letter, handler, DEAD_LETTERS)

    def take(self, *messages: dict[str, Any] | str) -> None:
        """Sends and delivers messages."""
        self.send(*messages)
        self.work()

    def detect(self, **fields: Any) -> None:
        self.take(self.detection(**fields))

    def use_up(self, *messages: dict[str, Any] | str) -> None:
        """Sends messages, and delivers them until no retries are left."""
        self.send(*messages)
        for _ in range(MAX_RECEIVES):
            for letter in self.sqs.at(URL):
                self.sqs.deliver(letter, handler, DEAD_LETTERS)

    def decide(self, status: Any) -> None:
        """Gives the only finding this status."""
        item = InboxItem.from_item(self.item)
        inbox.change_status(item, status, item.version, self.company.owner.user_id, None)

    @property
    def letters(self) -> tuple[int, list[str]]:
        """Returns how many messages wait, and the reasons of the dead letters."""
        return len(self.sqs.at(URL)), [reason for _, reason in self.dead]

    @property
    def dead(self) -> list[tuple[str, str]]:
        """Returns the body and reason of each dead letter."""
        letters = self.sqs.at(DEAD_LETTERS)
        return [(letter.body, letter.attributes["reason"]["StringValue"]) for letter in letters]

    @property
    def vendors(self) -> list[dict[str, Any]]:
        organization_id, local = self.project.project_id.location
        pk, prefix = keys.organization_pk(organization_id), keys.vendor_prefix(local)
        return table.query(pk, prefix=prefix, consistent=True).items

    @property
    def vendor(self) -> dict[str, Any]:
        (only,) = self.vendors
        return only

    @property
    def items(self) -> list[dict[str, Any]]:
        """Returns the inbox items as stored."""
        pk = keys.organization_pk(self.company.organization_id)
        return table.query(pk, prefix=keys.INBOX_PREFIX, consistent=True).items

    @property
    def item(self) -> dict[str, Any]:
        (only,) = self.items
        return only


def pages(stored: dict[str, Any]) -> list[str]:
    """Returns the URLs of the evidence."""
    return [piece["url"] for piece in stored["evidence"]]


@pytest.fixture
def intake(sqs, world):
    sqs.visibility_seconds = 180
    return Intake(sqs, world.company())
