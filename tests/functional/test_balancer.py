"""Requests through the load balancer: functions treat them like those of the gateway, and trust only what it adds."""

import json
import os
import subprocess
import sys
import zlib
from dataclasses import dataclass
from typing import Any

import pytest

from controlplane.core.errors import RouteNotFound
from controlplane.core.settings import settings
from controlplane.http import balancer, lambda_handler
from controlplane.http.envelope import failure
from controlplane.http.fixes import RefusedRequest, public_details
from local.balancer import LIMIT_BYTES, Balancer, balancer_event, template_rules, unknown_path_body
from local.gateway import Gateway, Request, Response, template_routes
from tests.functional.test_every_route import address
from tests.support.api import Api, Reply
from tests.support.each import each
from tests.support.operations import Operation, operations
from tests.support.world import Company, World

DEVICE = {"clientId": "assent-cli", "codeChallenge": "E" * 43, "codeChallengeMethod": "S256"}
PROJECT = {"name": "Shop", "region": "eu-central", "websites": ["shop.example.com"]}
TRACE = "1-67891233-abcdef012345678912345678"


@dataclass
class Balanced(Api):
    """Sends requests through the load balancer."""

    def _respond(self, gateway: Gateway, request: Request) -> Response:
        double = Balancer(self._invoke)
        response = double.respond(request)
        # Where the checks look for the id that a response must have.
        return response._replace(headers=[*response.headers, ("x-amzn-requestid", double.trace_id)])


@pytest.fixture
def balanced() -> Balanced:
    return Balanced()


@pytest.fixture
def company(world: World) -> Company:
    return world.company()


def invoke(event: dict[str, Any]) -> dict[str, Any]:
    """Returns the answer of the function that the rules lead to."""
    function = Balancer(Balanced._invoke).find(event["path"])
    assert function is not None
    answer: dict[str, Any] = Balanced._invoke(function, event)
    return answer


def event_of(target: str, headers: list[tuple[str, str]] | None = None, method: str = "GET") -> dict[str, Any]:
    return balancer_event(Request(method, target, headers or []), TRACE)


def poll(api: Api, **headers: str) -> int:
    """Requests a device code, which is limited by address."""
    return api.post("/v1/auth/device/code", json_body=DEVICE, headers=headers).status


class TestRules:
    @each("parameter", ["x", "prj_3f8k2m9q7r1s5t6v", "v1", "a.b", "%2e%2e", "consent"])
    def test_the_rules_lead_every_route_to_its_function(self, parameter: str):
        double = Balancer(Balanced._invoke)
        for route in template_routes():
            path = route.path.replace("{path+}", f"{parameter}/{parameter}")
            filled = "/".join(parameter if part.startswith("{") else part for part in path.split("/"))
            assert double.find(filled) == route.function, filled

    def test_a_rule_has_at_most_five_patterns_and_wildcards(self):
        # User guide, "Quotas": also 100 rules, and 128 characters.
        assert len(template_rules()) <= 100
        for rule in template_rules():
            assert len(rule.patterns) <= 5
            assert "".join(rule.patterns).count("*") <= 5
            assert all(len(pattern) <= 128 and "?" not in pattern for pattern in rule.patterns)

    @each("path", ["/v1/", "/v1/nothing", "/v1/project", "*"])
    def test_an_unknown_path_of_the_api_gets_the_balancers_own_404(self, path: str):
        response = Balancer(Balanced._invoke).respond(Request("GET", path, []))
        assert (response.status, response.is_own) == (404, True)
        error = RouteNotFound()
        expected = json.loads(failure(error, public_details(error, RefusedRequest("GET", "/unknown"))))
        assert json.loads(response.body) == json.loads(unknown_path_body()) == expected
        # CloudFormation's limit.
        assert len(unknown_path_body()) <= 1_024 - 200

    @each("path", ["/v1/projects/", "/v1/projects/x/y", "/v1/projects/../me", "/v1/code-audit/x", "/docs/a/b", "/x/y"])
    def test_a_path_that_only_a_pattern_has_gets_the_functions_404(self, balanced: Balanced, path: str):
        reply = balanced.get(path)
        assert (reply.status, reply.code) == (404, "NOT_FOUND")


def _named(operation: Operation) -> str:
    return operation.name


class TestEveryOperation:
    @each("operation", operations(), ids=_named)
    def test_both_fronts_give_the_same_response(
        self, api: Api, balanced: Balanced, company: Company, world: World, operation: Operation
    ):
        path = (
            address(operation, company.organization_id)
            if operation.requires
            else operation.path.replace("{", "").replace("}", "")
        )
        token = company.owner.token if operation.requires else None
        replies = [
            front.call(operation.method, path, token, json_body={} if operation.route.body_field else None)
            for front in (api, balanced)
        ]
        first, second = replies
        assert first.status == second.status
        assert first.status < 500
        assert _without_times(first) == _without_times(second)


def _without_times(reply: Reply) -> Any:
    """Returns what doesn't depend on when the request was sent: not even a body, if it has new random values."""
    if reply.body is None or reply.status >= 400:
        return reply.headers.get("location", "").partition("?")[0], reply.headers.get("content-type"), reply.challenge
    return reply.body if "success" in reply.body and reply.status == 200 else None


class TestFunctions:
    def test_a_project_is_created_listed_changed_and_deleted(self, balanced: Balanced, company: Company):
        token = company.owner.token
        created = balanced.post("/v1/projects", token, json_body=PROJECT)
        assert created.status == 201
        path = f"/v1/projects/{created.data['id']}"
        assert balanced.patch(path, token, json_body={"description": "größer"}).data["description"] == "größer"
        assert [it["projectId"] for it in balanced.get("/v1/projects?limit=5", token).data] == [created.data["id"]]
        assert balanced.delete(path, token).status < 300
        assert balanced.get(path, token).status == 404

    def test_a_challenge_keeps_its_name(self, balanced: Balanced):
        reply = balanced.get("/v1/me")
        assert (reply.status, reply.headers["www-authenticate"]) == (401, "Bearer")

    def test_a_form_and_a_page_arrive(self, balanced: Balanced):
        reply = balanced.form("/v1/auth/device/code", {"client_id": "assent-cli"})
        assert reply.status == 400
        assert reply.body["error"] == "invalid_request"
        assert balanced.get("/signed-out", headers={"Accept": "text/html"}).status == 200

    def test_a_body_of_bytes_arrives_unchanged(self, balanced: Balanced, company: Company):
        body = b'{"name":"\xff"}'
        for media_type in ("application/json", "application/octet-stream", "application/vnd.api+json"):
            reply = balanced.call(
                "POST", "/v1/projects", company.owner.token, raw_body=body, headers={"Content-Type": media_type}
            )
            assert reply.status == (415 if media_type.endswith("stream") else 400)

    def test_an_operation_refuses_another_method(self, balanced: Balanced):
        for method in ("PUT", "OPTIONS", "TRACE"):
            answer = invoke(event_of("/v1/projects", method=method))
            assert (answer["statusCode"], answer["multiValueHeaders"]["allow"]) == (405, ["GET, HEAD, POST"])

    def test_head_is_the_response_to_get_without_its_body(self, balanced: Balanced):
        answer = invoke(event_of("/v1/regions", method="HEAD"))
        assert (answer["statusCode"], answer["body"]) == (200, "")


class TestPaths:
    @each("path", ["%2fconsent", "%2Fconsent", "%2f", "%252fconsent"])
    def test_an_encoded_slash_never_leads_to_another_route(self, balanced: Balanced, company: Company, path: str):
        token = company.owner.token
        project = balanced.post("/v1/projects", token, json_body=PROJECT).data["id"]
        assert balanced.get(f"/v1/projects/{project}/consent", token).status == 200
        reply = balanced.get(f"/v1/projects/{project}{path}", token)
        assert (reply.status, reply.code) == (404, "NOT_FOUND")

    def test_below_a_prefix_an_encoded_slash_is_refused_as_well(self):
        found = invoke(event_of("/organizations/acme/billing"))
        assert found["multiValueHeaders"]["location"] == ["/sign-in?return_to=%2Forganizations%2Facme%2Fbilling"]
        assert invoke(event_of("/organizations/acme%2fbilling"))["statusCode"] == 404

    def test_other_encoded_characters_are_decoded_once(self, balanced: Balanced, company: Company):
        token = company.owner.token
        project = balanced.post("/v1/projects", token, json_body=PROJECT).data["id"]
        assert balanced.get(f"/v1/projects/{project.replace('_', '%5F')}", token).status == 200
        assert balanced.get(f"/v1/projects/{project.replace('_', '%255F')}", token).status == 404


class TestQueries:
    @each(
        "query", ["limit=%35", "limit=5", "limit=+5", "limit=5&limit=5", "limit=5&%6Cimit=5", "limit", "cursor=a%2Bb"]
    )
    def test_a_query_means_the_same_as_at_the_gateway(self, api: Api, balanced: Balanced, company: Company, query: str):
        replies = [front.get(f"/v1/projects?{query}", company.owner.token) for front in (api, balanced)]
        assert replies[0].status == replies[1].status
        assert replies[0].body == replies[1].body

    def test_a_value_is_decoded_once(self):
        query = balancer.gateway_event(event_of("/x?a=%2Fa%252Fb%26c&a=1+2&%61=3"))["multiValueQueryStringParameters"]
        assert query == {"a": ["/a%2Fb&c", "1 2", "3"]}


class TestAddress:
    def test_limits_count_the_address_that_the_balancer_saw(self):
        assert [poll(Balanced(source_ip="203.0.113.9")) for _ in range(11)] == [201] * 10 + [429]
        assert poll(Balanced(source_ip="203.0.113.10")) == 201

    @pytest.mark.parametrize(
        "name", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "True-Client-IP", "CF-Connecting-IP"]
    )
    def test_a_header_of_the_client_doesnt_change_the_address(self, name: str):
        sent = [poll(Balanced(), **{name: f"203.0.113.{number}"}) for number in range(11)]
        assert sent == [201] * 10 + [429]

    @each("appended", ["2001:db8::7", "[2001:db8::7]"])
    def test_an_address_is_read_with_and_without_brackets(self, appended: str):
        event = event_of("/x")
        event["multiValueHeaders"]["x-forwarded-for"] = [f"203.0.113.1, {appended}"]
        assert balancer.gateway_event(event)["requestContext"]["identity"] == {"sourceIp": "2001:db8::7"}

    def test_several_headers_are_no_address(self):
        event = event_of("/x")
        event["multiValueHeaders"]["x-forwarded-for"] = ["203.0.113.1, 198.51.100.7", "203.0.113.2"]
        assert balancer.gateway_event(event)["requestContext"]["identity"] == {"sourceIp": ""}
        del event["multiValueHeaders"]["x-forwarded-for"]
        assert balancer.gateway_event(event)["requestContext"]["identity"] == {"sourceIp": ""}

    def test_a_key_that_is_limited_to_addresses_works_only_from_there(self, company: Company):
        body = {"name": "ci", "allowedIps": ["203.0.113.0/24"]}
        key = Balanced().post("/v1/api-keys", company.owner.token, json_body=body).data["key"]
        forged = {"X-Forwarded-For": "203.0.113.9"}
        assert Balanced(source_ip="203.0.113.9").get("/v1/projects", key).status == 200
        assert Balanced(source_ip="192.0.2.1").get("/v1/projects", key, headers=forged).status == 403


class TestRequestId:
    def id_of(self, *sent: str) -> str:
        event = event_of("/x")
        event["multiValueHeaders"]["x-amzn-trace-id"] = [*sent]
        found: str = balancer.gateway_event(event)["requestContext"]["requestId"]
        return found

    def test_it_is_the_one_that_the_balancer_made(self):
        own = "1-00000000-00000000000000000000000a"
        assert self.id_of(f"Root={TRACE}") == TRACE
        assert self.id_of(f"Self={own};Root={TRACE};Sampled=1") == own
        assert self.id_of(f"Root={TRACE}; Self={own}") == own

    @each(
        "sent",
        [
            [],
            ["Root=x"],
            [f"Root={TRACE}x"],
            ["Self=../../;Root=" + TRACE],
            [f"Self={TRACE};Self={TRACE}"],
            [f"Root={TRACE}", f"Root={TRACE}"],
            [f"root={TRACE}"],
        ],
    )
    def test_an_id_that_no_balancer_makes_is_replaced(self, sent: list[str]):
        assert TRACE not in self.id_of(*sent)
        assert len(self.id_of(*sent)) == 36

    def test_the_client_cant_choose_it(self, balanced: Balanced):
        for sent in (f"Root={TRACE}", f"Self={TRACE};Root={TRACE}", f"Self={TRACE}"):
            reply = balanced.get("/v1/regions", headers={"X-Amzn-Trace-Id": sent})
            assert TRACE not in reply.headers["x-request-id"]


class TestHeaders:
    @each("name", ["Idempotency-Key", "Content-Type"])
    def test_a_repeated_header_is_400(self, balanced: Balanced, company: Company, name: str):
        value = {"Idempotency-Key": "once", "Content-Type": "application/json"}[name]
        sent = [("Authorization", f"Bearer {company.owner.token}"), (name, value), (name.lower(), value)]
        reply = balanced.send(Request("POST", "/v1/projects", sent, json.dumps(PROJECT).encode()))
        assert (reply.status, reply.error["details"][0]["code"]) == (400, "repeated")

    @each("host", ["a:b:c", "[::1", "acme.example.com:x", ""])
    def test_a_host_that_is_none_changes_nothing(self, balanced: Balanced, host: str):
        assert balanced.get("/v1/regions", headers={"Host": host}).status == 200
        assert balanced.get("/signed-out", headers={"Host": host, "Accept": "text/html"}).status == 200

    def test_cookies_that_were_split_are_joined(self):
        event = balancer.gateway_event(event_of("/x", [("Cookie", "a=1"), ("Cookie", "b=2")]))
        seen = lambda_handler._Event(event, None, {}).scope["headers"]  # type: ignore[arg-type]
        assert [value for name, value in seen if name == b"cookie"] == [b"a=1; b=2"]

    def test_names_are_lowercase_even_if_they_arent_sent_so(self):
        event = event_of("/x")
        event["multiValueHeaders"] = {"X-Forwarded-For": ["203.0.113.1"], "Cookie": ["a=1"]}
        assert balancer.gateway_event(event)["multiValueHeaders"].keys() == {"x-forwarded-for", "cookie"}

    def test_several_cookies_of_a_response_are_sent(self):
        answer = {"statusCode": 200, "headers": {"a": "1"}, "multiValueHeaders": {"set-cookie": ["x", "y"]}}
        sent = balancer.response_of({**answer, "body": "", "isBase64Encoded": False}, event_of("/x"))
        assert sent["multiValueHeaders"] == {"a": ["1"], "set-cookie": ["x", "y"]}
        assert "headers" not in sent


def _answer(body: str, *, is_base64: bool = False, **headers: str) -> dict[str, Any]:
    return {
        "statusCode": 200,
        "headers": {"x-request-id": "the-id", "content-type": "text/plain", **headers},
        "multiValueHeaders": {},
        "body": body,
        "isBase64Encoded": is_base64,
    }


def _sent(body: str, accepted: str = "", **options: Any) -> dict[str, Any]:
    event = balancer.gateway_event(event_of("/x", [("Accept-Encoding", accepted)] if accepted else []))
    return balancer.response_of(_answer(body, **options), event)


class TestSizes:
    def test_a_body_over_the_limit_is_rejected_by_the_balancer(self):
        response = Balancer(Balanced._invoke).respond(Request("POST", "/v1/projects", [], b"x" * (LIMIT_BYTES + 1)))
        assert (response.status, response.is_own) == (413, True)

    @each("accepted", ["gzip", "br, gzip;q=0.5", "GZIP", "gzip , br", "deflate,gzip;q=1.0"])
    def test_a_large_response_is_compressed_for_clients_that_accept_it(self, accepted: str):
        body = "é" * balancer.COMPRESSED_FROM_BYTES
        sent = _sent(body, accepted)
        assert sent["isBase64Encoded"] is True
        assert sent["multiValueHeaders"]["content-encoding"] == ["gzip"]
        assert sent["multiValueHeaders"]["vary"] == ["Accept-Encoding"]
        response = Balancer(lambda *_: sent).respond(Request("GET", "/health", []))
        assert zlib.decompress(response.body, wbits=31).decode() == body

    @each("accepted", ["", "br", "gzip;q=0", "gzip; q=0.0, br", "x-gzip", "notgzip"])
    def test_other_clients_get_it_as_it_is(self, accepted: str):
        body = "x" * balancer.COMPRESSED_FROM_BYTES
        assert _sent(body, accepted)["body"] == body

    def test_what_is_small_binary_or_encoded_isnt_compressed(self):
        small = "x" * (balancer.COMPRESSED_FROM_BYTES - 1)
        assert _sent(small, "gzip")["body"] == small
        assert _sent(small * 2, "gzip", is_base64=True)["body"] == small * 2
        assert _sent(small * 2, "gzip", **{"content-encoding": "br"})["body"] == small * 2

    def test_a_vary_header_is_kept(self):
        body = "x" * balancer.COMPRESSED_FROM_BYTES
        assert _sent(body, "gzip", vary="Accept")["multiValueHeaders"]["vary"] == ["Accept", "Accept-Encoding"]
        sent = _sent(body, "gzip", vary="Accept, Accept-Encoding")
        assert sent["multiValueHeaders"]["vary"] == ["Accept, Accept-Encoding"]

    @each("character", ["x", '"', "é", "\x01"])
    def test_a_response_at_the_limit_passes_and_a_larger_one_is_refused(self, character: str):
        width = len(json.dumps(character, ensure_ascii=False).encode()) - 2
        frame = len(json.dumps(_sent("")))
        fitting = (balancer.RESPONSE_LIMIT_BYTES - frame) // width
        for length, status in ((fitting, 200), (fitting + 1, 400)):
            sent = _sent(character * length)
            assert sent["statusCode"] == status
            response = Balancer(lambda *_, sent=sent: sent).respond(Request("GET", "/health", []))
            assert response.status == status

    def test_the_refusal_is_the_envelope_and_says_what_to_do(self):
        kept = {
            "x-ratelimit-limit": "600",
            "x-ratelimit-remaining": "7",
            "x-key-expires-at": "2026-03-05T00:00:00.000Z",
        }
        sent = _sent("x" * balancer.RESPONSE_LIMIT_BYTES, etag="W/0", **kept)
        assert sent["multiValueHeaders"] == {
            "x-request-id": ["the-id"],
            "content-type": ["application/json"],
            "cache-control": ["no-store"],
            **{name: [value] for name, value in kept.items()},
        }
        error = json.loads(sent["body"])["error"]
        assert error["code"] == "INVALID_PAYLOAD"
        assert error["details"][0]["code"] == "response_too_large"
        assert error["details"][0]["docsUrl"] == f"{settings.public_base_url}/docs/errors#INVALID_PAYLOAD"
        assert "gzip" in error["message"]

    def test_every_document_fits_if_it_is_compressed(self):
        for path in ("/openapi.json", "/docs/redoc.json", "/docs/reference.md"):
            answer = invoke(event_of(path, [("Accept-Encoding", "gzip")]))
            assert answer["multiValueHeaders"]["content-encoding"] == ["gzip"]


@each("kind", ["on-demand", "snap-start"])
def test_only_a_snapshot_includes_what_the_gateways_requests_dont_need(kind: str):
    program = "import projects.app, sys; print('controlplane.http.balancer' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "AWS_LAMBDA_INITIALIZATION_TYPE": kind, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == str(kind == "snap-start")


class TestOwnResponses:
    @each("answer", [None, {"statusCode": 200}, {"statusCode": "200", "multiValueHeaders": {}}, {"x": object()}])
    def test_a_function_that_fails_is_a_502(self, answer: Any):
        assert Balancer(lambda *_: answer).respond(Request("GET", "/health", [])).status == 502
