"""Release N-1 becomes N and, rolled back, N-1 again, while clients use the stack, which has a front door.

Both are tagged and published, and deployed from what was published, as docs/operations/deploy.md says.

During each deployment, functions of both versions work on the same table and the same queues. On AWS that takes
seconds, or with a gradual deployment up to 100 minutes.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from local.gateway import Request
from local.github import setup
from tests.e2e import deployment, previous
from tests.e2e.deployment import Stack
from tests.e2e.external import ExternalServices, running_services
from tests.e2e.failures import QUEUES
from tests.e2e.people import Caller, Operator, Person
from tests.e2e.releases import Releases
from tests.e2e.story import eventually
from tests.e2e.traffic import KINDS, Client, Traffic
from tests.support.engines import running_engine

OLD, UPGRADE, NEW, ROLLBACK, OLD_AGAIN = "N-1", "the upgrade", "N", "the rollback", "N-1 after the rollback"
STEPS = (OLD, NEW, OLD_AGAIN)
_OLD_RELEASE, _NEW_RELEASE = "1000.0.0", "1000.1.0"
_FRONT_DOOR = {
    "CustomDomain": "assent.shop.example.com",
    "FrontDoorCertificateArn": "arn:aws:acm:us-east-1:000000000000:certificate/11111111-2222-3333-4444-555555555555",
    "FrontDoorOnly": "true",
}
# What functions log if a call isn't answered in time, or if a message is therefore delivered again.
_SLOW = {"Postponed", "TableUnavailable", "Throttled", "Unreachable"}
# In the part of the template for all functions.
_VARIABLES = "    Environment:\n      Variables:\n"
_TIMEOUT = re.compile(r"^( +Timeout: )(\d+)$", re.MULTILINE)
# After a deployment, this machine starts all functions at the same time, which on AWS isn't one machine.
_TIMEOUT_SECONDS = 120


@dataclass
class Ran:
    """The events while the stack was upgraded and rolled back. lost: what a version read otherwise, by step."""

    stack: Stack
    traffic: Traffic
    lost: dict[str, list[str]]


@pytest.fixture(scope="module")
def ran(sizes: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    if not previous.has_history():
        pytest.skip("a clone without history has no version to upgrade from")
    commit = previous.find_previous()
    with (
        pytest.MonkeyPatch.context() as environment,
        running_services(tmp_path_factory.mktemp("github")) as external,
    ):
        environment.setenv("AUTH", "true")
        with running_engine("MiniStack", *deployment.MINISTACK) as engine:
            releases = Releases(tmp_path_factory.mktemp("releases"), engine.endpoint_url)
            releases.publish(_OLD_RELEASE, commit, patient(previous.build(commit)))
            releases.publish(_NEW_RELEASE, "HEAD", patient(deployment.PACKED))
            stack = deploy(releases, _OLD_RELEASE, engine.endpoint_url, external)
            ran = Ran(stack, started_traffic(stack), {})
            with ran.traffic.running():
                observe(ran, OLD)
                for phase, release, step in ((UPGRADE, _NEW_RELEASE, NEW), (ROLLBACK, _OLD_RELEASE, OLD_AGAIN)):
                    ran.traffic.phase = phase
                    ran.stack = deploy(releases, release, engine.endpoint_url, external)
                    ran.traffic.use(ran.stack)
                    observe(ran, step)
            yield ran


def deploy(releases: Releases, version: str, endpoint_url: str, external: ExternalServices) -> Stack:
    releases.deploy(version, {**external.parameters, **_FRONT_DOOR})
    # This version's checks don't apply to the responses of another one.
    stack = Stack(endpoint_url, _TIMEOUT_SECONDS, checks_responses=False)
    deployment.convert_concurrency(stack)
    deployment.connect(stack, external)
    return stack


def patient(template: Path) -> Path:
    """Returns a copy of the template whose functions have more time: MiniStack is slow while it deploys.

    They wait longer for the table, and end later. No queue redelivers a message before its function ends.
    """
    text = template.read_text(encoding="utf-8")
    changed = text.replace(_VARIABLES, f'{_VARIABLES}        DEPENDENCY_SECONDS: "15"\n', 1)
    assert changed != text
    changed, count = _TIMEOUT.subn(lambda found: f"{found[1]}{max(int(found[2]), _TIMEOUT_SECONDS)}", changed)
    assert count > 1
    copy = template.with_name("patient.yaml")
    copy.write_text(changed, encoding="utf-8")
    return copy


def started_traffic(stack: Stack) -> Traffic:
    """Signs Ada in, and connects a repository of her organization."""
    page = "/organizations"
    # Right after the first deployment, MiniStack has failed to start a function.
    eventually(lambda: stack.call("GET", f"/sign-in?return_to={page}").status == 303 or None, "a start", stack)
    ada = Person(stack, "ada@shop.example.com", "Ada Lovelace")
    ada.sign_in(page)
    call, operator = Caller(stack, ada.browser.secret), Operator(stack)
    organization = call(201, "POST", "/v1/organizations", {"name": "Shop"})
    operator("plan", "set", organization["slug"], "pro")
    owner, name = setup.DEMO_OWNER, setup.DEMO_NAME
    connect = ("repository", "connect", organization["slug"], f"{owner}/{name}")
    repository = operator(*connect, "--installation", str(setup.installation_id(owner)))["repositoryId"]
    project = call(
        201, "POST", "/v1/projects", {"name": "Web shop", "region": "eu-central", "websites": ["example.com"]}
    )
    operator("repository", "link", repository, project["id"])
    key = call(201, "POST", "/v1/api-keys", {"name": OLD})["key"]
    return Traffic(Client(stack, key), Client(stack, ada.browser.secret), organization["id"], repository, OLD)


def observe(ran: Ran, step: str) -> None:
    """Waits for traffic, reads what was written so far, and uses a key of this version from now on."""
    traffic = ran.traffic
    traffic.wait_for_each(step)
    traffic.machine.token = traffic.call(201, "POST", "/v1/api-keys", {"name": f"Key of {step}"})["key"]
    ran.lost[step] = traffic.lost()


@pytest.fixture(scope="module")
def left(ran: Ran) -> Counter[str]:
    """Returns the messages that are left in queues when all work is done, by queue."""
    sqs = ran.stack.client("sqs")

    names = [f"{queue}{end}" for queue in QUEUES for end in ("Queue", "DeadLetters")]
    names = [name for name in names if name in ran.stack.physical_ids]  # N-1 may lack a queue
    counted = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]

    def poll() -> Counter[str] | None:
        found: Counter[str] = Counter()
        for name in names:
            answer = sqs.get_queue_attributes(QueueUrl=ran.stack.physical_ids[name], AttributeNames=counted)
            found[name] = sum(map(int, answer["Attributes"].values()))
        return None if any(name.endswith("Queue") for name in +found) else +found

    return eventually(poll, "the end of all work", ran.stack)


class TestMixedVersions:
    def test_clients_sent_requests_in_every_phase_and_none_failed(self, ran: Ran):
        assert ran.traffic.problems == []
        assert {phase for phase, _ in ran.traffic.done} == {OLD, UPGRADE, NEW, ROLLBACK, OLD_AGAIN}
        assert {(step, kind) for step in STEPS for kind in KINDS} <= ran.traffic.done

    def test_a_version_reads_what_either_version_wrote(self, ran: Ran):
        assert ran.lost == {step: [] for step in STEPS}

    def test_every_scan_is_completed(self, ran: Ran):
        assert {(scan["status"], scan["failure"]) for scan in ran.traffic.scans} == {("completed", None)}

    def test_no_message_is_left_or_dead_lettered(self, ran: Ran, left: dict[str, Any]):
        assert left == {}

    @pytest.mark.usefixtures("left")
    def test_every_message_arrived(self, ran: Ran):
        assert ran.traffic.missing() == []

    @pytest.mark.usefixtures("left")
    def test_functions_logged_only_that_the_local_aws_was_slow(self, ran: Ran):
        told = [json.loads(line) for line in ran.stack.errors().splitlines() if line.startswith("{")]
        assert {it.get("errorType") for it in told if it["level"] == "ERROR"} <= _SLOW


class TestFrontDoor:
    def test_a_client_gets_the_challenge(self, ran: Ran):
        reply = ran.stack.call("GET", "/v1/me")
        assert (reply.status, reply.headers["www-authenticate"]) == (401, "Bearer")

    def test_a_direct_request_is_rejected(self, ran: Ran):
        response = ran.stack.gateway().respond(Request("GET", "/v1/regions", []))
        assert (response.status, json.loads(response.body)["error"]["code"]) == (403, "FORBIDDEN")
