"""A device's tokens after the first pair, and states that change between a read and the write that depends on it."""

from typing import Any

import pytest

from controlplane.people import device, device_approvals, sessions, token_families
from controlplane.people.device_approvals import UnknownUserCode
from controlplane.people.token_families import REFRESH_SECONDS
from controlplane.platform.core import clock, tokens
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.retry import WriteConflict
from controlplane.platform.table.table import Delete, Update, table
from tests.functional.device_auth.devices import (
    CLIENT,
    DEVICE_GRANT,
    REVOKE,
    get_request,
    refresh,
    refresh_by_form,
    request_code,
    works,
)
from tests.functional.device_auth.test_create_device_token import SECRETS, problem, stored_items
from tests.support.calls import Call, before_the_transaction, intercepted
from tests.support.each import each
from tests.support.table import PREPARED
from tests.support.world import table_dump

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


@pytest.fixture
def token(pair):
    """Returns a refresh token."""
    return str(pair["refreshToken"])


@pytest.fixture
def family(token):
    found = token_families.find_family(str(tokens.family_of(token)))
    assert found is not None
    return found


@pytest.fixture
def request_item(approved):
    """Returns the request of an approved device."""
    return get_request(approved.device_code)


def stored(key: Key) -> dict[str, Any]:
    found = table.get(key)
    assert found is not None
    return found


class TestFamily:
    def test_a_family_that_expires_during_its_refresh_is_refused(self, api, token, family, now):
        passed = list[Call]()

        def around(call, proceed):
            answer = proceed()
            if call.operation == "GetItem" and call.parameters["Key"]["pk"]["S"] == family.key.pk and not passed:
                passed.append(call)
                now.advance(REFRESH_SECONDS)
            return answer

        with intercepted(table.client, around):
            assert refresh(api, token).status == 401
        assert passed

    def test_the_reason_of_the_first_revocation_is_kept(self, family, now):
        at = clock.timestamp()
        token_families.revoke(family.family_id, "stolen")
        now.advance(1)
        token_families.revoke(family.family_id, "later")
        item = stored(family.key)
        assert (item["state"], item["reason"], item["revokedAt"], item["access"]) == ("revoked", "stolen", at, [])

    def test_a_family_that_was_deleted_is_neither_refreshed_nor_revoked(self, api, token, family):
        table.delete(Delete(family.key), PREPARED)
        assert refresh(api, token).status == 401
        before = table_dump()
        for client_id in (CLIENT, None):
            token_families.revoke_refresh_token(token, client_id)
        assert table_dump() == before


class TestRequest:
    def test_of_two_polls_at_the_same_time_one_is_recorded_and_the_other_early(self, pending, now):
        request = get_request(pending.device_code)
        assert not device.note_poll(request)
        now.advance(0.1)
        assert device.note_poll(request)
        polled = get_request(pending.device_code)
        assert polled.interval == request.interval
        # A repeated write of an early poll is early, too.
        now.advance(1)
        assert [device.note_poll(polled) for _ in range(2)] == [True, True]

    def test_a_request_that_was_decided_or_deleted_is_not_polled(self, pending, person):
        request = get_request(pending.device_code)
        pending.approved(person.user_id)
        with pytest.raises(WriteConflict):
            device.note_poll(request)
        with before_the_transaction(table.client, lambda: table.delete(Delete(request.key), PREPARED)):
            assert device_approvals.withdraw(request.digest, person.user_id) is None
        with pytest.raises(WriteConflict):
            device.note_poll(request)

    def test_only_who_approved_withdraws_that_and_not_what_was_redeemed(self, approved, request_item, person, world):
        other = world.person()
        assert device_approvals.withdraw(request_item.digest, other.user_id) is None
        assert get_request(approved.device_code).status == "approved"
        approved.redeem()
        assert device_approvals.withdraw(request_item.digest, person.user_id) is not None
        assert device_approvals.withdraw(request_item.digest, other.user_id) is None
        assert get_request(approved.device_code).status == "redeemed"


class TestUserCode:
    @pytest.fixture
    def pointer(self, pending):  # it has the code
        """Returns the pointer of a code before anyone has looked it up."""
        (item,) = (it for it in table_dump() if it["pk"]["S"].startswith("UC#"))
        return stored(Key(item["pk"]["S"], item["sk"]["S"]))

    def test_a_look_at_a_code_that_was_issued_again_is_refused(self, pointer):
        key = Key(pointer["pk"], pointer["sk"])
        values = {"digest": "another", "seen": ["usr_2"]}
        table.update(Update(key, "SET #digest = :digest, #seenBy = :seen", None, values), PREPARED)
        for user_id in ("usr_1", "usr_2"):
            with pytest.raises(UnknownUserCode):
                device_approvals._note_look(pointer, user_id)
        assert stored(key)["seenBy"] == ["usr_2"]
        table.delete(Delete(key), PREPARED)
        with pytest.raises(UnknownUserCode):
            device_approvals._note_look(pointer, "usr_1")
