"""The order of refusals that docs/architecture.md shows, for each kind of caller.

A request starts with every mistake at once. Each step expects the refusal of the first one, and corrects it.
"""

import json
from typing import Any

import pytest

from controlplane.access import web_session
from controlplane.billing import store as billing
from controlplane.platform.core.ids import MemberId
from controlplane.platform.core.scopes import SCOPES
from controlplane.platform.core.settings import settings
from tests.support.api import FORM, Api
from tests.support.browser import Browser
from tests.support.valid_requests import OPERATIONS, valid_body

TOO_LARGE = b"{" + b"x" * 1_048_576


class Request:
    """A request that is corrected step by step."""

    def __init__(self, api: Api, method: str, path: str) -> None:
        self.api, self.method, self.path = api, method, path
        self.query, self.body = "?x=1&x=2", TOO_LARGE
        self.token: str | None = None
        self.headers = {"Content-Type": "text/plain"}

    def refusal(self) -> tuple[int, str]:
        """Returns the response's status and its code or, for a 400, the code of its first problem."""
        target = self.path + self.query
        reply = self.api.call(self.method, target, self.token, raw_body=self.body, headers=self.headers)
        if reply.body is None:
            return reply.status, ""
        return reply.status, reply.error["details"][0]["code"] if reply.status == 400 else reply.code


def _limit(monkeypatch: pytest.MonkeyPatch, **limits: Any) -> None:
    for name, value in limits.items():
        monkeypatch.setitem(settings.__dict__, name, value)


def _correct_the_body(request: Request, valid: dict[str, str]) -> None:
    """Checks the steps from the media type to validation, which are the same for JSON of any caller."""
    assert request.refusal() == (415, "INVALID_PAYLOAD")
    request.headers = {"Content-Type": "application/json"}
    assert request.refusal() == (400, "json_invalid")
    request.body = b"{}"
    assert request.refusal() == (400, "repeated")
    request.query = ""
    assert request.refusal() == (400, "missing")
    request.body = json.dumps(valid).encode()


def test_a_router_refuses_first(api):
    assert Request(api, "POST", "/v1/nothing").refusal() == (404, "NOT_FOUND")
    assert Request(api, "DELETE", "/v1/projects").refusal() == (405, "INVALID_PAYLOAD")


def test_a_user_token(api, world, monkeypatch, now):
    _limit(monkeypatch, requests_per_minute_user=1)
    company, other = world.company(), world.company()
    person = world.member(company, "member")
    request = Request(api, "PATCH", f"/v1/members/{MemberId.of_user(other.organization_id, other.owner.user_id)}")
    assert request.refusal() == (413, "PAYLOAD_TOO_LARGE")
    request.body = b"{"
    assert request.refusal() == (401, "UNAUTHORIZED")
    api.get("/v1/me", person.token)
    request.token = world.token(person.user_id, [])
    assert request.refusal() == (429, "RATE_LIMITED")
    _limit(monkeypatch, requests_per_minute_user=1_200)
    now.advance(60)
    assert request.refusal() == (403, "INSUFFICIENT_SCOPE")
    request.token = world.token(person.user_id, sorted(SCOPES))
    _correct_the_body(request, {"role": "admin"})
    assert request.refusal() == (404, "NOT_FOUND")
    request.path = f"/v1/members/{MemberId.of_user(company.organization_id, company.owner.user_id)}"
    assert request.refusal() == (403, "FORBIDDEN")


def test_an_api_key(api, world, monkeypatch, now):
    company = world.company()
    secret = world.key(company)
    billing.change_plan(company.organization_id, "free")
    request = Request(api, "POST", "/v1/api-keys")
    assert request.refusal() == (413, "PAYLOAD_TOO_LARGE")
    request.body = b"{"
    assert request.refusal() == (401, "UNAUTHORIZED")
    _limit(monkeypatch, rejected_credentials_per_minute=1)
    request.token = secret[:-1]
    assert [request.refusal() for _ in range(2)] == [(401, "UNAUTHORIZED"), (429, "RATE_LIMITED")]
    request.token = secret
    assert request.refusal() == (402, "PLAN_REQUIRED")
    billing.change_plan(company.organization_id, "pro")
    assert request.refusal() == (403, "INSUFFICIENT_SCOPE")


def test_no_credential(api, monkeypatch, now):
    _limit(monkeypatch, device_authorization_enabled=False)
    request = Request(api, "POST", "/v1/auth/device/code")
    assert request.refusal() == (404, "NOT_FOUND")
    _limit(monkeypatch, device_authorization_enabled=True)
    assert request.refusal() == (413, "PAYLOAD_TOO_LARGE")
    request.body = b"{"
    assert {request.refusal() for _ in range(11)} == {(415, "INVALID_PAYLOAD"), (429, "RATE_LIMITED")}
    now.advance(60)
    _correct_the_body(request, {**valid_body(OPERATIONS["createDeviceCode"]), "clientId": "another"})
    assert request.refusal()[0] == 400


def test_a_session(api, world, monkeypatch, now):
    _limit(monkeypatch, requests_per_minute_user=1)
    person = world.person()
    browser = Browser(api).signed_in(person.user_id)
    request = Request(api, "POST", "/device")
    assert request.refusal()[0] == 413
    request.body = b"\xff"
    assert request.refusal()[0] == 401
    api.get("/v1/me", person.token)
    request.headers["Cookie"] = f"{web_session.cookie_name('session')}={browser.secret}"
    assert request.refusal()[0] == 429
    _limit(monkeypatch, requests_per_minute_user=1_200)
    now.advance(60)
    assert request.refusal()[0] == 415
    request.headers["Content-Type"] = FORM
    assert request.refusal()[0] == 400
    request.body = b"form_token=x"
    assert request.refusal()[0] == 403
    request.body = f"form_token={browser.form_token}&user_code=x".encode()
    assert request.refusal()[0] == 400
    request.query = ""
    assert request.refusal()[0] == 404


def test_a_sign_in_page_counts_the_address_first(api):
    request = Request(api, "GET", "/signed-out")
    assert request.refusal()[0] == 413
    request.body = b""
    statuses = [request.refusal()[0] for _ in range(settings.sign_in_requests_per_minute + 1)]
    assert (set(statuses[:-1]), statuses[-1]) == ({400}, 429)
