"""Failures in the story: functions die, the code host throttles workers, and messages are invalid.

The items that a dead function would have written are written here through the store.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from controlplane.code_host import repositories
from controlplane.findings import issue_attempts
from controlplane.platform.core import clock
from controlplane.platform.core.ids import InboxItemId, Located, ProjectId, RepositoryId
from controlplane.platform.queues import messages, outbox
from controlplane.platform.queues.messages import MAX_RECEIVES, PublishScan, Queue
from controlplane.platform.queues.outbox import Entry
from controlplane.platform.table.table import table
from controlplane.scans import requests
from local.github import setup
from local.template import load_template
from tests.e2e.deployment import Invoked, Stack
from tests.e2e.external import ExternalServices
from tests.e2e.people import Caller, Operator
from tests.e2e.story import LIMITED, Organization, Scans, eventually
from tests.support.github_faults import Fault
from tests.support.table import PREPARED
from tests.support.world import World

QUEUES = [name for name, it in load_template()["Mappings"]["Functions"].items() if "VisibilityTimeout" in it]


@contextmanager
def minutes_ago(minutes: int) -> Iterator[None]:
    """Sets the clock back for writes in the block."""
    then = clock.now() - 60 * minutes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "source", lambda: then)
        yield


def request_scan(repository_id: str) -> tuple[str, Entry]:
    """Writes a scan request as the API does, without sending its message. Returns the request's ID and message."""
    repository = repositories.get_repository(RepositoryId.stored(repository_id))
    request, message = requests.create_request(repository, repository.links[0], requested_by="usr_nobody")
    return request.request_id, message


@dataclass
class UnsentMessage:
    """The writes of functions that died before they sent a message: a scan request and an issue request."""

    request_id: str
    item_id: str


@pytest.fixture(scope="session")
def unsent_message(
    world: World, call: Caller, scan: dict[str, Any], findings: list[dict[str, Any]], external: ExternalServices
) -> UnsentMessage:
    """Makes the code host throttle the workers of that scan for all the calls of one delivery."""
    for operation in ("GET /repos/{owner}/{repo}/branches/{branch}", "GET /repos/{owner}/{repo}/tarball/{ref}"):
        external.github.faults.add(operation, LIMITED, LIMITED, LIMITED)
    user_id, item_id = call(200, "GET", "/v1/me")["principal"]["userId"], findings[1]["id"]
    with minutes_ago(5):
        request_id, _ = request_scan(scan["repositoryId"])
        table.put(messages.entry(Queue.SCAN_EXECUTION, PublishScan(scan_id=scan["id"])).leg, PREPARED)
        issue_attempts.begin_attempt(InboxItemId.stored(item_id), user_id)
    return UnsentMessage(request_id, item_id)


@dataclass
class UnfinishedDeletion:
    """A scan request whose message was lost."""

    request_id: str
    repository_id: str


@pytest.fixture(scope="session")
def unfinished_deletion(
    world: World, operator: Operator, organization: Organization, project: dict[str, Any]
) -> UnfinishedDeletion:
    connect = ("repository", "connect", organization.slug, f"{setup.DEMO_OWNER}/forgotten", "--installation", "1")
    repository_id: str = operator(*connect)["repositoryId"]
    operator("repository", "link", repository_id, project["id"])
    with minutes_ago(6 * 24 * 60):
        request_id, message = request_scan(repository_id)
    outbox.delete_entry(message)
    return UnfinishedDeletion(request_id, repository_id)


@pytest.fixture(scope="session")
def deleted_project(world: World, call: Caller, organization: Organization) -> Located:
    """Creates a project with a decided vendor, and deletes it."""
    body = {"name": "Magazine", "region": "eu-central", "websites": ["magazine.example.com"]}
    project_id = call(201, "POST", "/v1/projects", body)["id"]
    call(200, "POST", f"/v1/projects/{project_id}/vendors/segment/decision", {"decision": "ignore"})
    call(200, "DELETE", f"/v1/projects/{project_id}")
    return ProjectId.stored(project_id).location


@pytest.fixture(scope="session")
def swept(
    stack: Stack, unsent_message: UnsentMessage, unfinished_deletion: UnfinishedDeletion, deleted_project: Located
) -> Invoked:
    """Runs the sweeper. It also runs every minute, so it may have done some of its work already."""
    return stack.invoke("SweeperFunction", "sweeper_sweep")


@pytest.fixture(scope="session")
def second_scan(stack: Stack, scans: Scans, unsent_message: UnsentMessage, swept: Invoked) -> dict[str, Any]:
    """Returns the scan that the sweeper sent again and whose workers the code host throttled.

    A throttled message is sent by the sweep once it is due. The next run of the schedule may be a minute away.
    """

    def sweep() -> None:
        stack.invoke("SweeperFunction", "sweeper_sweep")

    return scans.wait_for_end(scans.wait_for_start(unsent_message.request_id, sweep), sweep)


@pytest.fixture(scope="session")
def late_issue(stack: Stack, call: Caller, unsent_message: UnsentMessage, swept: Invoked) -> dict[str, Any]:
    """Returns the issue whose message was never sent."""

    def poll() -> dict[str, Any] | None:
        found: dict[str, Any] | None = call(200, "GET", f"/v1/inbox/{unsent_message.item_id}")["githubIssue"]
        return found

    return eventually(poll, "the issue that no worker was told of", stack)


@pytest.fixture(scope="session")
def refused_scan(scans: Scans, second_scan: dict[str, Any], external: ExternalServices) -> dict[str, Any]:
    """Returns the outcome of a scan request for a deleted branch."""
    external.github.faults.add("GET /repos/{owner}/{repo}/branches/{branch}", Fault(404))
    answer = scans.ask()
    return scans.wait_for_answer(answer["preparationId"]) if answer["status"] == "starting" else answer


@pytest.fixture(scope="session")
def dead_letters(stack: Stack) -> dict[str, str]:
    """Returns why each worker dead-lettered a message that no retry can process, by queue.

    SQS moves those of audits, without a reason: their worker may send reports alone.
    """
    sqs, body = stack.client("sqs"), json.dumps({"kind": "unknown", "version": 1})
    for queue in QUEUES:
        waiting = stack.physical_ids[f"{queue}Queue"]
        with paused(stack, stack.physical_ids[f"{queue}Messages"]):
            sqs.send_message(QueueUrl=waiting, MessageBody=body)
            for _ in range(MAX_RECEIVES - 1):  # The worker's receive is the last one.
                assert receive(stack, queue, body)

    def find(queue: str) -> str:
        def poll() -> str | None:
            answer = sqs.receive_message(
                QueueUrl=stack.physical_ids[f"{queue}DeadLetters"], MessageAttributeNames=["All"]
            )
            # Other tests have dead letters too.
            found = [it for it in answer.get("Messages", []) if it["Body"] == body]
            if found and queue == "WebsiteAudits":
                return "none"
            return found[0]["MessageAttributes"]["reason"]["StringValue"] if found else None

        return eventually(poll, f"a message among the dead letters of {queue}", stack)

    return {queue: find(queue) for queue in QUEUES}


def receive(stack: Stack, queue: str, body: str) -> bool:
    """Receives the message with that body, as a worker does that then dies. Returns False if the queue lacks it.

    Messages of other tests, which may be in the queue too, reach their worker some seconds later.
    """
    sqs, waiting = stack.client("sqs"), stack.physical_ids[f"{queue}Queue"]
    answer = sqs.receive_message(QueueUrl=waiting, MaxNumberOfMessages=10, VisibilityTimeout=5)
    found = [message["ReceiptHandle"] for message in answer.get("Messages", []) if message["Body"] == body]
    for handle in found:
        sqs.change_message_visibility(QueueUrl=waiting, ReceiptHandle=handle, VisibilityTimeout=0)
    return bool(found)


@contextmanager
def paused(stack: Stack, mapping: str) -> Iterator[None]:
    """Stops the worker from receiving messages while the block runs."""
    client = stack.client("lambda")

    def enable(*, enabled: bool) -> None:
        client.update_event_source_mapping(UUID=mapping, Enabled=enabled)
        state = "Enabled" if enabled else "Disabled"
        what = f"a mapping that is {state}"
        eventually(lambda: client.get_event_source_mapping(UUID=mapping)["State"] == state or None, what, stack)

    enable(enabled=False)
    try:
        yield
    finally:
        enable(enabled=True)
