"""POST /v1/auth/device/code: a device requests authorization."""

import re
from typing import Any

import pytest

from controlplane.core import tokens
from controlplane.core.scopes import READ_SCOPES
from controlplane.core.settings import settings
from controlplane.store import keys
from controlplane.store.table import table
from tests.functional.conftest import FakeClock
from tests.functional.device_auth.devices import CODE, TOKEN, VERIFIER, challenge_of, code_body, code_form, get_request
from tests.support.api import FORM, Api, Reply
from tests.support.each import each
from tests.support.table import restored
from tests.support.world import table_dump

USER_CODE = re.compile(r"[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}")


def request_code(api: Api, **changed: Any) -> Reply:
    return api.post(CODE, json_body=code_body(**changed))


def item_of(reply: Reply) -> dict[str, Any]:
    item = table.get(keys.device_request(tokens.digest(reply.data["deviceCode"])))
    assert item is not None
    return item


class Test201:
    def test_returns_both_codes_and_the_verification_url(self, api: Api):
        reply = request_code(api)
        assert reply.status == 201
        user_code = reply.data["userCode"]
        assert USER_CODE.fullmatch(user_code)
        assert re.fullmatch(r"assent_dc_[0-9A-Za-z]{36}", reply.data.pop("deviceCode"))
        assert reply.data == {
            "userCode": user_code,
            "verificationUri": "https://dashboard.assent.test/device",
            "verificationUriComplete": f"https://dashboard.assent.test/device?user_code={user_code}",
            "expiresIn": 900,
            "interval": 5,
        }
        assert reply.headers["cache-control"] == "no-store"

    def test_stores_the_request_without_either_code(self, api: Api, now: FakeClock):
        reply = request_code(api, scope="projects.read billing.read", deviceName="Ada's laptop")
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
        stored = str(table_dump())
        assert reply.data["deviceCode"] not in stored
        assert reply.data["userCode"] not in stored
        assert reply.data["userCode"].replace("-", "") not in stored

    def test_requests_the_read_scopes_by_default(self, api: Api):
        assert item_of(request_code(api))["scopes"] == [*READ_SCOPES]

    def test_scopes_are_separated_by_spaces_and_deduplicated(self, api: Api):
        assert item_of(request_code(api, scope="projects.read  projects.read"))["scopes"] == ["projects.read"]

    @each("name", ["x", "x" * 100, "Rechner \u00fcber dem Tresen", "\U0001f469"])
    def test_accepts_device_names_in_any_script(self, api: Api, name: str):
        assert item_of(request_code(api, deviceName=name))["deviceName"] == name

    def test_ignores_unknown_fields(self, api: Api):
        assert request_code(api, userCode="BCDF-GHJK", address="203.0.113.9").data["userCode"] != "BCDF-GHJK"

    def test_two_devices_get_different_codes(self, api: Api):
        first, second = request_code(api).data, request_code(api).data
        assert first["deviceCode"] != second["deviceCode"]
        assert first["userCode"] != second["userCode"]

    def test_ignores_credentials(self, api: Api):
        assert api.post(CODE, "garbage", json_body=code_body()).status == 201

    def test_a_setting_allows_further_clients(self, api: Api, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setitem(settings.__dict__, "device_client_ids", "assent-cli,acme-tv")
        assert request_code(api, clientId="acme-tv").status == 201
        assert request_code(api).status == 201


class Test200Form:
    def test_a_form_returns_the_response_of_rfc_8628(self, api: Api):
        reply = api.form(CODE, code_form(scope="projects.read"))
        assert reply.status == 200
        assert USER_CODE.fullmatch(reply.body["user_code"])
        page = "https://dashboard.assent.test/device"
        assert reply.body == {
            "device_code": reply.body["device_code"],
            "user_code": reply.body["user_code"],
            "verification_uri": page,
            "verification_uri_complete": f"{page}?user_code={reply.body['user_code']}",
            "expires_in": 900,
            "interval": 5,
        }
        assert get_request(reply.body["device_code"]).scopes == ["projects.read"]

    def test_the_media_type_can_have_parameters_and_capitals(self, api: Api):
        body = "&".join(f"{name}={value}" for name, value in code_form().items()).encode()
        headers = {"Content-Type": "Application/X-WWW-Form-Urlencoded; charset=UTF-8"}
        assert api.post(CODE, raw_body=body, headers=headers).status == 200

    def test_empty_and_unknown_form_parameters_are_ignored(self, api: Api):
        reply = api.form(CODE, code_form(scope="", audience="x", clientId="someone-else"))
        assert get_request(reply.body["device_code"]).scopes == [*READ_SCOPES]

    def test_a_form_has_at_most_64_fields(self, api: Api):
        most = code_form(**{f"x{number}": "x" for number in range(61)})
        assert api.form(CODE, most).status == 200
        assert api.form(CODE, {**most, "y": "x"}).body["error"] == "invalid_request"


WRONG = [
    pytest.param({"clientId": None}, ["clientId"], "missing", "invalid_request", id="no client"),
    pytest.param({"clientId": "someone-else"}, ["clientId"], "invalid_client", "invalid_client", id="unknown client"),
    pytest.param({"clientId": "ASSENT-CLI"}, ["clientId"], "invalid_client", "invalid_client", id="another case"),
    pytest.param({"codeChallenge": None}, ["codeChallenge"], "missing", "invalid_request", id="no challenge"),
    pytest.param(
        {"codeChallenge": "x" * 42}, ["codeChallenge"], "string_pattern_mismatch", "invalid_request", id="short"
    ),
    pytest.param(
        {"codeChallenge": "x" * 44}, ["codeChallenge"], "string_pattern_mismatch", "invalid_request", id="long"
    ),
    pytest.param(
        {"codeChallenge": "x" * 42 + "="}, ["codeChallenge"], "string_pattern_mismatch", "invalid_request", id="padded"
    ),
    pytest.param({"codeChallengeMethod": None}, ["codeChallengeMethod"], "missing", "invalid_request", id="no method"),
    pytest.param(
        {"codeChallengeMethod": "plain"}, ["codeChallengeMethod"], "literal_error", "invalid_request", id="plain"
    ),
    pytest.param({"scope": "projects.read nonsense"}, ["scope"], "invalid_scope", "invalid_scope", id="unknown scope"),
    pytest.param({"scope": "projects.read,billing.read"}, ["scope"], "invalid_scope", "invalid_scope", id="commas"),
    pytest.param({"scope": "   "}, ["scope"], "invalid_scope", "invalid_scope", id="scope of spaces"),
    pytest.param({"scope": "\u202eread"}, ["scope"], "invalid_scope", "invalid_scope", id="scope not ASCII"),
    pytest.param({"deviceName": "x" * 101}, ["deviceName"], "string_too_long", "invalid_request", id="long name"),
    pytest.param({"deviceName": "a\nb"}, ["deviceName"], "value_error", "invalid_request", id="two lines"),
    pytest.param({"deviceName": "a\u202eb"}, ["deviceName"], "value_error", "invalid_request", id="turned around"),
]
# Characters that could hide text from the user who approves the device: the first and the last one of each range.
INVISIBLE = (
    "\n\x01\x1f\x7f\xa0\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b\u180f\u2000\u200b\u200f\u2028\u202f\u205f"
    "\u206f\u2800\u3000\u3164\ufe00\ufe0f\ufeff\uffa0\ufff9\ufffb"
)
_SNAKE = {
    "clientId": "client_id",
    "codeChallenge": "code_challenge",
    "codeChallengeMethod": "code_challenge_method",
    "deviceName": "device_name",
}


@each(("changed", "path", "code", "oauth_error"), WRONG, around=restored)
class Test400:
    def test_a_400_names_the_field_and_nothing_is_stored(
        self, api: Api, changed: dict[str, Any], path: list[str], code: str, oauth_error: str
    ):
        reply = request_code(api, **changed)
        assert reply.code == "INVALID_PAYLOAD"
        assert [(problem["path"], problem["code"]) for problem in reply.error["details"]] == [(path, code)]
        assert [item["pk"]["S"].partition("#")[0] for item in table_dump()] == ["IP"]

    def test_a_form_returns_oauths_error(
        self, api: Api, changed: dict[str, Any], path: list[str], code: str, oauth_error: str
    ):
        reply = api.form(CODE, code_form(**{_SNAKE.get(name, name): value for name, value in changed.items()}))
        assert (reply.status, reply.body["error"]) == (400, oauth_error)
        assert reply.body["error_description"].startswith(_SNAKE.get(path[0], path[0]) + ": ")
        assert [item["pk"]["S"].partition("#")[0] for item in table_dump()] == ["IP"]


class TestDeviceName:
    @each("character", INVISIBLE, ids=ascii, around=restored)
    def test_returns_400_for_a_name_that_could_hide_text(self, character: str, api: Api):
        for name in (f"laptop{character}", f"laptop{character}x"):
            reply = request_code(api, deviceName=name)
            assert (reply.status, reply.error["details"][0]["path"]) == (400, ["deviceName"])


class TestSeveralProblems:
    def test_the_message_names_the_first_problem_and_how_many_more_there_are(self, api: Api):
        body = {"clientId": "assent-cli", "deviceName": 7}
        reply = api.post(CODE, json_body=body)
        assert reply.error["message"] == "codeChallenge: field required (and 2 more)"
        assert len(reply.error["details"]) == 3

    def test_a_form_gets_the_same_message_with_oauths_names(self, api: Api):
        reply = api.form(CODE, {"client_id": "assent-cli"})
        assert reply.body["error_description"] == "code_challenge: field required (and 1 more)"


@pytest.mark.usefixtures("switched_off")
class Test404:
    @each("body", [b"{", b"x" * 2_000_000])
    def test_the_disabled_feature_looks_exactly_like_an_unknown_path(self, api: Api, body: bytes):
        unknown = api.post("/v1/auth/device/nowhere").text
        assert api.post(CODE, raw_body=body).text == unknown
        assert api.post(CODE, raw_body=body, headers={"Content-Type": FORM}).text == unknown
        assert table_dump() == []


class Test429:
    def test_returns_429_for_the_11th_request_in_a_minute(self, api: Api, now: FakeClock):
        replies = [request_code(api) for _ in range(10)]
        assert {reply.status for reply in replies} == {201}
        refused = request_code(api)
        assert (refused.status, refused.code) == (429, "RATE_LIMITED")
        assert refused.headers["retry-after"] == str(60 - int(now()) % 60)
        now.advance(60 - int(now()) % 60)
        assert request_code(api).status == 201

    def test_counts_refused_requests_and_both_dialects_together(self, api: Api):
        for _ in range(5):
            assert request_code(api, clientId="x").status == 400
            assert api.form(CODE, code_form(client_id="x")).status == 400
        assert request_code(api).status == 429
        refused = api.form(CODE, code_form())
        assert (refused.status, refused.body["error"]) == (429, "slow_down")
        assert int(refused.headers["retry-after"]) >= 1

    @each(
        "header",
        ["X-Forwarded-For", "Forwarded", "X-Real-IP", "True-Client-IP", "CF-Connecting-IP", "X-Client-IP", "Via"],
        around=restored,
    )
    def test_no_client_header_avoids_the_limit(self, api: Api, header: str):
        for number in range(10):
            value = f"for=203.0.113.{number}" if header == "Forwarded" else f"203.0.113.{number}"
            assert api.post(CODE, json_body=code_body(), headers={header: value}).status == 201
        assert api.post(CODE, json_body=code_body(), headers={header: "203.0.113.99"}).status == 429

    def test_another_address_has_its_own_limit(self, api: Api):
        for _ in range(11):
            request_code(api)
        assert request_code(Api(source_ip="198.51.100.8")).status == 201

    def test_an_ipv6_network_of_64_bits_is_one_caller(self, api: Api):
        for number in range(10):
            assert request_code(Api(source_ip=f"2001:db8:1:2:{number:x}::1")).status == 201
        assert request_code(Api(source_ip="2001:DB8:1:2:ffff:ffff:ffff:ffff")).status == 429
        assert request_code(Api(source_ip="2001:db8:1:3::1")).status == 201

    def test_an_ipv4_address_written_as_ipv6_is_the_same_caller(self, api: Api):
        for _ in range(10):
            request_code(api)
        assert request_code(Api(source_ip="::ffff:198.51.100.7")).status == 429

    def test_token_requests_are_counted_separately(self, api: Api):
        for _ in range(11):
            request_code(api)
        assert api.post(TOKEN, json_body={}).status == 400
