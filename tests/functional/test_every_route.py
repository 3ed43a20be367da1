"""Rules for every route, generated from the route table, so that they also cover new routes."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from urllib.parse import quote, unquote

import pytest

from controlplane.access.access import Requires, UserTokenRequired
from controlplane.platform.core import ids, tokens
from controlplane.platform.core.scopes import API_KEY_SCOPES, SCOPES
from controlplane.platform.http.route import EVERY_PATH
from dashboard.other_addresses import show_nothing
from local.gateway import Request
from tests.support.api import FORM, Api
from tests.support.each import each
from tests.support.logs import captured_logs
from tests.support.operations import Operation, operations
from tests.support.reply import Reply
from tests.support.valid_requests import valid_body
from tests.support.world import Company, World, table_dump, uncounted

PUBLIC = {
    "GET /health",
    "GET /v1/regions",
    "GET /v1/consent-instances/{instanceId}/configuration",
    "OPTIONS /v1/consent-instances/{instanceId}/configuration",
    "GET /openapi.json",
    "GET /.well-known/oauth-authorization-server",
    "GET /.well-known/agent-feedback.json",
    "GET /.well-known/oauth-protected-resource",
    "GET /.well-known/security.txt",
    "POST /v1/auth/device/code",
    "POST /v1/auth/device/token",
    "POST /v1/auth/device/revoke",
    "POST /v1/github/leaked-keys",
    "POST /v1/github/webhooks",
    "GET /assets/{fileName}",
    "GET /badges/{badge}",
    "GET /favicon.ico",
    "GET /robots.txt",
    "GET /docs",
    "GET /docs/{fileName}",
    "GET /docs/rules/{ruleId}",
    "GET /llms.txt",
}
# Pages that don't require a session.
OPEN_PAGES = {
    *("GET /", "GET /login", "GET /sign-in", "GET /sign-in/callback", "GET /sign-up", "GET /signed-out"),
    *("GET /pricing", "GET /status", "POST /check"),
}
# Links in emails, which stop further ones without a session. The links are signed, and requests are counted.
UNSUBSCRIPTIONS = {
    "GET /account/unsubscribe/{link}",
    "POST /account/unsubscribe/{link}",
    "POST /account/unsubscribe/{link}/all",
}
_ADDRESSES = count(1)
_LOCALS = {ids.MemberId.prefix: 16}
_PROJECT_ID = "prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"
_OTHER_PARAMETERS = {"sessionId": "ses_0123456789abcdefgh", "websiteId": "web_0123456789abcdef", "vendorId": "segment"}
_OTHER_PARAMETERS["auditId"] = "aud_01kb2m3n4p5q6r7s8t"

# Required query parameters.
_QUERIES = {"/v1/code-audit/scan-requests/{preparationId}": "?repositoryId=rep_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"}

HOSTILE_BODIES = {
    "empty": b" ",
    "not JSON": b"{",
    "an array": b"[]",
    "null": b"null",
    "a string": b'"name"',
    "a number": b"17",
    "duplicate keys": b'{"name":"a","name":"b"}',
    "NaN": b'{"name":NaN}',
    "Infinity": b'{"name":-Infinity}',
    "overflow": b'{"name":1e400}',
    "huge integer": b'{"name":' + b"9" * 5_000 + b"}",
    "deep nesting": b"[" * 5_000 + b"]" * 5_000,
    "deep objects": b'{"name":' * 100 + b"1" + b"}" * 100,
    "lone surrogate": b'{"name":"\\ud800"}',
    "surrogate key": b'{"\\udfff":1}',
    "NUL": b'{"name":"a\\u0000b"}',
    "invalid UTF-8": b'{"name":"\xff\xfe"}',
    "UTF-8 surrogate": b'{"name":"\xed\xa0\x80"}',
    "UTF-16": '{"name":"a"}'.encode("utf-16"),
    "byte order mark": b'\xef\xbb\xbf{"name":"a"}',
    "trailing comma": b'{"name":"a",}',
    "comment": b'{"name":"a"} // x',
    "single quotes": b"{'name':'a'}",
    "two values": b'{"name":"a"}{"name":"b"}',
}


def _named(operation: Operation) -> str:
    return operation.name


def required(operation: Operation) -> Requires:
    assert operation.requires is not None
    return operation.requires


PAGES = [operation for operation in operations() if operation.requires_session is not None]
PROTECTED = [operation for operation in operations() if operation.name not in PUBLIC and operation not in PAGES]
SCOPED = [operation for operation in PROTECTED if required(operation).scope]
PERSONAL = [it for it in PROTECTED if required(it).user_token and required(it).keys_can_have_scope]
BY_QUERY = [operation for operation in PROTECTED if required(operation).organization == "query"]
BY_PATH = [operation for operation in PROTECTED if required(operation).organization == "path"]
BY_ID = [operation for operation in PROTECTED if required(operation).resource]
WITH_BODY = [operation for operation in PROTECTED if operation.route.body_field is not None]
ANONYMOUS = [it for it in operations() if it.anonymous is not None and it.method == "POST"]


def _unknown_id(prefix: str, organization_id: str) -> str:
    return f"{prefix}_{organization_id[4:]}{'0' * _LOCALS.get(prefix, 18)}"


def address(operation: Operation, organization_id: str) -> str:
    """Returns the route's path with well-formed but unknown IDs of that organization."""
    if operation.requires is None:
        return operation.path.replace("{instanceId}", _unknown_id(ids.InstanceId.prefix, organization_id))

    def fill(match: re.Match[str]) -> str:
        name = match[1]
        resource = required(operation).resource
        if name == "organizationId":
            return organization_id
        if resource is not None and resource.parameter == name:
            return _unknown_id(resource.id_type.prefix, organization_id)
        return _OTHER_PARAMETERS.get(name) or _unknown_id(ids.KeyId.prefix, organization_id)

    return re.sub(r"\{(\w+)\}", fill, operation.path) + _QUERIES.get(operation.path, "")


def send(api: Api, operation: Operation, token: str | None, organization_id: str, query: str = ""):
    """Sends a request, with an empty object as its body if the route takes one."""
    body = {} if operation.route.body_field is not None else None
    return api.call(operation.method, address(operation, organization_id) + query, token, json_body=body)


def send_valid(api: Api, operation: Operation, token: str | None, organization_id: str, query: str = ""):
    """Sends a request that passes validation, if its IDs are known."""
    path = address(operation, organization_id) + query
    return api.call(operation.method, path, token, json_body=valid_body(operation))


def test_only_these_routes_are_public_and_all_others_declare_requirements():
    undeclared = {o.name for o in operations() if o.requires is None and o.requires_session is None}
    assert undeclared == PUBLIC


def test_only_these_pages_are_public_and_every_change_is_a_form_of_a_session():
    # The page of an unknown address, or a redirect to that of a form.
    empty = {operation.name for operation in PAGES if operation.route.service_endpoint is show_nothing}
    assert {operation.name for operation in PAGES if not operation.requires_session.signed_in} == (
        OPEN_PAGES | UNSUBSCRIPTIONS | empty
    )
    for operation in PAGES:
        is_unsubscription = operation.name in UNSUBSCRIPTIONS
        assert operation.requires_session.form is (operation.method == "POST" and not is_unsubscription)
        assert (operation.requires_session.counted is not None) or not is_unsubscription
        assert operation.method in {"GET", "POST"}
        assert operation.requires is None


def test_a_public_route_with_a_body_limits_its_callers():
    taking = {o.name for o in operations() if o.name in PUBLIC and o.route.body_field is not None}
    assert taking == {operation.name for operation in ANONYMOUS}


def test_every_required_scope_exists():
    assert {required(operation).scope for operation in SCOPED} <= set(SCOPES)


@each("operation", PROTECTED, ids=_named)
class TestAnonymous:
    def test_without_a_credential_returns_401_before_reading_the_body_and_writes_nothing(self, operation, api, world):
        company = world.company()
        before = table_dump()
        reply = send(api, operation, None, company.organization_id)
        assert (reply.code, reply.challenge) == ("UNAUTHORIZED", "Bearer")
        path = address(operation, company.organization_id)
        assert api.call(operation.method, path, raw_body=b"{").code == "UNAUTHORIZED"
        assert table_dump() == before

    def test_unknown_incomplete_and_expired_credentials_return_401(self, operation, api, world, now):
        company, invalid = world.company(), 'Bearer error="invalid_token"'
        anonymous = send(api, operation, None, company.organization_id)
        for token in ("", "garbage", tokens.mint("assent"), tokens.mint("assent_at")):
            refused = send(api, operation, token, company.organization_id)
            assert (refused.status, refused.text) == (401, anonymous.text)
            assert refused.challenge == (invalid if token else "Bearer")
        for token in ("assent_short", "assent_at_" + "A" * 36, "assent_" + "z" * 36):
            refused = send(api, operation, token, company.organization_id)
            assert (refused.status, refused.code, refused.challenge) == (401, "UNAUTHORIZED", invalid)
            assert refused.error["details"] == {"reason": "incomplete_credential"}
            assert token not in refused.text
        now.advance(3_601)
        refused = send(api, operation, company.owner.token, company.organization_id)
        assert (refused.code, refused.challenge) == ("UNAUTHORIZED", invalid)


@each("operation", SCOPED, ids=_named)
class TestScope:
    def test_a_token_with_every_other_scope_is_refused_with_the_missing_one(self, operation, api, world):
        company = world.company()
        scope = required(operation).scope
        token = world.token(company.owner.user_id, sorted(set(SCOPES) - {scope, required(operation).or_scope}))
        reply = send(api, operation, token, company.organization_id)
        assert reply.code == "INSUFFICIENT_SCOPE"
        assert reply.status == 403
        assert reply.error["details"] == {"requiredScope": scope}
        assert reply.challenge == f'Bearer error="insufficient_scope", scope="{scope}"'

    def test_an_api_key_is_limited_to_its_scopes(self, operation, api, world):
        company = world.company()
        reply = send(api, operation, world.key(company), company.organization_id)
        assert (reply.body.get("error", {}).get("code") == "INSUFFICIENT_SCOPE") is (
            required(operation).scope not in API_KEY_SCOPES
        )


# What a person was told about a scope must not grow with later operations: these need a scope of their own.
_FIXED_SCOPES = {
    "organizations.read": {"GET /v1/organizations", "GET /v1/organizations/{organizationId}"},
    "organizations.write": {"POST /v1/organizations"},
    "code-audit.write": {
        "POST /v1/code-audit/scans",
        "POST /v1/code-audit/scans/{scanId}/cancel",
        "POST /v1/code-audit/scans/{scanId}/unlock",
    },
    "sessions.write": {"PUT /v1/me/active-organization"},
    "audit-log.read": {"GET /v1/audit-log"},
}


@each("scope", sorted(_FIXED_SCOPES))
def test_a_scope_allows_what_its_description_says(scope):
    assert {it.name for it in SCOPED if required(it).scope == scope} == _FIXED_SCOPES[scope]


@each("operation", PERSONAL, ids=_named)
class TestPerson:
    def test_an_api_key_with_the_scope_is_told_to_use_a_user_token(self, operation, api, world):
        company = world.company()
        reply = send(api, operation, world.key(company), company.organization_id)
        assert (reply.status, reply.code) == (403, "FORBIDDEN")
        assert reply.error["message"] == UserTokenRequired.message


@each("operation", PROTECTED, ids=_named)
class TestRate:
    def test_responses_to_known_callers_contain_the_rate_limit(self, operation, api, world, now):
        company = world.company()
        reply = send(api, operation, company.owner.token, company.organization_id)
        assert reply.headers["x-ratelimit-limit"] == "600"
        assert reply.headers["x-ratelimit-remaining"] == "599"
        assert int(reply.headers["x-ratelimit-reset"]) == (int(now()) // 60 + 1) * 60


def _as_stranger(world: World) -> tuple[Company, str, str]:
    """Creates a company, a token of another company's user, and that other company's key."""
    other = world.company()
    return world.company(), other.owner.token, world.key(other)


@each("operation", BY_QUERY, ids=_named)
class TestAnotherOrganizationByQuery:
    def test_another_or_an_unknown_organization_returns_the_same_403(self, operation, api, world):
        company, person, key = _as_stranger(world)
        texts = set()
        for named in (company.organization_id, ids.new_root(ids.ORGANIZATION), "nonsense", "ORG#x"):
            for token in (person, key) if required(operation).accepts_keys else (person,):
                reply = send_valid(api, operation, token, company.organization_id, f"?organizationId={named}")
                assert reply.code == "FORBIDDEN", named
                texts.add(reply.text)
        assert len(texts) == 1

    def test_a_user_of_several_organizations_must_name_one(self, operation, api, world):
        company = world.company()
        world.company(owner=company.owner)
        world.clear_default(company.owner)
        reply = send_valid(api, operation, company.owner.token, company.organization_id)
        assert reply.code == "INVALID_PAYLOAD"
        assert reply.error["details"][0]["path"] == ["organizationId"]

    def test_a_former_member_is_refused_at_once(self, operation, api, world):
        company = world.company()
        person = world.member(company, "owner")
        world.leave(company, person)
        query = f"?organizationId={company.organization_id}"
        assert send_valid(api, operation, person.token, company.organization_id, query).code == "FORBIDDEN"

    def test_a_repeated_organization_parameter_is_refused(self, operation, api, world):
        company = world.company()
        organization_id = company.organization_id
        query = f"?organizationId={organization_id}&organizationId={organization_id}"
        assert send_valid(api, operation, company.owner.token, organization_id, query).code == "INVALID_PAYLOAD"


@each("operation", BY_PATH + BY_ID, ids=_named)
class TestAnotherOrganizationById:
    def test_another_organizations_id_looks_exactly_like_an_unknown_one(self, operation, api, world):
        company, person, key = _as_stranger(world)
        mine = api.get("/v1/me", person).data["activeOrganizationId"]
        callers = (person, key) if required(operation).scope in API_KEY_SCOPES else (person,)
        replies = [
            send_valid(api, operation, token, organization_id)
            for organization_id in (company.organization_id, ids.new_root(ids.ORGANIZATION))
            for token in callers
        ]
        if operation in BY_ID:
            replies.append(send_valid(api, operation, person, mine))
        assert {reply.status for reply in replies} == {404}
        assert len({reply.text for reply in replies}) == 1

    def test_a_malformed_id_returns_404(self, operation, api, world):
        token = world.company().owner.token
        resource = required(operation).resource
        parameter = resource.parameter if resource else "organizationId"
        body = valid_body(operation)
        for named in ("x", "prj_", "org_%00", "..%2f..", "a" * 2_000, "%F0%9F%92%A9", "ORG%23x", "null", "-1", "%ff"):
            path = operation.path.replace("{" + parameter + "}", unquote(named, errors="replace").replace("/", "_"))
            path = re.sub(r"\{(\w+)\}", lambda match: _OTHER_PARAMETERS.get(match[1], _PROJECT_ID), path)
            path += _QUERIES.get(operation.path, "")
            assert api.call(operation.method, path, token, json_body=body).code == "NOT_FOUND", named


type Send = Callable[..., Reply]


@pytest.fixture
def sender(api, world):
    """Returns a function that sends to an operation: as an owner or, if it is public, each time from a new address."""

    def to(operation: Operation) -> Send:
        if operation in ANONYMOUS:
            return lambda **sent: _another(api).post(operation.path, **sent)
        company = world.company()
        path = address(operation, company.organization_id)
        return lambda **sent: api.call(operation.method, path, company.owner.token, **sent)

    return to


@each("operation", [*WITH_BODY, *ANONYMOUS], ids=_named)
class TestHostileBody:
    def test_a_hostile_body_returns_400_and_changes_only_the_counter(self, operation, sender):
        send = sender(operation)
        before = uncounted()
        for name, body in HOSTILE_BODIES.items():
            reply = send(raw_body=body)
            assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD"), name
        assert uncounted() == before

    def test_fields_of_the_wrong_type_never_cause_a_500(self, operation, sender):
        send = sender(operation)
        for value in (None, True, 1, -1.5, "", " ", [], {}, "x" * 100_000, ["a"], {"a": 1}, "\u202e"):
            for name in valid_body(operation):
                reply = send(json_body={**valid_body(operation), name: value})
                assert reply.status < 500, (name, value)
                assert reply.status != 422, (name, value)

    def test_over_one_mebibyte_returns_413_without_a_credential_too(self, operation, sender, api, world):
        body = json.dumps({"name": "x" * 1_048_576}).encode()
        assert sender(operation)(raw_body=body).code == "PAYLOAD_TOO_LARGE"
        path = address(operation, world.company().organization_id)
        before = table_dump()
        assert api.call(operation.method, path, raw_body=body).code == "PAYLOAD_TOO_LARGE"
        assert table_dump() == before

    def test_another_media_type_or_none_returns_415_with_the_one_to_send(self, operation, sender, api, world):
        form = [] if operation in ANONYMOUS else [FORM]
        for media_type in ("text/plain", "application/xml", "multipart/form-data; boundary=x", *form):
            reply = sender(operation)(raw_body=b"name=a", headers={"Content-Type": media_type})
            assert (reply.status, reply.code) == (415, "INVALID_PAYLOAD")
        company, body = world.company(), json.dumps(valid_body(operation)).encode()
        headers = [] if operation in ANONYMOUS else [("Authorization", f"Bearer {company.owner.token}")]
        reply = api.send(Request(operation.method, address(operation, company.organization_id), headers, body))
        assert (reply.status, reply.code) == (415, "INVALID_PAYLOAD")
        assert "application/json" in reply.error["message"]
        assert reply.error["details"][0]["code"] == "unsupported_media_type"

    def test_compressed_json_returns_415(self, operation, sender):
        body = json.dumps(valid_body(operation)).encode()
        for encoding in ("gzip", "identity, gzip"):
            reply = sender(operation)(raw_body=body, headers={"Content-Encoding": encoding})
            assert (reply.status, reply.code) == (415, "INVALID_PAYLOAD")
            assert "Content-Encoding" in reply.error["message"]


HOSTILE_FORMS = {
    "not ASCII": "client_id=\u00e9".encode(),
    "invalid UTF-8": b"client_id=%ff%fe",
    "UTF-8 surrogate": b"client_id=%ed%a0%80",
    "NUL": b"client_id=a%00b",
    "repeated": b"client_id=a&client_id=a",
    "too many fields": b"&".join(b"f%d=1" % number for number in range(1_000)),
    "JSON": b'{"clientId":"assent-cli"}',
    "no fields": b"",
    "separators": b"&&&===",
}


@each("operation", ANONYMOUS, ids=_named)
class TestForm:
    def test_a_hostile_form_returns_400(self, operation, api):
        for name, body in HOSTILE_FORMS.items():
            reply = _another(api).post(operation.path, raw_body=body, headers={"Content-Type": FORM})
            assert (reply.status, reply.body["error"]) == (400, "invalid_request"), name
        assert uncounted() == []

    def test_a_request_without_a_body_and_a_compressed_or_large_form_is_refused(self, operation, api):
        large, before = b"client_id=" + b"x" * 1_048_576, table_dump()
        assert api.post(operation.path, raw_body=large, headers={"Content-Type": FORM}).status == 413
        assert table_dump() == before
        assert api.post(operation.path).code == "INVALID_PAYLOAD"
        headers = {"Content-Type": FORM, "Content-Encoding": "gzip"}
        assert api.post(operation.path, raw_body=b"\x1f\x8b", headers=headers).status == 400


def _another(api: Api) -> Api:
    """Returns the API at another client's address, which hasn't used its limit of requests."""
    number = next(_ADDRESSES)
    return replace(api, source_ip=f"198.18.{number // 250}.{number % 250}")


@each("operation", operations(), ids=_named)
class TestPath:
    def test_a_trailing_slash_is_another_path(self, operation, api):
        reply = api.call(operation.method, re.sub(r"\{\w+\}", "x", operation.path) + "/")
        assert (reply.status, reply.code) == (404, "NOT_FOUND")

    def test_another_method_returns_405_with_the_allowed_ones(self, operation, api):
        path = re.sub(r"\{\w+\}", "x", operation.path)
        others = [it for it in operations() if it.group == operation.group]
        here = {it.method for it in others if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", it.path), path)}
        here |= {"HEAD"} if "GET" in here else set()
        # The route for all other addresses answers GET at the addresses of forms.
        elsewhere = {"GET"} if any(it.path == EVERY_PATH for it in others) else set()
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} - here - elsewhere:
            reply = api.call_app(method, path)
            if operation.path == EVERY_PATH:
                assert reply.code == "NOT_FOUND"
                continue
            assert (reply.status, reply.code) == (405, "INVALID_PAYLOAD")
            assert reply.headers["allow"] == ", ".join(sorted(here))


# Response headers that differ between two equal requests.
_OF_ONE_REQUEST = {"x-request-id", "x-amzn-requestid", "x-ratelimit-remaining"}


@each("operation", [operation for operation in operations() if operation.method == "GET"], ids=_named)
class TestHead:
    @each("token", [None, "assent_short", "owner"])
    def test_head_is_the_response_to_get_without_its_body(self, operation, token, api, world):
        company = world.company()
        path = address(operation, company.organization_id)
        path = path.replace("{", "").replace("}", "")
        token = company.owner.token if token == "owner" else token
        get, head = (api.call(method, path, token, headers={"Accept": "text/html"}) for method in ("GET", "HEAD"))
        assert (head.status, head.text) == (get.status, "")
        assert head.headers.keys() == get.headers.keys()
        # Sign-in creates a new state and cookie for each request, and an error page names its request.
        for name in get.headers.keys() - _OF_ONE_REQUEST - {"location", "content-length"}:
            assert head.headers[name] == get.headers[name], name
        counted = [reply.headers.get("x-ratelimit-remaining") for reply in (get, head)]
        assert counted in ([None, None], ["599", "598"])


def test_head_of_a_path_without_get_returns_405(api, world):
    reply = api.call("HEAD", "/v1/feedback", world.company().owner.token)
    assert (reply.status, reply.headers["allow"], reply.text) == (405, "POST", "")


def test_head_is_logged_as_such(api):
    with captured_logs() as written:
        api.call("HEAD", "/v1/regions")
    line = json.loads(written.getvalue().splitlines()[0])
    assert (line["operation"], line["method"], line["status"]) == ("GET /v1/regions", "HEAD", 200)


def test_an_unknown_path_returns_404_before_anything_else(api):
    assert api.post("/v1/nowhere", "garbage", raw_body=b"x" * 2_000_000).code == "NOT_FOUND"


_LIMITS = ("0", "101", "-1", "+5", "5_0", " 5", "5 ", "5.0", "1e1", "\u0665", "", "abc", "0x10", "9" * 400, "null")


@each(
    "operation",
    [operation for operation in BY_QUERY if (operation.route.operation_id or "").startswith("list")],
    ids=_named,
)
class TestList:
    def test_a_limit_outside_1_to_100_returns_400(self, operation, api, world):
        token = world.company().owner.token
        for limit in _LIMITS:
            reply = api.get(f"{operation.path}?limit={quote(limit)}", token)
            assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD"), limit
            assert reply.error["details"][0]["path"] == ["limit"], limit

    def test_a_forged_cursor_returns_400(self, operation, api, world):
        token = world.company().owner.token
        for cursor in ("x", "AAAA", "%00", "%F0%9F%92%A9", "A" * 900, "A" * 5_000, "="):
            reply = api.get(f"{operation.path}?cursor={cursor}", token)
            assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD"), cursor
