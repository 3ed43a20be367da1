"""DELETE /v1/me/sessions/{sessionId}."""

import pytest

from controlplane.core import ids, tokens
from controlplane.core.scopes import SCOPES
from controlplane.store import device_approvals, keys, sessions
from controlplane.store.table import Delete, table
from tests.functional.conftest import FakeClock
from tests.functional.device_auth.devices import get_request, refresh, request_code, works
from tests.functional.device_auth.test_list_sessions import SESSIONS, of_kind
from tests.support.api import Api
from tests.support.calls import before_the_update_of
from tests.support.table import PREPARED
from tests.support.world import Person, World, table_dump


def revoke(api: Api, token: str, session_id: str):
    return api.delete(f"{SESSIONS}/{session_id}", token)


def entries(user_id: str) -> list[dict]:
    return table.query(keys.credentials_pk(user_id), consistent=True).items


class Test200:
    def test_revoking_a_device_ends_all_its_tokens(self, api: Api, person: Person):
        first = request_code(api).approved(person.user_id).redeem().data
        second = refresh(api, first["refreshToken"]).data
        reply = revoke(api, person.token, of_kind(api, person.token, "device")["id"])
        assert (reply.status, reply.data) == (200, {"deleted": True})
        assert not works(api, first["accessToken"])
        assert not works(api, second["accessToken"])
        assert refresh(api, second["refreshToken"]).status == 401
        assert [entry["kind"] for entry in api.get(SESSIONS, person.token).data] == ["token"]

    def test_revokes_a_web_session(self, api: Api, person: Person):
        session = sessions.create(person.user_id)
        assert revoke(api, person.token, of_kind(api, person.token, "session")["id"]).status == 200
        assert not works(api, session)

    def test_revokes_the_session_of_the_request_itself(self, api: Api, person: Person):
        assert revoke(api, person.token, of_kind(api, person.token, "token")["id"]).status == 200
        assert not works(api, person.token)
        assert entries(person.user_id) == []

    def test_revoking_withdraws_an_approval_that_was_not_redeemed(self, api: Api, person: Person):
        device = request_code(api).approved(person.user_id)
        assert revoke(api, person.token, of_kind(api, person.token, "device")["id"]).status == 200
        reply = device.redeem()
        assert (reply.status, reply.error["details"]) == (403, {"status": "access_denied"})

    def test_revoking_a_device_whose_tokens_have_expired_ends_its_entry(self, api: Api, person: Person):
        pair = request_code(api).approved(person.user_id).redeem().data
        table.delete(Delete(keys.token_family(tokens.family_of(pair["refreshToken"]) or "")), PREPARED)
        assert revoke(api, person.token, of_kind(api, person.token, "device")["id"]).status == 200
        assert [entry["kind"] for entry in entries(person.user_id)] == ["token"]

    def test_a_request_during_the_revocation_doesnt_bring_the_entry_back(
        self, api: Api, person: Person, now: FakeClock
    ):
        session = sessions.create(person.user_id)
        now.advance(3600)
        with before_the_update_of(table.client, "lastUsedAt", lambda: sessions.revoke(session)):
            assert api.get("/v1/me", session).status == 200
        assert [entry["kind"] for entry in entries(person.user_id)] == ["token"]

    def test_another_user_cant_withdraw_an_approval(self, api: Api, person: Person, world: World):
        device = request_code(api).approved(person.user_id)
        device_approvals.withdraw(tokens.digest(device.device_code), world.person().user_id)
        assert device.redeem().status == 200

    def test_a_session_revokes_others(self, api: Api, person: Person):
        session = sessions.create(person.user_id)
        assert revoke(api, session, of_kind(api, session, "token")["id"]).status == 200
        assert not works(api, person.token)

    def test_a_credential_revokes_itself_without_a_scope(self, api: Api, person: Person, world: World):
        token = world.token(person.user_id, [])
        (entry,) = [entry for entry in api.get(SESSIONS, token).data if entry["current"]]
        assert revoke(api, token, entry["id"]).status == 200


class Test403:
    def test_returns_403_for_an_api_key(self, api: Api, world: World):
        company = world.company()
        session_id = of_kind(api, company.owner.token, "token")["id"]
        reply = revoke(api, world.key(company), session_id)
        assert (reply.status, reply.code) == (403, "FORBIDDEN")
        assert works(api, company.owner.token)

    def test_without_the_scope_every_other_id_gets_the_same_403(self, api: Api, person: Person, world: World):
        narrow = world.token(person.user_id, [scope for scope in SCOPES if scope != "sessions.write"])
        others = [it["id"] for it in api.get(SESSIONS, person.token).data if it["current"]]
        theirs = of_kind(api, world.person().token, "token")["id"]
        texts = set()
        for session_id in (*others, theirs, ids.session_id(ids.new_local()), "nonsense"):
            reply = revoke(api, narrow, session_id)
            assert (reply.status, reply.code) == (403, "INSUFFICIENT_SCOPE")
            assert reply.challenge == 'Bearer error="insufficient_scope", scope="sessions.write"'
            texts.add(reply.text)
        assert len(texts) == 1
        assert works(api, person.token)


class Test404:
    def test_another_users_credential_looks_exactly_like_an_unknown_one(self, api: Api, person: Person, world: World):
        other = world.person()
        theirs = of_kind(api, other.token, "token")["id"]
        texts = set()
        for session_id in (
            theirs,
            ids.session_id(ids.new_local()),
            "ses_",
            "nonsense",
            "SESSION#x",
            "ses_" + "0" * 500,
        ):
            reply = revoke(api, person.token, session_id)
            assert reply.status == 404, session_id
            texts.add(reply.text)
        assert len(texts) == 1
        assert works(api, other.token)

    def test_returns_404_for_a_revoked_or_expired_credential(self, api: Api, person: Person, world: World, now):
        world.token(person.user_id, lifetime_seconds=60)
        expiring = next(entry for entry in api.get(SESSIONS, person.token).data if not entry["current"])["id"]
        world.token(person.user_id, lifetime_seconds=7_200)
        revoked = next(
            entry["id"]
            for entry in api.get(SESSIONS, person.token).data
            if not entry["current"] and entry["id"] != expiring
        )
        assert revoke(api, person.token, revoked).status == 200
        assert revoke(api, person.token, revoked).status == 404
        now.advance(60)
        assert revoke(api, person.token, expiring).status == 404


class TestOtherWaysOut:
    """Every operation that ends a credential removes its list entry in the same transaction."""

    @pytest.mark.parametrize("kind", ["accessToken", "refreshToken"])
    def test_a_device_that_signs_out_is_no_longer_listed(self, api: Api, person: Person, kind: str):
        pair = request_code(api).approved(person.user_id).redeem().data
        api.post("/v1/auth/device/revoke", json_body={"token": pair[kind]})
        assert [entry["kind"] for entry in entries(person.user_id)] == ["token"]

    def test_a_revoked_token_is_no_longer_listed(self, api: Api, person: Person):
        api.post("/v1/auth/device/revoke", json_body={"token": person.token})
        assert entries(person.user_id) == []

    def test_a_code_that_is_redeemed_twice_is_no_longer_listed(self, api: Api, person: Person):
        device = request_code(api).approved(person.user_id)
        device.redeem()
        device.redeem()
        assert [entry["kind"] for entry in entries(person.user_id)] == ["token"]

    def test_a_family_whose_refresh_token_is_reused_is_no_longer_listed(self, api: Api, person: Person):
        first = request_code(api).approved(person.user_id).redeem().data
        second = refresh(api, first["refreshToken"]).data
        refresh(api, second["refreshToken"])
        assert refresh(api, first["refreshToken"]).status == 401
        assert [entry["kind"] for entry in entries(person.user_id)] == ["token"]

    def test_a_signed_out_web_session_is_no_longer_listed(self, api: Api, person: Person):
        sessions.revoke(sessions.create(person.user_id))
        assert [entry["kind"] for entry in entries(person.user_id)] == ["token"]


def test_a_decided_device_request_keeps_no_name_and_address(api: Api, person: Person):
    redeemed, denied, withdrawn = (request_code(api, deviceName=f"Ada's {number}") for number in "123")
    redeemed.approved(person.user_id).redeem()
    revoke(api, person.token, of_kind(api, person.token, "device")["id"])
    device_approvals.deny(denied.user_code, person.user_id)
    withdrawn.approved(person.user_id)
    revoke(api, person.token, of_kind(api, person.token, "device")["id"])
    assert "Ada's" not in str(table_dump())
    assert [get_request(device.device_code).address for device in (redeemed, denied, withdrawn)] == [None] * 3
