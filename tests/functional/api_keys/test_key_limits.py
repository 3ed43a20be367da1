"""The limits of an API key: scopes, projects, client addresses, and a time. One write decides all of them."""

from typing import Any

import pytest

from api_keys.schemas import KeyCreate
from api_keys.service import payload_of
from controlplane.core import clock, tokens
from controlplane.core.scopes import API_KEY_SCOPES
from controlplane.store import keys
from controlplane.store.table import table
from tests.support.api import Api, Reply
from tests.support.each import each
from tests.support.recorded import recorded_calls
from tests.support.world import Company, World

LIMITS: dict[str, Any] = {
    "scopes": ["projects.read", "inbox.read"],
    "allowedIps": ["198.51.100.0/24", "2001:db8::/32"],
    "expiresAt": "2026-03-04T06:00:00Z",
}


def create(api: Api, company: Company, **body: Any) -> Reply:
    path = f"/v1/api-keys?organizationId={company.organization_id}"
    return api.post(path, company.owner.token, json_body={"name": "deploy", **body})


class TestCreation:
    def test_the_key_and_its_lists_show_the_limits(self, api: Api, world: World):
        company = world.company()
        made = create(api, company, **LIMITS, description="For releases.").data
        expected = {
            "description": "For releases.",
            "scopes": ["inbox.read", "projects.read"],
            "projectIds": None,
            "allowedIps": ["198.51.100.0/24", "2001:db8::/32"],
            "expiresAt": "2026-03-04T06:00:00.000Z",
        }
        assert {name: made[name] for name in expected} == expected
        (listed,) = api.get("/v1/api-keys", company.owner.token).data
        assert {name: listed[name] for name in expected} == expected
        assert api.get(f"/v1/api-keys/{made['keyId']}", company.owner.token).data == listed

    def test_a_key_without_limits_is_stored_as_it_always_was(self, api: Api, world: World):
        company = world.company()
        made = create(api, company, scopes=None, projectIds=None, allowedIps=None, expiresAt=None, description="").data
        assert (made["scopes"], made["description"]) == ([*API_KEY_SCOPES], None)
        names = {"pk", "sk", "keyId", "organizationId", "slug", "name", "plan", "createdBy", "rateLimit"}
        secret = table.get(keys.key_secret(tokens.digest(made["key"])))
        assert secret is not None
        assert set(secret) == names | {"win", "hits", "usedHour"}

    def test_a_retry_must_repeat_the_given_fields_under_their_names_in_json(self):
        body = KeyCreate(name="deploy", allowed_ips=["10.0.0.0/8"])
        assert payload_of(body) == {"name": "deploy", "allowedIps": ["10.0.0.0/8"]}

    @each(
        ("body", "path", "code"),
        [
            ({"scopes": []}, ["scopes"], "too_short"),
            ({"scopes": ["members.read"]}, ["scopes", "0"], "literal_error"),
            ({"projectIds": []}, ["projectIds"], "too_short"),
            ({"projectIds": ["prj_x"]}, ["projectIds", "0"], "unknown_project"),
            ({"projectIds": ["prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"]}, ["projectIds", "0"], "unknown_project"),
            ({"projectIds": ["prj_x"] * 21}, ["projectIds"], "too_long"),
            ({"allowedIps": []}, ["allowedIps"], "too_short"),
            ({"allowedIps": ["localhost"]}, ["allowedIps", "0"], "invalid_network"),
            ({"allowedIps": ["10.0.0.0/8", "10.0.0.0/255.0.0.0"]}, ["allowedIps", "1"], "invalid_network"),
            ({"allowedIps": ["10.0.0.1/8"]}, ["allowedIps", "0"], "host_bits"),
            ({"allowedIps": ["10.0.0.1"] * 21}, ["allowedIps"], "too_long"),
            ({"expiresAt": "2026-03-04T05:06:07Z"}, ["expiresAt"], "in_the_past"),
            ({"expiresAt": "tomorrow"}, ["expiresAt"], "invalid_time"),
            ({"description": "x" * 513}, ["description"], "string_too_long"),
            ({"allowedIPs": ["10.0.0.1"]}, ["allowedIPs"], "extra_forbidden"),
        ],
    )
    def test_limits_that_cannot_be_kept_are_rejected(self, body, path, code, api: Api, world: World):
        company = world.company()
        reply = create(api, company, **body)
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
        assert [(it["path"], it["code"]) for it in reply.error["details"]] == [(path, code)]
        assert not api.get("/v1/api-keys", company.owner.token).data

    def test_a_repeated_project_counts_once(self, api: Api, world: World):
        company = world.company()
        own = world.connected_repository(company).links[0].project_id
        assert create(api, company, projectIds=[own, own]).data["projectIds"] == [own]

    def test_an_unknown_project_has_its_place_in_the_body(self, api: Api, world: World):
        company = world.company()
        own = world.connected_repository(company).links[0].project_id
        details = create(api, company, projectIds=[own, own, "prj_x"]).error["details"]
        assert [it["path"] for it in details] == [["projectIds", "2"]]

    def test_a_retry_returns_the_same_key(self, api: Api, world: World):
        company = world.company()
        path = f"/v1/api-keys?organizationId={company.organization_id}"
        once = {"Idempotency-Key": "once"}
        body = {"name": "deploy", **LIMITS}
        first, second = [api.post(path, company.owner.token, json_body=body, headers=once).data for _ in range(2)]
        assert first == second
        wider = {**body, "allowedIps": None}
        assert api.post(path, company.owner.token, json_body=wider, headers=once).code == "INVALID_PAYLOAD"


class TestScopes:
    def test_the_key_has_only_its_scopes(self, api: Api, world: World):
        key = create(api, world.company(), scopes=["inbox.read"]).data["key"]
        assert api.get("/v1/inbox", key).status == 200
        reply = api.get("/v1/projects", key)
        assert (reply.status, reply.code) == (403, "INSUFFICIENT_SCOPE")
        assert reply.error["details"] == {"requiredScope": "projects.read"}
        me = api.get("/v1/me", key).data
        assert (me["scopes"], me["organizations"]) == (["inbox.read"], [])


class TestExpiry:
    def test_the_key_works_until_the_last_moment_before_its_expiry(self, api: Api, world: World, now):
        company = world.company()
        key = create(api, company, expiresAt="2026-03-04T06:00:00.999Z").data["key"]
        end = 1_772_604_000  # fractions of a second are dropped
        now.advance(end - clock.now() - 0.001)
        reply = api.get("/v1/me", key)
        assert (reply.status, reply.headers["x-key-expires-at"]) == (200, "2026-03-04T06:00:00.000Z")
        assert reply.data["principal"]["expiresAt"] == "2026-03-04T06:00:00.000Z"
        now.advance(0.001)
        expired, unknown = api.get("/v1/me", key), api.get("/v1/me", tokens.mint("assent"))
        assert (expired.status, expired.body) == (401, unknown.body)
        assert "x-key-expires-at" not in expired.headers
        (listed,) = api.get("/v1/api-keys", company.owner.token).data
        assert listed["lastUsedAt"] == "2026-03-04T05:59:59.999Z"

    def test_a_key_without_an_expiry_has_no_header(self, api: Api, world: World):
        assert "x-key-expires-at" not in api.get("/v1/me", world.key(world.company())).headers


class TestAddresses:
    @each(
        ("address", "status"),
        [
            ("198.51.100.0", 200),
            ("198.51.100.255", 200),
            ("::ffff:198.51.100.7", 200),
            ("198.51.101.0", 403),
            ("198.51.99.255", 403),
            ("2001:db8:ffff::1", 200),
            ("2001:db9::", 403),
            ("", 403),
        ],
    )
    def test_only_requests_from_the_networks_are_accepted(self, address, status, api: Api, world: World):
        key = create(api, world.company(), allowedIps=["198.51.100.0/24", "2001:db8::/32"]).data["key"]
        api.source_ip = address
        reply = api.get("/v1/me", key)
        assert reply.status == status
        assert status == 200 or reply.code == "FORBIDDEN"

    @each("header", ["X-Forwarded-For", "X-Real-IP", "Forwarded", "True-Client-IP", "CF-Connecting-IP", "X-Client-IP"])
    def test_a_header_does_not_change_the_address(self, header, api: Api, world: World):
        key = create(api, world.company(), allowedIps=["192.0.2.1"]).data["key"]
        value = "for=192.0.2.1" if header == "Forwarded" else "192.0.2.1"
        assert api.get("/v1/me", key, headers={header: value}).status == 403

    def test_a_refusal_counts_only_for_the_key(self, api: Api, world: World):
        company = world.company()
        key = create(api, company, allowedIps=["192.0.2.1"]).data["key"]
        with recorded_calls() as calls:
            # The organization's counter would be written with the last one.
            replies = [api.get("/v1/projects", key) for _ in range(30)]
        assert {reply.status for reply in replies} == {403}
        remaining = [reply.headers["x-ratelimit-remaining"] for reply in replies]
        assert (remaining[0], remaining[-1]) == ("1499", "1470")
        assert {call.parameters["Key"]["pk"]["S"][:3] for call in calls} <= {"KH#", "ORG", "REF"}


def test_all_limits_are_decided_in_the_write_that_counts(api: Api, world: World):
    company = world.company()
    key = create(api, company, **LIMITS).data["key"]
    api.get("/v1/me", key)  # opens the minute
    for path, status, written in (("/v1/me", 200, ["KH#"]), ("/v1/billing", 403, ["KH#", "REF"])):
        with recorded_calls() as calls:
            assert api.get(path, key).status == status
        assert {call.operation for call in calls} == {"UpdateItem"}, path
        # The second one records the refusal.
        assert [call.parameters["Key"]["pk"]["S"][:3] for call in calls] == written, path


@pytest.mark.parametrize("limited", [{}, LIMITS], ids=["without limits", "with limits"])
def test_the_expiry_is_never_a_reason_for_the_table_to_delete_the_key(limited, api: Api, world: World):
    made = create(api, world.company(), **limited).data
    stored = table.get(keys.key_secret(tokens.digest(made["key"])))
    assert stored is not None
    assert "expiresAt" not in stored
