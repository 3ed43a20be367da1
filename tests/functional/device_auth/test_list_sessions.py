"""GET /v1/me/sessions."""

from controlplane.core import ids, tokens
from controlplane.store import keys, sessions
from controlplane.store.credential_index import find_credential
from controlplane.store.table import table
from tests.functional.conftest import FakeClock
from tests.functional.device_auth.devices import refresh, request_code
from tests.support.api import Api
from tests.support.calls import is_update_of, refused
from tests.support.world import ALL_SCOPES, Person, World

SESSIONS = "/v1/me/sessions"


def of_kind(api: Api, token: str, kind: str) -> dict:
    (found,) = [entry for entry in api.get(SESSIONS, token).data if entry["kind"] == kind]
    return found


class Test200:
    def test_lists_sessions_devices_and_tokens_newest_first(self, api: Api, person: Person, now: FakeClock):
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
        assert web["client"] == "dashboard"
        assert web["ipAddress"] == "2001:db8::1"
        assert web["expiresAt"] == "2026-03-04T17:06:10.000Z"
        assert web["scopes"] == ALL_SCOPES
        assert (token["client"], token["ipAddress"], token["deviceName"]) == ("assent-ops", None, None)
        assert [entry["current"] for entry in reply.data] == [False, True, False]
        assert api.get(SESSIONS, session).data[0]["current"] is True
        assert reply.body["pagination"] == {"nextCursor": None, "hasMore": False}

    def test_without_the_scope_a_credential_lists_only_itself(self, api: Api, person: Person, world: World):
        narrow = world.token(person.user_id, [scope for scope in ALL_SCOPES if scope != "sessions.write"])
        sessions.create(person.user_id, "2001:db8::1")
        first = api.get(f"{SESSIONS}?limit=1", person.token)
        cursor = first.body["pagination"]["nextCursor"]
        for query in ("", f"?cursor={cursor}"):
            reply = api.get(SESSIONS + query, narrow)
            (own,) = reply.data
            assert (own["current"], own["ipAddress"]) == (True, None)
            assert reply.body["pagination"] == {"nextCursor": None, "hasMore": False}
        assert len(api.get(SESSIONS, person.token).data) == 3

    def test_pages_show_every_entry_once(self, api: Api, person: Person, now: FakeClock, world: World):
        for _ in range(6):
            now.advance(1)
            world.token(person.user_id)
        for limit in (1, 2, 3, 7, 100):
            found: list[str] = []
            cursor: str | None = ""
            while cursor is not None:
                reply = api.get(f"{SESSIONS}?limit={limit}{cursor}", person.token)
                found += [entry["createdAt"] for entry in reply.data]
                following = reply.body["pagination"]["nextCursor"]
                cursor = f"&cursor={following}" if following else None
            assert len(found) == 7
            assert found == sorted(found, reverse=True)

    def test_refuses_a_cursor_of_another_user(self, api: Api, person: Person, world: World):
        world.token(person.user_id)
        cursor = api.get(f"{SESSIONS}?limit=1", person.token).body["pagination"]["nextCursor"]
        reply = api.get(f"{SESSIONS}?cursor={cursor}", world.person().token)
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")

    def test_does_not_list_sessions_of_other_users(self, api: Api, person: Person, world: World):
        sessions.create(world.person().user_id)
        assert len(api.get(SESSIONS, person.token).data) == 1

    def test_lists_an_approved_device_before_it_redeems_its_code(self, api: Api, person: Person):
        requester = request_code(api, deviceName="laptop").approved(person.user_id)
        waiting = of_kind(api, person.token, "device")
        assert waiting["expiresAt"] == "2026-03-04T05:21:07.000Z"
        requester.redeem()
        assert of_kind(api, person.token, "device")["id"] == waiting["id"]

    def test_omits_expired_credentials_that_are_still_stored(
        self, api: Api, person: Person, world: World, now: FakeClock
    ):
        world.token(person.user_id, lifetime_seconds=60)
        assert len(api.get(SESSIONS, person.token).data) == 2
        now.advance(60)
        assert len(api.get(SESSIONS, person.token).data) == 1

    def test_a_refresh_updates_last_use_and_expiry(self, api: Api, person: Person, now: FakeClock, world: World):
        pair = request_code(api).approved(person.user_id).redeem().data
        token = world.token(person.user_id, lifetime_seconds=86_400)
        before = of_kind(api, pair["accessToken"], "device")
        now.advance(7_200)
        refresh(api, pair["refreshToken"])
        after = next(entry for entry in api.get(SESSIONS, token).data if entry["kind"] == "device")
        assert after == {
            **before,
            "lastUsedAt": "2026-03-04T07:06:07.000Z",
            "expiresAt": "2026-04-03T07:06:07.000Z",
            "current": False,
        }

    def test_records_the_first_use_in_an_hour(self, api: Api, person: Person, world: World, now: FakeClock):
        token = world.token(person.user_id, lifetime_seconds=86_400)
        now.advance(3 * 3_600)
        api.get("/v1/me", token)
        now.advance(600)
        (entry,) = [entry for entry in api.get(SESSIONS, token).data if entry["current"]]
        assert entry["lastUsedAt"] == "2026-03-04T08:06:07.000Z"

    def test_a_throttled_update_of_the_last_use_does_not_reject_the_request(
        self, api: Api, person: Person, world: World, now: FakeClock
    ):
        token = world.token(person.user_id, lifetime_seconds=86_400)
        now.advance(3_600)
        with refused(table.client, is_update_of("CREDENTIALS#"), "ThrottlingException"):
            assert api.get("/v1/me", token).status == 200

    def test_an_id_shares_nothing_with_the_secret(self, api: Api, person: Person):
        (entry,) = api.get(SESSIONS, person.token).data
        assert ids.local_of_session(entry["id"])
        assert entry["id"].startswith("ses_")
        assert entry["id"][4:] not in tokens.digest(person.token) + person.token

    def test_other_requests_make_no_extra_calls(self, api: Api, person: Person, world: World):
        """Requests without organizationId query the partition `USER#…`, which holds no credentials."""
        for _ in range(3):
            world.token(person.user_id)
        page = table.query(keys.user_pk(person.user_id))
        assert [item["sk"] for item in page.items] == [keys.PROFILE_SK]


class Test403:
    def test_returns_403_for_an_api_key(self, api: Api, world: World):
        reply = api.get(SESSIONS, world.key(world.company()))
        assert (reply.status, reply.code) == (403, "FORBIDDEN")


def test_a_token_family_refers_to_its_entry(api: Api, person: Person):
    pair = request_code(api).approved(person.user_id).redeem().data
    family = table.get(keys.token_family(tokens.family_of(pair["refreshToken"]) or ""))
    assert family is not None
    entry = find_credential(person.user_id, ids.session_id(family["listedAs"]))
    assert entry is not None
    assert entry.family_id == family["pk"].removeprefix("FAMILY#")
    assert entry.expires_at == family["expiresAt"]
