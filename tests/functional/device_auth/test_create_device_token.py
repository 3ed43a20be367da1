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
    CLIENT,
    CODE,
    OTHER_VERIFIER,
    REVOKE,
    TOKEN,
    VERIFIER,
    Device,
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


def items(prefix: str) -> list[str]:
    return [item["pk"]["S"] for item in table_dump() if item["pk"]["S"].startswith(prefix)]


class Test200:
    def test_an_approved_code_returns_tokens_that_act_for_the_user(self, api: Api, person: Person, world: World):
        company = world.company(owner=person)
        reply = request_code(api).approved(person.user_id, ["projects.read", "organizations.read"]).redeem()
        assert reply.status == 200
        assert re.fullmatch(r"assent_at_[0-9A-Za-z]{36}", reply.data["accessToken"])
        assert re.fullmatch(r"assent_rt_[0-9A-Za-z]{68}", reply.data["refreshToken"])
        assert reply.data == {
            "accessToken": reply.data["accessToken"],
            "tokenType": "Bearer",
            "expiresIn": 3600,
            "refreshToken": reply.data["refreshToken"],
            "scope": "organizations.read projects.read",
        }
        assert reply.headers["cache-control"] == "no-store"
        me = api.get("/v1/me", reply.data["accessToken"]).data
        assert me["principal"]["type"] == "oauth"
        assert me["principal"]["userId"] == person.user_id
        assert me["scopes"] == ["organizations.read", "projects.read"]
        assert me["organizations"][0]["role"] == "owner"
        world.leave(company, person)
        assert api.get("/v1/me", reply.data["accessToken"]).data["organizations"] == []

    def test_an_access_token_lasts_an_hour(self, api: Api, person: Person, now: FakeClock):
        token = request_code(api).approved(person.user_id).redeem().data["accessToken"]
        now.advance(3_599)
        assert works(api, token)
        now.advance(1)
        assert not works(api, token)

    def test_a_code_can_be_redeemed_until_its_last_second(self, api: Api, person: Person, now: FakeClock):
        device = request_code(api).approved(person.user_id)
        now.advance(899.9)
        assert device.redeem().status == 200

    def test_an_early_poll_after_the_approval_succeeds(self, api: Api, person: Person):
        device = request_code(api)
        assert device.redeem().status == 409
        assert device.approved(person.user_id).redeem().status == 200

    def test_stored_items_contain_no_secret(self, api: Api, person: Person):
        device = request_code(api).approved(person.user_id)
        first = device.redeem().data
        second = refresh(api, first["refreshToken"]).data
        stored = str(table_dump())
        for secret in (
            device.device_code,
            *(pair[name] for pair in (first, second) for name in ("accessToken", "refreshToken")),
        ):
            assert secret not in stored
            assert secret.rpartition("_")[2][16:46] not in stored

    def test_logs_contain_no_secret(self, api: Api, person: Person):
        with captured_logs() as lines:
            device = request_code(api).approved(person.user_id)
            pair = device.redeem().data
            refresh(api, pair["refreshToken"])
            refresh(api, tokens.mint("assent_rt"))
        log = lines.getvalue()
        assert log
        for secret in (device.device_code, device.user_code, VERIFIER, pair["accessToken"], pair["refreshToken"]):
            assert secret not in log

    def test_a_form_returns_the_response_of_rfc_6749(self, api: Api, person: Person):
        reply = request_code(api).approved(person.user_id).redeem_by_form()
        assert reply.body == {
            "access_token": reply.body["access_token"],
            "token_type": "Bearer",
            "expires_in": 3600,
            "refresh_token": reply.body["refresh_token"],
            "scope": "projects.read",
        }
        assert works(api, reply.body["access_token"])

    def test_a_code_decides_the_grant_even_with_a_refresh_token(self, api: Api, person: Person):
        assert request_code(api).approved(person.user_id).redeem(refreshToken="x").status == 200

    def test_both_dialects_reach_the_same_request(self, api: Api, person: Person):
        asked = api.form(CODE, code_form()).body
        device_approvals.approve(asked["user_code"], person.user_id, ["projects.read"])
        body = {"deviceCode": asked["device_code"], "codeVerifier": VERIFIER, "clientId": CLIENT}
        assert api.post(TOKEN, json_body=body).status == 200


class Test400:
    @pytest.mark.parametrize("left_out", ["deviceCode", "codeVerifier", "clientId"])
    def test_returns_400_naming_a_missing_field(self, api: Api, left_out: str):
        reply = request_code(api).redeem(**{left_out: None})
        assert reply.code == "INVALID_PAYLOAD"
        assert reply.error["details"] == [{"code": "missing", "message": "Field required", "path": [left_out]}]

    def test_returns_400_naming_all_missing_fields(self, api: Api):
        reply = api.post(TOKEN, json_body={})
        paths = [problem["path"] for problem in reply.error["details"]]
        assert paths == [["deviceCode"], ["codeVerifier"], ["clientId"]]

    def test_returns_400_for_a_refresh_without_its_token(self, api: Api):
        reply = api.post(TOKEN, json_body={"grantType": "refresh_token"})
        assert [problem["path"] for problem in reply.error["details"]] == [["refreshToken"]]

    @each("grant", ["authorization_code", "password", "client_credentials", "device_code", "x"])
    def test_returns_400_for_another_grant(self, api: Api, grant: str):
        reply = request_code(api).redeem(grantType=grant)
        assert reply.error["details"][0]["code"] == "unsupported_grant_type"
        assert request_code(api).redeem_by_form(grant_type=grant).body["error"] == "unsupported_grant_type"

    def test_returns_400_for_an_unknown_client(self, api: Api, person: Person):
        device = request_code(api).approved(person.user_id)
        assert device.redeem(clientId="x").error["details"][0]["code"] == "invalid_client"
        assert device.redeem_by_form(client_id="x").body["error"] == "invalid_client"
        token = device.redeem().data["refreshToken"]
        assert refresh(api, token, clientId="x").error["details"][0]["code"] == "invalid_client"
        assert refresh_by_form(api, token, client_id="x").body["error"] == "invalid_client"

    @each("verifier", ["x" * 42, "x" * 129, "x" * 42 + "\u00e9", "x" * 43 + "\n", "x x" * 20])
    def test_returns_400_for_an_invalid_verifier(self, api: Api, verifier: str):
        assert request_code(api).redeem(codeVerifier=verifier).error["details"][0]["path"] == ["codeVerifier"]
        assert request_code(api).redeem_by_form(code_verifier=verifier).body["error"] == "invalid_request"

    @each("left_out", ["grant_type", "device_code", "code_verifier", "client_id"])
    def test_a_form_returns_invalid_request(self, api: Api, left_out: str):
        reply = request_code(api).redeem_by_form(**{left_out: None})
        assert reply.body["error"] == "invalid_request"
        assert reply.body["error_description"].startswith(f"{left_out}: ")

    def test_returns_400_for_more_scopes_than_approved(self, api: Api, person: Person):
        token = request_code(api).approved(person.user_id).redeem().data["refreshToken"]
        reply = refresh(api, token, scope="projects.read billing.read")
        assert reply.error["details"][0]["code"] == "invalid_scope"
        assert refresh_by_form(api, token, scope="billing.read").body["error"] == "invalid_scope"
        assert refresh_by_form(api, token, scope="nonsense").body["error"] == "invalid_scope"
        assert refresh(api, token).status == 200


class Test401:
    def test_returns_401_for_an_expired_code(self, api: Api, person: Person, now: FakeClock):
        pending, approved, denied = request_code(api), request_code(api).approved(person.user_id), request_code(api)
        device_approvals.deny(denied.user_code, person.user_id)
        now.advance(900)
        for device in (pending, approved, denied):
            reply = device.redeem()
            assert (reply.status, reply.error["details"]) == (401, {"status": "expired"})
            assert device.redeem_by_form().body["error"] == "expired_token"
        assert items("FAMILY#") == []

    @each(
        "code",
        ["x", "assent_dc_", tokens.mint("assent_dc"), "assent_" + "x" * 36, "BCDF-GHJK", "\u00e9" * 200],
        ids=["short", "prefix", "well-formed", "a key", "a user code", "not ASCII"],
    )
    def test_an_unknown_code_returns_the_same_401(self, api: Api, code: str, now: FakeClock):
        expired = request_code(api)
        now.advance(900)
        assert request_code(api).redeem(deviceCode=code).text == expired.redeem().text
        assert request_code(api).redeem_by_form(device_code=code).body == expired.redeem_by_form().body

    def test_returns_401_for_another_clients_code(self, api: Api, person: Person, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setitem(settings.__dict__, "device_client_ids", "assent-cli,acme-tv")
        device = request_code(api).approved(person.user_id)
        assert device.redeem(clientId="acme-tv").error["details"] == {"status": "expired"}
        token = device.redeem().data["refreshToken"]
        assert refresh(api, token, clientId="acme-tv").status == 401
        assert refresh(api, token, clientId="assent-cli").status == 200

    def test_a_wrong_verifier_changes_nothing(self, api: Api, person: Person):
        device = request_code(api)
        before = [item for item in table_dump() if not item["pk"]["S"].startswith("IP#")]
        reply = device.redeem(codeVerifier=OTHER_VERIFIER)
        assert (reply.status, reply.code) == (401, "UNAUTHORIZED")
        assert device.redeem_by_form(code_verifier=OTHER_VERIFIER).body["error"] == "invalid_grant"
        assert [item for item in table_dump() if not item["pk"]["S"].startswith("IP#")] == before
        device.approved(person.user_id)
        assert device.redeem(codeVerifier=OTHER_VERIFIER).status == 401
        assert device.redeem().status == 200

    def test_a_wrong_verifier_for_a_redeemed_code_revokes_nothing(self, api: Api, person: Person):
        device = request_code(api).approved(person.user_id)
        pair = device.redeem().data
        assert device.redeem(codeVerifier=OTHER_VERIFIER).status == 401
        assert works(api, pair["accessToken"])
        assert refresh(api, pair["refreshToken"]).status == 200

    def test_the_challenge_doesnt_work_as_a_verifier(self, api: Api, person: Person):
        from tests.functional.device_auth.devices import challenge_of

        assert request_code(api).approved(person.user_id).redeem(codeVerifier=challenge_of(VERIFIER)).status == 401

    @each("generation", range(4))
    def test_reusing_a_refresh_token_revokes_the_whole_family(
        self, api: Api, person: Person, now: FakeClock, generation: int
    ):
        chain = [request_code(api).approved(person.user_id).redeem().data]
        for _ in range(4):
            now.advance(61)
            chain.append(refresh(api, chain[-1]["refreshToken"]).data)
        now.advance(61)
        assert works(api, chain[-1]["accessToken"])
        reply = refresh(api, chain[generation]["refreshToken"])
        assert (reply.status, reply.code) == (401, "UNAUTHORIZED")
        assert [works(api, pair["accessToken"]) for pair in chain] == [False] * 5
        assert {refresh(api, pair["refreshToken"]).text for pair in chain} == {reply.text}
        assert refresh_by_form(api, chain[-1]["refreshToken"]).body["error"] == "invalid_grant"

    def test_repeating_a_refresh_after_a_minute_counts_as_reuse(self, api: Api, person: Person, now: FakeClock):
        first = request_code(api).approved(person.user_id).redeem().data
        second = refresh(api, first["refreshToken"]).data
        now.advance(60)
        assert refresh(api, first["refreshToken"]).status == 401
        assert not works(api, second["accessToken"])

    def test_repeating_a_refresh_after_the_new_token_was_used_counts_as_reuse(self, api: Api, person: Person):
        first = request_code(api).approved(person.user_id).redeem().data
        second = refresh(api, first["refreshToken"]).data
        third = refresh(api, second["refreshToken"]).data
        assert refresh(api, first["refreshToken"]).status == 401
        assert not works(api, third["accessToken"])

    def test_a_guessed_refresh_token_revokes_nothing_and_reads_nothing(self, api: Api, person: Person):
        pair = request_code(api).approved(person.user_id).redeem().data
        token = pair["refreshToken"]
        for position in range(len("assent_rt_"), len(token)):
            other = "a" if token[position] != "a" else "b"
            assert tokens.family_of(token[:position] + other + token[position + 1 :]) is None
        assert refresh(api, token[:-1] + ("a" if token[-1] != "a" else "b")).status == 401
        assert works(api, pair["accessToken"])
        assert refresh(api, token).status == 200

    @each(
        "token",
        ["x", "assent_rt_", "assent_rt_" + "0" * 68, tokens.mint("assent_at")],
        ids=["short", "prefix", "well-formed", "an access token"],
    )
    def test_returns_401_for_a_malformed_refresh_token(self, api: Api, token: str):
        assert refresh(api, token).status == 401
        assert refresh_by_form(api, token).body["error"] == "invalid_grant"

    def test_neither_code_nor_refresh_token_works_as_a_bearer_token(self, api: Api, person: Person):
        device = request_code(api).approved(person.user_id)
        assert not works(api, device.device_code)
        assert not works(api, device.redeem().data["refreshToken"])


class Test403:
    def test_returns_403_for_a_denied_device(self, api: Api, person: Person):
        device = request_code(api)
        device_approvals.deny(device.user_code, person.user_id)
        reply = device.redeem()
        assert (reply.status, reply.code) == (403, "FORBIDDEN")
        assert reply.error["details"] == {"status": "access_denied"}
        assert device.redeem_by_form().body["error"] == "access_denied"
        assert items("FAMILY#") == []

    def test_returns_403_for_a_device_denied_after_its_approval(self, api: Api, person: Person):
        device = request_code(api).approved(person.user_id)
        device_approvals.deny(device.user_code, person.user_id)
        assert device.redeem().status == 403


@pytest.mark.usefixtures("switched_off")
class Test404:
    @pytest.mark.parametrize("path", [TOKEN, REVOKE])
    def test_the_disabled_feature_looks_exactly_like_an_unknown_path(self, api: Api, path: str):
        unknown = api.post("/v1/auth/device/nowhere").text
        assert api.post(path, json_body={}).text == unknown
        assert api.post(path, raw_body=b"token=x", headers={"Content-Type": FORM}).text == unknown


class Test409:
    def test_returns_409_until_a_user_decides(self, api: Api):
        reply = request_code(api).redeem()
        assert (reply.status, reply.code) == (409, "CONFLICT")
        assert reply.error["details"] == {"status": "authorization_pending"}
        assert request_code(api).redeem_by_form().body["error"] == "authorization_pending"

    def test_polling_too_soon_lengthens_the_interval(self, api: Api, now: FakeClock):
        device = request_code(api)
        came = []
        for seconds in (0, 5, 4, 9.4, 15, 14, 20, 20):
            now.advance(seconds)
            came.append(device.redeem().error["details"]["status"])
        pending, slow = "authorization_pending", "slow_down"
        assert came == [pending, pending, slow, slow, pending, slow, pending, pending]

    def test_a_poll_half_a_second_early_is_accepted(self, api: Api, now: FakeClock):
        device = request_code(api)
        device.redeem()
        now.advance(4.5)
        assert device.redeem().error["details"] == {"status": "authorization_pending"}
        now.advance(4.4999)
        assert device.redeem().error["details"] == {"status": "slow_down"}

    def test_a_form_returns_slow_down(self, api: Api):
        device = request_code(api)
        assert device.redeem_by_form().body["error"] == "authorization_pending"
        assert device.redeem_by_form().body["error"] == "slow_down"

    def test_redeeming_a_code_twice_revokes_its_tokens(self, api: Api, person: Person, now: FakeClock):
        device = request_code(api).approved(person.user_id)
        pair = device.redeem().data
        other = request_code(api).approved(person.user_id).redeem().data
        newer = refresh(api, pair["refreshToken"]).data
        reply = device.redeem()
        assert (reply.status, reply.code) == (409, "CONFLICT")
        assert reply.error["details"] == {"status": "used"}
        assert not works(api, pair["accessToken"])
        assert not works(api, newer["accessToken"])
        assert refresh(api, newer["refreshToken"]).status == 401
        assert works(api, other["accessToken"])
        assert device.redeem().error["details"] == {"status": "used"}
        assert device.redeem_by_form().body["error"] == "invalid_grant"

    def test_redeeming_a_code_twice_after_expiry_revokes_its_tokens(self, api: Api, person: Person, now: FakeClock):
        device = request_code(api).approved(person.user_id)
        pair = device.redeem().data
        now.advance(3_000)
        assert device.redeem().error["details"] == {"status": "used"}
        assert not works(api, pair["accessToken"])

    def test_a_user_without_the_scopes_can_grant_none(self, api: Api, person: Person):
        pair = request_code(api).approved(person.user_id, []).redeem().data
        assert pair["scope"] == ""
        assert api.get("/v1/me", pair["accessToken"]).data["scopes"] == []


class Test429:
    def test_returns_429_for_the_31st_request_in_a_minute(self, api: Api, now: FakeClock):
        for number in range(30):
            sent: list[Any] = [
                lambda: refresh(api, "x"),
                lambda: refresh_by_form(api, "x"),
                lambda: api.form(REVOKE, {"token": "x"}),
            ]
            assert sent[number % 3]().status in {200, 400, 401}
        refused = refresh(api, "x")
        assert (refused.status, refused.code) == (429, "RATE_LIMITED")
        assert refused.headers["retry-after"] == str(60 - int(now()) % 60)
        by_form = refresh_by_form(api, "x")
        assert (by_form.status, by_form.body["error"]) == (429, "slow_down")
        assert api.post(REVOKE, json_body={"token": "x"}).status == 429
        assert refresh(Api(source_ip="203.0.113.1"), "x").status == 401
        now.advance(60 - int(now()) % 60)
        assert refresh(api, "x").status == 401


class TestFailures:
    def test_a_form_is_answered_with_503_while_the_table_is_unavailable(self, api: Api):
        with refused(table.client, lambda _: True, "InternalServerError"):
            reply = refresh_by_form(api, "x")
        assert (reply.status, reply.body["error"]) == (503, "server_error")
        assert int(reply.headers["retry-after"]) >= 1

    def test_a_form_is_answered_with_500_after_an_unexpected_failure(self, api: Api):
        def fail(call, proceed):
            raise RuntimeError

        with intercepted(table.client, fail):
            reply = refresh_by_form(api, "x")
        assert (reply.status, reply.body["error"]) == (500, "server_error")


class TestRoundTrips:
    def test_an_exchange_makes_few_calls_and_a_guess_one(self, api: Api, person: Person, now: FakeClock):
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
