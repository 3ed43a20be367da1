"""The whole product as it was deployed, from the first sign-in to the last sign-out, in chapters.

What happens is done by fixtures, each of which stands on those before it; the tests of a chapter look at what came of
it. So one chapter can be run alone, and where a step fails, everything that needs it says which one it was. People use
the pages and the API; what only an operator can do is done with assent-ops; nothing is written past the product.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from controlplane import clock, ids, queues
from controlplane.ids import Located
from controlplane.queues import PrepareScan, PublishScan, Queue
from controlplane.store import issue_attempts, keys, outbox, repositories, scan_requests
from controlplane.store.outbox import Entry
from controlplane.store.table import table
from local.github import setup
from local.github.faults import Fault
from tests.e2e.deployment import ROOT, Invoked, Stack
from tests.e2e.outside import Outside
from tests.e2e.people import Caller, Device, Operator, Person
from tests.support.api import Reply
from tests.support.browser import text_of
from tests.support.template import resources
from tests.support.world import ALL_SCOPES, World

FUNCTIONS = resources("AWS::Serverless::Function")
ORIGIN = "shop.example.com"
UNLOCK_CREDITS = 50
LIMITED = Fault(429, {"Retry-After": "1"}, {"message": "You have exceeded a secondary rate limit."})
_PATIENCE_SECONDS = 60


def eventually[T](look: Callable[[], T | None], what: str, stack: Stack) -> T:
    """What `look` finds, as soon as it finds something: for what workers do in their own time."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        found = look()
        if found is not None:
            return found
        time.sleep(0.3)
    raise AssertionError(f"within {_PATIENCE_SECONDS} s not seen: {what}\n{stack.errors()}")


# People


@pytest.fixture(scope="module")
def operator(stack: Stack) -> Operator:
    return Operator(stack)


@pytest.fixture(scope="module")
def ada(stack: Stack) -> Person:
    """Ada has signed in for the first time."""
    person = Person(stack, "ada@shop.example.com", "Ada Lovelace")
    person.sign_in("/organizations")
    return person


class TestSignIn:
    def test_leads_back_to_the_page_that_was_asked_for(self, stack: Stack, ada: Person):
        person = Person(stack, "mary@example.com", "Mary Somerville")
        assert "Organizations" in text_of(person.sign_in("/organizations"))

    def test_a_session_counts_as_its_person_at_the_api_too(self, stack: Stack, ada: Person):
        principal = Caller(stack, ada.browser.secret)(200, "GET", "/v1/me")["principal"]
        assert principal["type"] == "session"

    def test_a_second_sign_in_finds_the_same_account(self, stack: Stack, ada: Person):
        def user_id() -> str:
            found: str = Caller(stack, ada.browser.secret)(200, "GET", "/v1/me")["principal"]["userId"]
            return found

        before = user_id()
        ada.sign_in("/organizations")
        assert user_id() == before

    def test_a_form_without_the_session_s_token_is_refused(self, ada: Person):
        ada.open(200, "/device")
        reply = ada.browser.submit("/live/device", form_token="forged")
        assert reply.status == 403, reply.text


@dataclass
class LetIn:
    """A device that Ada has let in: what it was told meanwhile."""

    device: Device
    waiting: Reply
    review: str
    refreshed: Reply


@pytest.fixture(scope="module")
def let_in(stack: Stack, ada: Person) -> LetIn:
    device = Device(stack, "Ada's laptop")
    waiting = device.poll()
    ada.open(200, device.link)
    review = text_of(ada.submit(200, "/device"))
    ada.submit(200, "/device/approve")
    device.redeem()
    return LetIn(device, waiting, review, device.refresh())


@pytest.fixture(scope="module")
def call(stack: Stack, let_in: LetIn) -> Caller:
    """Ada's device calls the API."""
    return Caller(stack, let_in.device.access_token)


class TestDevice:
    def test_waits_until_a_person_has_decided(self, let_in: LetIn):
        assert (let_in.waiting.status, let_in.waiting.code) == (409, "CONFLICT")

    def test_is_shown_to_the_person_with_what_it_asks_for(self, let_in: LetIn):
        assert let_in.device.user_code in let_in.review
        assert "Ada's laptop" in let_in.review
        assert "projects.write" in let_in.review

    def test_refreshes_its_token(self, let_in: LetIn):
        assert let_in.refreshed.status == 200, let_in.refreshed.text

    def test_acts_as_the_person_with_every_scope(self, call: Caller):
        me = call(200, "GET", "/v1/me")
        assert me["principal"]["type"] == "oauth"
        assert me["scopes"] == ALL_SCOPES

    def test_loses_its_tokens_where_its_code_is_redeemed_twice(self, stack: Stack, ada: Person):
        device = Device(stack, "a copied laptop")
        device.approved_by(ada)
        device.redeem()
        assert device.poll().error["details"] == {"status": "used"}
        Caller(stack, device.access_token).ask(401, "GET", "/v1/me")


# An organization and its people


@dataclass
class Organization:
    """Ada's organization: what it paid for when it was founded, and what it pays for since."""

    organization_id: str
    slug: str
    founded: dict[str, Any]
    raised: dict[str, Any]


@pytest.fixture(scope="module")
def organization(call: Caller, operator: Operator) -> Organization:
    """Founded by Ada, and put on the first plan that has an API by the operator."""
    made = call(201, "POST", "/v1/organizations", {"name": "Shop"}, **{"Idempotency-Key": "found-shop"})
    founded = call(200, "GET", f"/v1/billing?organizationId={made['id']}")
    operator("plan", "set", made["slug"], "starter")
    return Organization(made["id"], made["slug"], founded, call(200, "GET", "/v1/billing"))


@pytest.fixture(scope="module")
def grace(stack: Stack, call: Caller, organization: Organization) -> Person:
    """Grace was invited before she had an account, signed in, and has accepted."""
    call(201, "POST", "/v1/invitations", {"email": "Grace@shop.example.com", "role": "admin"})
    person = Person(stack, "grace@shop.example.com", "Grace Hopper")
    assert "Shop" in text_of(person.sign_in("/invitations"))
    joined = person.submit(200, "/invitations/accept")
    assert "You are now a member of Shop, as admin." in text_of(joined)
    return person


class TestOrganization:
    def test_starts_on_the_free_plan(self, organization: Organization):
        assert organization.founded["plan"]["id"] == "free"

    def test_is_on_the_plan_that_the_operator_set(self, organization: Organization):
        assert organization.raised["plan"]["id"] == "starter"

    def test_has_who_accepted_the_invitation_as_a_member(self, call: Caller, organization: Organization, grace: Person):
        target = f"/v1/members?organizationId={organization.organization_id}"
        roles = {it["user"]["email"]: it["role"] for it in call(200, "GET", target)}
        assert roles[grace.email] == "admin"
        assert call(200, "GET", "/v1/invitations") == []

    def test_shares_its_slug_with_no_other(self, stack: Stack, organization: Organization, grace: Person):
        caller, headers = Caller(stack, grace.browser.secret), {"Idempotency-Key": "another-shop"}
        refused = caller.ask(409, "POST", "/v1/organizations", {"name": "Shop"}, **headers)
        assert organization.slug not in refused.error["details"]["suggestions"]
        # The refusal has kept no key: it is given again, and not a wait for the first request.
        assert caller.ask(409, "POST", "/v1/organizations", {"name": "Shop"}, **headers).error == refused.error

    def test_is_made_the_default_on_the_page_of_organizations(self, stack: Stack, grace: Person):
        Caller(stack, grace.browser.secret)(201, "POST", "/v1/organizations", {"name": "Aside"})
        assert "Aside" in text_of(grace.open(200, "/organizations"))
        assert "is saved as your default organization." in text_of(grace.submit(200, "/organizations"))


# Projects and keys


@pytest.fixture(scope="module")
def project(call: Caller, organization: Organization) -> dict[str, Any]:
    region = call(200, "GET", "/v1/regions")[0]["id"]
    body = {"name": "Web shop", "region": region, "websites": [ORIGIN, "*.shop.example.com", "shop.example.org"]}
    made: dict[str, Any] = call(201, "POST", "/v1/projects", body, **{"Idempotency-Key": "web-shop"})
    return made


@pytest.fixture(scope="module")
def key(call: Caller, organization: Organization) -> str:
    """The secret of an API key."""
    secret: str = call(201, "POST", "/v1/api-keys", {"name": "deploy"}, **{"Idempotency-Key": "deploy"})["key"]
    return secret


class TestProject:
    def test_has_its_websites_in_their_order(self, project: dict[str, Any]):
        assert [it["origin"] for it in project["websites"]] == [ORIGIN, "*.shop.example.com", "shop.example.org"]

    def test_is_found_with_an_api_key(self, stack: Stack, project: dict[str, Any], key: str):
        caller = Caller(stack, key)
        assert [it["projectId"] for it in caller(200, "GET", "/v1/projects")] == [project["id"]]
        consent = caller(200, "GET", f"/v1/projects/{project['id']}/consent")
        assert len(consent["trustedOrigins"]) == 3

    def test_is_where_its_address_on_the_pages_says(self, ada: Person, project: dict[str, Any]):
        assert "Web shop" in text_of(ada.open(200, project["dashboardUrl"]))


# A repository, its scans and their findings


@pytest.fixture(scope="module")
def repository(operator: Operator, organization: Organization, project: dict[str, Any], outside: Outside) -> str:
    """The id of the demo repository, connected and linked to the project."""
    owner, name = setup.DEMO_OWNER, setup.DEMO_NAME
    installation = str(setup.installation_id(owner))
    connected = operator(
        *("repository", "connect", organization.slug, f"{owner}/{name}"),
        *("--installation", installation, "--url", f"{outside.url}/{owner}/{name}"),
    )
    repository_id: str = connected["repositoryId"]
    operator("repository", "link", repository_id, project["id"])
    return repository_id


class Scans:
    """The scans of a repository, as who started them sees them."""

    def __init__(self, call: Caller, repository_id: str) -> None:
        self._call = call
        self._repository_id = repository_id

    def ask(self) -> dict[str, Any]:
        """Asks for a scan: the first answer."""
        started: dict[str, Any] = self._call(202, "POST", "/v1/code-audit/scans", {"repositoryId": self._repository_id})
        return started

    def start(self) -> str:
        """Asks for a scan, and waits until there is one: its id."""
        started = self.ask()
        if started["status"] == "starting":
            return self.wait_for_start(started["preparationId"])
        scan_id: str = started["scan"]["id"]
        return scan_id

    def wait_for_answer(self, preparation_id: str) -> dict[str, Any]:
        """What became of a request for a scan."""

        def look() -> dict[str, Any] | None:
            target = f"/v1/code-audit/scan-requests/{preparation_id}?repositoryId={self._repository_id}"
            answer: dict[str, Any] = self._call(200, "GET", target)
            return None if answer["status"] == "starting" else answer

        return eventually(look, "the outcome of a request for a scan", self._call.stack)

    def wait_for_start(self, preparation_id: str) -> str:
        answer = self.wait_for_answer(preparation_id)
        assert answer["status"] == "started", answer
        scan_id: str = answer["scan"]["id"]
        return scan_id

    def wait_for_end(self, scan_id: str) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            scan: dict[str, Any] = self._call(200, "GET", f"/v1/code-audit/scans/{scan_id}")
            return scan if scan["status"] not in {"queued", "running"} else None

        return eventually(look, "the end of a scan", self._call.stack)


@pytest.fixture(scope="module")
def scans(call: Caller, repository: str) -> Scans:
    return Scans(call, repository)


@pytest.fixture(scope="module")
def scan(scans: Scans) -> dict[str, Any]:
    """The first scan, which the deployed workers took from the queues and brought to its end."""
    return scans.wait_for_end(scans.start())


@dataclass
class Preview:
    """What the first scan showed before it was unlocked."""

    issues: dict[str, Any]
    inbox: list[dict[str, Any]]


@pytest.fixture(scope="module")
def preview(call: Caller, scan: dict[str, Any]) -> Preview:
    return Preview(call(200, "GET", f"/v1/code-audit/scans/{scan['id']}/issues"), list_code_findings(call))


def list_code_findings(call: Caller) -> list[dict[str, Any]]:
    return [item for item in call(200, "GET", "/v1/inbox?limit=100") if item["source"] == "code-audit"]


class TestScan:
    def test_is_completed_at_the_head_of_the_branch(self, scan: dict[str, Any], outside: Outside):
        assert (scan["status"], scan["failure"]) == ("completed", None)
        hosted = outside.github.repositories.find(setup.DEMO_OWNER, setup.DEMO_NAME)
        assert hosted is not None
        head = hosted.find_commit("refs/heads/main")
        assert head is not None
        assert (scan["branch"], scan["headCommitSha"]) == ("main", head.sha)

    def test_analyzed_the_code_with_the_compiled_packages_of_its_artifact(self, scan: dict[str, Any]):
        assert scan["coverage"]["analyzedFiles"] >= 6
        assert scan["issueCount"] >= 4

    def test_the_repository_is_listed_with_its_project(self, call: Caller, repository: str, project: dict[str, Any]):
        (found,) = [it for it in call(200, "GET", "/v1/code-audit/repositories") if it["id"] == repository]
        assert [it["projectId"] for it in found["projects"]] == [project["id"]]

    @pytest.mark.parametrize("by", ["", "repository", "status", "both"])
    def test_is_listed_under_each_filter(self, call: Caller, repository: str, scan: dict[str, Any], by: str):
        filters = {
            "": "",
            "repository": f"&repositoryId={repository}",
            "status": "&status=completed",
            "both": f"&repositoryId={repository}&status=completed",
        }
        listed = call(200, "GET", f"/v1/code-audit/scans?limit=50{filters[by]}")
        assert scan["id"] in [it["id"] for it in listed]


class TestPreview:
    def test_shows_the_three_most_urgent_findings(self, scan: dict[str, Any], preview: Preview):
        assert scan["access"] == "free-preview"
        assert len(preview.issues["issues"]) == 3
        assert preview.issues["lockedCount"] == scan["issueCount"] - 3
        assert preview.issues["unlockCredits"] == UNLOCK_CREDITS

    def test_put_those_and_no_others_into_the_inbox(self, preview: Preview):
        shown = {it["inboxItemId"] for it in preview.issues["issues"]}
        assert {item["id"] for item in preview.inbox} == shown


@dataclass
class Unlock:
    """How the rest of the findings was opened: without credits, with them, and once more."""

    refused: Reply
    first: dict[str, Any]
    again: dict[str, Any]
    balance: int


@pytest.fixture(scope="module")
def unlock(
    call: Caller, operator: Operator, organization: Organization, scan: dict[str, Any], preview: Preview
) -> Unlock:
    target = f"/v1/code-audit/scans/{scan['id']}/unlock"
    refused = call.ask(402, "POST", target)
    operator("credits", "add", organization.slug, str(UNLOCK_CREDITS + 1))
    first, again = call(200, "POST", target), call(200, "POST", target)
    return Unlock(refused, first, again, call(200, "GET", "/v1/billing")["credits"]["balance"])


@pytest.fixture(scope="module")
def findings(stack: Stack, call: Caller, scan: dict[str, Any], unlock: Unlock) -> list[dict[str, Any]]:
    """The inbox with all findings of the scan, those included that a worker published once they were unlocked."""

    def look() -> list[dict[str, Any]] | None:
        found = list_code_findings(call)
        return found if len(found) == scan["issueCount"] else None

    return eventually(look, "every finding in the inbox", stack)


class TestUnlock:
    def test_costs_credits_that_must_be_there(self, unlock: Unlock):
        assert unlock.refused.code == "INSUFFICIENT_CREDITS"
        assert unlock.refused.error["details"] == {"remainingCredits": 0, "requiredCredits": UNLOCK_CREDITS}

    def test_charges_once(self, unlock: Unlock):
        assert (unlock.first["status"], unlock.again["status"]) == ("unlocked", "already-unlocked")
        assert unlock.balance == 1

    def test_opens_every_finding(self, call: Caller, scan: dict[str, Any], unlock: Unlock):
        issues = call(200, "GET", f"/v1/code-audit/scans/{scan['id']}/issues")
        assert (len(issues["issues"]), issues["lockedCount"]) == (scan["issueCount"], 0)

    def test_brings_every_finding_into_the_inbox(self, scan: dict[str, Any], findings: list[dict[str, Any]]):
        assert len(findings) == scan["issueCount"]


# What people do with findings


@dataclass
class Decision:
    """A finding that was dismissed, and what a second decision on the same version got."""

    changed: dict[str, Any]
    refused: Reply


@pytest.fixture(scope="module")
def decision(call: Caller, findings: list[dict[str, Any]]) -> Decision:
    target = f"/v1/inbox/{findings[0]['id']}"
    item = call(200, "GET", target)
    body = {"status": "dismissed", "version": item["version"], "reason": "Loaded by the consent manager itself"}
    changed = call(200, "PATCH", target, body)
    return Decision(changed, call.ask(409, "PATCH", target, {"status": "accepted", "version": item["version"]}))


class TestInbox:
    def test_a_finding_has_its_evidence(self, call: Caller, findings: list[dict[str, Any]], outside: Outside):
        item = call(200, "GET", f"/v1/inbox/{findings[-1]['id']}")
        assert item["evidence"][0]["url"].startswith(f"{outside.url}/{setup.DEMO_OWNER}/{setup.DEMO_NAME}/blob/")

    def test_a_finding_is_dismissed_and_listed_as_such(self, call: Caller, decision: Decision):
        listed = call(200, "GET", "/v1/inbox?status=dismissed")
        assert [it["id"] for it in listed] == [decision.changed["id"]]

    def test_a_second_decision_on_the_same_version_is_refused(self, decision: Decision):
        assert decision.refused.error["details"]["currentVersion"] == decision.changed["version"]
        assert decision.refused.error["details"]["currentStatus"] == "dismissed"


@dataclass
class Opened:
    """An item whose issue was asked for twice."""

    first: dict[str, Any]
    again: dict[str, Any]


@pytest.fixture(scope="module")
def issue(stack: Stack, call: Caller, findings: list[dict[str, Any]], outside: Outside) -> Opened:
    """Opened by the deployed worker at the code host, which turned it away first."""
    outside.github.faults.add("POST /repos/{owner}/{repo}/issues", LIMITED)
    target = f"/v1/inbox/{findings[-1]['id']}/github-issue"

    def look() -> dict[str, Any] | None:
        reply = stack.call("POST", target, call.token)
        if reply.status == 409 and reply.error["details"] == {"status": "creation_pending"}:
            return None  # this machine is slower than a request waits: as the answer says, send it again
        assert reply.status == 201, f"{reply.text}\n{stack.errors()}"
        item: dict[str, Any] = reply.data
        return item

    return Opened(eventually(look, "an issue at the code host", stack), call(201, "POST", target))


class TestIssue:
    def test_stands_at_the_code_host_once(self, issue: Opened, outside: Outside):
        standing = outside.github.issues.list(setup.DEMO_OWNER, setup.DEMO_NAME)
        (made,) = [it for it in standing if it.number == issue.first["githubIssue"]["number"]]
        assert issue.first["title"] in made.title
        # Its text holds what only this attempt has.
        assert [it.number for it in standing if it.body == made.body] == [made.number]
        assert issue.first["githubIssue"]["url"].startswith(outside.url)

    def test_is_answered_again_and_not_opened_again(self, issue: Opened):
        assert issue.again["githubIssue"] == issue.first["githubIssue"]


# Findings from outside


def send_event(stack: Stack, name: str, **changes: Any) -> None:
    """Sends the message of events/<name>.json to the intake, about something that exists."""
    event = json.loads((ROOT / "events" / f"{name}.json").read_text(encoding="utf-8"))
    message = {**json.loads(event["Records"][0]["body"]), **changes}
    url = stack.outputs["FindingIntakeQueueUrl"]
    stack.client("sqs").send_message(QueueUrl=url, MessageBody=json.dumps(message))


def find_item(call: Caller, source: str) -> dict[str, Any] | None:
    return next((item for item in call(200, "GET", "/v1/inbox?limit=100") if item["source"] == source), None)


@pytest.fixture(scope="module")
def detection(stack: Stack, call: Caller, project: dict[str, Any]) -> dict[str, Any]:
    """The inbox item of a vendor that was seen at runtime."""
    send_event(stack, "finding_intake_runtime_vendor_detection", projectId=project["id"])
    found = eventually(lambda: find_item(call, "runtime"), "the runtime detection in the inbox", stack)
    item: dict[str, Any] = call(200, "GET", f"/v1/inbox/{found['id']}")
    return item


@pytest.fixture(scope="module")
def advisory(stack: Stack, call: Caller, organization: Organization, project: dict[str, Any]) -> dict[str, Any]:
    """The inbox item of an advisory."""
    ids = {"organizationId": organization.organization_id, "projectId": project["id"]}
    send_event(stack, "finding_intake_advisory", **ids)
    return eventually(lambda: find_item(call, "advisory"), "the advisory in the inbox", stack)


@pytest.fixture(scope="module")
def vendor_decision(call: Caller, detection: dict[str, Any]) -> dict[str, Any]:
    vendor = detection["runtimeVendor"]
    target = f"/v1/projects/{vendor['projectId']}/vendors/{vendor['vendorId']}/decision"
    decided: dict[str, Any] = call(200, "POST", target, {"decision": "approve"})
    return decided


class TestIntake:
    def test_a_detection_becomes_an_open_finding_with_its_vendor(
        self, detection: dict[str, Any], project: dict[str, Any]
    ):
        assert (detection["status"], detection["priority"]) == ("open", "P1")
        assert detection["runtimeVendor"]["projectId"] == project["id"]
        assert detection["runtimeVendor"]["vendorId"] == "segment"

    def test_the_decision_on_the_vendor_resolves_its_finding(
        self, call: Caller, detection: dict[str, Any], vendor_decision: dict[str, Any]
    ):
        assert (vendor_decision["state"], vendor_decision["inboxItemId"]) == ("approved", detection["id"])
        assert call(200, "GET", f"/v1/inbox/{detection['id']}")["status"] == "resolved"

    def test_an_advisory_becomes_a_finding(self, advisory: dict[str, Any]):
        assert advisory["title"] == "Consent records before 2.1 lack the policy's version"
        assert advisory["priority"] == "P1"


# Feedback


class TestFeedback:
    def test_is_taken_once_a_day(self, stack: Stack, key: str):
        caller = Caller(stack, key)
        body = {"category": "docs_mismatch", "message": "The reference lacks an example of a wildcard website."}
        first, again = caller(201, "POST", "/v1/feedback", body), caller(200, "POST", "/v1/feedback", body)
        assert first["reference"].startswith("FDB-")
        assert again == {"reference": first["reference"], "alreadySubmitted": True}

    def test_is_refused_beyond_an_hour_s_quota(self, stack: Stack, ada: Person):
        def report(number: int) -> Reply:
            body = {"category": "bug", "message": f"Report {number}."}
            headers = {"Idempotency-Key": f"report-{number}"}
            return stack.call("POST", "/v1/feedback", ada.browser.secret, json_body=body, headers=headers)

        # Twice the quota, for the hour may end meanwhile.
        number, refused = next((n, reply) for n, reply in enumerate(map(report, range(21))) if reply.status != 201)
        assert (refused.status, refused.error["details"]["reason"]) == (429, "feedback_quota")
        # The refusal has kept no Idempotency-Key: it is given again, and not a wait for the first request.
        assert report(number).error["details"]["reason"] == "feedback_quota"


# When things go wrong


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


@pytest.fixture(scope="module")
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
    """A request for a scan whose worker was told and died."""

    request_id: str
    repository_id: str


@pytest.fixture(scope="module")
def forgotten(world: World, operator: Operator, organization: Organization, project: dict[str, Any]) -> Forgotten:
    connect = ("repository", "connect", organization.slug, f"{setup.DEMO_OWNER}/forgotten", "--installation", "1")
    repository_id: str = operator(*connect)["repositoryId"]
    operator("repository", "link", repository_id, project["id"])
    with minutes_ago(5 * 60):
        request_id, message = request_scan(repository_id)
    outbox.delete_entry(message)
    return Forgotten(request_id, repository_id)


@pytest.fixture(scope="module")
def deleted_project(world: World, call: Caller, organization: Organization) -> Located:
    """A project that was deleted, and had a vendor that was decided about."""
    body = {"name": "Magazine", "region": "eu-central", "websites": ["magazine.example.com"]}
    project_id = call(201, "POST", "/v1/projects", body)["id"]
    call(200, "POST", f"/v1/projects/{project_id}/vendors/segment/decision", {"decision": "ignore"})
    call(200, "DELETE", f"/v1/projects/{project_id}")
    located = ids.locate(ids.PROJECT, project_id)
    assert located is not None
    return located


@pytest.fixture(scope="module")
def swept(stack: Stack, unsent: Unsent, forgotten: Forgotten, deleted_project: Located) -> Invoked:
    """The sweeper has run, as it does every minute: here it may have done some of its work before it is called."""
    return stack.invoke("SweeperFunction", "sweeper_sweep")


@pytest.fixture(scope="module")
def second_scan(scans: Scans, unsent: Unsent, swept: Invoked) -> dict[str, Any]:
    """The scan that the sweeper had to send on, and whose workers the code host had turned away."""
    return scans.wait_for_end(scans.wait_for_start(unsent.request_id))


@pytest.fixture(scope="module")
def refused_scan(scans: Scans, second_scan: dict[str, Any], outside: Outside) -> dict[str, Any]:
    """What became of a request for a scan of a branch that is gone."""
    outside.github.faults.add("GET /repos/{owner}/{repo}/branches/{branch}", Fault(404))
    answer = scans.ask()
    return scans.wait_for_answer(answer["preparationId"]) if answer["status"] == "starting" else answer


class TestSweeper:
    def test_finishes_every_step(self, stack: Stack, swept: Invoked):
        assert swept.failure is None, f"{swept.answer}\n{stack.errors()}"

    def test_sends_what_a_dead_function_left_unsent(self, second_scan: dict[str, Any]):
        assert (second_scan["status"], second_scan["failure"]) == ("completed", None)

    def test_has_an_issue_opened_that_no_worker_was_told_of(
        self, stack: Stack, call: Caller, unsent: Unsent, swept: Invoked
    ):
        def look() -> dict[str, Any] | None:
            found: dict[str, Any] | None = call(200, "GET", f"/v1/inbox/{unsent.item_id}")["githubIssue"]
            return found

        assert eventually(look, "the issue that no worker was told of", stack)["number"]

    def test_ends_a_scan_whose_worker_died(self, call: Caller, forgotten: Forgotten, swept: Invoked):
        target = f"/v1/code-audit/scan-requests/{forgotten.request_id}?repositoryId={forgotten.repository_id}"
        answer = call(200, "GET", target)
        assert (answer["status"], answer["error"]["code"]) == ("failed", "ABANDONED")

    def test_removes_what_a_deleted_project_left(self, deleted_project: Located, swept: Invoked):
        prefix = keys.vendor_prefix(deleted_project.local)
        left = table.query(keys.organization_pk(deleted_project.organization_id), prefix=prefix, limit=10)
        assert left.items == []


class TestCodeHost:
    @pytest.mark.parametrize("group", ["ScanPreparation", "ScanExecution", "IssueCreation"])
    @pytest.mark.usefixtures("second_scan", "issue")
    def test_that_turns_a_worker_away_is_asked_again_soon(self, stack: Stack, group: str):
        written = stack.logs()[stack.physical_ids[f"{group}LogGroup"]]
        assert [line for line in written if '"errorType":"Postponed"' in line]
        assert not [line for line in written if "pause not set" in line]

    def test_that_has_no_such_branch_ends_the_request_with_the_reason(self, refused_scan: dict[str, Any]):
        assert refused_scan["status"] == "failed"
        assert refused_scan["error"]["code"] in {"BRANCH_GONE", "REPOSITORY_GONE"}


class TestSecondScan:
    def test_reports_nothing_twice(self, call: Caller, findings: list[Any], second_scan: dict[str, Any]):
        assert len(list_code_findings(call)) == len(findings)

    def test_is_locked_until_it_is_paid_for(self, call: Caller, second_scan: dict[str, Any]):
        assert second_scan["access"] == "locked"
        refused = call.ask(402, "GET", f"/v1/code-audit/scans/{second_scan['id']}/issues")
        assert refused.code == "UNLOCK_REQUIRED"


@dataclass
class Buried:
    """A message among the dead letters of a queue, as a worker put it there."""

    body: str
    reason: str


QUEUES = ("ScanPreparation", "ScanExecution", "IssueCreation", "FindingIntake")


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


@pytest.fixture(scope="module")
def buried(stack: Stack) -> dict[str, Buried]:
    """What became of a message to each queue that no repetition mends."""
    sqs, body = stack.client("sqs"), json.dumps({"kind": "unknown", "version": 1})
    for queue in QUEUES:
        sqs.send_message(QueueUrl=stack.physical_ids[f"{queue}Queue"], MessageBody=body)

    def find(queue: str) -> Buried:
        what = f"a message among the dead letters of {queue}"
        return eventually(lambda: take_dead_letter(stack, queue, body), what, stack)

    return {queue: find(queue) for queue in QUEUES}


class TestDeadLetters:
    @pytest.mark.parametrize("queue", QUEUES)
    def test_take_a_message_that_no_repetition_mends_with_its_reason(self, buried: dict[str, Buried], queue: str):
        assert buried[queue].reason.startswith("malformed: ")

    @pytest.mark.parametrize("queue", QUEUES)
    def test_take_a_message_whose_worker_dies_at_every_delivery(self, stack: Stack, queue: str):
        sqs, waiting = stack.client("sqs"), stack.physical_ids[f"{queue}Queue"]
        mapping = stack.physical_ids[f"{queue}Messages"]
        body = json.dumps({"queue": queue})
        with paused(stack, mapping):
            sqs.send_message(QueueUrl=waiting, MessageBody=body)
            # Five receives that nobody finishes; the sixth finds it gone.
            for _ in range(5):
                taken = sqs.receive_message(QueueUrl=waiting, VisibilityTimeout=0)
                assert [it["Body"] for it in taken.get("Messages", [])] == [body]
            assert "Messages" not in sqs.receive_message(QueueUrl=waiting, VisibilityTimeout=0)
            found = take_dead_letter(stack, queue, body)
        assert found == Buried(body, "")


@contextmanager
def paused(stack: Stack, mapping: str) -> Iterator[None]:
    """The worker takes nothing from its queue while the block runs."""
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


# The end


class TestSignOut:
    def test_ends_the_session_as_a_cookie_and_as_a_bearer(self, stack: Stack, ada: Person):
        person = Person(stack, "emmy@example.com", "Emmy Noether")
        person.sign_in("/organizations")
        session = person.browser.secret
        left = person.submit(303, "/sign-out")
        assert "signed out" in text_of(person.open(200, left.headers["location"]))
        assert "/sign-in?" in person.open(303, "/organizations").headers["location"]
        Caller(stack, session).ask(401, "GET", "/v1/me")

    def test_of_a_device_revokes_all_of_its_tokens(self, stack: Stack, ada: Person):
        device = Device(stack, "Ada's tablet")
        device.approved_by(ada)
        device.redeem()
        Caller(stack, device.access_token).ask(200, "GET", "/v1/me")
        assert device.sign_out().status == 200
        Caller(stack, device.access_token).ask(401, "GET", "/v1/me")
        assert device.refresh().body["error"] == "invalid_grant"


@pytest.mark.usefixtures("decision", "issue", "vendor_decision", "advisory", "refused_scan", "buried", "grace")
class TestLogs:
    """What the functions have written when all of it has happened."""

    def test_every_function_has_written_to_its_own(self, stack: Stack, key: str):
        Caller(stack, key).ask(404, "GET", "/v1/projects/prj_unknown")
        written = {name for name, messages in stack.logs().items() if messages}
        groups = {resource["Properties"]["LoggingConfig"]["LogGroup"]["Ref"] for resource in FUNCTIONS.values()}
        assert written == {stack.physical_ids[group] for group in groups}

    def test_hold_no_credential(self, stack: Stack, outside: Outside):
        secrets = stack.secrets | outside.secrets | {stack.function_environment("SystemFunction")["SIGNING_SECRET"]}
        assert len(secrets) > 30
        leaked = {
            f"{secret[:12]}... in {group}"
            for group, messages in stack.logs().items()
            for secret in secrets
            if any(secret in message for message in messages)
        }
        assert leaked == set()

    def test_hold_no_address_of_a_person(self, stack: Stack, ada: Person, grace: Person):
        written = "\n".join(message for messages in stack.logs().values() for message in messages)
        assert [person.email for person in (ada, grace) if person.email in written] == []

    def test_tell_of_no_failure_but_those_that_were_arranged(self, stack: Stack):
        """Nor of a call that a role refused, where that failed no request."""
        lines = stack.errors().splitlines()
        told = [json.loads(line) if line.startswith("{") else {"message": line} for line in lines]
        found = {(it["message"], it.get("errorType", "")) for it in told}
        assert found == {("message failed", "Postponed"), ("message buried", "")}


class TestRoles:
    """What the local AWS does for a function without asking its role. On AWS it would be refused."""

    @pytest.mark.parametrize("queue", QUEUES)
    def test_let_a_worker_take_the_messages_of_its_queue(self, stack: Stack, queue: str):
        role = stack.client("lambda").get_function_configuration(FunctionName=stack.physical_ids[f"{queue}Function"])[
            "Role"
        ]
        attributes = stack.client("sqs").get_queue_attributes(
            QueueUrl=stack.physical_ids[f"{queue}Queue"], AttributeNames=["QueueArn"]
        )
        decided = stack.client("iam").simulate_principal_policy(
            PolicySourceArn=role,
            ActionNames=[
                "sqs:ReceiveMessage",
                "sqs:DeleteMessage",
                "sqs:GetQueueAttributes",
                "sqs:ChangeMessageVisibility",
            ],
            ResourceArns=[attributes["Attributes"]["QueueArn"]],
        )
        assert {it["EvalDecision"] for it in decided["EvaluationResults"]} == {"allowed"}
