"""POST /v1/api-keys: the secret is shown once, and an organization has at most 50 keys."""

import json
import re

import pytest

from controlplane.api_keys import store as api_keys
from controlplane.organizations import store as organizations
from controlplane.platform.core import ids
from controlplane.platform.core.plans import API_KEYS_PER_ORGANIZATION
from controlplane.platform.core.scopes import API_KEY_SCOPES
from tests.functional.api_keys.conftest import Organization, problems, stored_secret
from tests.support.api import Api
from tests.support.each import each
from tests.support.logs import captured_logs
from tests.support.world import UNLIMITED, World, table_dump

SECRET = re.compile(r"assent_[0-9A-Za-z]{36}")
LIMITS = {
    "scopes": ["projects.read", "inbox.read"],
    "allowedIps": ["198.51.100.0/24", "2001:db8::/32"],
    "expiresAt": "2026-03-04T06:00:00Z",
}
# Fields, and the path and code of their problem.
INVALID = [
    ({"name": ""}, "name", "string_too_short"),
    ({"name": "   "}, "name", "string_too_short"),
    ({"name": "n" * 101}, "name", "string_too_long"),
    ({"name": None}, "name", "string_type"),
    ({"name": 5}, "name", "string_type"),
    ({"scopes": []}, "scopes", "too_short"),
    ({"scopes": ["members.read"]}, "scopes 0", "literal_error"),
    ({"projectIds": []}, "projectIds", "too_short"),
    ({"projectIds": ["prj_x"]}, "projectIds 0", "unknown_project"),
    ({"projectIds": ["prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"]}, "projectIds 0", "unknown_project"),
    ({"projectIds": ["prj_x"] * 21}, "projectIds", "too_long"),
    ({"allowedIps": []}, "allowedIps", "too_short"),
    ({"allowedIps": ["localhost"]}, "allowedIps 0", "invalid_network"),
    ({"allowedIps": ["10.0.0.0/8", "10.0.0.0/255.0.0.0"]}, "allowedIps 1", "invalid_network"),
    ({"allowedIps": ["10.0.0.1/8"]}, "allowedIps 0", "host_bits"),
    ({"allowedIps": ["10.0.0.1"] * 21}, "allowedIps", "too_long"),
    ({"expiresAt": "2026-03-04T05:06:07Z"}, "expiresAt", "in_the_past"),
    ({"expiresAt": "tomorrow"}, "expiresAt", "invalid_time"),
    ({"description": "x" * 513}, "description", "string_too_long"),
    ({"allowedIPs": ["10.0.0.1"]}, "allowedIPs", "extra_forbidden"),
]


def test_the_response_contains_the_secret_and_must_not_be_cached(acme: Organization):
    reply = acme.post()
    assert (reply.status, reply.headers["cache-control"]) == (201, "no-store")
    made = dict(reply.data)
    assert SECRET.fullmatch(made.pop("key"))
    assert made.pop("keyId").startswith("key_")
    assert made == {
        "name": "deploy",
        "start": reply.data["key"][:11],
        "createdAt": "2026-03-04T05:06:07.000Z",
        "rateLimit": 1500,
        "meta": {
            "createdBy": acme.owner.user_id,
            "createdFrom": "api",
            "createdAt": "2026-03-04T05:06:07.000Z",
        },
        **UNLIMITED,
    }
    assert acme.listed() == [{**made, "keyId": reply.data["keyId"], "lastUsedAt": None, "previous": None}]


def test_the_secret_is_in_neither_the_table_nor_the_logs(acme: Organization):
    with captured_logs() as logs:
        made = acme.create()
        acme.works(made)
    for text in (json.dumps(table_dump()), logs.getvalue()):
        assert made["keyId"] in text
        assert made["key"][11:] not in text


def test_an_admins_key_works_after_the_admin_leaves(acme: Organization, world: World):
    admin = world.member(acme.company, "admin")
    made = acme.call("POST", "", admin.token, json_body={"name": "deploy"}).data
    world.leave(acme.company, admin)
    principal = acme.api.get("/v1/me", made["key"]).data["principal"]
    assert (principal["keyId"], principal["createdBy"]) == (made["keyId"], admin.user_id)


def test_names_are_trimmed_and_can_repeat(acme: Organization):
    names = ["x", "x", "n" * 100, "  padded\t", " " * 200 + "a", "名前 🔑"]
    made = [acme.create(name=name) for name in names]
    assert [key["name"] for key in made] == ["x", "x", "n" * 100, "padded", "a", "名前 🔑"]
    assert len({key["keyId"] for key in made}) == len({key["key"] for key in made}) == 6
    assert acme.count() == (6, 6)


def test_an_id_that_is_taken_is_replaced(acme: Organization, monkeypatch: pytest.MonkeyPatch):
    first, new_local = acme.create(name="first"), ids.new_local
    taken = iter([first["keyId"][20:]])
    monkeypatch.setattr(ids, "new_local", lambda: next(taken, None) or new_local())
    acme.create(name="second")
    assert {key["name"] for key in acme.listed()} == {"first", "second"}


def test_the_key_and_its_lists_show_the_limits(acme: Organization):
    made = acme.create(**LIMITS, description="For releases.")
    expected = {
        "description": "For releases.",
        "scopes": ["inbox.read", "projects.read"],
        "projectIds": None,
        "allowedIps": ["198.51.100.0/24", "2001:db8::/32"],
        "expiresAt": "2026-03-04T06:00:00.000Z",
    }
    for shown in (made, *acme.listed(), acme.get(made)):
        assert {name: shown[name] for name in expected} == expected


def test_a_key_without_limits_is_stored_as_it_always_was(acme: Organization):
    made = acme.create(scopes=None, projectIds=None, allowedIps=None, expiresAt=None, description="")
    assert (made["scopes"], made["description"]) == ([*API_KEY_SCOPES], None)
    names = {"pk", "sk", "keyId", "organizationId", "slug", "name", "plan", "createdBy", "rateLimit"}
    assert set(stored_secret(made) or ()) == names | {"win", "hits", "usedHour"}
    # The table would delete the key after that time.
    assert "expiresAt" not in (stored_secret(acme.create(**LIMITS)) or {})


@each(("body", "path", "code"), INVALID)
def test_an_invalid_field_is_named_and_nothing_is_written(body, path, code, acme: Organization):
    assert problems(acme.post(**body)) == [(path.split(), code)]
    assert acme.count() == (0, 0)


@each("body", [{}, {"Name": "deploy"}])
def test_the_name_is_required(body, acme: Organization):
    assert (["name"], "missing") in problems(acme.call("POST", json_body=body))


def test_a_repeated_project_counts_once_and_an_unknown_one_has_its_place(acme: Organization, world: World):
    own = world.connected_repository(acme.company).links[0].project_id
    assert acme.create(projectIds=[own, own])["projectIds"] == [own]
    assert problems(acme.post(projectIds=[own, own, "prj_x"])) == [(["projectIds", "2"], "unknown_project")]


def test_a_member_may_not_create_a_key(acme: Organization, world: World):
    member = world.member(acme.company)
    assert acme.call("POST", "", member.token, json_body={"name": "deploy"}).code == "FORBIDDEN"
    assert acme.count() == (0, 0)


def test_an_unknown_organization_gets_no_key(world: World):
    with pytest.raises(organizations.UnknownOrganization):
        api_keys.create_key("org_0000000000000000", "deploy", world.person().user_id, "test")


def test_an_organization_has_at_most_50_keys_and_a_deleted_one_makes_room(acme: Organization, api: Api, world: World):
    for _ in range(API_KEYS_PER_ORGANIZATION):
        world.key(acme.company)
    reply = acme.post()
    assert (reply.status, reply.code, reply.error["details"]) == (409, "KEY_LIMIT_REACHED", {"limit": 50})
    assert Organization(api, world, owner=acme.owner).post().status == 201
    first, second = acme.listed()[:2]
    assert acme.roll(first).status == 200
    assert acme.count() == (50, 50)
    acme.delete(second)
    assert [acme.post().status for _ in range(2)] == [201, 409]
    assert acme.count() == (50, 50)
