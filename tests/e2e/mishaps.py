"""What goes wrong in the story: functions die, the code host turns workers away, messages make no sense.

What a function that died had written is written here through the store, as it would have.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from controlplane import clock, ids, queues
from controlplane.ids import Located
from controlplane.queues import PrepareScan, PublishScan, Queue
from controlplane.store import issue_attempts, outbox, repositories, scan_requests
from controlplane.store.outbox import Entry
from controlplane.store.table import table
from local.github import setup
from local.github.faults import Fault
from tests.e2e.deployment import Invoked, Stack
from tests.e2e.outside import Outside
from tests.e2e.people import Caller, Operator
from tests.e2e.story import LIMITED, Organization, Scans, eventually
from tests.support.world import World

QUEUES = ("ScanPreparation", "ScanExecution", "IssueCreation", "FindingIntake")


@contextmanager
def minutes_ago(minutes: int) -> Iterator[None]:
    """What is written in the block was written then."""
    then = clock.now() - 60 * minutes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "source", lambda: then)
        yield


def request_scan(repository_id: str) -> tuple[str, Entry]:
    """What the API writes when it is asked for a scan, without the message being sent: the request, the message."""
    repository = repositories.get_repository(repository_id)
    request_id = scan_requests.new_request_id(repository.organization_id)
    message = queues.entry(Queue.SCAN_PREPARATION, PrepareScan(request_id=request_id))
    link = repository.links[0]
    scan_requests.create_request(repository, link, request_id, message=message, requested_by="usr_nobody")
    return request_id, message


@dataclass
class Unsent:
    """What functions wrote, and died before they told a worker: a request for a scan, and one for an issue."""

    request_id: str
    item_id: str


@pytest.fixture(scope="session")
def unsent(
    world: World, call: Caller, scan: dict[str, Any], findings: list[dict[str, Any]], outside: Outside
) -> Unsent:
    """The code host will turn the workers away that scan, as often as one delivery asks it."""
    for operation in ("GET /repos/{owner}/{repo}/branches/{branch}", "GET /repos/{owner}/{repo}/tarball/{ref}"):
        outside.github.faults.add(operation, LIMITED, LIMITED, LIMITED)
    user_id, item_id = call(200, "GET", "/v1/me")["principal"]["userId"], findings[1]["id"]
    with minutes_ago(5):
        request_id, _ = request_scan(scan["repositoryId"])
        table.put(queues.entry(Queue.SCAN_EXECUTION, PublishScan(scan_id=scan["id"])).leg)
        issue_attempts.begin_attempt(item_id, user_id)
    return Unsent(request_id, item_id)


@dataclass
class Forgotten:
    """A request for a scan whose message was lost."""

    request_id: str
    repository_id: str


@pytest.fixture(scope="session")
def forgotten(world: World, operator: Operator, organization: Organization, project: dict[str, Any]) -> Forgotten:
    connect = ("repository", "connect", organization.slug, f"{setup.DEMO_OWNER}/forgotten", "--installation", "1")
    repository_id: str = operator(*connect)["repositoryId"]
    operator("repository", "link", repository_id, project["id"])
    with minutes_ago(6 * 24 * 60):
        request_id, message = request_scan(repository_id)
    outbox.delete_entry(message)
    return Forgotten(request_id, repository_id)


@pytest.fixture(scope="session")
def deleted_project(world: World, call: Caller, organization: Organization) -> Located:
    """A project that was deleted, and had a vendor that was decided about."""
    body = {"name": "Magazine", "region": "eu-central", "websites": ["magazine.example.com"]}
    project_id = call(201, "POST", "/v1/projects", body)["id"]
    call(200, "POST", f"/v1/projects/{project_id}/vendors/segment/decision", {"decision": "ignore"})
    call(200, "DELETE", f"/v1/projects/{project_id}")
    located = ids.locate(ids.PROJECT, project_id)
    assert located is not None
    return located


@pytest.fixture(scope="session")
def swept(stack: Stack, unsent: Unsent, forgotten: Forgotten, deleted_project: Located) -> Invoked:
    """The sweeper has run, as it does every minute: here it may have done some of its work before it is called."""
    return stack.invoke("SweeperFunction", "sweeper_sweep")


@pytest.fixture(scope="session")
def second_scan(scans: Scans, unsent: Unsent, swept: Invoked) -> dict[str, Any]:
    """The scan that the sweeper had to send on, and whose workers the code host had turned away."""
    return scans.wait_for_end(scans.wait_for_start(unsent.request_id))


@pytest.fixture(scope="session")
def late_issue(stack: Stack, call: Caller, unsent: Unsent, swept: Invoked) -> dict[str, Any]:
    """The issue that no worker had been told of."""

    def look() -> dict[str, Any] | None:
        found: dict[str, Any] | None = call(200, "GET", f"/v1/inbox/{unsent.item_id}")["githubIssue"]
        return found

    return eventually(look, "the issue that no worker was told of", stack)


@pytest.fixture(scope="session")
def refused_scan(scans: Scans, second_scan: dict[str, Any], outside: Outside) -> dict[str, Any]:
    """What became of a request for a scan of a branch that is gone."""
    outside.github.faults.add("GET /repos/{owner}/{repo}/branches/{branch}", Fault(404))
    answer = scans.ask()
    return scans.wait_for_answer(answer["preparationId"]) if answer["status"] == "starting" else answer


@dataclass
class Buried:
    """A message among the dead letters of a queue, as a worker put it there."""

    body: str
    reason: str


def take_dead_letter(stack: Stack, queue: str, body: str) -> Buried | None:
    """The message with that body among the queue's dead letters, which are left there."""
    answer = stack.client("sqs").receive_message(
        QueueUrl=stack.physical_ids[f"{queue}DeadLetters"],
        MaxNumberOfMessages=10,
        MessageAttributeNames=["All"],
        VisibilityTimeout=0,
    )
    for message in answer.get("Messages", []):
        if message["Body"] == body:
            attributes = message.get("MessageAttributes", {})
            return Buried(body, attributes.get("reason", {}).get("StringValue", ""))
    return None


@pytest.fixture(scope="session")
def buried(stack: Stack) -> dict[str, Buried]:
    """What became of a message to each queue that no repetition mends."""
    sqs, body = stack.client("sqs"), json.dumps({"kind": "unknown", "version": 1})
    for queue in QUEUES:
        sqs.send_message(QueueUrl=stack.physical_ids[f"{queue}Queue"], MessageBody=body)

    def find(queue: str) -> Buried:
        what = f"a message among the dead letters of {queue}"
        return eventually(lambda: take_dead_letter(stack, queue, body), what, stack)

    return {queue: find(queue) for queue in QUEUES}
