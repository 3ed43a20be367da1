"""POST /v1/auth/device/revoke: RFC 7009, and the same in JSON."""

import pytest

from controlplane.core import tokens
from controlplane.core.settings import settings
from controlplane.store import keys, sessions, token_families
from controlplane.store.table import table
from tests.functional.conftest import FakeClock
from tests.functional.device_auth.devices import REVOKE, refresh, request_code, works
from tests.support.api import Api
from tests.support.calls import before_the_transaction
from tests.support.each import each
from tests.support.world import Person, World, table_dump


def stored() -> list[str]:
    """Returns the stored items without counters."""
    return sorted(item["pk"]["S"] + str(item.get("state")) for item in table_dump() if item["pk"]["S"][:3] != "IP#")


class Test200:
    @pytest.mark.parametrize("kind", ["accessToken", "refreshToken"])
    def test_revoking_either_token_ends_its_family_and_nothing_else(self, api: Api, person: Person, kind: str):
        first = request_code(api).approved(person.user_id).redeem().data
        other = request_code(api).approved(person.user_id).redeem().data
        second = refresh(api, first["refreshToken"]).data
        reply = api.post(REVOKE, json_body={"token": second[kind]})
        assert reply.status == 200
        assert reply.data == {"revoked": True}
        assert [works(api, pair["accessToken"]) for pair in (first, second, other)] == [False, False, True]
        assert refresh(api, second["refreshToken"]).status == 401
        assert refresh(api, other["refreshToken"]).status == 200
        assert works(api, person.token)

    @pytest.mark.parametrize("hint", ["access_token", "refresh_token", "nonsense"])
    def test_revoking_by_form_ignores_the_hint(self, api: Api, person: Person, hint: str):
        pair = request_code(api).approved(person.user_id).redeem().data
        form = {"token": pair["refreshToken"], "token_type_hint": hint, "client_id": "assent-cli"}
        assert api.form(REVOKE, form).status == 200
        assert not works(api, pair["accessToken"])

    def test_revoking_a_used_refresh_token_ends_its_family(self, api: Api, person: Person, now: FakeClock):
        first = request_code(api).approved(person.user_id).redeem().data
        second = refresh(api, first["refreshToken"]).data
        now.advance(3_000)
        assert api.form(REVOKE, {"token": first["refreshToken"]}).status == 200
        assert not works(api, second["accessToken"])

    def test_revoking_twice_is_no_error(self, api: Api, person: Person):
        pair = request_code(api).approved(person.user_id).redeem().data
        for _ in range(2):
            assert api.form(REVOKE, {"token": pair["refreshToken"]}).status == 200
            assert api.form(REVOKE, {"token": pair["accessToken"]}).status == 200

    def test_of_two_concurrent_revocations_the_first_is_recorded(self, api: Api, person: Person):
        token = request_code(api).approved(person.user_id).redeem().data["refreshToken"]
        family_id = str(tokens.family_of(token))
        with before_the_transaction(table.client, lambda: token_families.revoke(family_id, "first")):
            token_families.revoke(family_id, "second")
        item = table.get(keys.token_family(family_id))
        assert item is not None
        assert item["reason"] == "first"

    @each(
        "token",
        ["x", "assent_rt_" + "0" * 68, tokens.mint("assent_at"), tokens.mint_refresh("0" * 16), "\u00e9"],
        ids=["short", "wrong MAC", "access token", "refresh token", "not ASCII"],
    )
    def test_revoking_an_unknown_token_changes_nothing_and_is_no_error(self, api: Api, person: Person, token: str):
        request_code(api).approved(person.user_id).redeem()
        before = stored()
        assert api.form(REVOKE, {"token": token, "client_id": "assent-cli"}).status == 200
        assert api.post(REVOKE, json_body={"token": token}).data == {"revoked": True}
        assert stored() == before

    def test_revoking_a_token_without_a_family_ends_only_that_token(self, api: Api, world: World, person: Person):
        other = world.token(person.user_id)
        assert api.form(REVOKE, {"token": person.token}).status == 200
        assert not works(api, person.token)
        assert works(api, other)

    def test_revoking_another_clients_token_changes_nothing(
        self, api: Api, person: Person, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setitem(settings.__dict__, "device_client_ids", "assent-cli,acme-tv")
        pair = request_code(api).approved(person.user_id).redeem().data
        for token in (pair["accessToken"], pair["refreshToken"]):
            assert api.form(REVOKE, {"token": token, "client_id": "acme-tv"}).status == 200
        assert works(api, pair["accessToken"])


class Test400:
    def test_returns_400_without_a_token(self, api: Api):
        assert api.post(REVOKE, json_body={}).error["details"][0]["path"] == ["token"]
        assert api.form(REVOKE, {"client_id": "assent-cli"}).body["error"] == "invalid_request"

    def test_returns_400_for_an_unknown_client(self, api: Api, person: Person):
        assert api.form(REVOKE, {"token": person.token, "client_id": "x"}).body["error"] == "invalid_client"
        assert works(api, person.token)

    def test_returns_400_for_a_session_or_an_api_key(self, api: Api, world: World, person: Person):
        session, key = sessions.create(person.user_id), world.key(world.company())
        for secret in (session, key, request_code(api).device_code):
            assert api.form(REVOKE, {"token": secret}).body["error"] == "unsupported_token_type"
            reply = api.post(REVOKE, json_body={"token": secret})
            assert reply.error["details"][0]["code"] == "unsupported_token_type"
        assert works(api, session)
        assert works(api, key)
