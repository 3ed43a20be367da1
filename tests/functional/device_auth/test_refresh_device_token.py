"""POST /v1/auth/device/token with a refresh token."""

from typing import Any

from controlplane.people import token_families
from controlplane.platform.core import tokens
from controlplane.platform.core.scopes import SCOPES
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from tests.functional.conftest import FakeClock
from tests.functional.device_auth.devices import (
    CLIENT,
    DEVICE_GRANT,
    Device,
    Tokens,
    refresh,
    refresh_by_form,
    request_code,
    works,
)
from tests.functional.device_auth.test_create_device_token import SECRETS, problem, stored_items
from tests.support.api import Api
from tests.support.each import each
from tests.support.world import Person

DAY = 86_400


def test_an_access_token_lasts_an_hour_and_a_refresh_token_returns_the_next_pair(
    api: Api, approved: Device, now: FakeClock
):
    pair = approved.redeem(grantType=DEVICE_GRANT).data
    now.advance(3_599)
    assert works(api, pair["accessToken"])
    now.advance(1)
    assert not works(api, pair["accessToken"])
    second = refresh(api, pair["refreshToken"], clientId=CLIENT, grantType="refresh_token")
    assert (second.status, second.data["expiresIn"], {*second.data}) == (200, 3600, {*pair})
    assert {second.data[name] for name in SECRETS}.isdisjoint({pair[name] for name in SECRETS})
    assert api.get("/v1/me", second.data["accessToken"]).data["scopes"] == ["projects.read"]


def test_repeating_a_refresh_within_a_minute_returns_the_same_pair(api: Api, pair: Tokens, now: FakeClock):
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
def test_reusing_a_refresh_token_revokes_the_whole_family(generation: int, api: Api, person: Person, now: FakeClock):
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


def test_repeating_a_refresh_after_the_new_token_was_used_counts_as_reuse(api: Api, pair: Tokens):
    third = refresh(api, refresh(api, pair["refreshToken"]).data["refreshToken"]).data
    assert refresh(api, pair["refreshToken"]).status == 401
    assert not works(api, third["accessToken"])


def test_a_family_can_be_refreshed_for_half_a_year(api: Api, pair: Tokens, now: FakeClock):
    token = pair["refreshToken"]
    for _ in range(6):
        now.advance(29 * DAY)
        token = refresh(api, token).data["refreshToken"]
    now.advance(6 * DAY - 100)
    last = refresh(api, token).data
    assert last["expiresIn"] == 100
    now.advance(40)
    assert refresh(api, token).data == {**last, "expiresIn": 60}
    now.advance(60)
    assert not works(api, last["accessToken"])
    assert refresh(api, last["refreshToken"]).status == 401


def test_an_unused_refresh_token_expires_after_30_days(api: Api, person: Person, now: FakeClock):
    late, later = (request_code(api).approved(person.user_id).redeem().data["refreshToken"] for _ in range(2))
    now.advance(30 * DAY - 1)
    assert refresh(api, late).status == 200
    now.advance(1)
    assert refresh(api, later).status == 401


def test_scopes_can_be_reduced_and_restored_but_not_added(api: Api, pending: Device, person: Person):
    token = pending.approved(person.user_id, ["billing.read", "projects.read"]).redeem().data["refreshToken"]
    for scope in ("projects.read inbox.read", "inbox.read", "nonsense"):
        assert problem(refresh(api, token, scope=scope)) == "invalid_scope"
        assert refresh_by_form(api, token, scope=scope).body["error"] == "invalid_scope"
    second = refresh(api, token, scope="billing.read").data
    assert second["scope"] == "billing.read"
    assert api.get("/v1/me", second["accessToken"]).data["scopes"] == ["billing.read"]
    assert refresh(api, token).data["scope"] == "billing.read"
    assert refresh(api, second["refreshToken"]).data["scope"] == "billing.read projects.read"


def test_only_the_five_newest_access_tokens_are_valid_and_expired_ones_dont_count(
    api: Api, pair: Tokens, now: FakeClock
):
    pairs = [pair]
    for _ in range(5):
        pairs.append(refresh(api, pairs[-1]["refreshToken"]).data)
    assert [works(api, it["accessToken"]) for it in pairs] == [False, True, True, True, True, True]
    token = pairs[-1]["refreshToken"]
    for _ in range(3):
        now.advance(3_600)
        token = refresh(api, token).data["refreshToken"]
    assert len((table.get(keys.token_family(str(tokens.family_of(token)))) or {})["access"]) == 1


def test_a_malformed_or_guessed_refresh_token_returns_401_and_revokes_nothing(api: Api, pair: Tokens):
    token = pair["refreshToken"]
    guess = token[:-1] + ("a" if token[-1] != "a" else "b")
    for wrong in ("x", "assent_rt_", "assent_rt_" + "0" * 68, tokens.mint("assent_at"), guess):
        assert refresh(api, wrong).status == 401
        assert refresh_by_form(api, wrong).body["error"] == "invalid_grant"
    for position in range(len("assent_rt_"), len(token)):
        other = "a" if token[position] != "a" else "b"
        assert tokens.family_of(token[:position] + other + token[position + 1 :]) is None
    assert works(api, pair["accessToken"])
    assert refresh(api, token).status == 200


def test_a_family_stores_digests_and_its_access_tokens(api: Api, person: Person, now: FakeClock):
    device = request_code(api, scope=" ".join(SCOPES)).approved(person.user_id, sorted(SCOPES))
    pair = device.redeem().data
    family_id, digest = str(tokens.family_of(pair["refreshToken"])), tokens.digest(pair["accessToken"])
    expected: list[tuple[keys.Key, dict[str, Any]]] = [
        (
            keys.token_family(family_id),
            {
                "current": tokens.digest(pair["refreshToken"]),
                "access": [{"digest": digest, "expiresAt": int(now()) + 3600}],
                "expiresAt": int(now()) + token_families.REFRESH_SECONDS,
            },
        ),
        (keys.user_token(digest), {"kind": "oauth", "familyId": family_id, "clientId": CLIENT}),
        (keys.device_request(tokens.digest(device.device_code)), {"familyId": family_id}),
    ]
    for key, values in expected:
        stored = table.get(key) or {}
        assert {name: stored[name] for name in values} == values
