"""The built artifacts: small, precompiled, and each function runs in the Lambda runtime with only the layer."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from local.template import load_template
from scripts import artifacts
from tests.e2e.deployment import ARCHITECTURE, BUILD, ROOT, Stack, run
from tests.e2e.runtime import running_function
from tests.support.api import Reply
from tests.support.operations import is_page
from tests.support.response_checks import check_response
from tests.support.template import DEPLOYMENT_CHECK, functions, layers_of, resources
from tests.support.world import World

FUNCTIONS = functions()
LAYERS = resources("AWS::Serverless::LayerVersion")
EVENTS = ROOT / "events"
# FastAPI, Mangum, pydantic, boto3, and their dependencies, as pip installs and compiles them: `make bench` measures
# them again.
PLAIN_PACKAGES_BYTES = 39.3 * 2**20
# Unpacked, function and layers together (docs.aws.amazon.com/lambda, quotas).
LAMBDA_LIMIT_BYTES = 250 * 2**20


def group_of(logical_id: str) -> str:
    return Path(FUNCTIONS[logical_id]["Properties"]["CodeUri"]).name


def events_of(group: str) -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(EVENTS.glob(f"{group}_*.json"))}


def authorized(event: dict[str, Any], token: str) -> dict[str, Any]:
    """Returns the event with a real credential in place of its placeholder."""
    if "headers" not in event:  # an event of a queue or a schedule
        return event
    headers = dict(event["headers"])
    if "Authorization" in headers:
        headers["Authorization"] = f"Bearer {token}"
    return {**event, "headers": headers, "multiValueHeaders": {name: [value] for name, value in headers.items()}}


class TestBuild:
    def test_the_build_made_a_compiled_artifact_of_each_function_and_layer(self, sizes: str):
        assert {path.name for path in artifacts.artifacts_in(BUILD)} == {*FUNCTIONS, *LAYERS, DEPLOYMENT_CHECK}
        assert artifacts.modules_without_bytecode(BUILD) == []
        assert (BUILD / "SharedLayer" / "python" / "awsclient" / "amazon-roots.pem").is_file()

    def test_the_build_meets_the_goal_of_its_size(self, sizes: str):
        # Goal 8 of docs/performance.md.
        limit_bytes = 0.45 * PLAIN_PACKAGES_BYTES
        for logical_id in FUNCTIONS:
            # A function with packages of its own can't meet that bound, so only Lambda's limit applies to it.
            layers = layers_of(FUNCTIONS[logical_id])
            has_own = (ROOT / "functions" / group_of(logical_id) / "requirements.txt").exists()
            has_own |= artifacts.BROWSER_LAYER in layers
            together = sum(artifacts.size_bytes(BUILD / name) for name in (logical_id, *layers))
            assert together < (LAMBDA_LIMIT_BYTES if has_own else limit_bytes), sizes

    def test_the_built_template_accepts_only_the_processor_of_the_build(self, sizes: str):
        declared = load_template(BUILD / "template.yaml")["Parameters"]["Architecture"]
        assert declared["AllowedValues"] == [declared["Default"]] == [ARCHITECTURE]

    def test_the_build_for_the_other_processor_has_only_its_compiled_files(self):
        (other,) = {*artifacts.ARCHITECTURES} - {ARCHITECTURE}
        folder = BUILD.parent / other / "build"
        # What follows in the build is the same for both.
        program = f"from scripts import artifacts as it; it.run_sam({other!r}, it.Path({str(folder)!r}))"
        tools = ROOT / ".tools" / "sam" / "bin"
        run(tools / "python", "-c", program, PATH=f"{tools}:{os.environ['PATH']}")
        assert artifacts.check_compiled_files(folder, other)


@dataclass
class Ran:
    """A function's responses to its events, by event name, and its log."""

    answers: dict[str, Any]
    log: str


@pytest.fixture(scope="class")
def ran(request: pytest.FixtureRequest, stack: Stack, world: World) -> Ran:
    """Runs the function with the deployed function's variables, for a user who owns one organization."""
    logical_id: str = request.param
    if artifacts.BROWSER_LAYER in layers_of(FUNCTIONS[logical_id]) and ARCHITECTURE != artifacts.BROWSER_ARCHITECTURE:
        pytest.skip("the browser is for another processor")
    properties = FUNCTIONS[logical_id]["Properties"]
    token = world.company().owner.token
    variables = {
        **stack.function_environment(logical_id),
        "AWS_ENDPOINT_URL": stack.endpoint_url,
        "AWS_ACCESS_KEY_ID": os.environ["AWS_ACCESS_KEY_ID"],
        "AWS_SECRET_ACCESS_KEY": os.environ["AWS_SECRET_ACCESS_KEY"],
    }
    with running_function(logical_id, properties, variables) as function:
        events = events_of(group_of(logical_id))
        answers = {name: function.invoke(authorized(event, token)) for name, event in events.items()}
        return Ran(answers, function.log)


@pytest.mark.parametrize("ran", FUNCTIONS, indirect=True, scope="class")
class TestEachFunctionInTheLambdaRuntime:
    def test_each_function_responds_to_its_events_in_the_lambda_runtime(self, ran: Ran):
        assert ran.answers
        for name, answer in ran.answers.items():
            event = json.loads((EVENTS / f"{name}.json").read_text(encoding="utf-8"))
            assert "errorType" not in (answer or {}), f"{name}: {answer}\n{ran.log}"
            if "Records" in event:
                assert set(answer) == {"batchItemFailures"}, f"{name}\n{ran.log}"
                continue
            if "httpMethod" not in event:  # an event of a schedule
                continue
            headers = {header.lower(): value for header, value in answer["headers"].items()}
            reply = Reply.read(answer["statusCode"], headers, answer["body"])
            check_response(event["path"], event["headers"], reply, event["requestContext"]["requestId"])
            # The events contain IDs and a page session that don't exist.
            expected = {200, 201, 404}
            if is_page(event["path"]):
                expected = {200, 303, 400, 401, 403}
            assert reply.status in expected, f"{name}: {reply.text}\n{ran.log}"

    def test_the_browser_of_the_layer_opens_websites(self, ran: Ran):
        if "website_audits_run_audit" in ran.answers:  # of a website that doesn't exist
            assert "blocked, unreachable, after" in ran.log

    def test_each_function_logs_its_start_and_no_failure(self, ran: Ran):
        assert ran.log.count("START RequestId") == len(ran.answers)
        assert "Traceback" not in ran.log
