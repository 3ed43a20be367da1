"""GET /v1/me/sessions."""

from typing import Any

import pytest

from controlplane.people import sessions
from controlplane.people.credential_index import find_credential
from controlplane.platform.core import ids, tokens
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from tests.functional.conftest import FakeClock
from tests.functional.device_auth.devices import Device, Tokens, refresh, request_code
from tests.support.api import Api
from tests.support.calls import is_update_of, refused
from tests.support.world import ALL_SCOPES, Person, World

SESSIONS = "/v1/me/sessions"
DAY = 86_400


def listed(api: Api, token: str, **wanted: Any) -> list[dict[str, Any]]:
    """Returns the listed entries with these values."""
    return [entry for entry in api.get(SESSIONS, token).data if wanted.items() <= entry.items()]


@pytest.fixture
def token(world: World, person: Person) -> str:
    """Returns a token of the person that lives for a day."""
    return world.token(person.user_id, lifetime_seconds=DAY)


def test_sessions_devices_and_tokens_are_listed_newest_first(api: Api, person: Person, world: World, now: FakeClock):
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


def test_without_the_scope_a_credential_lists_only_itself(api: Api, person: Person, world: World):
    narrow = world.token(person.user_id, [scope for scope in ALL_SCOPES if scope != "sessions.write"])
    sessions.create(person.user_id, "2001:db8::1")
    cursor = api.get(f"{SESSIONS}?limit=1", person.token).body["pagination"]["nextCursor"]
    for query in ("", f"?cursor={cursor}"):
        reply = api.get(SESSIONS + query, narrow)
        assert [(entry["current"], entry["ipAddress"]) for entry in reply.data] == [(True, None)]
        assert reply.body["pagination"] == {"nextCursor": None, "hasMore": False}
    assert len(listed(api, person.token)) == 3
    assert api.get(f"{SESSIONS}?cursor={cursor}", world.person().token).code == "INVALID_PAYLOAD"


def test_pages_show_every_entry_once(api: Api, person: Person, now: FakeClock, world: World):
    for _ in range(6):
        now.advance(1)
        world.token(person.user_id)
    for limit in (1, 2, 3, 7, 100):
        found: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            reply = api.get(f"{SESSIONS}?limit={limit}{cursor and f'&cursor={cursor}'}", person.token)
            found += [entry["createdAt"] for entry in reply.data]
            cursor = reply.body["pagination"]["nextCursor"]
        assert (len(found), found) == (7, sorted(found, reverse=True))


def test_an_approved_device_is_listed_before_it_redeems_its_code(api: Api, person: Person, approved: Device):
    (waiting,) = listed(api, person.token, kind="device")
    assert waiting["expiresAt"] == "2026-03-04T05:21:07.000Z"
    family_id = tokens.family_of(approved.redeem().data["refreshToken"]) or ""
    assert len(listed(api, person.token, kind="device", id=waiting["id"])) == 1
    family = table.get(keys.token_family(family_id)) or {}
    entry = find_credential(person.user_id, ids.session_id(family["listedAs"]))
    assert entry is not None
    assert (entry.family_id, entry.expires_at) == (family_id, family["expiresAt"])


def test_expired_credentials_that_are_still_stored_are_omitted(api: Api, person: Person, world: World, now: FakeClock):
    world.token(person.user_id, lifetime_seconds=60)
    assert len(listed(api, person.token)) == 2
    now.advance(60)
    assert len(listed(api, person.token)) == 1


def test_a_refresh_updates_last_use_and_expiry(api: Api, pair: Tokens, token: str, now: FakeClock):
    (before,) = listed(api, pair["accessToken"], kind="device")
    now.advance(7_200)
    refresh(api, pair["refreshToken"])
    times = {"lastUsedAt": "2026-03-04T07:06:07.000Z", "expiresAt": "2026-04-03T07:06:07.000Z"}
    assert listed(api, token, id=before["id"]) == [{**before, **times, "current": False}]


def test_the_first_use_in_an_hour_is_recorded_unless_the_write_is_throttled(api: Api, token: str, now: FakeClock):
    now.advance(2 * 3_600)
    with refused(table.client, is_update_of("CREDENTIALS#"), "ThrottlingException"):
        assert api.get("/v1/me", token).status == 200
    now.advance(3_600)
    api.get("/v1/me", token)
    now.advance(600)
    assert [entry["lastUsedAt"] for entry in listed(api, token, current=True)] == ["2026-03-04T08:06:07.000Z"]
