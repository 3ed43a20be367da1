"""Checks what clients get if an invocation is rejected, fails, or takes too long, where functions really run."""

import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from local.gateway import Gateway, Request, Response, Route
from tests.e2e.deployment import REGION, Stack
from tests.e2e.gateway import Invocations
from tests.support.each import each

# Ends as the path says. Its time limit ends /wait.
_CODE = """
import os, threading

def handler(event, context):
    match event["path"]:
        case "/wait":
            threading.Event().wait()
        case "/raise":
            raise ValueError(event["path"])
        case "/exit":
            os._exit(1)
        case "/text":
            return "text"
        case "/cookies":
            return {"statusCode": 200, "multiValueHeaders": {"Set-Cookie": ["a=1", "b=2"]}, "body": ""}
"""
_LIMIT_SECONDS = 2
_ROUTES = ("/wait", "/raise", "/exit", "/text", "/cookies")


@dataclass
class Probe:
    """A function next to the stack's, behind a gateway with the stack's own responses."""

    client: Any
    arn: str
    invoke: Invocations
    own_responses: dict[str, Any]

    def get(self, path: str, invoke: Invocations | None = None) -> Response:
        routes = [Route("GET", it, self.arn) for it in _ROUTES]
        gateway = Gateway(invoke or self.invoke, routes, own_responses=self.own_responses)
        return gateway.respond(Request("GET", path, []))

    def is_own(self, response: Response, kind: str) -> bool:
        """Returns whether a response is the deployed template's of that type, and says when to retry."""
        ((_, text),) = self.own_responses[kind]["ResponseTemplates"].items()
        found = (response.status, dict(response.headers)["retry-after"], json.loads(response.body))
        return found == (503, "1", json.loads(text["Fn::Sub"][0]))


@pytest.fixture(scope="module")
def probe(stack: Stack) -> Iterator[Probe]:
    client, code = stack.client("lambda"), io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("probe.py", _CODE)
    function = client.get_function_configuration(FunctionName=stack.physical_ids["SystemFunction"])
    made = client.create_function(
        FunctionName="probe",
        Runtime=function["Runtime"],
        Role=function["Role"],
        Handler="probe.handler",
        Timeout=_LIMIT_SECONDS,
        Code={"ZipFile": code.getvalue()},
    )
    yield Probe(client, made["FunctionArn"], Invocations(stack.endpoint_url, REGION, []), stack.own_responses())
    client.delete_function(FunctionName="probe")


class TestInvocations:
    def test_an_answer_after_the_limit_is_a_timeout(self, stack: Stack, probe: Probe):
        response = probe.get("/wait", Invocations(stack.endpoint_url, REGION, [], _LIMIT_SECONDS / 4))
        assert probe.is_own(response, "INTEGRATION_TIMEOUT")
        assert b"took too long" in response.body

    @each("path", ["/wait", "/raise", "/exit", "/text"])
    def test_a_function_that_fails_is_unavailable(self, probe: Probe, path: str):
        response = probe.get(path)
        assert probe.is_own(response, "DEFAULT_5XX")
        assert b"took too long" not in response.body

    def test_a_rejected_invocation_is_unavailable(self, probe: Probe):
        probe.client.put_function_concurrency(FunctionName=probe.arn, ReservedConcurrentExecutions=0)
        try:
            with pytest.raises(probe.client.exceptions.TooManyRequestsException):
                probe.client.invoke(FunctionName=probe.arn)
            response = probe.get("/cookies")
        finally:
            probe.client.delete_function_concurrency(FunctionName=probe.arn)
        assert probe.is_own(response, "INTEGRATION_FAILURE")
        assert b"SERVICE_UNAVAILABLE" in response.body

    def test_each_value_of_a_header_arrives(self, probe: Probe):
        response = probe.get("/cookies")
        assert [value for name, value in response.headers if name == "set-cookie"] == ["a=1", "b=2"]
