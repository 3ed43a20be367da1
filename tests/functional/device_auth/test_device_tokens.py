"""A device's tokens after the first pair: refreshed, and revoked as in RFC 7009, by form and by JSON."""

import pytest

from controlplane.people import sessions
from controlplane.platform.core import tokens
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from tests.functional.device_auth.devices import (
    CLIENT,
    DEVICE_GRANT,
    REVOKE,
    refresh,
    refresh_by_form,
    request_code,
    works,
)
from tests.functional.device_auth.test_create_device_token import SECRETS, problem, stored_items
from tests.support.each import each

DAY = 86_400


def test_an_access_token_lasts_an_hour_and_a_refresh_token_returns_the_next_pair(api, approved, now):
    pair = approved.redeem(grantType=DEVICE_GRANT).data
    now.advance(3_599)
    assert works(api, pair["accessToken"])
    now.advance(1)
    assert not works(api, pair["accessToken"])
    second = refresh(api, pair["refreshToken"], clientId=CLIENT, grantType="refresh_token")
    assert (second.status, second.data["expiresIn"], {*second.data}) == (200, 3600, {*pair})
    assert {second.data[name] for name in SECRETS}.isdisjoint({pair[name] for name in SECRETS})
    assert api.get("/v1/me", second.data["accessToken"]).data["scopes"] == ["projects.read"]


def test_repeating_a_refresh_within_a_minute_returns_the_same_pair(api, pair, now):
    second = refresh(api, pair["refreshToken"]).data
    before = stored_items()
    now.advance(59)
    again = refresh(api, pair["refreshToken"])
    assert (again.status, again.data) == (200, {**second, "expiresIn": 3_541})
    by_form = refresh_by_form(api, pair["refreshToken"]).body
    assert (by_form["access_token"], by_form["refresh_token"]) == (second["accessToken"], second["refreshToken"])
    assert stored_items() == before
    # The old access token remains valid until it expires.
    assert [works(api, it["accessToken"]) for it in (pair, second)] == [True, True]
    now.advance(1)
    assert refresh(api, pair["refreshToken"]).status == 401
    assert not works(api, second["accessToken"])


@each("generation", range(4))
def test_reusing_a_refresh_token_revokes_the_whole_family(generation, api, person, now):
    chain = [request_code(api).approved(person.user_id).redeem().data]
    for _ in range(4):
        now.advance(61)
        chain.append(refresh(api, chain[-1]["refreshToken"]).data)
    now.advance(61)
    assert works(api, chain[-1]["accessToken"])
    reply = refresh(api, chain[generation]["refreshToken"])
    assert (reply.status, reply.code) == (401, "UNAUTHORIZED")
    assert not any(works(api, pair["accessToken"]) for pair in chain)
    assert {refresh(api, pair["refreshToken"]).text for pair in chain} == {reply.text}
    assert refresh_by_form(api, chain[-1]["refreshToken"]).body["error"] == "invalid_grant"


def test_a_token_can_be_refreshed_for_30_days_and_its_family_for_half_a_year(api, pair, person, now):
    unused, token = request_code(api).approved(person.user_id).redeem().data["refreshToken"], pair["refreshToken"]
    now.advance(30 * DAY - 1)
    token = refresh(api, token).data["refreshToken"]
    now.advance(1)
    assert refresh(api, unused).status == 401
    for _ in range(5):
        now.advance(29 * DAY)
        token = refresh(api, token).data["refreshToken"]
    now.advance(5 * DAY - 100)
    last = refresh(api, token).data
    assert last["expiresIn"] == 100
    now.advance(40)
    assert refresh(api, token).data == {**last, "expiresIn": 60}
    now.advance(60)
    assert not works(api, last["accessToken"])
    assert refresh(api, last["refreshToken"]).status == 401


def test_scopes_can_be_reduced_and_restored_but_not_added(api, pending, person):
    token = pending.approved(person.user_id, ["billing.read", "projects.read"]).redeem().data["refreshToken"]
    for scope in ("projects.read inbox.read", "inbox.read", "nonsense"):
        assert problem(refresh(api, token, scope=scope)) == "invalid_scope"
        assert refresh_by_form(api, token, scope=scope).body["error"] == "invalid_scope"
    second = refresh(api, token, scope="billing.read").data
    assert second["scope"] == "billing.read"
    assert api.get("/v1/me", second["accessToken"]).data["scopes"] == ["billing.read"]
    assert refresh(api, token).data["scope"] == "billing.read"
    assert refresh(api, second["refreshToken"]).data["scope"] == "billing.read projects.read"


def test_only_the_five_newest_access_tokens_are_valid_and_expired_ones_dont_count(api, pair, now):
    pairs = [pair]
    for _ in range(5):
        pairs.append(refresh(api, pairs[-1]["refreshToken"]).data)
    assert [works(api, it["accessToken"]) for it in pairs] == [False, True, True, True, True, True]
    token = pairs[-1]["refreshToken"]
    for _ in range(3):
        now.advance(3_600)
        token = refresh(api, token).data["refreshToken"]
    assert len((table.get(keys.token_family(str(tokens.family_of(token)))) or {})["access"]) == 1


def test_a_malformed_or_guessed_refresh_token_returns_401_and_revokes_nothing(api, pair):
    token = pair["refreshToken"]
    guess = token[:-1] + ("a" if token[-1] != "a" else "b")
    for wrong in ("x", "assent_rt_", "assent_rt_" + "0" * 68, tokens.mint("assent_at"), guess):
        assert refresh(api, wrong).status == 401
        assert refresh_by_form(api, wrong).body["error"] == "invalid_grant"
    assert works(api, pair["accessToken"])
    assert refresh(api, token).status == 200


@each("kind", SECRETS)
def test_revoking_either_token_ends_its_family_and_nothing_else(kind, api, person):
    first, other = (request_code(api).approved(person.user_id).redeem().data for _ in range(2))
    second = refresh(api, first["refreshToken"]).data
    reply = api.post(REVOKE, json_body={"token": second[kind]})
    assert (reply.status, reply.data) == (200, {"revoked": True})
    assert [works(api, pair["accessToken"]) for pair in (first, second, other)] == [False, False, True]
    assert [refresh(api, pair["refreshToken"]).status for pair in (second, other)] == [401, 200]
    assert works(api, person.token)


def test_a_used_token_ends_its_family_and_one_without_a_family_itself(api, person, world, now):
    other = world.token(person.user_id)
    for hint in ("access_token", "refresh_token", "nonsense"):
        pair = request_code(api).approved(person.user_id).redeem().data
        second = refresh(api, pair["refreshToken"]).data
        now.advance(600)
        form = {"token": pair["refreshToken"], "token_type_hint": hint, "client_id": "assent-cli"}
        for token in (form["token"], form["token"], second["accessToken"]):  # a second time is no error
            assert api.form(REVOKE, {**form, "token": token}).status == 200
        assert not any(works(api, it["accessToken"]) for it in (pair, second))
    assert api.form(REVOKE, {"token": person.token}).status == 200
    assert [works(api, token) for token in (person.token, other)] == [False, True]


@pytest.mark.usefixtures("pair")
def test_unknown_tokens_and_those_of_another_client_change_nothing_and_are_no_error(api, pair, monkeypatch):
    monkeypatch.setitem(settings.__dict__, "device_client_ids", "assent-cli,acme-tv")
    before = stored_items()
    for token in ("x", "assent_rt_" + "0" * 68, tokens.mint("assent_at"), tokens.mint_refresh("0" * 16), "\u00e9"):
        assert api.form(REVOKE, {"token": token, "client_id": "assent-cli"}).status == 200
        assert api.post(REVOKE, json_body={"token": token}).data == {"revoked": True}
    for name in SECRETS:
        assert api.form(REVOKE, {"token": pair[name], "client_id": "acme-tv"}).status == 200
    assert stored_items() == before


def test_a_missing_token_an_unknown_client_and_other_credentials_are_rejected(api, world, person):
    assert api.post(REVOKE, json_body={}).error["details"][0]["path"] == ["token"]
    assert api.form(REVOKE, {"client_id": "assent-cli"}).body["error"] == "invalid_request"
    assert api.form(REVOKE, {"token": person.token, "client_id": "x"}).body["error"] == "invalid_client"
    session, key = sessions.create(person.user_id), world.key(world.company())
    for secret in (session, key, request_code(api).device_code):
        assert api.form(REVOKE, {"token": secret}).body["error"] == "unsupported_token_type"
        reply = api.post(REVOKE, json_body={"token": secret})
        assert reply.error["details"][0]["code"] == "unsupported_token_type"
    assert all(works(api, secret) for secret in (session, key, person.token))
