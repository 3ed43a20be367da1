"""DELETE /v1/me/sessions/{sessionId}, and that whatever ends a credential removes its entry in the list."""

import pytest

from controlplane.core import ids, tokens
from controlplane.core.scopes import SCOPES
from controlplane.store import device_approvals, keys, sessions
from controlplane.store.table import Delete, table
from tests.functional.conftest import FakeClock
from tests.functional.device_auth.devices import REVOKE, Device, Tokens, get_request, refresh, request_code, works
from tests.functional.device_auth.test_list_sessions import SESSIONS, current, listed, of_kind
from tests.support.api import Api, Reply
from tests.support.calls import before_the_update_of
from tests.support.table import PREPARED
from tests.support.world import Person, World, table_dump


def revoke(api: Api, token: str, session_id: str) -> Reply:
    return api.delete(f"{SESSIONS}/{session_id}", token)


def revoke_kind(api: Api, token: str, kind: str) -> Reply:
    """Revokes the only credential of this kind."""
    return revoke(api, token, of_kind(api, token, kind)["id"])


def stored_kinds(person: Person) -> list[str]:
    entries = table.query(keys.credentials_pk(person.user_id), consistent=True).items
    return [entry["kind"] for entry in entries]


def test_revoking_a_device_ends_all_its_tokens(api: Api, person: Person, pair: Tokens):
    second = refresh(api, pair["refreshToken"]).data
    reply = revoke_kind(api, person.token, "device")
    assert (reply.status, reply.data) == (200, {"deleted": True})
    assert [works(api, it["accessToken"]) for it in (pair, second)] == [False, False]
    assert refresh(api, second["refreshToken"]).status == 401
    assert [entry["kind"] for entry in listed(api, person.token)] == ["token"]


def test_a_web_session_and_a_token_revoke_each_other_and_themselves(api: Api, person: Person):
    session, other = sessions.create(person.user_id), sessions.create(person.user_id)
    assert revoke(api, person.token, current(api, session)["id"]).status == 200
    assert revoke_kind(api, other, "token").status == 200
    assert [works(api, secret) for secret in (session, person.token, other)] == [False, False, True]
    assert revoke(api, other, current(api, other)["id"]).status == 200
    assert (works(api, other), stored_kinds(person)) == (False, [])


def test_a_credential_revokes_itself_without_a_scope(api: Api, person: Person, world: World):
    token = world.token(person.user_id, [])
    assert revoke(api, token, current(api, token)["id"]).status == 200


def test_revoking_withdraws_an_approval_that_was_not_redeemed(api: Api, person: Person, approved: Device):
    assert revoke_kind(api, person.token, "device").status == 200
    reply = approved.redeem()
    assert (reply.status, reply.error["details"]) == (403, {"status": "access_denied"})


def test_revoking_a_device_whose_tokens_have_expired_ends_its_entry(api: Api, person: Person, pair: Tokens):
    table.delete(Delete(keys.token_family(tokens.family_of(pair["refreshToken"]) or "")), PREPARED)
    assert revoke_kind(api, person.token, "device").status == 200
    assert stored_kinds(person) == ["token"]


def test_a_request_during_the_revocation_doesnt_bring_the_entry_back(api: Api, person: Person, now: FakeClock):
    session = sessions.create(person.user_id)
    now.advance(3600)
    with before_the_update_of(table.client, "lastUsedAt", lambda: sessions.revoke(session)):
        assert api.get("/v1/me", session).status == 200
    assert stored_kinds(person) == ["token"]


def test_without_the_scope_every_other_id_gets_the_same_403(api: Api, person: Person, world: World):
    narrow = world.token(person.user_id, [scope for scope in SCOPES if scope != "sessions.write"])
    theirs = of_kind(api, world.person().token, "token")["id"]
    known = (current(api, person.token)["id"], theirs)
    replies = [revoke(api, narrow, named) for named in (*known, ids.session_id(ids.new_local()), "nonsense")]
    assert {(reply.status, reply.code) for reply in replies} == {(403, "INSUFFICIENT_SCOPE")}
    assert {reply.challenge for reply in replies} == {'Bearer error="insufficient_scope", scope="sessions.write"'}
    assert len({reply.text for reply in replies}) == 1
    assert works(api, person.token)


def test_another_users_credential_looks_exactly_like_an_unknown_one(api: Api, person: Person, world: World):
    other = world.person()
    theirs = of_kind(api, other.token, "token")["id"]
    unknown = (ids.session_id(ids.new_local()), "ses_", "nonsense", "SESSION#x", "ses_" + "0" * 500)
    replies = [revoke(api, person.token, session_id) for session_id in (theirs, *unknown)]
    assert {(reply.status, reply.text) for reply in replies} == {(404, replies[0].text)}
    assert works(api, other.token)


def test_a_revoked_or_expired_credential_is_unknown(api: Api, person: Person, world: World, now: FakeClock):
    expiring, revoked = (
        current(api, world.token(person.user_id, lifetime_seconds=seconds))["id"] for seconds in (60, 7_200)
    )
    assert [revoke(api, person.token, revoked).status for _ in range(2)] == [200, 404]
    now.advance(60)
    assert revoke(api, person.token, expiring).status == 404


def sign_out_by_access_token(api: Api, device: Device) -> None:
    api.post(REVOKE, json_body={"token": device.redeem().data["accessToken"]})


def sign_out_by_refresh_token(api: Api, device: Device) -> None:
    api.post(REVOKE, json_body={"token": device.redeem().data["refreshToken"]})


def redeem_twice(_: Api, device: Device) -> None:
    device.redeem()
    device.redeem()


def reuse_a_refresh_token(api: Api, device: Device) -> None:
    first = device.redeem().data["refreshToken"]
    refresh(api, refresh(api, first).data["refreshToken"])
    assert refresh(api, first).status == 401


@pytest.mark.parametrize(
    "end", [sign_out_by_access_token, sign_out_by_refresh_token, redeem_twice, reuse_a_refresh_token]
)
def test_a_device_that_ends_is_no_longer_listed(end, api: Api, person: Person, approved: Device):
    end(api, approved)
    assert stored_kinds(person) == ["token"]


def test_a_token_or_web_session_that_ends_is_no_longer_listed(api: Api, person: Person):
    sessions.revoke(sessions.create(person.user_id))
    assert stored_kinds(person) == ["token"]
    api.post(REVOKE, json_body={"token": person.token})
    assert stored_kinds(person) == []


def test_a_decided_device_request_keeps_no_name_and_address(api: Api, person: Person):
    redeemed, denied, withdrawn = (request_code(api, deviceName=f"Ada's {number}") for number in "123")
    redeemed.approved(person.user_id).redeem()
    revoke_kind(api, person.token, "device")
    device_approvals.deny(denied.user_code, person.user_id)
    withdrawn.approved(person.user_id)
    revoke_kind(api, person.token, "device")
    assert "Ada's" not in str(table_dump())
    assert [get_request(device.device_code).address for device in (redeemed, denied, withdrawn)] == [None] * 3
