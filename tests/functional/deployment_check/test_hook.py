"""The pre-traffic hook, with the real functions and AWS's models of the calls that it makes."""

import importlib
import io
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote, unquote

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from controlplane.platform.core.settings import SigningSecret, settings
from controlplane.platform.queues import outbox
from controlplane.platform.queues.messages import Queue
from controlplane.platform.table.table import table
from deployment_check import hook
from tests.support.each import each
from tests.support.template import api_functions, functions

DEPLOYMENT = "d-ABCDEF123"
FUNCTION = "arn:aws:lambda:eu-central-1:123456789012:function:"
EXECUTION = "eyJlbmNyeXB0ZWREYXRhIjoi"
SECRET = "f" * 64

type Handler = Callable[[dict[str, Any], Any], Any]


class Aws:
    """CodeDeploy and Lambda as boto3 calls them. Calls and responses are checked against AWS's models."""

    def __init__(self) -> None:
        access = {"region_name": "eu-central-1", "aws_access_key_id": "a", "aws_secret_access_key": "b"}
        self.clients = {name: boto3.client(name, **access) for name in ("codedeploy", "lambda")}  # type: ignore[call-overload]
        self.deployments = Stubber(self.clients["codedeploy"])
        self.clients["lambda"].meta.events.register("before-call.lambda.Invoke", self._invoke)
        self.clients["lambda"].meta.events.register("before-call.lambda.ListTags", self._list_tags)
        self.versions: dict[str, Handler] = {}
        self.events: list[dict[str, Any]] = []

    def client(self, service: str, **_: Any) -> Any:
        return self.clients[service]

    def deploys(self, name: str, handler: Handler, field: str = "string") -> None:
        """Expects the calls about a deployment of version 8 of a function."""
        self.versions[f"/2015-03-31/functions/{quote(FUNCTION + name)}/invocations?Qualifier=8"] = handler
        kind = {"string": "String", "appSpecContent": "AppSpecContent"}[field]
        digest = {"revisionType": kind, field: {"sha256": "d1"}}
        target = {"Name": name, "Alias": "live", "CurrentVersion": "7", "TargetVersion": "8"}
        content = {"version": 0.0, "Resources": [{name: {"Type": "AWS::Lambda::Function", "Properties": target}}]}
        self.deployments.add_response(
            "get_deployment",
            {"deploymentInfo": {"applicationName": "assent-app", "revision": digest}},
            {"deploymentId": DEPLOYMENT},
        )
        self.deployments.add_response(
            "get_application_revision",
            {"revision": {"revisionType": kind, field: {"sha256": "d1", "content": json.dumps(content)}}},
            {"applicationName": "assent-app", "revision": digest},
        )

    def check(self, name: str, handler: Handler, status: str, field: str = "string") -> None:
        """Runs the hook for the function, and expects this report."""
        self.deploys(f"assent-{name}-1A2B", handler, field)
        report = {"deploymentId": DEPLOYMENT, "lifecycleEventHookExecutionId": EXECUTION, "status": status}
        answer = {"lifecycleEventHookExecutionId": EXECUTION}
        self.deployments.add_response("put_lifecycle_event_hook_execution_status", answer, report)
        self.run()

    def run(self) -> None:
        """Runs the hook. Fails unless it makes every expected call."""
        with self.deployments:
            event = {"DeploymentId": DEPLOYMENT, "LifecycleEventHookExecutionId": EXECUTION}
            hook.handler(event, SimpleNamespace(invoked_function_arn=f"{FUNCTION}assent-DeploymentCheck-1A2B"))
            self.deployments.assert_no_pending_responses()

    def _invoke(self, params: dict[str, Any], **_: Any) -> tuple[SimpleNamespace, dict[str, Any]]:
        """Answers instead of Lambda, after boto3 has checked the parameters."""
        event = json.loads(params["body"])
        self.events.append(event)
        query = "&".join(f"{name}={value}" for name, value in params["query_string"].items())
        handler = self.versions[f"{params['url_path']}?{query}"]
        more: dict[str, str] = {}
        try:
            answer = handler(event, None)
        except Exception as error:  # noqa: BLE001 (as Lambda does)
            answer, more = (
                {"errorType": type(error).__name__, "errorMessage": str(error)},
                {"FunctionError": "Unhandled"},
            )
        payload = io.BytesIO(json.dumps(answer).encode())
        return SimpleNamespace(status_code=200), {"StatusCode": 200, "Payload": payload, **more}

    def _list_tags(self, params: dict[str, Any], **_: Any) -> tuple[SimpleNamespace, dict[str, Any]]:
        """Answers with the tags that CloudFormation gives to a function."""
        name = unquote(params["url_path"]).removeprefix(f"/2017-03-31/tags/{FUNCTION}assent-").removesuffix("-1A2B")
        return SimpleNamespace(status_code=200), {"Tags": {"aws:cloudformation:logical-id": name}}


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Aws:
    monkeypatch.setenv("FRONT_DOOR_SECRET", "")
    aws = Aws()
    monkeypatch.setattr(boto3, "client", aws.client)
    return aws


def handler_of(logical_id: str) -> Handler:
    folder = functions()[logical_id]["Properties"]["CodeUri"].removeprefix("functions/")
    found: Handler = importlib.import_module(f"{folder}.app").handler
    return found


def items() -> list[Any]:
    found: list[Any] = table.client.scan(TableName=table.name)["Items"]
    return found


class TestSucceeded:
    @each("name", functions())
    def test_every_function_passes_and_changes_nothing(self, aws, name):
        outbox.write(outbox.new_entry(Queue.SCAN_EXECUTION.value, {"version": 1}))  # work that a sweep would do
        before = items()
        aws.check(name, handler_of(name), "Succeeded")
        assert aws.events.pop()
        assert items() == before != []

    def test_a_revision_of_the_newer_kind_is_read_too(self, aws):
        aws.check("BillingFunction", handler_of("BillingFunction"), "Succeeded", "appSpecContent")
        assert [event["path"] for event in aws.events] == ["/v1/billing"]

    @pytest.mark.parametrize("required", [False, True])
    @each("name", api_functions())
    def test_every_function_passes_through_the_front_door(self, aws, monkeypatch, name, required):
        monkeypatch.setitem(settings.__dict__, "front_door_secret", SigningSecret(current=SECRET))
        monkeypatch.setitem(settings.__dict__, "front_door_required", required)
        monkeypatch.setenv("FRONT_DOOR_SECRET", json.dumps({"current": SECRET, "previous": "e" * 64}))
        aws.check(name, handler_of(name), "Succeeded")


class TestFailed:
    @each("name", ["ProjectsFunction", "SweeperFunction"])
    def test_a_version_that_cannot_start_gets_no_traffic(self, aws, caplog, name):
        def handler(event: dict[str, Any], context: Any) -> Any:
            raise ImportError("cannot import name 'ArgsKwargs'")

        aws.check(name, handler, "Failed")
        assert f"assent-{name}-1A2B, version 8, gets no traffic: it failed with ImportError" in caplog.text

    def test_a_version_without_its_table_gets_no_traffic(self, aws, monkeypatch):
        with monkeypatch.context() as patched:
            patched.setattr(table, "name", "assent-unknown")
            aws.check("SystemFunction", handler_of("SystemFunction"), "Failed")

    def test_a_version_that_requires_a_front_door_that_isnt_there_gets_no_traffic(self, aws, monkeypatch, caplog):
        monkeypatch.setitem(settings.__dict__, "front_door_required", True)
        aws.check("ProjectsFunction", handler_of("ProjectsFunction"), "Failed")
        assert "the status is 403 instead of 401" in caplog.text

    @each(
        ("change", "reason"),
        [
            (lambda it: it.update(statusCode=200), "the status is 200 instead of 401"),
            (lambda it: it["headers"].pop("x-request-id"), "X-Request-Id"),
            (lambda it: it["headers"].update({"x-request-id": "other"}), "X-Request-Id"),
            (lambda it: it.update(body='{"success":true,"error":{"secret":"s3cr3t"}}'), "the envelope"),
            (lambda it: it.update(body='{"success":false,"secret":"s3cr3t"}'), "the envelope"),
        ],
        ids=["status", "no request ID", "another request ID", "wrong success", "no error"],
    )
    def test_a_version_with_another_response_gets_no_traffic_and_the_log_has_nothing_of_it(
        self, aws, caplog, change, reason
    ):
        def handler(event: dict[str, Any], context: Any) -> Any:
            answer = handler_of("ProjectsFunction")(event, context)
            change(answer)
            return answer

        caplog.clear()
        aws.check("ProjectsFunction", handler, "Failed")
        assert reason in caplog.text
        assert "s3cr3t" not in caplog.text


class TestNotReported:
    """Lambda repeats an invocation that failed, and CodeDeploy waits for the report."""

    @pytest.fixture(autouse=True)
    def _deployed(self, aws):
        aws.deploys("assent-BillingFunction-1A2B", handler_of("BillingFunction"))
        yield
        aws.deployments.assert_no_pending_responses()

    def test_a_throttled_check_is_repeated(self, aws):
        def throttle(**_: Any) -> tuple[SimpleNamespace, dict[str, Any]]:
            error = {"Code": "TooManyRequestsException", "Message": "Rate Exceeded."}
            return SimpleNamespace(status_code=429), {"Error": error}

        aws.clients["lambda"].meta.events.register_first("before-call.lambda.Invoke", throttle)
        with pytest.raises(ClientError, match="TooManyRequests"):
            aws.run()

    def test_a_lost_report_is_repeated(self, aws):
        aws.deployments.add_client_error("put_lifecycle_event_hook_execution_status", "ThrottlingException")
        with pytest.raises(ClientError, match="Throttling"):
            aws.run()
        assert len(aws.events) == 1
