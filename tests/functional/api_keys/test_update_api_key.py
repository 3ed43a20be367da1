"""GET and PATCH /v1/api-keys/{keyId}: limits can be made stricter, and never wider."""

import pytest

from controlplane.platform.table.table import table
from tests.functional.api_keys.conftest import Organization, problems
from tests.support.audit_log import all_entries
from tests.support.each import each
from tests.support.recorded import recorded_calls
from tests.support.world import World

LIMITS = {
    "scopes": ["billing.read", "inbox.read"],
    "allowedIps": ["10.0.0.0/8", "2001:db8::/32"],
    "expiresAt": "2026-04-01T00:00:00.000Z",
}


@pytest.fixture
def key(acme: Organization):
    return acme.create(**LIMITS, description="Old")


def test_names_and_descriptions_change_freely(acme: Organization, key):
    for change, name, description in (
        ({"name": " Deploys ", "description": "New"}, "Deploys", "New"),
        ({"description": None}, "Deploys", None),
        ({"description": ""}, "Deploys", None),
    ):
        changed = acme.update(key, **change).data
        assert (changed["name"], changed["description"]) == (name, description)
    assert acme.get(key) == acme.listed()[0]


@each(
    "stricter",
    [
        {"scopes": ["inbox.read"]},
        {"allowedIps": ["10.1.0.0/16"]},
        {"allowedIps": ["10.0.0.0/9", "10.200.0.0/16", "2001:db8::1/128"]},
        {"expiresAt": "2026-03-31T23:59:59.000Z"},
        {"scopes": ["inbox.read"], "allowedIps": ["2001:db8::/33"], "expiresAt": "2026-03-05T00:00:00.000Z"},
    ],
)
def test_limits_can_be_made_stricter(stricter, acme: Organization):
    changed = acme.update(acme.create(**LIMITS), **stricter).data
    assert {name: changed[name] for name in LIMITS} == {**LIMITS, **stricter}


@each(
    ("wider", "field"),
    [
        ({"scopes": ["billing.read", "projects.read"]}, "scopes"),
        ({"scopes": None}, "scopes"),
        ({"allowedIps": ["10.0.0.0/7"]}, "allowedIps"),
        ({"allowedIps": ["10.0.0.0/8", "192.0.2.1"]}, "allowedIps"),
        ({"allowedIps": ["0.0.0.0/0"]}, "allowedIps"),
        ({"allowedIps": ["::/0"]}, "allowedIps"),
        ({"allowedIps": None}, "allowedIps"),
        ({"expiresAt": "2026-04-01T00:00:01Z"}, "expiresAt"),
        ({"expiresAt": None}, "expiresAt"),
    ],
)
def test_a_change_that_widens_names_the_field_and_changes_nothing(wider, field, acme: Organization, key):
    before = acme.listed()
    assert problems(acme.update(key, name="Other", **wider)) == [([field], "widens")]
    assert acme.listed() == before


def test_projects_can_only_be_removed(acme: Organization, world: World):
    first, second = (world.connected_repository(acme.company).links[0].project_id for _ in range(2))
    key = acme.create(projectIds=[first, second])
    for _ in range(2):
        assert acme.update(key, projectIds=[second]).data["projectIds"] == [second]
    assert problems(acme.update(key, projectIds=[first, second])) == [(["projectIds"], "widens")]


@each(
    ("body", "path", "code"),
    [
        ({}, [], "empty"),
        ({"name": ""}, ["name"], "string_too_short"),
        ({"name": None}, ["name"], "string_type"),
        ({"expiresAt": "2026-03-04T05:06:07Z"}, ["expiresAt"], "in_the_past"),
        ({"scopes": []}, ["scopes"], "too_short"),
        ({"key": "x"}, ["key"], "extra_forbidden"),
    ],
)
def test_an_invalid_change_names_the_field(body, path, code, acme: Organization, key):
    assert problems(acme.update(key, **body)) == [(path, code)]


def test_added_limits_apply_to_the_next_request(acme: Organization):
    key = acme.create()
    api, secret = acme.api, key["key"]
    assert api.get("/v1/billing", secret).status == 200
    assert acme.update(key, **{**LIMITS, "scopes": ["inbox.read"]}).status == 200
    assert api.get("/v1/billing", secret).code == "FORBIDDEN"
    api.source_ip = "10.0.0.1"
    assert api.get("/v1/billing", secret).code == "INSUFFICIENT_SCOPE"
    assert api.get("/v1/inbox", secret).status == 200


def test_the_audit_log_has_both_values_of_what_changed(acme: Organization, key):
    acme.update(key, scopes=["inbox.read"], name="Deploys")
    (entry,) = [it for it in all_entries() if it["action"] == "api_key.update"]
    assert entry["actorId"] == acme.owner.user_id
    assert entry["before"] == {"name": "deploy", "scopes": ["billing.read", "inbox.read"]}
    assert entry["after"] == {"name": "Deploys", "scopes": ["inbox.read"]}
    assert acme.update(key, scopes=["inbox.read"], name="Deploys").status == 200
    assert len([it for it in all_entries() if it["action"] == "api_key.update"]) == 1


def test_a_member_reads_a_key_but_may_not_change_it(acme: Organization, world: World, key):
    member = world.member(acme.company)
    path = f"/{key['keyId']}"
    assert acme.call("PATCH", path, member.token, json_body={"name": "x"}).code == "FORBIDDEN"
    assert acme.call("GET", path, member.token).data["name"] == "deploy"


def test_a_person_who_reads_a_key_costs_no_read_of_the_plan(acme: Organization, key):
    with recorded_calls() as calls:
        acme.get(key)
    (read,) = (call for call in calls if call.operation == "BatchGetItem")
    assert len(read.parameters["RequestItems"][table.name]["Keys"]) == 2  # the key and the membership
