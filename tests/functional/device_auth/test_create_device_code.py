"""POST /v1/auth/device/code: a device requests authorization."""

import re
from typing import Any
from urllib.parse import urlencode

import pytest
from pydantic import TypeAdapter, ValidationError

from controlplane.core import tokens
from controlplane.core.scopes import READ_SCOPES
from controlplane.core.settings import settings
from controlplane.store import keys
from controlplane.store.table import table
from device_auth.schemas import DeviceName
from tests.functional.conftest import FakeClock
from tests.functional.device_auth.devices import CODE, TOKEN, VERIFIER, challenge_of, code_body, code_form, get_request
from tests.support.api import FORM, Api, Reply
from tests.support.each import each
from tests.support.table import restored
from tests.support.world import table_dump

USER_CODE = re.compile(r"[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}")
DEVICE_NAME: TypeAdapter[str] = TypeAdapter(DeviceName)
PAGE = "https://dashboard.assent.test/device"
# A field, a value (None omits the field), and the codes in JSON and in OAuth's form encoding.
WRONG = [
    ("clientId", None, "missing", "invalid_request"),
    ("clientId", "someone-else", "invalid_client", "invalid_client"),
    ("clientId", "ASSENT-CLI", "invalid_client", "invalid_client"),
    ("codeChallenge", None, "missing", "invalid_request"),
    ("codeChallenge", "x" * 42, "string_pattern_mismatch", "invalid_request"),
    ("codeChallenge", "x" * 44, "string_pattern_mismatch", "invalid_request"),
    ("codeChallenge", "x" * 42 + "=", "string_pattern_mismatch", "invalid_request"),
    ("codeChallengeMethod", None, "missing", "invalid_request"),
    ("codeChallengeMethod", "plain", "literal_error", "invalid_request"),
    ("scope", "projects.read nonsense", "invalid_scope", "invalid_scope"),
    ("scope", "projects.read,billing.read", "invalid_scope", "invalid_scope"),
    ("scope", "   ", "invalid_scope", "invalid_scope"),
    ("scope", "\u202eread", "invalid_scope", "invalid_scope"),
    ("deviceName", "x" * 101, "string_too_long", "invalid_request"),
    ("deviceName", "a\nb", "value_error", "invalid_request"),
    ("deviceName", "a\u202eb", "value_error", "invalid_request"),
]
# Characters that could hide text from the user who approves the device: the first and the last one of each range.
INVISIBLE = (
    "\n\x01\x1f\x7f\xa0\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b\u180f\u2000\u200b\u200f\u2028\u202f\u205f"
    "\u206f\u2800\u3000\u3164\ufe00\ufe0f\ufeff\uffa0\ufff9\ufffb"
)


def request_code(api: Api, **changed: Any) -> Reply:
    return api.post(CODE, json_body=code_body(**changed))


def in_form(name: str) -> str:
    """Returns the name of a JSON field in OAuth's form encoding."""
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def item_of(reply: Reply) -> dict[str, Any]:
    item = table.get(keys.device_request(tokens.digest(reply.data["deviceCode"])))
    assert item is not None
    return item


def test_both_codes_and_the_verification_url_are_returned(api: Api):
    reply = request_code(api)
    assert (reply.status, reply.headers["cache-control"]) == (201, "no-store")
    user_code = reply.data["userCode"]
    assert USER_CODE.fullmatch(user_code)
    assert re.fullmatch(r"assent_dc_[0-9A-Za-z]{36}", reply.data.pop("deviceCode"))
    assert reply.data == {
        "userCode": user_code,
        "verificationUri": PAGE,
        "verificationUriComplete": f"{PAGE}?user_code={user_code}",
        "expiresIn": 900,
        "interval": 5,
    }


def test_a_form_returns_the_response_of_rfc_8628(api: Api):
    reply = api.form(CODE, code_form(scope="projects.read"))
    assert reply.status == 200
    assert USER_CODE.fullmatch(reply.body["user_code"])
    assert reply.body == {
        "device_code": reply.body["device_code"],
        "user_code": reply.body["user_code"],
        "verification_uri": PAGE,
        "verification_uri_complete": f"{PAGE}?user_code={reply.body['user_code']}",
        "expires_in": 900,
        "interval": 5,
    }
    assert get_request(reply.body["device_code"]).scopes == ["projects.read"]


def test_the_request_is_stored_without_either_code(api: Api, now: FakeClock):
    reply = request_code(api, scope="projects.read  billing.read billing.read", deviceName="Ada's laptop")
    item = item_of(reply)
    key = keys.device_request(tokens.digest(reply.data["deviceCode"]))
    assert item == {
        **key._asdict(),
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
    stored, user_code = str(table_dump()), reply.data["userCode"]
    for code in (reply.data["deviceCode"], user_code, user_code.replace("-", "")):
        assert code not in stored


def test_without_a_scope_the_read_scopes_are_requested(api: Api):
    assert item_of(request_code(api))["scopes"] == [*READ_SCOPES]


@each("name", ["x", "x" * 100, "Rechner \u00fcber dem Tresen", "\U0001f469"])
def test_device_names_in_any_script_are_accepted(api: Api, name: str):
    assert item_of(request_code(api, deviceName=name))["deviceName"] == name


def test_two_devices_get_different_codes_whatever_credential_and_unknown_fields_they_send(api: Api):
    body = code_body(userCode="BCDF-GHJK", address="203.0.113.9")
    first, second = (api.post(CODE, "garbage", json_body=body).data for _ in range(2))
    assert first["deviceCode"] != second["deviceCode"]
    assert len({first["userCode"], second["userCode"], "BCDF-GHJK"}) == 3


def test_a_setting_allows_further_clients(api: Api, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(settings.__dict__, "device_client_ids", "assent-cli,acme-tv")
    assert [request_code(api, clientId=client).status for client in ("acme-tv", "assent-cli")] == [201, 201]


def test_empty_and_unknown_form_parameters_and_those_of_the_media_type_are_ignored(api: Api):
    body = urlencode(code_form(scope="", audience="x", clientId="someone-else")).encode()
    headers = {"Content-Type": "Application/X-WWW-Form-Urlencoded; charset=UTF-8"}
    reply = api.post(CODE, raw_body=body, headers=headers)
    assert get_request(reply.body["device_code"]).scopes == [*READ_SCOPES]


def test_a_form_has_at_most_64_fields(api: Api):
    most = code_form(**{f"x{number}": "x" for number in range(61)})
    assert api.form(CODE, most).status == 200
    assert api.form(CODE, {**most, "y": "x"}).body["error"] == "invalid_request"


@each(("field", "value", "code", "oauth_error"), WRONG, around=restored)
def test_an_invalid_field_is_named_and_nothing_is_stored(field, value, code, oauth_error, api: Api):
    reply = request_code(api, **{field: value})
    assert reply.code == "INVALID_PAYLOAD"
    assert [(problem["path"], problem["code"]) for problem in reply.error["details"]] == [([field], code)]
    reply = api.form(CODE, code_form(**{in_form(field): value}))
    assert (reply.status, reply.body["error"]) == (400, oauth_error)
    assert reply.body["error_description"].startswith(f"{in_form(field)}: ")
    assert [item["pk"]["S"].partition("#")[0] for item in table_dump()] == ["IP"]


@each("character", INVISIBLE, ids=ascii)
def test_a_name_that_could_hide_text_is_rejected(character: str):
    for name in (f"laptop{character}", f"laptop{character}x"):
        with pytest.raises(ValidationError):
            DEVICE_NAME.validate_python(name)


def test_the_message_names_the_first_problem_and_how_many_more_there_are(api: Api):
    reply = api.post(CODE, json_body={"clientId": "assent-cli", "deviceName": 7})
    assert (reply.error["message"], len(reply.error["details"])) == ("codeChallenge: field required (and 2 more)", 3)
    by_form = api.form(CODE, {"client_id": "assent-cli"})
    assert by_form.body["error_description"] == "code_challenge: field required (and 1 more)"


@pytest.mark.usefixtures("switched_off")
@each("body", [b"{", b"x" * 2_000_000])
def test_the_disabled_feature_looks_exactly_like_an_unknown_path(api: Api, body: bytes):
    unknown = api.post("/v1/auth/device/nowhere").text
    assert api.post(CODE, raw_body=body).text == unknown
    assert api.post(CODE, raw_body=body, headers={"Content-Type": FORM}).text == unknown
    assert table_dump() == []


class TestLimit:
    """An address can send 10 requests a minute."""

    def test_the_11th_request_in_a_minute_returns_429(self, api: Api, now: FakeClock):
        assert {request_code(api).status for _ in range(10)} == {201}
        refused = request_code(api)
        assert (refused.status, refused.code) == (429, "RATE_LIMITED")
        assert refused.headers["retry-after"] == str(60 - int(now()) % 60)
        # Token requests are counted separately.
        assert api.post(TOKEN, json_body={}).status == 400
        now.advance(60 - int(now()) % 60)
        assert request_code(api).status == 201

    def test_refused_requests_and_both_dialects_are_counted_together(self, api: Api):
        for _ in range(5):
            assert request_code(api, clientId="x").status == 400
            assert api.form(CODE, code_form(client_id="x")).status == 400
        assert request_code(api).status == 429
        refused = api.form(CODE, code_form())
        assert (refused.status, refused.body["error"]) == (429, "slow_down")
        assert int(refused.headers["retry-after"]) >= 1

    def test_no_client_header_avoids_the_limit(self, api: Api):
        names = ("X-Forwarded-For", "X-Real-IP", "True-Client-IP", "CF-Connecting-IP", "X-Client-IP", "Via")
        statuses = []
        for number in range(11):
            headers = dict.fromkeys(names, f"203.0.113.{number}") | {"Forwarded": f"for=203.0.113.{number}"}
            statuses.append(api.post(CODE, json_body=code_body(), headers=headers).status)
        assert statuses == [201] * 10 + [429]

    @each(
        ("counted", "same", "another"),
        [
            ("198.51.100.7", "::ffff:198.51.100.7", "198.51.100.8"),
            ("2001:db8:1:2:a::1", "2001:DB8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:3::1"),
        ],
    )
    def test_an_ipv4_address_or_an_ipv6_network_of_64_bits_is_one_caller(self, counted: str, same: str, another: str):
        for _ in range(10):
            request_code(Api(source_ip=counted))
        assert [request_code(Api(source_ip=address)).status for address in (same, another)] == [429, 201]
