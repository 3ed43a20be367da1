"""DELETE /v1/me/sessions/{sessionId}, and that whatever ends a credential removes its entry in the list."""

import pytest

from controlplane.people import device_approvals, sessions
from controlplane.platform.core import ids, tokens
from controlplane.platform.core.scopes import SCOPES
from controlplane.platform.table import keys
from controlplane.platform.table.table import Delete, table
from tests.functional.conftest import FakeClock
from tests.functional.device_auth.devices import REVOKE, Device, Tokens, get_request, refresh, request_code, works
from tests.functional.device_auth.test_list_sessions import SESSIONS, listed
from tests.support.api import Api, Reply
from tests.support.calls import before_the_update_of
from tests.support.table import PREPARED
from tests.support.world import Person, World, table_dump


def revoke(api: Api, token: str, session_id: str) -> Reply:
    return api.delete(f"{SESSIONS}/{session_id}", token)


def revoke_kind(api: Api, token: str, kind: str) -> Reply:
    """Revokes the only credential of this kind."""
    (found,) = listed(api, token, kind=kind)
    return revoke(api, token, found["id"])


def own_id(api: Api, token: str) -> str:
    return str(listed(api, token, current=True)[0]["id"])


def stored_kinds(person: Person) -> list[str]:
    entries = table.query(keys.credentials_pk(person.user_id), consistent=True).items
    return [entry["kind"] for entry in entries]


def test_revoking_a_device_ends_all_its_tokens(api: Api, person: Person, pair: Tokens):
    second = refresh(api, pair["refreshToken"]).data
    reply = revoke_kind(api, person.token, "device")
    assert (reply.status, reply.data) == (200, {"deleted": True})
    assert not any(works(api, it["accessToken"]) for it in (pair, second))
    assert refresh(api, second["refreshToken"]).status == 401
    assert [entry["kind"] for entry in listed(api, person.token)] == ["token"]


def test_credentials_revoke_each_other_and_without_a_scope_themselves(api: Api, person: Person, world: World):
    session, other, narrow = sessions.create(person.user_id), sessions.create(person.user_id), world.person(scopes=[])
    assert revoke(api, person.token, own_id(api, session)).status == 200
    assert revoke_kind(api, other, "token").status == 200
    assert [works(api, secret) for secret in (session, person.token, other)] == [False, False, True]
    for secret in (other, narrow.token):
        assert revoke(api, secret, own_id(api, secret)).status == 200
        assert not works(api, secret)
    assert stored_kinds(person) == stored_kinds(narrow) == []


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


def test_other_ids_look_the_same_whether_they_are_known_or_not(api: Api, person: Person, world: World):
    narrow = world.token(person.user_id, [scope for scope in SCOPES if scope != "sessions.write"])
    other = world.person()
    theirs = own_id(api, other.token)
    unknown = (ids.session_id(ids.new_local()), "ses_", "nonsense", "SESSION#x", "ses_" + "0" * 500)
    replies = [revoke(api, narrow, session_id) for session_id in (own_id(api, person.token), theirs, *unknown)]
    assert (replies[0].status, replies[0].code) == (403, "INSUFFICIENT_SCOPE")
    assert {reply.challenge for reply in replies} == {'Bearer error="insufficient_scope", scope="sessions.write"'}
    assert len({reply.text for reply in replies}) == 1
    replies = [revoke(api, person.token, session_id) for session_id in (theirs, *unknown)]
    assert {(reply.status, reply.text) for reply in replies} == {(404, replies[0].text)}
    assert all(works(api, secret) for secret in (person.token, other.token))


def test_a_revoked_or_expired_credential_is_unknown(api: Api, person: Person, world: World, now: FakeClock):
    expiring, revoked = (own_id(api, world.token(person.user_id, lifetime_seconds=end)) for end in (60, 7_200))
    assert [revoke(api, person.token, revoked).status for _ in range(2)] == [200, 404]
    now.advance(60)
    assert revoke(api, person.token, expiring).status == 404


def redeem_twice(device: Device) -> None:
    device.redeem()
    device.redeem()


def reuse_a_refresh_token(device: Device) -> None:
    first = device.redeem().data["refreshToken"]
    refresh(device.api, refresh(device.api, first).data["refreshToken"])
    assert refresh(device.api, first).status == 401


ENDS = {
    "signed out by access token": lambda it: it.api.post(REVOKE, json_body={"token": it.redeem().data["accessToken"]}),
    "signed out by refresh token": lambda it: it.api.post(
        REVOKE, json_body={"token": it.redeem().data["refreshToken"]}
    ),
    "redeemed twice": redeem_twice,
    "reused refresh token": reuse_a_refresh_token,
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_a_device_that_ends_is_no_longer_listed(end, person: Person, approved: Device):
    end(approved)
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
