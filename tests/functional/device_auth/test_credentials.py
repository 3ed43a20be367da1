"""Web sessions, and GET and DELETE /v1/me/sessions: the credentials of a person."""

import re
from typing import Any

import pytest

from controlplane.people import sessions
from controlplane.people.credential_index import find_credential
from controlplane.people.users import UnknownUser
from controlplane.platform.core import ids, tokens
from controlplane.platform.core.scopes import SCOPES
from controlplane.platform.core.tokens import digest
from controlplane.platform.table import keys
from controlplane.platform.table.table import Delete, Update, table
from tests.functional.device_auth.devices import REVOKE, refresh, request_code, works
from tests.functional.device_auth.test_create_device_token import SECRETS
from tests.support.api import Api, Reply
from tests.support.calls import is_update_of, refused
from tests.support.table import PREPARED
from tests.support.world import ALL_SCOPES, Person, table_dump


def test_a_session_acts_for_the_user_with_every_scope_even_a_newer_one(api, person, world):
    company = world.company(owner=person)
    secret = sessions.create(person.user_id)
    assert re.fullmatch(r"assent_st_[0-9A-Za-z]{36}", secret)
    assert secret not in str(table_dump())
    older = Update(keys.user_token(digest(secret)), "SET #scopes = :older", None, {"older": ["projects.read"]})
    table.update(older, PREPARED)
    me = api.get("/v1/me", secret).data
    assert me["scopes"] == sorted(SCOPES)
    assert me["principal"] == {
        "type": "session",
        "userId": person.user_id,
        "activeOrganizationId": company.organization_id,
    }
    assert api.post("/v1/organizations", secret, json_body={"name": "Second one"}).status == 201


def test_a_session_ends_alone_and_after_12_hours_and_an_unknown_user_gets_none(api, person, now):
    with pytest.raises(UnknownUser):
        sessions.create("usr_" + "0" * 16)
    first, second = sessions.create(person.user_id), sessions.create(person.user_id)
    for secret in (first, first, person.token, "nonsense"):
        sessions.revoke(secret)
    assert [works(api, secret) for secret in (first, second, person.token)] == [False, True, True]
    now.advance(12 * 3_600 - 1)
    assert works(api, second)
    now.advance(1)
    assert not works(api, second)


SESSIONS = "/v1/me/sessions"
DAY = 86_400


def listed(api: Api, token: str, **wanted: Any) -> list[dict[str, Any]]:
    """Returns the listed entries with these values."""
    return [entry for entry in api.get(SESSIONS, token).data if wanted.items() <= entry.items()]


@pytest.fixture
def token(world, person):
    """Returns a token of the person that lives for a day."""
    return world.token(person.user_id, lifetime_seconds=DAY)


def test_sessions_devices_and_tokens_are_listed_newest_first(api, person, world, now):
    sessions.create(world.person().user_id)
    now.advance(1)
    api.source_ip = "203.0.113.9"
    requester = request_code(api, scope="projects.read sessions.write", deviceName="Ada's laptop")
    now.advance(1)
    pair = requester.approved(person.user_id, ["projects.read", "sessions.write"]).redeem().data
    now.advance(1)
    session = sessions.create(person.user_id, "2001:db8::1")
    now.advance(1)
    reply = api.get(SESSIONS, pair["accessToken"])
    assert [entry["kind"] for entry in reply.data] == ["session", "device", "token"]
    assert reply.body["pagination"] == {"nextCursor": None, "hasMore": False}
    web, device, token = reply.data
    assert device == {
        "id": device["id"],
        "kind": "device",
        "client": "assent-cli",
        "deviceName": "Ada's laptop",
        "ipAddress": "203.0.113.9",
        "createdAt": "2026-03-04T05:06:09.000Z",
        "lastUsedAt": "2026-03-04T05:06:09.000Z",
        "expiresAt": "2026-04-03T05:06:09.000Z",
        "current": True,
        "scopes": ["projects.read", "sessions.write"],
    }
    assert (web["client"], web["ipAddress"], web["scopes"]) == ("dashboard", "2001:db8::1", ALL_SCOPES)
    assert (web["expiresAt"], web["current"]) == ("2026-03-04T17:06:10.000Z", False)
    assert (token["client"], token["ipAddress"], token["deviceName"]) == ("assent-ops", None, None)
    assert [entry["id"] for entry in listed(api, session, current=True)] == [web["id"]]
    # An ID shares nothing with the secret.
    assert ids.local_of_session(token["id"])
    assert token["id"].startswith("ses_")
    assert token["id"][4:] not in tokens.digest(person.token) + person.token
    # Requests without organizationId query the partition `USER#…`, which holds no credentials.
    assert [item["sk"] for item in table.query(keys.user_pk(person.user_id)).items] == [keys.PROFILE_SK]


def test_without_the_scope_a_credential_lists_only_itself(api, person, world):
    narrow = world.token(person.user_id, [scope for scope in ALL_SCOPES if scope != "sessions.write"])
    sessions.create(person.user_id, "2001:db8::1")
    cursor = api.get(f"{SESSIONS}?limit=1", person.token).body["pagination"]["nextCursor"]
    for query in ("", f"?cursor={cursor}"):
        reply = api.get(SESSIONS + query, narrow)
        assert [(entry["current"], entry["ipAddress"]) for entry in reply.data] == [(True, None)]
        assert reply.body["pagination"] == {"nextCursor": None, "hasMore": False}
    assert len(listed(api, person.token)) == 3


def test_an_entry_is_listed_until_it_has_expired(api, person, now, world):
    world.token(person.user_id, lifetime_seconds=60)
    for seconds, count in ((59, 2), (1, 1)):
        now.advance(seconds)
        assert len(listed(api, person.token)) == count


def test_an_approved_device_is_listed_before_it_redeems_its_code(api, person, approved):
    (waiting,) = listed(api, person.token, kind="device")
    assert waiting["expiresAt"] == "2026-03-04T05:21:07.000Z"
    family_id = tokens.family_of(approved.redeem().data["refreshToken"]) or ""
    assert len(listed(api, person.token, kind="device", id=waiting["id"])) == 1
    family = table.get(keys.token_family(family_id)) or {}
    entry = find_credential(person.user_id, ids.session_id(family["listedAs"]))
    assert entry is not None
    assert (entry.family_id, entry.expires_at) == (family_id, family["expiresAt"])


def test_a_refresh_and_the_first_use_in_an_hour_are_recorded_unless_throttled(api, pair, token, now):
    (before,) = listed(api, pair["accessToken"], kind="device")
    now.advance(7_200)
    refresh(api, pair["refreshToken"])
    times = {"lastUsedAt": "2026-03-04T07:06:07.000Z", "expiresAt": "2026-04-03T07:06:07.000Z"}
    with refused(table.client, is_update_of("CREDENTIALS#"), "ThrottlingException"):
        assert listed(api, token, id=before["id"]) == [{**before, **times, "current": False}]
    now.advance(3_600)
    api.get("/v1/me", token)
    now.advance(600)
    assert [entry["lastUsedAt"] for entry in listed(api, token, current=True)] == ["2026-03-04T08:06:07.000Z"]


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


def test_revoking_a_device_ends_all_its_tokens_and_withdraws_an_approval(api, person, pair):
    second = refresh(api, pair["refreshToken"]).data
    reply = revoke_kind(api, person.token, "device")
    assert (reply.status, reply.data) == (200, {"deleted": True})
    assert not any(works(api, it["accessToken"]) for it in (pair, second))
    assert refresh(api, second["refreshToken"]).status == 401
    approved = request_code(api).approved(person.user_id)
    assert revoke_kind(api, person.token, "device").status == 200
    reply = approved.redeem()
    assert (reply.status, reply.error["details"]) == (403, {"status": "access_denied"})
    expired = request_code(api).approved(person.user_id).redeem().data
    table.delete(Delete(keys.token_family(tokens.family_of(expired["refreshToken"]))), PREPARED)
    assert revoke_kind(api, person.token, "device").status == 200
    assert [entry["kind"] for entry in listed(api, person.token)] == stored_kinds(person) == ["token"]


def test_credentials_revoke_each_other_and_without_a_scope_themselves(api, person, world):
    session, other, narrow = sessions.create(person.user_id), sessions.create(person.user_id), world.person(scopes=[])
    assert revoke(api, person.token, own_id(api, session)).status == 200
    assert revoke_kind(api, other, "token").status == 200
    assert [works(api, secret) for secret in (session, person.token, other)] == [False, False, True]
    for secret in (other, narrow.token):
        assert revoke(api, secret, own_id(api, secret)).status == 200
        assert not works(api, secret)
    assert stored_kinds(person) == stored_kinds(narrow) == []


def test_other_ids_look_the_same_whether_they_are_known_or_not(api, person, world):
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


def test_a_revoked_or_expired_credential_is_unknown(api, person, world, now):
    expiring, revoked = (own_id(api, world.token(person.user_id, lifetime_seconds=end)) for end in (60, 7_200))
    assert [revoke(api, person.token, revoked).status for _ in range(2)] == [200, 404]
    now.advance(60)
    assert revoke(api, person.token, expiring).status == 404


def test_what_ends_is_no_longer_listed(api, person):
    for name in SECRETS:
        pair = request_code(api).approved(person.user_id).redeem().data
        assert api.post(REVOKE, json_body={"token": pair[name]}).status == 200
        assert stored_kinds(person) == ["token"]
    device = request_code(api).approved(person.user_id)
    assert [device.redeem().status for _ in range(2)] == [200, 409]
    assert stored_kinds(person) == ["token"]
    first = request_code(api).approved(person.user_id).redeem().data["refreshToken"]
    refresh(api, refresh(api, first).data["refreshToken"])
    assert refresh(api, first).status == 401
    sessions.revoke(sessions.create(person.user_id))
    assert stored_kinds(person) == ["token"]
    api.post(REVOKE, json_body={"token": person.token})
    assert stored_kinds(person) == []
