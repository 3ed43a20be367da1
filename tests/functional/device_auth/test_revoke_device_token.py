"""POST /v1/auth/device/revoke: RFC 7009, and the same in JSON."""

import pytest

from controlplane.people import sessions
from controlplane.platform.core import tokens
from controlplane.platform.core.settings import settings
from tests.functional.conftest import FakeClock
from tests.functional.device_auth.devices import REVOKE, Tokens, refresh, request_code, works
from tests.functional.device_auth.test_create_device_token import SECRETS, stored_items
from tests.support.api import Api
from tests.support.each import each
from tests.support.world import Person, World


@each("kind", SECRETS)
def test_revoking_either_token_ends_its_family_and_nothing_else(kind: str, api: Api, person: Person):
    first, other = (request_code(api).approved(person.user_id).redeem().data for _ in range(2))
    second = refresh(api, first["refreshToken"]).data
    reply = api.post(REVOKE, json_body={"token": second[kind]})
    assert (reply.status, reply.data) == (200, {"revoked": True})
    assert [works(api, pair["accessToken"]) for pair in (first, second, other)] == [False, False, True]
    assert [refresh(api, pair["refreshToken"]).status for pair in (second, other)] == [401, 200]
    assert works(api, person.token)


@each("hint", ["access_token", "refresh_token", "nonsense"])
def test_revoking_by_form_ignores_the_hint(hint: str, api: Api, person: Person):
    pair = request_code(api).approved(person.user_id).redeem().data
    form = {"token": pair["refreshToken"], "token_type_hint": hint, "client_id": "assent-cli"}
    assert api.form(REVOKE, form).status == 200
    assert not works(api, pair["accessToken"])


def test_a_used_refresh_token_ends_its_family_and_revoking_it_twice_is_no_error(api: Api, pair: Tokens, now: FakeClock):
    second = refresh(api, pair["refreshToken"]).data
    now.advance(3_000)
    for token in (pair["refreshToken"], pair["refreshToken"], second["accessToken"]):
        assert api.form(REVOKE, {"token": token}).status == 200
    assert not works(api, second["accessToken"])


@pytest.mark.usefixtures("pair")
def test_unknown_tokens_and_those_of_another_client_change_nothing_and_are_no_error(
    api: Api, pair: Tokens, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(settings.__dict__, "device_client_ids", "assent-cli,acme-tv")
    before = stored_items()
    for token in ("x", "assent_rt_" + "0" * 68, tokens.mint("assent_at"), tokens.mint_refresh("0" * 16), "\u00e9"):
        assert api.form(REVOKE, {"token": token, "client_id": "assent-cli"}).status == 200
        assert api.post(REVOKE, json_body={"token": token}).data == {"revoked": True}
    for name in SECRETS:
        assert api.form(REVOKE, {"token": pair[name], "client_id": "acme-tv"}).status == 200
    assert stored_items() == before


def test_revoking_a_token_without_a_family_ends_only_that_token(api: Api, world: World, person: Person):
    other = world.token(person.user_id)
    assert api.form(REVOKE, {"token": person.token}).status == 200
    assert [works(api, token) for token in (person.token, other)] == [False, True]


def test_a_missing_token_an_unknown_client_and_other_credentials_are_rejected(api: Api, world: World, person: Person):
    assert api.post(REVOKE, json_body={}).error["details"][0]["path"] == ["token"]
    assert api.form(REVOKE, {"client_id": "assent-cli"}).body["error"] == "invalid_request"
    assert api.form(REVOKE, {"token": person.token, "client_id": "x"}).body["error"] == "invalid_client"
    session, key = sessions.create(person.user_id), world.key(world.company())
    for secret in (session, key, request_code(api).device_code):
        assert api.form(REVOKE, {"token": secret}).body["error"] == "unsupported_token_type"
        reply = api.post(REVOKE, json_body={"token": secret})
        assert reply.error["details"][0]["code"] == "unsupported_token_type"
    assert all(works(api, secret) for secret in (session, key, person.token))
