"""The double of the gateway: what functions get, what clients get, and the template's responses to failures."""

import json
from typing import Any

import pytest

from local.gateway import (
    INVOCATION_LIMIT_BYTES,
    REQUEST_LIMIT_BYTES,
    Event,
    FunctionFailed,
    Gateway,
    Headers,
    InvocationRejected,
    Request,
    Response,
    body_of,
    template_routes,
)
from tests.support.each import each
from tests.support.template import gateway_responses, routes_by_group

OK: dict[str, Any] = {"statusCode": 200, "headers": {}, "body": "{}", "isBase64Encoded": False}


class Function:
    """Gives the answer, or raises it, and keeps the events."""

    def __init__(self, answer: Any = OK) -> None:
        self.answer = answer
        self.events: list[Event] = []

    def __call__(self, function: str, event: Event) -> Any:
        self.events.append(event)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def send(self, method: str, target: str, headers: Headers | None = None, body: bytes = b"") -> Response:
        return Gateway(self).respond(Request(method, target, headers or [], body))


def is_own(response: Response, kind: str) -> bool:
    """Returns whether a response is the template's of that type, with its status, body, and headers."""
    declared = gateway_responses()[kind]
    headers = {"content-type": body_of(declared)[0], "x-amzn-requestid": response.request_id}
    for name, value in declared["ResponseParameters"]["Headers"].items():
        headers[name.lower()] = response.request_id if value == "context.requestId" else value.strip("'")
    expected = (declared["StatusCode"], headers, body_of(declared)[1].encode())
    return (response.status, dict(response.headers), response.body) == expected


class TestRoutes:
    def test_the_routes_are_the_templates(self):
        found = {(it.function, it.method, it.path) for it in template_routes()}
        assert found == {(name, it.method, it.path) for name, routes in routes_by_group().items() for it in routes}

    def test_a_path_leads_to_its_route(self):
        for path, route in {
            "/v1/projects": "/v1/projects",
            "/v1/projects/prj_x": "/v1/projects/{projectId}",
            "/v1/projects/a%2fb": "/v1/projects/{projectId}",
            "/v1/me/active-organization": "/v1/me/active-organization",
            "/v1%2fprojects": "/{path+}",
            "/organizations/acme/billing": "/{path+}",
            "/v1/projects/": "/{path+}",
        }.items():
            function = Function()
            function.send("GET", path)
            assert [event["resource"] for event in function.events] == [route]
        assert is_own(Function().send("POST", "/health"), "MISSING_AUTHENTICATION_TOKEN")

    def test_an_unknown_method_with_a_token_is_another_type_of_response(self):
        assert is_own(Function().send("POST", "/health", [("authorization", "Bearer x")]), "DEFAULT_4XX")


class TestAnswers:
    def test_headers_of_both_kinds_are_merged_and_renamed(self):
        several = {"Set-Cookie": ["a", "b"], "WWW-Authenticate": ["Bearer"], "Via": ["x"]}
        answer = {**OK, "multiValueHeaders": several, "headers": {"Set-Cookie": "b", "Retry-After": 1}}
        response = Function(answer).send("GET", "/v1/projects")
        assert response.headers[:-1] == [
            ("set-cookie", "a"),
            ("set-cookie", "b"),
            ("x-amzn-remapped-www-authenticate", "Bearer"),
            ("retry-after", "1"),
        ]

    @each(
        "answer",
        [
            None,
            "text",
            {"body": ""},
            {**OK, "statusCode": "200"},
            {**OK, "cookies": []},
            {**OK, "body": {}},
            {**OK, "headers": []},
            {**OK, "body": b""},
            {**OK, "body": "x" * INVOCATION_LIMIT_BYTES},
        ],
        ids=lambda answer: str(answer)[:60],
    )
    def test_an_answer_that_is_no_response_is_the_functions_failure(self, answer):
        assert is_own(Function(answer).send("GET", "/v1/projects"), "DEFAULT_5XX")


class TestFailures:
    @pytest.mark.parametrize(
        ("error", "kind"),
        [
            (InvocationRejected(), "INTEGRATION_FAILURE"),
            (FunctionFailed(), "DEFAULT_5XX"),
            (TimeoutError(), "INTEGRATION_TIMEOUT"),
        ],
    )
    def test_a_failed_invocation_is_the_templates_response(self, error, kind):
        response = Function(error).send("GET", "/v1/projects")
        assert is_own(response, kind)
        assert (response.status, dict(response.headers)["retry-after"]) == (503, "1")
        assert json.loads(response.body)["error"]["code"] == "SERVICE_UNAVAILABLE"

    # The larger one is too large for the gateway, the smaller one only for Lambda.
    @pytest.mark.parametrize("size", [INVOCATION_LIMIT_BYTES, REQUEST_LIMIT_BYTES + 1])
    def test_a_large_request_does_not_reach_the_function(self, size):
        function = Function()
        response = function.send("POST", "/v1/projects", body=b"x" * size)
        assert is_own(response, "REQUEST_TOO_LARGE")
        assert response.status == 413
        assert function.events == []
