"""The handlers give the same response to requests that gateways and adapters could change.

They get what API Gateway sends: headers and decoded query parameters in lists, and the path as the client sent it or
decoded. Both are tested, because AWS's documents leave that open.
"""

import json
from typing import Any

import pytest

import projects.app
from controlplane.platform.core.errors import RouteNotFound
from controlplane.platform.http.envelope import failure
from controlplane.platform.table.table import table
from dashboard.app import handler
from local.gateway import Request, body_of
from tests.support.api import Reply
from tests.support.calls import intercepted
from tests.support.each import each
from tests.support.events import rest_event
from tests.support.logs import captured_logs
from tests.support.template import gateway_responses

type Headers = list[tuple[str, str]]

BODY = json.dumps({"name": "Shop", "region": "eu-central", "websites": ["shop.example.com"]}).encode()
JSON = ("Content-Type", "application/json")


@pytest.fixture
def company(world):
    return world.company()


def _error(reply: Reply) -> dict[str, Any] | None:
    return reply.error if reply.body and "error" in reply.body else None


@pytest.fixture
def both(api):
    """Sends a request with its path as it is and decoded, and returns the response if it is the same."""

    def send(method: str, target: str, headers: Headers, body: bytes | None = None) -> Reply:
        request = Request(method, target, headers, body or b"")
        reply = api.send(request)
        if "%" in target:
            decoded = api.send(request, decodes_path=True)
            assert (decoded.status, _error(decoded)) == (reply.status, _error(reply))
            assert (decoded.challenge, decoded.headers.get("allow")) == (reply.challenge, reply.headers.get("allow"))
        return reply

    return send


class TestRepeatedHeaders:
    @pytest.mark.parametrize("names", [("Authorization",) * 2, ("Authorization", "authorization")])
    def test_a_repeated_credential_is_401_even_if_it_is_valid_twice(self, both, world, company, names):
        value = f"Bearer {world.key(company)}"
        reply = both("GET", "/v1/projects", [(name, value) for name in names])
        assert (reply.status, reply.code, reply.challenge) == (401, "UNAUTHORIZED", 'Bearer error="invalid_token"')
        assert "details" not in reply.error  # it isn't incomplete

    def test_a_credential_that_a_gateway_joined_is_401(self, both, world, company):
        value = f"Bearer {world.key(company)}"
        for joined in (f"{value}, {value}", f"{value},{value}", f"{value}, x", f"x, {value}"):
            assert both("GET", "/v1/projects", [("Authorization", joined)]).status == 401

    @pytest.mark.parametrize("name", ["Idempotency-Key", "Content-Type"])
    def test_a_repeated_header_is_400_even_if_both_values_are_equal(self, both, world, company, name):
        valid = {"Idempotency-Key": "once", "Content-Type": "application/json"}
        token, value = ("Authorization", f"Bearer {world.key(company)}"), valid.pop(name)
        for repeated in (
            [(name, value), (name, value)],
            [(name, value), (name.lower(), value)],
            [(name, f"{value}, {value}")],
            [(name, f"{value},{value}")],
            [(name, value), (name, "")],
        ):
            reply = both("POST", "/v1/projects", [token, *valid.items(), *repeated], BODY)
            assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD"), repeated
            (problem,) = reply.error["details"]
            assert (problem["code"], problem["path"]) == ("repeated", [name])
        assert both("GET", "/v1/projects", [token]).body["data"] == []

    def test_a_repeated_content_type_of_an_oauth_request_is_400(self, both):
        form = "application/x-www-form-urlencoded"
        for repeated in ([form, form], ["application/json", form], [form, "application/json"], [f"{form}, {form}"]):
            headers = [("Content-Type", value) for value in repeated]
            reply = both("POST", "/v1/auth/device/code", headers, b"client_id=assent-cli")
            assert (reply.status, reply.error["details"][0]["path"]) == (400, ["Content-Type"])

    def test_a_repeated_header_is_rejected_after_the_credential(self, both):
        assert both("POST", "/v1/projects", [JSON, JSON], BODY).status == 401


class TestPaths:
    def test_an_encoded_slash_never_leads_to_another_route(self, both, world, company):
        token = ("Authorization", f"Bearer {company.owner.token}")
        project = both("POST", "/v1/projects", [token, JSON], BODY)
        found = f"/v1/projects/{project.data['id']}"
        assert both("GET", f"{found}/consent", [token]).status == 200
        for path in (
            f"{found}%2fconsent",
            f"{found}%2Fconsent",
            f"{found}%2f",
            f"/v1%2fprojects/{project.data['id']}",
            "/v1%2Fprojects",
            "%2fv1/projects",
        ):
            reply = both("GET", path, [token])
            assert (reply.status, reply.code) == (404, "NOT_FOUND"), path

    def test_a_path_that_the_gateway_decoded_once_is_not_decoded_into_another_route(self, api, company):
        token = ("Authorization", f"Bearer {company.owner.token}")
        reply = api.send(Request("GET", "/v1/projects/x%252fconsent", [token]), decodes_path=True)
        assert (reply.status, reply.error["message"]) == (404, RouteNotFound.message)

    def test_the_route_of_all_other_addresses_reaches_each_page(self):
        event = rest_event("GET", "/organizations/acme/billing", resource="/{path+}")
        reply = handler(event, None)
        assert reply["headers"]["location"] == "/sign-in?return_to=%2Forganizations%2Facme%2Fbilling"
        assert handler({**event, "path": "/organizations/acme%2fbilling"}, None)["statusCode"] == 404

    def test_encoded_characters_other_than_the_slash_are_decoded(self, both, world, company):
        token = ("Authorization", f"Bearer {company.owner.token}")
        project = both("POST", "/v1/projects", [token, JSON], BODY).data["id"]
        assert both("GET", f"/v1/projects/{project.replace('_', '%5F')}", [token]).status == 200
        for named in ("%00", "%0a", "a+b", "a%20b", "%ff", "a;b"):
            assert both("GET", f"/v1/projects/{named}", [token]).code == "NOT_FOUND", named

    def test_a_trailing_slash_is_another_path_even_if_the_gateway_ignores_it(self, company):
        event = rest_event("GET", "/v1/projects", token=company.owner.token)
        answer = projects.app.handler({**event, "path": "/v1/projects/"}, None)
        assert json.loads(answer["body"])["error"]["message"] == RouteNotFound.message

    @each("path", ["/v1", "/v1/", "/v1/projects/", "//v1/projects", "/v1//projects", "/V1/projects", "/v1/nothing"])
    def test_an_unknown_path_is_404_in_the_envelope(self, both, path):
        for headers in ([], [("Authorization", "Bearer x")]):
            reply = both("GET", path, headers)
            assert (reply.status, reply.code) == (404, "NOT_FOUND")


def test_an_event_with_single_values_is_read(company):
    """The console's test of a method sends such events, with null for what is missing."""
    event = rest_event("GET", "/v1/projects", token=company.owner.token)
    single = {
        **event,
        "multiValueHeaders": None,
        "queryStringParameters": {"limit": "none"},
        "multiValueQueryStringParameters": None,
    }
    assert projects.app.handler(single, None)["statusCode"] == 400
    assert projects.app.handler({**single, "queryStringParameters": None}, None)["statusCode"] == 200
    assert projects.app.handler({**single, "headers": None}, None)["statusCode"] == 401


class TestTheGatewaysResponses:
    def test_the_gateway_and_the_functions_describe_an_unknown_route_alike(self):
        for kind in ("MISSING_AUTHENTICATION_TOKEN", "DEFAULT_4XX", "RESOURCE_NOT_FOUND"):
            _, text = body_of(gateway_responses()[kind])
            assert json.loads(text) == json.loads(failure(RouteNotFound()))


def test_each_response_is_counted_and_a_server_error_also_as_one(api, world):
    token = world.person().token

    def fail(call, proceed):
        raise RuntimeError

    def counted(around, path: str) -> tuple[int, list[list[str]]]:
        with intercepted(table.client, around), captured_logs() as written:
            status = api.get(path, token).status
        metrics = [
            line["_aws"]["CloudWatchMetrics"][0]
            for line in map(json.loads, written.getvalue().splitlines())
            if "_aws" in line
        ]
        return status, [[it["Name"] for it in metric["Metrics"]] for metric in metrics]

    assert counted(lambda call, proceed: proceed(), "/v1/me") == (200, [["Requests"]])
    assert counted(lambda call, proceed: proceed(), "/v1/me?a=%00") == (400, [["Requests"]])
    assert counted(fail, "/v1/me") == (500, [["Requests", "ServerErrors"]])


def test_an_unexpected_error_is_logged_with_its_place_and_without_its_message(api, world):
    token = world.person().token

    def fail(call, proceed):
        raise RuntimeError("the text of a request")

    with intercepted(table.client, fail), captured_logs() as written:
        reply = api.get("/v1/me", token)
    assert reply.status == 500
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    (line,) = [line for line in lines if line.get("message") == "failed"]
    assert (line["level"], line["errorType"], line["operation"]) == ("ERROR", "RuntimeError", "GET /v1/me")
    assert line["requestId"] == reply.headers["x-request-id"]
    assert "the text of a request" not in written.getvalue()
