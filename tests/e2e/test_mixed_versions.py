"""Version N-1 becomes N and, rolled back, N-1 again, while clients use the stack, which has a front door.

During each deployment, functions of both versions work on the same table and the same queues. On AWS that takes
seconds, or with a gradual deployment up to 100 minutes.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from local.gateway import Request
from local.github import setup
from tests.e2e import deployment, previous
from tests.e2e.deployment import ALIAS, BUILD, Stack
from tests.e2e.external import ExternalServices, running_services
from tests.e2e.failures import QUEUES
from tests.e2e.people import Caller, Operator, Person
from tests.e2e.story import eventually
from tests.e2e.traffic import KINDS, Client, Traffic
from tests.support.engines import running_engine
from tests.support.template import resources

FUNCTIONS = resources("AWS::Serverless::Function")
OLD, UPGRADE, NEW, ROLLBACK, OLD_AGAIN = "N-1", "the upgrade", "N", "the rollback", "N-1 after the rollback"
STEPS = (OLD, NEW, OLD_AGAIN)
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
class Deployments:
    """The stack that is upgraded and rolled back, and what was seen after each deployment."""

    endpoint_url: str
    external: ExternalServices
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    """The hash of the code of each function and layer, by step."""

    lost: dict[str, list[str]] = field(default_factory=dict)
    """Stores, by step, what a version reads in another state than it was written."""

    def deploy(self, template: Path, step: str) -> Stack:
        deployment.deploy(self.endpoint_url, {**self.external.parameters, **_FRONT_DOOR}, patient(template))
        # This version's checks don't apply to the responses of another one.
        stack = Stack(self.endpoint_url, _TIMEOUT_SECONDS, checks_responses=False)
        deployment.convert_concurrency(stack)
        deployment.connect(stack, self.external)
        functions = stack.client("lambda")
        configurations = {
            name: functions.get_function_configuration(FunctionName=stack.physical_ids[name], Qualifier=ALIAS)
            for name in FUNCTIONS.keys() & stack.physical_ids.keys()
        }
        layers = {layer["Arn"] for it in configurations.values() for layer in it.get("Layers", [])}
        codes = {
            arn.rsplit(":", 1)[0]: functions.get_layer_version_by_arn(Arn=arn)["Content"]["CodeSha256"]
            for arn in layers
        }
        self.codes[step] = codes | {name: it["CodeSha256"] for name, it in configurations.items()}
        return stack


@dataclass
class Ran:
    """Stores what happened while the stack was upgraded and rolled back."""

    stack: Stack
    deployments: Deployments
    traffic: Traffic


@pytest.fixture(scope="module")
def old_template(sizes: str) -> Path:
    if not previous.has_history():
        pytest.skip("a clone without history has no version to upgrade from")
    return previous.build(previous.find_previous())


@pytest.fixture(scope="module")
def ran(old_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    with (
        pytest.MonkeyPatch.context() as environment,
        running_services(tmp_path_factory.mktemp("github")) as external,
    ):
        environment.setenv("AUTH", "true")
        with running_engine("MiniStack", *deployment.MINISTACK) as engine:
            deployments = Deployments(engine.endpoint_url, external)
            stack = deployments.deploy(old_template, OLD)
            traffic = started_traffic(stack)
            with traffic.running():
                observe(deployments, traffic, OLD)
                for phase, template, step in (
                    (UPGRADE, BUILD / "template.yaml", NEW),
                    (ROLLBACK, old_template, OLD_AGAIN),
                ):
                    traffic.phase = phase
                    stack = deployments.deploy(template, step)
                    traffic.use(stack)
                    observe(deployments, traffic, step)
            yield Ran(stack, deployments, traffic)


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


def observe(deployments: Deployments, traffic: Traffic, step: str) -> None:
    """Waits for traffic, reads what was written so far, and uses a key of this version from now on."""
    traffic.wait_for_each(step)
    traffic.machine.token = traffic.call(201, "POST", "/v1/api-keys", {"name": f"Key of {step}"})["key"]
    deployments.lost[step] = traffic.lost()


@pytest.fixture(scope="module")
def left(ran: Ran) -> Counter[str]:
    """Returns the messages that are left in queues when all work is done, by queue."""
    sqs = ran.stack.client("sqs")

    def count() -> Counter[str]:
        names = [f"{queue}{end}" for queue in QUEUES for end in ("Queue", "DeadLetters")]
        attributes = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        answers = {
            name: sqs.get_queue_attributes(QueueUrl=ran.stack.physical_ids[name], AttributeNames=attributes)
            for name in names
        }
        return +Counter({name: sum(map(int, it["Attributes"].values())) for name, it in answers.items()})

    def poll() -> Counter[str] | None:
        found = count()
        return None if any(name.endswith("Queue") for name in found) else found

    return eventually(poll, "the end of all work", ran.stack)


class TestMixedVersions:
    def test_the_versions_have_different_code_and_the_rollback_restores_it(self, ran: Ran):
        old, new, again = (ran.deployments.codes[step] for step in STEPS)
        assert old == again
        assert old != new

    def test_clients_sent_requests_in_every_phase(self, ran: Ran):
        assert {phase for phase, _ in ran.traffic.done} == {OLD, UPGRADE, NEW, ROLLBACK, OLD_AGAIN}
        assert [kind for step in STEPS for kind in KINDS if not ran.traffic.done[step, kind]] == []

    def test_no_request_failed(self, ran: Ran):
        assert ran.traffic.problems == []
        assert {*ran.traffic.call.statuses, *ran.traffic.machine.statuses} == {200, 201, 202}

    @pytest.mark.parametrize("step", STEPS)
    def test_a_version_reads_what_either_version_wrote(self, ran: Ran, step: str):
        assert ran.deployments.lost[step] == []

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
