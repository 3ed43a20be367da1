"""POST /v1/auth/device/token: a device redeems its code."""

import re
from collections.abc import Callable
from typing import Any

from controlplane.people import device_approvals
from controlplane.platform.core import tokens
from controlplane.platform.core.settings import settings
from controlplane.platform.table.table import table
from tests.functional.device_auth.devices import (
    CODE,
    OTHER_VERIFIER,
    REVOKE,
    TOKEN,
    VERIFIER,
    Device,
    challenge_of,
    code_body,
    form_of,
    in_form,
    refresh,
    refresh_by_form,
    request_code,
    works,
)
from tests.support.api import Api, Reply
from tests.support.calls import intercepted, refused
from tests.support.each import each
from tests.support.logs import captured_logs
from tests.support.world import table_dump

SECRETS = ("accessToken", "refreshToken")
PENDING, SLOW_DOWN = "authorization_pending", "slow_down"


def stored_items(prefix: str = "") -> list[dict[str, Any]]:
    """Returns the items of partitions with this prefix, without the counters of addresses."""
    kept = [item for item in table_dump() if not item["pk"]["S"].startswith("IP#")]
    return [item for item in kept if item["pk"]["S"].startswith(prefix)]


def refusal(reply: Reply) -> tuple[int, str, str]:
    return reply.status, reply.code, reply.error["details"]["status"]


def problem(reply: Reply) -> str:
    """Returns the code of the only problem."""
    (found,) = reply.error["details"]
    return str(found["code"])


def test_an_approved_code_returns_tokens_that_act_for_the_user(api, pending, person, world):
    company = world.company(owner=person)
    assert pending.redeem().status == 409  # an early poll after the approval succeeds
    pending.approved(person.user_id, ["projects.read", "organizations.read"])
    reply = pending.redeem(refreshToken="ignored")
    pair = reply.data
    assert (reply.status, reply.headers["cache-control"]) == (200, "no-store")
    assert re.fullmatch(r"assent_at_[0-9A-Za-z]{36}", pair["accessToken"])
    assert re.fullmatch(r"assent_rt_[0-9A-Za-z]{68}", pair["refreshToken"])
    assert {name: value for name, value in pair.items() if name not in SECRETS} == {
        "tokenType": "Bearer",
        "expiresIn": 3600,
        "scope": "organizations.read projects.read",
    }
    me = api.get("/v1/me", pair["accessToken"]).data
    assert (me["principal"]["type"], me["principal"]["userId"]) == ("oauth", person.user_id)
    assert me["scopes"] == ["organizations.read", "projects.read"]
    assert me["organizations"][0]["role"] == "owner"
    world.leave(company, person)
    assert api.get("/v1/me", pair["accessToken"]).data["organizations"] == []
    assert not any(works(api, secret) for secret in (pending.device_code, pair["refreshToken"]))


def test_a_form_returns_the_response_of_rfc_6749_for_either_dialects_code_and_no_scope(api, approved, person):
    body = approved.redeem_by_form().body
    secrets = {name: body[name] for name in ("access_token", "refresh_token")}
    assert body == {**secrets, "token_type": "Bearer", "expires_in": 3600, "scope": "projects.read"}
    assert works(api, body["access_token"])
    asked = api.form(CODE, form_of(code_body())).body
    pair = Device(api, asked["device_code"], asked["user_code"]).approved(person.user_id, []).redeem().data
    assert (pair["scope"], api.get("/v1/me", pair["accessToken"]).data["scopes"]) == ("", [])


def test_neither_the_table_nor_the_logs_contain_a_secret(api, person):
    with captured_logs() as lines:
        device = request_code(api).approved(person.user_id)
        first = device.redeem().data
        second = refresh(api, first["refreshToken"]).data
        refresh(api, tokens.mint("assent_rt"))
    stored, log = str(table_dump()), lines.getvalue()
    assert log
    for secret in (device.device_code, *(pair[name] for pair in (first, second) for name in SECRETS)):
        assert secret.rpartition("_")[2][16:46] not in stored
        assert secret not in stored + log
    assert not any(secret in log for secret in (device.user_code, VERIFIER))


def test_missing_fields_are_named(api, pending):
    fields = ("deviceCode", "codeVerifier", "clientId")
    for field in fields:
        details = pending.redeem(**{field: None}).error["details"]
        assert details == [{"code": "missing", "message": "Field required", "path": [field]}]
    for body, missing in (({}, fields), ({"grantType": "refresh_token"}, ("refreshToken",))):
        details = api.post(TOKEN, json_body=body).error["details"]
        assert [it["path"] for it in details] == [[field] for field in missing]
    for field in ("grantType", *fields):
        form = pending.redeem_by_form(**{field: None}).body
        assert form["error"] == "invalid_request"
        assert form["error_description"].startswith(f"{in_form(field)}: ")


@each(
    ("field", "value", "error"),
    [
        *(
            ("grantType", grant, "unsupported_grant_type")
            for grant in ("authorization_code", "password", "client_credentials", "device_code", "x")
        ),
        ("clientId", "x", "invalid_client"),
        *(
            ("codeVerifier", verifier, "invalid_request")
            for verifier in ("x" * 42, "x" * 129, "x" * 42 + "\u00e9", "x" * 43 + "\n", "x x" * 20)
        ),
    ],
)
def test_an_invalid_field_is_rejected(field, value, error, approved):
    reply = approved.redeem(**{field: value})
    assert (reply.status, reply.error["details"][0]["path"]) == (400, [field])
    assert error in {problem(reply), "invalid_request"}
    assert approved.redeem_by_form(**{field: value}).body["error"] == error


def test_a_wrong_verifier_or_client_changes_nothing_before_and_after_the_redemption(api, pending, person, monkeypatch):
    monkeypatch.setitem(settings.__dict__, "device_client_ids", "assent-cli,acme-tv")
    before = stored_items()
    for verifier in (OTHER_VERIFIER, challenge_of(VERIFIER)):
        reply = pending.redeem(codeVerifier=verifier)
        assert (reply.status, reply.code) == (401, "UNAUTHORIZED")
        assert pending.redeem_by_form(codeVerifier=verifier).body["error"] == "invalid_grant"
    assert stored_items() == before
    pending.approved(person.user_id)
    assert pending.redeem(codeVerifier=OTHER_VERIFIER).status == 401
    assert refusal(pending.redeem(clientId="acme-tv")) == (401, "UNAUTHORIZED", "expired")
    pair = pending.redeem().data
    assert pending.redeem(codeVerifier=OTHER_VERIFIER).status == 401
    assert works(api, pair["accessToken"])
    token = pair["refreshToken"]
    assert problem(refresh(api, token, clientId="x")) == "invalid_client"
    assert refresh_by_form(api, token, clientId="x").body["error"] == "invalid_client"
    assert [refresh(api, token, clientId=client).status for client in ("acme-tv", "assent-cli")] == [401, 200]


def test_a_code_works_until_its_last_second_and_then_returns_401(api, approved, person, now):
    pending, denied, redeemed = request_code(api), request_code(api), request_code(api).approved(person.user_id)
    device_approvals.deny(denied.user_code, person.user_id)
    now.advance(899.9)
    assert redeemed.redeem().status == 200
    now.advance(0.1)
    for device in (pending, approved, denied):
        assert refusal(device.redeem()) == (401, "UNAUTHORIZED", "expired")
        assert device.redeem_by_form().body["error"] == "expired_token"
    assert len(stored_items("FAMILY#")) == 1
    for code in ("x", "assent_dc_", tokens.mint("assent_dc"), "assent_" + "x" * 36, "BCDF-GHJK", "\u00e9" * 200):
        # An unknown code looks like an expired one.
        assert pending.redeem(deviceCode=code).text == pending.redeem().text
        assert pending.redeem_by_form(deviceCode=code).body == pending.redeem_by_form().body
        now.advance(60)


@each(
    ("waits", "is_early"),
    [
        ((0, 5, 4, 9.4, 15, 14, 20, 20), (False, False, True, True, False, True, False, False)),
        # A poll can be half a second early.
        ((0, 4.5, 4.4999), (False, False, True)),
    ],
)
def test_polling_too_soon_lengthens_the_interval(waits, is_early, api, now):
    device, by_form = request_code(api), request_code(api)
    for seconds, early in zip(waits, is_early, strict=True):
        now.advance(seconds)
        assert refusal(device.redeem()) == (409, "CONFLICT", SLOW_DOWN if early else PENDING)
        assert by_form.redeem_by_form().body["error"] == (SLOW_DOWN if early else PENDING)


@each("seconds", [0, 3_000])
def test_redeeming_a_code_twice_revokes_its_tokens(seconds, api, person, now):
    device, other, denied = (request_code(api).approved(person.user_id) for _ in range(3))
    pair, kept = device.redeem().data, other.redeem().data
    newer = refresh(api, pair["refreshToken"]).data
    device_approvals.deny(denied.user_code, person.user_id)
    assert refusal(denied.redeem()) == (403, "FORBIDDEN", "access_denied")
    assert denied.redeem_by_form().body["error"] == "access_denied"
    now.advance(seconds)
    for _ in range(2):
        assert refusal(device.redeem()) == (409, "CONFLICT", "used")
    assert device.redeem_by_form().body["error"] == "invalid_grant"
    assert [works(api, it["accessToken"]) for it in (pair, newer, kept)] == [False, False, True]
    assert refresh(api, newer["refreshToken"]).status == 401


def test_an_address_can_send_thirty_requests_a_minute(api, now):
    sent: list[Callable[[], Reply]] = [
        lambda: refresh(api, "x"),
        lambda: refresh_by_form(api, "x"),
        lambda: api.form(REVOKE, {"token": "x"}),
    ]
    assert {send().status for _ in range(10) for send in sent} == {200, 400, 401}
    refused, by_form = refresh(api, "x"), refresh_by_form(api, "x")
    wait_seconds = 60 - int(now()) % 60
    assert (refused.status, refused.code, refused.headers["retry-after"]) == (429, "RATE_LIMITED", str(wait_seconds))
    assert (by_form.status, by_form.body["error"]) == (429, "slow_down")
    assert api.post(REVOKE, json_body={"token": "x"}).status == 429
    assert refresh(Api(source_ip="203.0.113.1"), "x").status == 401
    now.advance(wait_seconds)
    assert refresh(api, "x").status == 401


def test_a_form_is_answered_with_a_server_error_after_a_failure(api):
    def fail(call, proceed):
        raise RuntimeError

    with refused(table.client, lambda _: True, "InternalServerError"):
        unavailable = refresh_by_form(api, "x")
    with intercepted(table.client, fail):
        unexpected = refresh_by_form(api, "x")
    assert [reply.status for reply in (unavailable, unexpected)] == [503, 500]
    assert {reply.body["error"] for reply in (unavailable, unexpected)} == {"server_error"}
    assert int(unavailable.headers["retry-after"]) >= 1
