"""POST /v1/auth/device/token: a device redeems its code."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from controlplane.core import tokens
from controlplane.core.settings import settings
from controlplane.store import device_approvals
from controlplane.store.table import table
from tests.functional.conftest import FakeClock
from tests.functional.device_auth.devices import (
    CODE,
    OTHER_VERIFIER,
    REVOKE,
    TOKEN,
    VERIFIER,
    Device,
    challenge_of,
    code_body,
    code_form,
    refresh,
    refresh_by_form,
    request_code,
    works,
)
from tests.support.api import FORM, Api, Reply
from tests.support.calls import intercepted, refused
from tests.support.each import each
from tests.support.logs import captured_logs
from tests.support.recorded import recorded_calls
from tests.support.world import Person, World, table_dump

SECRETS = ("accessToken", "refreshToken")
PENDING, SLOW_DOWN = "authorization_pending", "slow_down"


def uncounted() -> list[dict[str, Any]]:
    return [item for item in table_dump() if not item["pk"]["S"].startswith("IP#")]


def families() -> list[dict[str, Any]]:
    return [item for item in table_dump() if item["pk"]["S"].startswith("FAMILY#")]


def status_of(reply: Reply) -> tuple[int, str]:
    return reply.status, reply.error["details"]["status"]


def test_an_approved_code_returns_tokens_that_act_for_the_user(api: Api, pending: Device, person: Person, world: World):
    company = world.company(owner=person)
    reply = pending.approved(person.user_id, ["projects.read", "organizations.read"]).redeem()
    assert (reply.status, reply.headers["cache-control"]) == (200, "no-store")
    assert re.fullmatch(r"assent_at_[0-9A-Za-z]{36}", reply.data["accessToken"])
    assert re.fullmatch(r"assent_rt_[0-9A-Za-z]{68}", reply.data["refreshToken"])
    assert reply.data == {
        "accessToken": reply.data["accessToken"],
        "tokenType": "Bearer",
        "expiresIn": 3600,
        "refreshToken": reply.data["refreshToken"],
        "scope": "organizations.read projects.read",
    }
    me = api.get("/v1/me", reply.data["accessToken"]).data
    assert (me["principal"]["type"], me["principal"]["userId"]) == ("oauth", person.user_id)
    assert me["scopes"] == ["organizations.read", "projects.read"]
    assert me["organizations"][0]["role"] == "owner"
    world.leave(company, person)
    assert api.get("/v1/me", reply.data["accessToken"]).data["organizations"] == []
    for secret in (pending.device_code, reply.data["refreshToken"]):
        assert not works(api, secret)


def test_a_form_returns_the_response_of_rfc_6749(api: Api, approved: Device):
    reply = approved.redeem_by_form()
    assert reply.body == {
        "access_token": reply.body["access_token"],
        "token_type": "Bearer",
        "expires_in": 3600,
        "refresh_token": reply.body["refresh_token"],
        "scope": "projects.read",
    }
    assert works(api, reply.body["access_token"])


def test_both_dialects_reach_the_same_request(api: Api, person: Person):
    asked = api.form(CODE, code_form()).body
    device = Device(api, asked["device_code"], asked["user_code"]).approved(person.user_id)
    assert device.redeem().status == 200


def test_an_early_poll_after_the_approval_gets_tokens_even_with_a_refresh_token(pending: Device, person: Person):
    assert pending.redeem().status == 409
    assert pending.approved(person.user_id).redeem(refreshToken="x").status == 200


def test_a_person_who_keeps_no_scope_grants_none(api: Api, pending: Device, person: Person):
    pair = pending.approved(person.user_id, []).redeem().data
    assert (pair["scope"], api.get("/v1/me", pair["accessToken"]).data["scopes"]) == ("", [])


def test_neither_the_table_nor_the_logs_contain_a_secret(api: Api, person: Person):
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
    for secret in (device.user_code, VERIFIER):
        assert secret not in log


def test_missing_fields_are_named(api: Api, pending: Device):
    for field in ("deviceCode", "codeVerifier", "clientId"):
        details = pending.redeem(**{field: None}).error["details"]
        assert details == [{"code": "missing", "message": "Field required", "path": [field]}]
    for body, missing in (
        ({}, [["deviceCode"], ["codeVerifier"], ["clientId"]]),
        ({"grantType": "refresh_token"}, [["refreshToken"]]),
    ):
        assert [problem["path"] for problem in api.post(TOKEN, json_body=body).error["details"]] == missing
    for field in ("grant_type", "device_code", "code_verifier", "client_id"):
        reply = pending.redeem_by_form(**{field: None})
        assert reply.body["error"] == "invalid_request"
        assert reply.body["error_description"].startswith(f"{field}: ")


@each("grant", ["authorization_code", "password", "client_credentials", "device_code", "x"])
def test_another_grant_is_rejected(pending: Device, grant: str):
    assert pending.redeem(grantType=grant).error["details"][0]["code"] == "unsupported_grant_type"
    assert pending.redeem_by_form(grant_type=grant).body["error"] == "unsupported_grant_type"


def test_an_unknown_client_is_rejected(api: Api, approved: Device):
    assert approved.redeem(clientId="x").error["details"][0]["code"] == "invalid_client"
    assert approved.redeem_by_form(client_id="x").body["error"] == "invalid_client"
    token = approved.redeem().data["refreshToken"]
    assert refresh(api, token, clientId="x").error["details"][0]["code"] == "invalid_client"
    assert refresh_by_form(api, token, client_id="x").body["error"] == "invalid_client"


def test_another_clients_code_and_refresh_token_are_unknown(
    api: Api, approved: Device, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(settings.__dict__, "device_client_ids", "assent-cli,acme-tv")
    assert status_of(approved.redeem(clientId="acme-tv")) == (401, "expired")
    token = approved.redeem().data["refreshToken"]
    assert [refresh(api, token, clientId=client).status for client in ("acme-tv", "assent-cli")] == [401, 200]


@each("verifier", ["x" * 42, "x" * 129, "x" * 42 + "\u00e9", "x" * 43 + "\n", "x x" * 20])
def test_an_invalid_verifier_is_rejected(pending: Device, verifier: str):
    assert pending.redeem(codeVerifier=verifier).error["details"][0]["path"] == ["codeVerifier"]
    assert pending.redeem_by_form(code_verifier=verifier).body["error"] == "invalid_request"


def test_a_wrong_verifier_changes_nothing_before_and_after_the_redemption(api: Api, pending: Device, person: Person):
    before = uncounted()
    for verifier in (OTHER_VERIFIER, challenge_of(VERIFIER)):
        reply = pending.redeem(codeVerifier=verifier)
        assert (reply.status, reply.code) == (401, "UNAUTHORIZED")
        assert pending.redeem_by_form(code_verifier=verifier).body["error"] == "invalid_grant"
    assert uncounted() == before
    pending.approved(person.user_id)
    assert pending.redeem(codeVerifier=OTHER_VERIFIER).status == 401
    pair = pending.redeem().data
    assert pending.redeem(codeVerifier=OTHER_VERIFIER).status == 401
    assert works(api, pair["accessToken"])
    assert refresh(api, pair["refreshToken"]).status == 200


def test_a_code_works_until_its_last_second_and_then_returns_401(
    api: Api, approved: Device, person: Person, now: FakeClock
):
    pending, denied, redeemed = request_code(api), request_code(api), request_code(api).approved(person.user_id)
    device_approvals.deny(denied.user_code, person.user_id)
    now.advance(899.9)
    assert redeemed.redeem().status == 200
    now.advance(0.1)
    for device in (pending, approved, denied):
        assert status_of(device.redeem()) == (401, "expired")
        assert device.redeem_by_form().body["error"] == "expired_token"
    assert len(families()) == 1


@each(
    "code", ["x", "assent_dc_", tokens.mint("assent_dc"), "assent_" + "x" * 36, "BCDF-GHJK", "\u00e9" * 200], ids=ascii
)
def test_an_unknown_code_looks_like_an_expired_one(api: Api, code: str, now: FakeClock):
    expired = request_code(api)
    now.advance(900)
    assert request_code(api).redeem(deviceCode=code).text == expired.redeem().text
    assert request_code(api).redeem_by_form(device_code=code).body == expired.redeem_by_form().body


@each("is_approved", [False, True])
def test_a_denied_device_gets_403_even_after_its_approval(is_approved: bool, api: Api, person: Person):
    device = request_code(api).approved(person.user_id) if is_approved else request_code(api)
    device_approvals.deny(device.user_code, person.user_id)
    reply = device.redeem()
    assert (status_of(reply), reply.code) == ((403, "access_denied"), "FORBIDDEN")
    assert device.redeem_by_form().body["error"] == "access_denied"
    assert families() == []


@pytest.mark.usefixtures("switched_off")
@each("path", [TOKEN, REVOKE])
def test_the_disabled_feature_looks_exactly_like_an_unknown_path(api: Api, path: str):
    unknown = api.post("/v1/auth/device/nowhere").text
    assert api.post(path, json_body={}).text == unknown
    assert api.post(path, raw_body=b"token=x", headers={"Content-Type": FORM}).text == unknown


@each(
    ("waits", "statuses"),
    [
        (
            (0, 5, 4, 9.4, 15, 14, 20, 20),
            [PENDING, PENDING, SLOW_DOWN, SLOW_DOWN, PENDING, SLOW_DOWN, PENDING, PENDING],
        ),
        # A poll can be half a second early.
        ((0, 4.5, 4.4999), [PENDING, PENDING, SLOW_DOWN]),
    ],
)
def test_polling_too_soon_lengthens_the_interval(waits, statuses, api: Api, now: FakeClock):
    device = request_code(api)
    for seconds, status in zip(waits, statuses, strict=True):
        now.advance(seconds)
        reply = device.redeem()
        assert (status_of(reply), reply.code) == ((409, status), "CONFLICT")


def test_a_form_returns_that_the_device_polls_too_soon(pending: Device):
    assert [pending.redeem_by_form().body["error"] for _ in range(2)] == [PENDING, SLOW_DOWN]


@each("is_expired", [False, True])
def test_redeeming_a_code_twice_revokes_its_tokens(is_expired: bool, api: Api, person: Person, now: FakeClock):
    device, other = (request_code(api).approved(person.user_id) for _ in range(2))
    pair, kept = device.redeem().data, other.redeem().data
    newer = refresh(api, pair["refreshToken"]).data
    now.advance(3_000 if is_expired else 0)
    for _ in range(2):
        reply = device.redeem()
        assert (status_of(reply), reply.code) == ((409, "used"), "CONFLICT")
    assert device.redeem_by_form().body["error"] == "invalid_grant"
    assert [works(api, it["accessToken"]) for it in (pair, newer, kept)] == [False, False, True]
    assert refresh(api, newer["refreshToken"]).status == 401


def test_the_31st_request_in_a_minute_returns_429(api: Api, now: FakeClock):
    sent: list[Callable[[], Reply]] = [
        lambda: refresh(api, "x"),
        lambda: refresh_by_form(api, "x"),
        lambda: api.form(REVOKE, {"token": "x"}),
    ]
    assert {send().status for _ in range(10) for send in sent} == {200, 400, 401}
    refused = refresh(api, "x")
    assert (refused.status, refused.code) == (429, "RATE_LIMITED")
    assert refused.headers["retry-after"] == str(60 - int(now()) % 60)
    by_form = refresh_by_form(api, "x")
    assert (by_form.status, by_form.body["error"]) == (429, "slow_down")
    assert api.post(REVOKE, json_body={"token": "x"}).status == 429
    assert refresh(Api(source_ip="203.0.113.1"), "x").status == 401
    now.advance(60 - int(now()) % 60)
    assert refresh(api, "x").status == 401


def test_a_form_is_answered_with_a_server_error_after_a_failure(api: Api):
    def fail(call, proceed):
        raise RuntimeError

    with refused(table.client, lambda _: True, "InternalServerError"):
        unavailable = refresh_by_form(api, "x")
    with intercepted(table.client, fail):
        unexpected = refresh_by_form(api, "x")
    assert [reply.status for reply in (unavailable, unexpected)] == [503, 500]
    assert {reply.body["error"] for reply in (unavailable, unexpected)} == {"server_error"}
    assert int(unavailable.headers["retry-after"]) >= 1


def test_an_exchange_makes_few_calls_and_a_guess_one(api: Api, person: Person):
    made: dict[str, list[str]] = {}

    def recorded(name: str, act: Callable[[], Reply]) -> Reply:
        with recorded_calls() as calls:
            reply = act()
        made[name] = [call.operation for call in calls]
        return reply

    asked = recorded("code", lambda: api.post(CODE, json_body=code_body())).data
    device = Device(api, asked["deviceCode"], asked["userCode"])
    recorded("poll", device.redeem)
    pair = recorded("redemption", device.approved(person.user_id).redeem).data
    recorded("refresh", lambda: refresh(api, pair["refreshToken"]))
    recorded("repeat", lambda: refresh(api, pair["refreshToken"]))
    recorded("guess", lambda: refresh(api, "assent_rt_" + "0" * 68))
    with recorded_calls() as calls:
        assert works(api, pair["accessToken"])
    count, read, write, transact = "UpdateItem", "GetItem", "UpdateItem", "TransactWriteItems"
    assert made == {
        "code": [count, transact],
        "poll": [count, read, write],
        "redemption": [count, read, transact],
        "refresh": [count, read, transact],
        "repeat": [count, read],
        "guess": [count],
    }
    assert not any("FAMILY#" in str(call.parameters) for call in calls)
