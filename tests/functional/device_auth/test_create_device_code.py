"""POST /v1/auth/device/code: a device requests authorization."""

import re
from typing import Any
from urllib.parse import urlencode

import pytest

from controlplane.platform.core import tokens
from controlplane.platform.core.scopes import READ_SCOPES
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from tests.functional.device_auth.devices import (
    CODE,
    REVOKE,
    TOKEN,
    VERIFIER,
    challenge_of,
    code_body,
    form_of,
    get_request,
    in_form,
)
from tests.support.api import FORM, Api, Reply
from tests.support.each import each
from tests.support.table import restored
from tests.support.world import table_dump

USER_CODE = re.compile(r"[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}")
PAGE = "https://dashboard.assent.test/device"


def ask(api: Api, **changed: Any) -> Reply:
    return api.post(CODE, json_body=code_body(**changed))


def ask_by_form(api: Api, **changed: Any) -> Reply:
    return api.form(CODE, form_of(code_body(**changed)))


def item_of(reply: Reply) -> dict[str, Any]:
    item = table.get(keys.device_request(tokens.digest(reply.data["deviceCode"])))
    assert item is not None
    return item


def test_both_codes_and_the_verification_url_are_returned(api):
    reply = ask(api)
    assert (reply.status, reply.headers["cache-control"]) == (201, "no-store")
    device_code, user_code = reply.data["deviceCode"], reply.data["userCode"]
    assert USER_CODE.fullmatch(user_code)
    assert re.fullmatch(r"assent_dc_[0-9A-Za-z]{36}", device_code)
    links = {"verificationUri": PAGE, "verificationUriComplete": f"{PAGE}?user_code={user_code}"}
    assert reply.data == {
        "deviceCode": device_code,
        "userCode": user_code,
        **links,
        "expiresIn": 900,
        "interval": 5,
    }
    by_form = ask_by_form(api, scope="projects.read")
    device_code, user_code = by_form.body["device_code"], by_form.body["user_code"]
    links["verificationUriComplete"] = f"{PAGE}?user_code={user_code}"
    assert by_form.status == 200
    assert by_form.body == form_of({**reply.data, "deviceCode": device_code, "userCode": user_code, **links})
    assert get_request(device_code).scopes == ["projects.read"]


def test_the_request_is_stored_without_either_code_for_each_allowed_client(api, now, monkeypatch):
    monkeypatch.setitem(settings.__dict__, "device_client_ids", "assent-cli,acme-tv")
    assert item_of(ask(api, clientId="acme-tv"))["clientId"] == "acme-tv"
    reply = ask(api, scope="projects.read  billing.read billing.read", deviceName="Ada's laptop")
    item, user_code = item_of(reply), reply.data["userCode"]
    assert item == {
        **keys.device_request(tokens.digest(reply.data["deviceCode"]))._asdict(),
        "clientId": "assent-cli",
        "challenge": challenge_of(VERIFIER),
        "scopes": ["billing.read", "projects.read"],
        "deviceName": "Ada's laptop",
        "address": "198.51.100.7",
        "status": "pending",
        "interval": 5,
        "polledAt": 0,
        "createdAt": int(now()),
        "validUntil": int(now()) + 900,
        "expiresAt": int(now()) + 900 + 86_400,
        "listedAs": item["listedAs"],
    }
    stored = str(table_dump())
    assert not any(code in stored for code in (reply.data["deviceCode"], user_code, user_code.replace("-", "")))


@each("name", ["x", "x" * 100, "Rechner \u00fcber dem Tresen", "\U0001f469"])
def test_names_in_any_script_are_accepted_and_the_read_scopes_are_the_default(api, name):
    item = item_of(ask(api, deviceName=name))
    assert (item["deviceName"], item["scopes"]) == (name, [*READ_SCOPES])


def test_a_form_has_at_most_64_fields_and_empty_and_unknown_ones_are_ignored(api):
    most = form_of(code_body(**{f"x{number}": "x" for number in range(61)}))
    assert api.form(CODE, most).status == 200
    assert api.form(CODE, {**most, "y": "x"}).body["error"] == "invalid_request"
    body = urlencode({**form_of(code_body(scope="")), "audience": "x", "clientId": "someone-else"}).encode()
    headers = {"Content-Type": "Application/X-WWW-Form-Urlencoded; charset=UTF-8"}
    reply = api.post(CODE, raw_body=body, headers=headers)
    assert get_request(reply.body["device_code"]).scopes == [*READ_SCOPES]
    body = code_body(userCode="BCDF-GHJK", address="203.0.113.9")
    first, second = (api.post(CODE, "garbage", json_body=body).data for _ in range(2))
    assert first["deviceCode"] != second["deviceCode"]
    assert len({first["userCode"], second["userCode"], "BCDF-GHJK"}) == 3


@each(
    ("field", "value", "code"),
    [
        ("clientId", "someone-else", "invalid_client"),
        ("clientId", "ASSENT-CLI", "invalid_client"),
        ("codeChallenge", "x" * 42, "string_pattern_mismatch"),
        ("codeChallenge", "x" * 44, "string_pattern_mismatch"),
        ("codeChallengeMethod", "plain", "literal_error"),
        ("scope", "projects.read nonsense", "invalid_scope"),
        ("scope", "projects.read,billing.read", "invalid_scope"),
        ("deviceName", "a\u202eb", "value_error"),
    ],
    around=restored,
)
def test_an_invalid_field_is_named_and_nothing_is_stored(field, value, code, api):
    reply = ask(api, **{field: value})
    assert reply.code == "INVALID_PAYLOAD"
    assert [(problem["path"], problem["code"]) for problem in reply.error["details"]] == [([field], code)]
    by_form = ask_by_form(api, **{field: value})
    error = code if code in {"invalid_client", "invalid_scope"} else "invalid_request"
    assert (by_form.status, by_form.body["error"]) == (400, error)
    assert by_form.body["error_description"].startswith(f"{in_form(field)}: ")
    assert [item["pk"]["S"].partition("#")[0] for item in table_dump()] == ["IP"]


@pytest.mark.usefixtures("switched_off")
@each("path", [CODE, TOKEN, REVOKE])
def test_the_disabled_feature_looks_exactly_like_an_unknown_path(api, path):
    unknown = api.post("/v1/auth/device/nowhere").text
    for body in (b"{", b"token=x", b"x" * 2_000_000):
        assert api.post(path, raw_body=body).text == unknown
        assert api.post(path, raw_body=body, headers={"Content-Type": FORM}).text == unknown
    assert table_dump() == []


def test_an_address_can_send_ten_requests_a_minute_in_either_dialect_whatever_its_headers(api, now):
    names = ("X-Forwarded-For", "X-Real-IP", "True-Client-IP", "CF-Connecting-IP", "X-Client-IP", "Via")
    for number in range(5):
        headers = dict.fromkeys(names, f"203.0.113.{number}") | {"Forwarded": f"for=203.0.113.{number}"}
        reply = api.post(CODE, json_body={"clientId": "assent-cli", "deviceName": 7}, headers=headers)
        problems = reply.error["details"]
        assert (reply.error["message"], len(problems)) == ("codeChallenge: field required (and 2 more)", 3)
        by_form = api.form(CODE, {"client_id": "assent-cli"})
        assert by_form.body["error_description"] == "code_challenge: field required (and 1 more)"
    refused, by_form = ask(api), ask_by_form(api)
    assert (refused.status, refused.code) == (429, "RATE_LIMITED")
    assert (by_form.status, by_form.body["error"]) == (429, "slow_down")
    wait_seconds = 60 - int(now()) % 60
    assert {reply.headers["retry-after"] for reply in (refused, by_form)} == {str(wait_seconds)}
    # Token requests are counted separately.
    assert api.post(TOKEN, json_body={}).status == 400
    now.advance(wait_seconds)
    assert ask(api).status == 201
