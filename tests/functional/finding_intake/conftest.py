"""The intake worker on each test's queue, and the items that it creates from messages."""

import json
from typing import Any

import pytest

from controlplane.queues.messages import MAX_RECEIVES, Queue
from controlplane.store import keys
from controlplane.store.project_items import ProjectItem
from controlplane.store.table import table
from finding_intake.app import handler
from tests.functional.projects.builders import make_project
from tests.support.sqs import FakeSqs
from tests.support.world import Company, World

URL, DEAD_LETTERS = Queue.FINDING_INTAKE.url, Queue.FINDING_INTAKE.dead_letters_url
AT = "2026-03-04T05:00:00Z"


class Intake:
    """The queue with its worker. Messages that the worker rejects are in `dead`."""

    def __init__(self, sqs: FakeSqs) -> None:
        self.sqs = sqs

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

    def use_up(self, *messages: dict[str, Any] | str) -> None:
        """Sends messages, and delivers them until no retries are left."""
        self.send(*messages)
        for _ in range(MAX_RECEIVES):
            for letter in self.sqs.at(URL):
                self.sqs.deliver(letter, handler, DEAD_LETTERS)

    @property
    def waiting(self) -> int:
        return len(self.sqs.at(URL))

    @property
    def dead(self) -> list[tuple[str, str]]:
        """Returns the body and reason of each dead letter."""
        letters = self.sqs.at(DEAD_LETTERS)
        return [(letter.body, letter.attributes["reason"]["StringValue"]) for letter in letters]


@pytest.fixture
def intake(sqs: FakeSqs) -> Intake:
    sqs.visibility_seconds = 180
    return Intake(sqs)


@pytest.fixture
def company(world: World) -> Company:
    return world.company()


@pytest.fixture
def project(company: Company) -> ProjectItem:
    return make_project(company)


def detection(project: ProjectItem, **fields: Any) -> dict[str, Any]:
    """Returns a message that reports a vendor on the project."""
    return {
        "kind": "runtime-vendor-detection",
        "version": 1,
        "projectId": project.project_id,
        "vendorId": "segment",
        "name": "Segment",
        "domain": "cdn.segment.com",
        "observedAt": AT,
        **fields,
    }


def advisory(company: Company, **fields: Any) -> dict[str, Any]:
    return {
        "kind": "advisory",
        "version": 1,
        "organizationId": company.organization_id,
        "advisoryId": "ADV-2026-014",
        "title": "Consent records lack the policy's version",
        "publishedAt": AT,
        **fields,
    }


def vendors_of(project: ProjectItem) -> list[dict[str, Any]]:
    organization_id, local = project.project_id.location
    return table.query(keys.organization_pk(organization_id), prefix=keys.vendor_prefix(local), consistent=True).items


def items_of(company: Company) -> list[dict[str, Any]]:
    """Returns the inbox items as stored."""
    page = table.query(keys.organization_pk(company.organization_id), prefix=keys.INBOX_PREFIX, consistent=True)
    return page.items
