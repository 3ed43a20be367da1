"""`docsUrl` and `fix` of error responses: each address exists, and each request that is proposed works.

One case for each code of the OpenAPI document, and for each way in which a request can be wrong.
"""

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from controlplane.core.errors import CATALOG, InvalidPayload, MethodNotAllowed, RouteNotFound
from controlplane.core.scopes import SCOPES
from controlplane.core.settings import settings
from controlplane.core.tokens import digest
from controlplane.http import fixes
from controlplane.http.fixes import RefusedRequest, find_fix
from controlplane.store import billing, keys, organizations
from controlplane.store.table import Update, table
from scripts.openapi.texts import DOCUMENT
from tests.functional.conftest import FakeClock
from tests.functional.test_every_route import WITH_BODY, address
from tests.support.api import Api, Reply
from tests.support.audits import make_issue, make_scan
from tests.support.browser import Browser
from tests.support.each import each
from tests.support.operations import Operation
from tests.support.table import PREPARED
from tests.support.world import Company, World

JSON = {"Content-Type": "application/json"}
KEY = "8f14e45f-ceea-467f-a9b7-0d5b2c3a1e77"
SECRET = "sk_live_4fT9wQz2LmX7bKc1RgN8vYpH5sJd3AaU0eWi"


class Sent(NamedTuple):
    """A refused request, and what is needed to send the fix."""

    reply: Reply
    token: str | None
    body: dict[str, Any] | None = None
    user_id: str = ""


def send_fix(api: Api, now: FakeClock, sent: Sent) -> Reply:
    """Sends the request that the error proposes, as a program does that knows nothing else."""
    fix = sent.reply.fix
    assert fix is not None, sent.reply.text
    now.advance(fix.get("afterSeconds", 0))
    if "url" in fix:
        return Browser(api).signed_in(sent.user_id).get(urlsplit(fix["url"]).path)
    if first := fix.get("first"):
        assert api.call(first["method"], first["path"], sent.token).status == 200
    body = {**(sent.body or {} if fix.get("keepsBody") else {}), **fix.get("body", {})}
    has_body = "body" in fix or fix.get("keepsBody")
    return api.call(
        fix["method"], fix["path"], sent.token, json_body=body if has_body else None, headers=fix.get("headers", {})
    )


def _limit(key: keys.Key, limit: int) -> None:
    table.update(Update(key, "SET #rateLimit = :limit", "attribute_exists(pk)", {"limit": limit}), PREPARED)


# Refused requests


def missing_scope(api: Api, world: World, company: Company) -> Sent:
    token = world.token(company.owner.user_id, ["projects.read"])
    return Sent(api.get("/v1/members", token), token)


def scope_of_a_key(api: Api, world: World, company: Company) -> Sent:
    token = world.key(company)
    return Sent(api.get("/v1/members", token), token)


def no_credential(api: Api, world: World, company: Company) -> Sent:
    del world, company
    return Sent(api.get("/v1/projects"), None)


def missing_field(api: Api, world: World, company: Company) -> Sent:
    token = world.key(company)
    body = {"region": "eu-west", "name": 17}
    reply = api.post("/v1/projects", token, json_body=body)
    assert reply.fix["body"] == {"name": "Shop", "region": "eu-west"}
    assert reply.fix["replace"] == ["name"]
    assert reply.fix["headers"] == JSON
    return Sent(reply, token, body)


def unknown_region(api: Api, world: World, company: Company) -> Sent:
    token = world.key(company)
    return Sent(api.post("/v1/projects", token, json_body={"name": "Shop", "region": "moon"}), token)


def invalid_website(api: Api, world: World, company: Company) -> Sent:
    token = world.key(company)
    body = {"name": "Shop", "region": "us-east", "websites": ["no host"]}
    return Sent(api.post("/v1/projects", token, json_body=body), token)


def no_json(api: Api, world: World, company: Company) -> Sent:
    token = world.key(company)
    return Sent(api.call("POST", "/v1/projects", token, raw_body=b"{"), token)


def another_media_type(api: Api, world: World, company: Company) -> Sent:
    token = world.key(company)
    reply = api.call("POST", "/v1/projects", token, raw_body=b"<a/>", headers={"Content-Type": "application/xml"})
    assert reply.status == 415
    assert reply.fix["headers"] == JSON
    return Sent(reply, token)


def invalid_cursor(api: Api, world: World, company: Company) -> Sent:
    token = world.key(company)
    reply = api.get("/v1/projects?limit=7&cursor=gone", token)
    assert reply.fix == {"method": "GET", "path": "/v1/projects?limit=7"}
    return Sent(reply, token)


def invalid_limit(api: Api, world: World, company: Company) -> Sent:
    token = world.key(company)
    return Sent(api.get("/v1/projects?limit=1000", token), token)


def unknown_parameter(api: Api, world: World, company: Company) -> Sent:
    token = world.key(company)
    return Sent(api.get(f"/v1/projects?key={SECRET}", token), token)


def several_organizations(api: Api, world: World, company: Company) -> Sent:
    world.company(owner=company.owner)
    world.clear_default(company.owner)
    body = {"name": "Shop", "region": "eu-west"}
    return Sent(api.post("/v1/projects", company.owner.token, json_body=body), company.owner.token, body)


def used_idempotency_key(api: Api, world: World, company: Company) -> Sent:
    del world
    token, headers = company.owner.token, {"Idempotency-Key": KEY}
    api.post("/v1/api-keys", token, json_body={"name": "a"}, headers=headers)
    reply = api.post("/v1/api-keys", token, json_body={"name": "b"}, headers=headers)
    assert reply.fix["headers"]["Idempotency-Key"] != KEY
    return Sent(reply, token, {"name": "b"})


def invalid_idempotency_key(api: Api, world: World, company: Company) -> Sent:
    del world
    token = company.owner.token
    reply = api.post("/v1/api-keys", token, json_body={"name": "b"}, headers={"Idempotency-Key": "a,b"})
    return Sent(reply, token, {"name": "b"})


def plan_without_api(api: Api, world: World, company: Company) -> Sent:
    token = world.key(company)
    billing.change_plan(company.organization_id, "free")
    return Sent(api.get("/v1/projects", token), token, user_id=company.owner.user_id)


def plan_limit(api: Api, world: World, company: Company) -> Sent:
    billing.change_plan(company.organization_id, "free")
    table.update(
        Update(keys.organization(company.organization_id), "SET #projects = :many", None, {"many": 99}), PREPARED
    )
    del world
    body = {"name": "Shop", "region": "eu-west"}
    return Sent(
        api.post("/v1/projects", company.owner.token, json_body=body), company.owner.token, body, company.owner.user_id
    )


def locked(api: Api, world: World, company: Company) -> Sent:
    scan = make_scan(world.connected_repository(company), again="locked", issues=[make_issue(1)])
    world.credits(company, 100)
    token = company.owner.token
    return Sent(api.get(f"/v1/code-audit/scans/{scan.scan_id}/issues", token), token)


def no_credits(api: Api, world: World, company: Company) -> Sent:
    scan = make_scan(world.connected_repository(company), again="locked", issues=[make_issue(1)])
    token = company.owner.token
    return Sent(api.post(f"/v1/code-audit/scans/{scan.scan_id}/unlock", token), token, user_id=company.owner.user_id)


def stale_version(api: Api, world: World, company: Company) -> Sent:
    item = world.finding(company)
    token, path = company.owner.token, f"/v1/inbox/{item.item_id}"
    api.patch(path, token, json_body={"status": "accepted", "version": item.version})
    body = {"status": "dismissed", "version": item.version, "reason": "It is ours"}
    reply = api.patch(path, token, json_body=body)
    assert reply.fix["first"] == {"method": "GET", "path": path}
    return Sent(reply, token, body)


def too_many_keys(api: Api, world: World, company: Company) -> Sent:
    for _ in range(50):
        world.key(company)
    token = company.owner.token
    return Sent(api.post("/v1/api-keys", token, json_body={"name": "one more"}), token)


def scanning(api: Api, world: World, company: Company) -> Sent:
    repository = world.connected_repository(company)
    make_scan(repository, status="running")
    token = company.owner.token
    return Sent(api.post("/v1/code-audit/scans", token, json_body={"repositoryId": repository.repository_id}), token)


def preparing(api: Api, world: World, company: Company) -> Sent:
    repository = world.connected_repository(company)
    token, body = company.owner.token, {"repositoryId": repository.repository_id}
    api.post("/v1/code-audit/scans", token, json_body=body)
    return Sent(api.post("/v1/code-audit/scans", token, json_body=body), token, body)


def rate_limited(api: Api, world: World, company: Company) -> Sent:
    token = world.key(company)
    _limit(keys.key_secret(digest(token)), 1)
    api.get("/v1/projects?limit=3", token)
    return Sent(api.get("/v1/projects?limit=3", token), token)


def unknown_path(api: Api, world: World, company: Company) -> Sent:
    del company, world
    return Sent(api.get("/v1/nothing"), None)


CASES: dict[str, list[Callable[[Api, World, Company], Sent]]] = {
    "INVALID_PAYLOAD": [
        missing_field,
        no_json,
        another_media_type,
        invalid_cursor,
        invalid_limit,
        unknown_parameter,
        several_organizations,
        used_idempotency_key,
        invalid_idempotency_key,
    ],
    "INVALID_REGION": [unknown_region],
    "INVALID_ORIGIN": [invalid_website],
    "UNAUTHORIZED": [no_credential],
    "PLAN_REQUIRED": [plan_without_api],
    "PLAN_LIMIT_REACHED": [plan_limit],
    "INSUFFICIENT_CREDITS": [no_credits],
    "UNLOCK_REQUIRED": [locked],
    "INSUFFICIENT_SCOPE": [missing_scope, scope_of_a_key],
    "NOT_FOUND": [unknown_path],
    "CONFLICT": [stale_version],
    "KEY_LIMIT_REACHED": [too_many_keys],
    "SCAN_IN_PROGRESS": [scanning, preparing],
    "RATE_LIMITED": [rate_limited],
}
# Codes without a case, and why.
WITHOUT = {
    "INSTANCE_LIMIT_REACHED": "no request is refused with it",
    "FORBIDDEN": "only another person can help",
    "REPOSITORY_NOT_LINKED": "only an admin can link a repository, and not through a request that is known here",
    "PAYLOAD_TOO_LARGE": "what can be left out isn't known",
    "INTERNAL_ERROR": "the request may have been right",
    "SERVICE_UNAVAILABLE": "tested with the clock of a retry, as RATE_LIMITED",
}


def test_every_code_of_the_document_has_a_case_or_a_reason():
    document = json.loads(DOCUMENT.read_text())
    codes = document["components"]["schemas"]["ErrorCode"]["x-extensible-enum"]
    assert {*codes} == {*CATALOG} == CASES.keys() | WITHOUT.keys()
    assert not CASES.keys() & WITHOUT.keys()


@each("code", CATALOG)
def test_the_page_of_errors_has_every_code(code: str, api: Api):
    address = urlsplit(api.get("/v1/projects").guidance["docsUrl"])
    assert re.search(rf'<section id="{code}">', api.get(address.path).text)
    shown = api.get(address.path, headers={"Accept": "text/markdown"})
    assert shown.headers["content-type"].startswith("text/markdown")
    assert f"\n## {code}\n" in shown.text


@each("case", [case for cases in CASES.values() for case in cases], ids=lambda case: case.__name__)
def test_the_request_that_is_proposed_works(
    case: Callable[[Api, World, Company], Sent], api: Api, world: World, now: FakeClock
):
    company = world.company()
    sent = case(api, world, company)
    assert sent.reply.code == next(code for code, cases in CASES.items() if case in cases)
    assert send_fix(api, now, sent).status < 300


@each("operation", WITH_BODY, ids=lambda operation: operation.name)
def test_a_body_that_is_proposed_is_valid(operation: Operation, api: Api, world: World, now: FakeClock):
    company = world.company()
    path = address(operation, company.organization_id)
    for body in ({}, {name: {"no": SECRET} for name in fixes.operations()[operation.name]["example"]}):
        reply = api.call(operation.method, path, company.owner.token, json_body=body)
        if reply.status == 400 and reply.fix is not None:
            answer = send_fix(api, now, Sent(reply, company.owner.token, body))
            assert answer.status != 400, (reply.text, answer.text)


class TestNothingIsRepeated:
    def test_a_fix_never_has_text_that_the_client_sent(self, api: Api, world: World):
        company = world.company()
        token = company.owner.token
        for body in ({"name": 17, "slug": SECRET}, {"name": SECRET, "slug": "!"}, {SECRET: 1}):
            reply = api.post(f"/v1/organizations?{SECRET}={SECRET}", token, json_body=body)
            assert reply.status == 400
            assert SECRET not in json.dumps(reply.fix)
        reply = api.get(f"/v1/projects?organizationId={SECRET}&cursor=x", token)
        assert SECRET not in reply.text
        assert token not in reply.text
        request = RefusedRequest("GET", "/v1/projects", "GET /v1/projects", f"cursor={SECRET}&limit=7".encode())
        fix = find_fix(InvalidPayload.at(["x"], "Unknown"), request)
        assert fix == {"method": "GET", "path": "/v1/projects?limit=7"}
        request = request._replace(query=f"cursor=word+{SECRET[:20]}".encode())
        assert find_fix(InvalidPayload.at(["x"], "Unknown"), request) == {"method": "GET", "path": "/v1/projects"}
        operation = "POST /v1/projects"
        sent = {"x": company.organization_id, "region": f"{company.organization_id} {SECRET}"}
        request = RefusedRequest("POST", "/v1/projects", operation, content=sent)
        fix = find_fix(InvalidPayload.at(["name"], "Missing"), request)
        assert fix is not None
        assert "x" not in fix["body"]
        assert SECRET not in json.dumps(fix["body"])

    @each("number", [9_999, -9_999, 10_000, -10_000, True])
    def test_a_number_is_repeated_only_if_it_is_small(self, number: int):
        field, operation = "gracePeriodSeconds", "POST /v1/api-keys/{keyId}/roll"
        path = f"/v1/api-keys/key_{'0' * 34}/roll"
        request = RefusedRequest("POST", path, operation, content={field: number}, has_body=True)
        fix = find_fix(InvalidPayload.at(["x"], "Unknown"), request)
        assert fix is not None
        assert fix["body"] == ({field: number} if abs(number) == 9_999 else {})

    def test_a_path_with_something_else_than_ids_is_not_repeated(self, api: Api, world: World):
        reply = api.get("/v1/organizations/a%20b%40example.com?limit=1&limit=2", world.company().owner.token)
        assert reply.status == 400
        assert reply.fix is None
        project, operation = f"/v1/projects/prj_{'0' * 34}", "DELETE /v1/projects/{projectId}/websites/{websiteId}"
        request = RefusedRequest("DELETE", f"{project}/websites/a%20b%40example.com", operation)
        assert find_fix(InvalidPayload.at(["x"], "Unknown"), request) is None


class TestWhoMayRepeat:
    def test_a_member_is_not_told_to_unlock_a_report(self, api: Api, world: World):
        company = world.company()
        scan = make_scan(world.connected_repository(company), again="locked", issues=[make_issue(1)])
        member = world.member(company)
        assert api.get(f"/v1/code-audit/scans/{scan.scan_id}/issues", member.token).fix is None

    def test_a_credential_that_cant_read_an_item_is_not_told_to(self, api: Api, world: World):
        company = world.company()
        item = world.finding(company)
        token = world.token(company.owner.user_id, ["inbox.write"])
        body = {"status": "accepted", "version": "0" * 32}
        fix = api.patch(f"/v1/inbox/{item.item_id}", token, json_body=body).fix
        assert fix is not None
        assert "first" not in fix
        assert fix["body"] == {"status": "accepted", "version": item.version}

    def test_a_missing_scope_asks_for_the_scopes_of_the_credential_too(self, api: Api, world: World):
        company = world.company()
        sent = missing_scope(api, world, company)
        assert sent.reply.fix["body"]["scope"].split() == ["members.read", "projects.read"]
        assert {*sent.reply.fix["body"]["scope"].split()} <= {*SCOPES}

    def test_of_several_organizations_the_one_with_the_first_id_is_proposed(self, api: Api, world: World):
        company = world.company()
        sent = several_organizations(api, world, company)
        memberships = organizations.get_account(company.owner.user_id).memberships
        first = min(it.organization_id for it in memberships)
        path = f"/v1/projects?organizationId={first}"
        assert sent.reply.fix == {"method": "POST", "path": path, "keepsBody": True}

    def test_a_sign_in_is_proposed_for_a_client_that_the_operator_allows(
        self, api: Api, world: World, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setitem(settings.__dict__, "device_client_ids", "acme-cli,acme-tv")
        fix = missing_scope(api, world, world.company()).reply.fix
        assert fix is not None
        assert fix["body"]["clientId"] == "acme-cli"

    def test_there_is_no_sign_in_if_devices_are_turned_off(
        self, api: Api, world: World, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setitem(settings.__dict__, "device_authorization_enabled", False)
        assert missing_scope(api, world, world.company()).reply.fix is None


@each(
    ("method", "path", "fix"),
    [
        ("GET", "/v1/project", {"method": "GET", "path": "/v1/projects"}),
        ("DELETE", "/v1/projects", {"method": "GET", "path": "/v1/projects"}),
        (
            "GET",
            "/v1/project/prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t",
            {"method": "GET", "path": "/v1/projects/prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"},
        ),
        (
            "POST",
            "/v1/api-key",
            {
                "method": "POST",
                "path": "/v1/api-keys",
                "headers": {"Content-Type": "application/json"},
                "body": {"name": "Production deploys"},
                "replace": ["name"],
            },
        ),
        ("POST", "/v1/code-audit/scan", {"method": "GET", "path": "/openapi.json"}),
        ("GET", "/v1/projects/" + "a" * 100_000, {"method": "GET", "path": "/openapi.json"}),
        ("GET", "/wp-login.php", {"method": "GET", "path": "/openapi.json"}),
        ("GET", "/v1/projects/a%20b/c", {"method": "GET", "path": "/openapi.json"}),
        (
            "DELETE",
            "/v1/project/prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t/websites/4ft9wqz2lmx7",
            {"method": "GET", "path": "/openapi.json"},
        ),
    ],
)
def test_an_unknown_path_or_method_leads_to_the_nearest_operation(method: str, path: str, fix: dict[str, Any]):
    for error in (RouteNotFound(), MethodNotAllowed(["GET"])):
        assert find_fix(error, RefusedRequest(method, path)) == fix
