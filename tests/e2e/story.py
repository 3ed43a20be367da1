"""The story of the deployed product, from the first sign-in to the last finding.

Each step is a fixture that depends on the earlier ones and keeps its results for the tests. So any test can run alone,
and if a step fails, every test that depends on it names the step. People use the pages and the API, and steps that only
an operator can take use assent-ops: nothing bypasses the product.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from local.github import setup
from tests.e2e.deployment import ROOT, Stack
from tests.e2e.external import ExternalServices
from tests.e2e.people import Caller, Device, Operator, Person
from tests.support.api import Reply
from tests.support.browser import text_of
from tests.support.github_faults import Fault

ORIGIN = "shop.example.com"
UNLOCK_CREDITS = 50
# The code host's response to a client that it throttles.
LIMITED = Fault(429, {"Retry-After": "1"}, {"message": "You have exceeded a secondary rate limit."})
# What a worker has to leave to others waits for the sweep, which runs every minute.
_PATIENCE_SECONDS = 150


def eventually[T](poll: Callable[[], T | None], what: str, stack: Stack) -> T:
    """Polls `poll` until it returns something, because workers run asynchronously."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        found = poll()
        if found is not None:
            return found
        time.sleep(0.3)
    raise AssertionError(f"within {_PATIENCE_SECONDS} s: {what} didn't happen\n{stack.errors()}")


@pytest.fixture(scope="session")
def operator(stack: Stack) -> Operator:
    return Operator(stack)


@pytest.fixture(scope="session")
def ada(stack: Stack) -> Person:
    """Signs Ada in for the first time."""
    person = Person(stack, "ada@shop.example.com", "Ada Lovelace")
    person.sign_in("/organizations")
    return person


@dataclass
class ApprovedDevice:
    """A device that Ada approved, with the responses it got on the way."""

    device: Device
    waiting: Reply
    review: str
    refreshed: Reply


@pytest.fixture(scope="session")
def approved_device(stack: Stack, ada: Person) -> ApprovedDevice:
    device = Device(stack, "Ada's laptop")
    waiting = device.poll()
    ada.open(200, device.link)
    review = text_of(ada.press(200, "Continue"))
    ada.press(200, "Approve")
    device.redeem()
    return ApprovedDevice(device, waiting, review, device.refresh())


@pytest.fixture(scope="session")
def call(stack: Stack, approved_device: ApprovedDevice) -> Caller:
    """Returns a caller that uses the API as Ada's device."""
    return Caller(stack, approved_device.device.access_token)


@dataclass
class Organization:
    """Ada's organization: the credits that it was created with, and its state on the paid plan."""

    organization_id: str
    slug: str
    founded: dict[str, Any]
    raised: dict[str, Any]


@pytest.fixture(scope="session")
def organization(call: Caller, operator: Operator) -> Organization:
    """Creates an organization as Ada. The operator then puts it on the first plan that includes the API."""
    made = call(201, "POST", "/v1/organizations", {"name": "Shop"}, **{"Idempotency-Key": "found-shop"})
    founded = call(200, "GET", f"/v1/billing?organizationId={made['id']}")
    operator("plan", "set", made["slug"], "starter")
    return Organization(made["id"], made["slug"], founded, call(200, "GET", "/v1/billing"))


@pytest.fixture(scope="session")
def grace(stack: Stack, call: Caller, organization: Organization) -> Person:
    """Grace was invited before she had an account, signed in, and accepted."""
    call(201, "POST", "/v1/invitations", {"email": "Grace@shop.example.com", "role": "admin"})
    person = Person(stack, "grace@shop.example.com", "Grace Hopper")
    shown = text_of(person.sign_in("/invitations"))
    assert "Shop" in shown, shown
    joined = text_of(person.press_and_follow("Accept"))
    assert "You are now an admin of Shop." in joined, joined
    return person


@pytest.fixture(scope="session")
def project(call: Caller, organization: Organization) -> dict[str, Any]:
    region = call(200, "GET", "/v1/regions")[0]["id"]
    body = {"name": "Web shop", "region": region, "websites": [ORIGIN, "*.shop.example.com", "shop.example.org"]}
    made: dict[str, Any] = call(201, "POST", "/v1/projects", body, **{"Idempotency-Key": "web-shop"})
    return made


@pytest.fixture(scope="session")
def key(call: Caller, organization: Organization) -> str:
    """Returns the secret of an API key."""
    secret: str = call(201, "POST", "/v1/api-keys", {"name": "deploy"}, **{"Idempotency-Key": "deploy"})["key"]
    return secret


@dataclass
class Reported:
    """The responses to the same report, sent twice on one day."""

    first: Reply
    again: Reply


@pytest.fixture(scope="session")
def reported(stack: Stack, key: str) -> Reported:
    def report() -> Reply:
        body = {"category": "docs_mismatch", "message": "The reference lacks an example of a wildcard website."}
        return stack.call("POST", "/v1/feedback", key, json_body=body)

    first, again = report(), report()
    if again.status == 201:  # The UTC day changed in between: this is the new day's first
        first, again = again, report()
    return Reported(first, again)


@pytest.fixture(scope="session")
def repository(
    operator: Operator, organization: Organization, project: dict[str, Any], external: ExternalServices
) -> str:
    """Returns the ID of the demo repository, connected and linked to the project."""
    owner, name = setup.DEMO_OWNER, setup.DEMO_NAME
    installation = str(setup.installation_id(owner))
    connected = operator(
        *("repository", "connect", organization.slug, f"{owner}/{name}"),
        *("--installation", installation, "--url", f"{external.url}/{owner}/{name}"),
    )
    repository_id: str = connected["repositoryId"]
    operator("repository", "link", repository_id, project["id"])
    return repository_id


class Scans:
    """The scans of a repository, as their requester sees them."""

    def __init__(self, call: Caller, repository_id: str) -> None:
        self._call = call
        self._repository_id = repository_id

    def ask(self) -> dict[str, Any]:
        """Requests a scan. Returns the first response."""
        started: dict[str, Any] = self._call(202, "POST", "/v1/code-audit/scans", {"repositoryId": self._repository_id})
        return started

    def start(self) -> str:
        """Requests a scan and waits until it starts. Returns its ID."""
        started = self.ask()
        if started["status"] == "starting":
            return self.wait_for_start(started["preparationId"])
        scan_id: str = started["scan"]["id"]
        return scan_id

    def wait_for_answer(self, preparation_id: str, before_poll: Callable[[], object] = lambda: None) -> dict[str, Any]:
        """Waits for the outcome of a scan request."""

        def poll() -> dict[str, Any] | None:
            before_poll()
            target = f"/v1/code-audit/scan-requests/{preparation_id}?repositoryId={self._repository_id}"
            answer: dict[str, Any] = self._call(200, "GET", target)
            return None if answer["status"] == "starting" else answer

        return eventually(poll, "the outcome of a request for a scan", self._call.stack)

    def wait_for_start(self, preparation_id: str, before_poll: Callable[[], object] = lambda: None) -> str:
        answer = self.wait_for_answer(preparation_id, before_poll)
        assert answer["status"] == "started", answer
        scan_id: str = answer["scan"]["id"]
        return scan_id

    def wait_for_end(self, scan_id: str, before_poll: Callable[[], object] = lambda: None) -> dict[str, Any]:
        def poll() -> dict[str, Any] | None:
            before_poll()
            scan: dict[str, Any] = self._call(200, "GET", f"/v1/code-audit/scans/{scan_id}")
            return scan if scan["status"] not in {"queued", "running"} else None

        return eventually(poll, "the end of a scan", self._call.stack)


@pytest.fixture(scope="session")
def scans(call: Caller, repository: str) -> Scans:
    return Scans(call, repository)


@pytest.fixture(scope="session")
def scan(scans: Scans) -> dict[str, Any]:
    """Returns the first scan, which the deployed workers took from the queues and finished."""
    return scans.wait_for_end(scans.start())


@dataclass
class Preview:
    """The first scan's results before it was unlocked."""

    issues: dict[str, Any]
    inbox: list[dict[str, Any]]


@pytest.fixture(scope="session")
def preview(call: Caller, scan: dict[str, Any]) -> Preview:
    return Preview(call(200, "GET", f"/v1/code-audit/scans/{scan['id']}/issues"), list_code_findings(call))


def list_code_findings(call: Caller) -> list[dict[str, Any]]:
    return [item for item in call(200, "GET", "/v1/inbox?limit=100") if item["source"] == "code-audit"]


@dataclass
class Unlock:
    """The attempts to unlock the findings: without credits, with credits, and once more."""

    refused: Reply
    first: dict[str, Any]
    again: dict[str, Any]
    balance: int


@pytest.fixture(scope="session")
def unlock(
    call: Caller, operator: Operator, organization: Organization, scan: dict[str, Any], preview: Preview
) -> Unlock:
    target = f"/v1/code-audit/scans/{scan['id']}/unlock"
    refused = call.ask(402, "POST", target)
    operator("credits", "add", organization.slug, str(UNLOCK_CREDITS + 1))
    first, again = call(200, "POST", target), call(200, "POST", target)
    return Unlock(refused, first, again, call(200, "GET", "/v1/billing")["credits"]["balance"])


@pytest.fixture(scope="session")
def findings(stack: Stack, call: Caller, scan: dict[str, Any], unlock: Unlock) -> list[dict[str, Any]]:
    """Returns the inbox with all findings of the scan, including those published after the unlock."""

    def poll() -> list[dict[str, Any]] | None:
        found = list_code_findings(call)
        return found if len(found) == scan["issueCount"] else None

    return eventually(poll, "every finding in the inbox", stack)


@dataclass
class Decision:
    """A dismissed finding, and the response to a second decision on the same version."""

    changed: dict[str, Any]
    refused: Reply


@pytest.fixture(scope="session")
def decision(call: Caller, findings: list[dict[str, Any]]) -> Decision:
    target = f"/v1/inbox/{findings[0]['id']}"
    item = call(200, "GET", target)
    body = {"status": "dismissed", "version": item["version"], "reason": "Loaded by the consent manager itself"}
    changed = call(200, "PATCH", target, body)
    return Decision(changed, call.ask(409, "PATCH", target, {"status": "accepted", "version": item["version"]}))


@dataclass
class Opened:
    """An item whose issue was requested twice."""

    first: dict[str, Any]
    again: dict[str, Any]


@pytest.fixture(scope="session")
def issue(stack: Stack, call: Caller, findings: list[dict[str, Any]], external: ExternalServices) -> Opened:
    """Returns the issue that the deployed worker created after the code host throttled it."""
    external.github.faults.add("POST /repos/{owner}/{repo}/issues", LIMITED)
    target = f"/v1/inbox/{findings[-1]['id']}/github-issue"

    def poll() -> dict[str, Any] | None:
        # A throttled message is sent by the sweep once it is due. The next run of the schedule may be a minute away.
        stack.invoke("SweeperFunction", "sweeper_sweep")
        reply = stack.call("POST", target, call.token)
        if reply.status == 409 and reply.error["details"] == {"status": "creation_pending"}:
            return None  # on a slow machine, the request's wait ends first: the response says to retry
        assert reply.status == 201, f"{reply.text}\n{stack.errors()}"
        item: dict[str, Any] = reply.data
        return item

    return Opened(eventually(poll, "an issue at the code host", stack), call(201, "POST", target))


def send_event(stack: Stack, name: str, **changes: Any) -> None:
    """Sends the message in events/<name>.json to the intake, with the IDs of existing items."""
    event = json.loads((ROOT / "events" / f"{name}.json").read_text(encoding="utf-8"))
    message = {**json.loads(event["Records"][0]["body"]), **changes}
    url = stack.outputs["FindingIntakeQueueUrl"]
    stack.client("sqs").send_message(QueueUrl=url, MessageBody=json.dumps(message))


def find_item(call: Caller, source: str) -> dict[str, Any] | None:
    return next((item for item in call(200, "GET", "/v1/inbox?limit=100") if item["source"] == source), None)


@pytest.fixture(scope="session")
def detection(stack: Stack, call: Caller, project: dict[str, Any]) -> dict[str, Any]:
    """Returns the inbox item of a vendor that was detected at runtime."""
    send_event(stack, "finding_intake_runtime_vendor_detection", projectId=project["id"])
    found = eventually(lambda: find_item(call, "runtime"), "the runtime detection in the inbox", stack)
    item: dict[str, Any] = call(200, "GET", f"/v1/inbox/{found['id']}")
    return item


@pytest.fixture(scope="session")
def advisory(stack: Stack, call: Caller, organization: Organization, project: dict[str, Any]) -> dict[str, Any]:
    """Returns the inbox item of an advisory."""
    ids = {"organizationId": organization.organization_id, "projectId": project["id"]}
    send_event(stack, "finding_intake_advisory", **ids)
    return eventually(lambda: find_item(call, "advisory"), "the advisory in the inbox", stack)


@pytest.fixture(scope="session")
def vendor_decision(call: Caller, detection: dict[str, Any]) -> dict[str, Any]:
    vendor = detection["runtimeVendor"]
    target = f"/v1/projects/{vendor['projectId']}/vendors/{vendor['vendorId']}/decision"
    decided: dict[str, Any] = call(200, "POST", target, {"decision": "approve"})
    return decided
