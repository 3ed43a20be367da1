"""Operations on API keys: create, list, get, update, delete, and what the plan decides about them."""

import json
import re

import pytest

from controlplane.api_keys import store as api_keys
from controlplane.billing import store as billing
from controlplane.organizations import store as organizations
from controlplane.platform.core import ids, tokens
from controlplane.platform.core.scopes import API_KEY_SCOPES
from controlplane.platform.table import keys
from controlplane.platform.table.table import Delete, table
from tests.functional.api_keys.conftest import DAY, Key, Organization, problems, stored_secret
from tests.support.api import Api
from tests.support.audit_log import all_entries
from tests.support.calls import before_the_transaction
from tests.support.each import each
from tests.support.logs import captured_logs
from tests.support.table import PREPARED
from tests.support.world import UNLIMITED, table_dump

SECRET = re.compile(r"assent_[0-9A-Za-z]{36}")
LIMITS = {
    "scopes": ["billing.read", "inbox.read"],
    "allowedIps": ["10.0.0.0/8", "2001:db8::/32"],
    "expiresAt": "2026-04-01T00:00:00.000Z",
}
# Fields, and the path and code of their problem.
INVALID = [
    ({"name": "n" * 101}, "name", "string_too_long"),
    ({"scopes": ["members.read"]}, "scopes 0", "literal_error"),
    ({"projectIds": ["prj_x"]}, "projectIds 0", "unknown_project"),
    ({"projectIds": ["prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"]}, "projectIds 0", "unknown_project"),
    ({"allowedIps": ["10.0.0.0/8", "10.0.0.0/255.0.0.0"]}, "allowedIps 1", "invalid_network"),
    ({"allowedIps": ["10.0.0.1/8"]}, "allowedIps 0", "host_bits"),
    ({"expiresAt": "2026-03-04T05:06:07Z"}, "expiresAt", "in_the_past"),
    ({"expiresAt": "tomorrow"}, "expiresAt", "invalid_time"),
]


def test_the_response_contains_the_secret_and_must_not_be_cached(acme):
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


def test_the_secret_is_in_neither_the_table_nor_the_logs(acme):
    with captured_logs() as logs:
        made = acme.create()
        acme.works(made)
    for text in (json.dumps(table_dump()), logs.getvalue()):
        assert (made["keyId"] in text, made["key"][11:] in text) == (True, False)


def test_an_admins_key_works_after_the_admin_leaves(acme, world):
    admin = world.member(acme.company, "admin")
    made = acme.call("POST", "", admin.token, json_body={"name": "deploy"}).data
    world.leave(acme.company, admin)
    principal = acme.api.get("/v1/me", made["key"]).data["principal"]
    assert (principal["keyId"], principal["createdBy"]) == (made["keyId"], admin.user_id)


def test_names_are_trimmed_and_can_repeat_and_an_id_that_is_taken_is_replaced(acme, monkeypatch):
    names = ["x", "x", "n" * 100, "  padded\t", " " * 200 + "a", "名前 🔑"]
    made = [acme.create(name=name) for name in names]
    assert [key["name"] for key in made] == ["x", "x", "n" * 100, "padded", "a", "名前 🔑"]
    taken, new_local = iter([made[0]["keyId"][20:]]), ids.new_local
    monkeypatch.setattr(ids, "new_local", lambda: next(taken, None) or new_local())
    made.append(acme.create())
    assert len({key["keyId"] for key in made}) == len({key["key"] for key in made}) == 7
    assert acme.count() == (7, 7)


def test_a_key_and_its_lists_show_the_limits_and_one_without_is_stored_as_it_always_was(acme):
    made = acme.create(scopes=None, projectIds=None, allowedIps=None, expiresAt=None, description="")
    assert (made["scopes"], made["description"]) == ([*API_KEY_SCOPES], None)
    names = {"pk", "sk", "keyId", "organizationId", "slug", "name", "plan", "createdBy", "rateLimit"}
    assert {*stored_secret(made)} == names | {"win", "hits", "usedHour"}
    acme.delete(made)
    sent = {"scopes": ["inbox.read", "billing.read"], "expiresAt": "2026-04-01T00:00:00Z"}
    limited = acme.create(**LIMITS | sent, description="For releases.")
    expected = {**LIMITS, "description": "For releases.", "projectIds": None}
    for shown in (limited, *acme.listed(), acme.get(limited)):
        assert {name: shown[name] for name in expected} == expected
    # The table would delete the key after that time.
    assert "expiresAt" not in stored_secret(limited)


@each(("body", "path", "code"), INVALID)
def test_an_invalid_field_is_named_and_nothing_is_written(body, path, code, acme):
    assert problems(acme.post(**body)) == [(path.split(), code)]
    assert acme.count() == (0, 0)


def test_an_unknown_organization_gets_no_key(world):
    with pytest.raises(organizations.UnknownOrganization):
        api_keys.create_key("org_0000000000000000", "deploy", world.person().user_id, "test")


PATH = "/v1/api-keys"


def test_a_key_says_whether_an_operator_made_it(acme):
    acme.create()
    api_keys.create_key(acme.id, "ops", "operator", "ops")
    assert {key["name"]: key["meta"]["createdFrom"] for key in acme.listed()} == {"deploy": "api", "ops": "ops"}


def test_a_member_and_a_key_read_the_keys_of_their_organization(acme, api, world):
    Organization(api, world).create(name="theirs")
    key, member = acme.create(), world.member(acme.company)
    for token in (member.token, key["key"]):
        assert api.get(PATH, token).data == [api.get(f"{PATH}/{key['keyId']}", token).data]


def test_last_use_is_accurate_to_the_hour(acme, now):
    key = acme.create()
    uses = []
    for minutes in (0, 53, 1):
        now.advance(minutes * 60)
        acme.works(key)
        uses.append(acme.listed()[0]["lastUsedAt"])
    assert uses == ["2026-03-04T05:06:07.000Z", "2026-03-04T05:06:07.000Z", "2026-03-04T06:00:07.000Z"]
    assert acme.update(key, name="x").data["lastUsedAt"] == uses[-1]


@pytest.fixture
def key(acme):
    return acme.create(**LIMITS, description="Old")


def test_names_and_descriptions_change_freely(acme, key):
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
        {"allowedIps": ["10.0.0.0/9", "10.200.0.0/16", "2001:db8::1/128"]},
        {"expiresAt": "2026-03-31T23:59:59.000Z"},
        {"scopes": ["inbox.read"], "allowedIps": ["2001:db8::/33"], "expiresAt": "2026-03-05T00:00:00.000Z"},
    ],
)
def test_limits_can_be_made_stricter(stricter, acme):
    changed = acme.update(acme.create(**LIMITS), **stricter).data
    assert {name: changed[name] for name in LIMITS} == {**LIMITS, **stricter}


@each(
    ("wider", "field"),
    [
        ({"scopes": ["billing.read", "projects.read"]}, "scopes"),
        ({"scopes": None}, "scopes"),
        ({"allowedIps": ["10.0.0.0/8", "192.0.2.1"]}, "allowedIps"),
        ({"allowedIps": None}, "allowedIps"),
        ({"expiresAt": "2026-04-01T00:00:01Z"}, "expiresAt"),
        ({"expiresAt": None}, "expiresAt"),
    ],
)
def test_a_change_that_widens_names_the_field_and_changes_nothing(wider, field, acme, key):
    before = acme.listed()
    assert problems(acme.update(key, name="Other", **wider)) == [([field], "widens")]
    assert acme.listed() == before


def test_a_repeated_project_counts_once_and_projects_can_only_be_removed(acme, world):
    first, second = (world.connected_repository(acme.company).links[0].project_id for _ in range(2))
    assert problems(acme.post(projectIds=[first, first, "prj_x"])) == [(["projectIds", "2"], "unknown_project")]
    key = acme.create(projectIds=[first, first, second])
    assert key["projectIds"] == [first, second]
    for _ in range(2):
        assert acme.update(key, projectIds=[second]).data["projectIds"] == [second]
    assert problems(acme.update(key, projectIds=[first, second])) == [(["projectIds"], "widens")]


@each(
    ("body", "path", "code"),
    [
        ({}, [], "empty"),
        ({"expiresAt": "2026-03-04T05:06:07Z"}, ["expiresAt"], "in_the_past"),
        ({"key": "x"}, ["key"], "extra_forbidden"),
    ],
)
def test_an_invalid_change_names_the_field(body, path, code, acme, key):
    assert problems(acme.update(key, **body)) == [(path, code)]


def test_added_limits_apply_to_the_next_request(acme):
    key = acme.create()
    api, secret = acme.api, key["key"]
    assert api.get("/v1/billing", secret).status == 200
    assert acme.update(key, **{**LIMITS, "scopes": ["inbox.read"]}).status == 200
    assert api.get("/v1/billing", secret).code == "FORBIDDEN"
    api.source_ip = "10.0.0.1"
    assert api.get("/v1/billing", secret).code == "INSUFFICIENT_SCOPE"
    assert api.get("/v1/inbox", secret).status == 200


def test_the_audit_log_has_both_values_of_what_changed(acme, key):
    acme.update(key, scopes=["inbox.read"], name="Deploys")
    (entry,) = [it for it in all_entries() if it["action"] == "api_key.update"]
    assert entry["actorId"] == acme.owner.user_id
    assert entry["before"] == {"name": "deploy", "scopes": ["billing.read", "inbox.read"]}
    assert entry["after"] == {"name": "Deploys", "scopes": ["inbox.read"]}
    assert acme.update(key, scopes=["inbox.read"], name="Deploys").status == 200
    assert len([it for it in all_entries() if it["action"] == "api_key.update"]) == 1


def test_the_secret_is_rejected_immediately_and_no_item_of_the_key_remains(acme):
    kept, key = acme.create(), acme.create()
    reply = acme.delete(key)
    assert (reply.status, reply.data) == (200, {"deleted": True})
    assert acme.works(kept, key) == [True, False]
    # The sweep still has to send the event of its creation.
    left = [it for it in table_dump() if not it["pk"]["S"].startswith((keys.LOG_PREFIX, "OUTBOX#"))]
    assert key["keyId"] not in str(left)
    for missing in (acme.delete(key), acme.roll(key), acme.update(key, name="x")):
        assert (missing.status, missing.code) == (404, "NOT_FOUND")
    assert acme.count() == (1, 1)


def rate_of(api: Api, key: Key) -> tuple[str, str]:
    """Sends a request with the key and returns its limit, and what is left of it."""
    headers = api.get("/v1/me", key["key"]).headers
    return headers["x-ratelimit-limit"], headers["x-ratelimit-remaining"]


def test_a_key_keeps_its_limit_and_its_window_and_a_new_or_rolled_one_has_those_of_the_current_plan(api, world):
    acme = Organization(api, world, "starter")
    key = acme.create()
    assert key["rateLimit"] == 600
    for plan, remaining in (("pro", "599"), ("starter", "598"), ("enterprise", "597")):
        billing.change_plan(acme.id, plan)
        assert rate_of(api, key) == ("600", remaining)
    rolled = acme.roll(key).data
    assert (rolled["rateLimit"], rate_of(api, rolled)) == (3000, ("3000", "2999"))
    billing.change_plan(acme.id, "starter")
    assert rate_of(api, rolled) == ("3000", "2998")
    with before_the_transaction(table.client, lambda: billing.change_plan(acme.id, "pro")):
        assert acme.create()["rateLimit"] == 1500


def test_without_a_paid_plan_keys_are_neither_accepted_nor_created_but_can_be_revoked(acme):
    key = acme.create()
    billing.change_plan(acme.id, "free")
    for refused in (acme.post(), acme.roll(key), acme.call("GET", "", key["key"])):
        assert (refused.status, refused.code) == (402, "PLAN_REQUIRED")
    assert acme.listed() == [acme.get(key)]
    assert [acme.update(key, name="x").status, acme.delete(key).status] == [200, 200]


def test_a_plan_change_applies_to_the_secrets_of_a_rolled_key_but_does_not_restore_an_old_one(acme, api, now):
    old = acme.create()
    new = acme.roll(old, DAY).data
    billing.change_plan(acme.id, "free")
    assert {api.get("/v1/me", key["key"]).code for key in (old, new)} == {"PLAN_REQUIRED"}

    def expire():
        now.advance(DAY + 1)
        table.delete(Delete(keys.key_secret(tokens.digest(old["key"]))), PREPARED)

    with before_the_transaction(table.client, expire):
        billing.change_plan(acme.id, "starter")
    assert (stored_secret(old), acme.stored()["plan"]) == (None, "starter")
    billing.change_plan(acme.id, "free")
    assert api.get("/v1/me", new["key"]).code == "PLAN_REQUIRED"
