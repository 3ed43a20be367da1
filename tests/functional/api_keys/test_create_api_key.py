"""POST /v1/api-keys: the secret is shown once, and an organization has at most 50 keys."""

import json
import re

import pytest

from controlplane.core import ids
from controlplane.core.plans import API_KEYS_PER_ORGANIZATION
from controlplane.store import api_keys, billing, keys, organizations
from controlplane.store.table import table
from tests.support.api import Api
from tests.support.calls import before_the_transaction
from tests.support.each import each
from tests.support.logs import captured_logs
from tests.support.world import ALL_SCOPES, UNLIMITED, World, table_dump

PATH = "/v1/api-keys"
SECRET = re.compile(r"assent_[0-9A-Za-z]{36}")


def fill(world: World, company) -> None:
    for _ in range(API_KEYS_PER_ORGANIZATION):
        world.key(company)


def stored_count(company) -> tuple[int, int]:
    """Returns the counter's value and the number of stored keys."""
    organization = table.get(keys.organization(company.organization_id))
    assert organization is not None
    listed = table.query(keys.organization_pk(company.organization_id), prefix=keys.KEY_PREFIX, consistent=True)
    return organization["keys"], len(listed.items)


class Test201:
    def test_the_response_contains_the_secret_and_must_not_be_cached(self, api: Api, world: World):
        company = world.company()
        reply = api.post(PATH, company.owner.token, json_body={"name": "Production deploys"})
        assert reply.status == 201
        assert reply.headers["cache-control"] == "no-store"
        made = dict(reply.data)
        assert SECRET.fullmatch(made.pop("key"))
        assert made.pop("keyId").startswith("key_")
        assert made.pop("start") == reply.data["key"][:11]
        assert made == {
            "name": "Production deploys",
            "createdAt": "2026-03-04T05:06:07.000Z",
            "rateLimit": 1500,
            "meta": {
                "createdBy": company.owner.user_id,
                "createdFrom": "api",
                "createdAt": "2026-03-04T05:06:07.000Z",
            },
            **UNLIMITED,
        }

    def test_the_secret_works_immediately_and_after_its_creator_leaves(self, api: Api, world: World):
        company = world.company()
        admin = world.member(company, "admin")
        made = api.post(PATH, admin.token, json_body={"name": "deploy"}).data
        world.leave(company, admin)
        principal = api.get("/v1/me", made["key"]).data["principal"]
        assert principal["keyId"] == made["keyId"]
        assert principal["createdBy"] == admin.user_id

    @pytest.mark.parametrize(("plan", "rate"), [("starter", 600), ("pro", 1500), ("enterprise", 3000)])
    def test_the_plan_sets_the_rate_limit(self, plan, rate, api: Api, world: World):
        company = world.company(plan)
        made = api.post(PATH, company.owner.token, json_body={"name": "deploy"}).data
        assert made["rateLimit"] == rate
        assert api.get("/v1/me", made["key"]).headers["x-ratelimit-limit"] == str(rate)

    @each(
        ("name", "kept"),
        [("x", "x"), ("n" * 100, "n" * 100), ("  padded\t", "padded"), (" " * 200 + "a", "a"), ("名前 🔑", "名前 🔑")],
    )
    def test_a_name_is_trimmed_and_has_1_to_100_characters(self, name, kept, api: Api, world: World):
        assert api.post(PATH, world.company().owner.token, json_body={"name": name}).data["name"] == kept

    def test_two_keys_can_have_the_same_name(self, api: Api, world: World):
        company = world.company()
        made = [api.post(PATH, company.owner.token, json_body={"name": "deploy"}).data for _ in range(2)]
        assert made[0]["keyId"] != made[1]["keyId"]
        assert made[0]["key"] != made[1]["key"]

    def test_the_secret_is_in_neither_the_table_nor_the_logs(self, api: Api, world: World):
        with captured_logs() as logs:
            made = api.post(PATH, world.company().owner.token, json_body={"name": "deploy"}).data
            api.get("/v1/me", made["key"])
        assert made["keyId"] in logs.getvalue()
        stored = json.dumps(table_dump())
        assert made["keyId"] in stored
        for text in (stored, logs.getvalue()):
            assert made["key"] not in text
            assert made["key"][11:] not in text

    def test_an_id_that_is_taken_is_replaced(self, api: Api, world: World, monkeypatch: pytest.MonkeyPatch):
        company = world.company()
        first, new_local = api.post(PATH, company.owner.token, json_body={"name": "first"}).data, ids.new_local
        taken = iter([first["keyId"][20:]])
        monkeypatch.setattr(ids, "new_local", lambda: next(taken, None) or new_local())
        api.post(PATH, company.owner.token, json_body={"name": "second"})
        listed = api.get(PATH, first["key"]).data
        assert {key["name"] for key in listed} == {"first", "second"}

    def test_secret_and_id_share_no_prefix(self, api: Api, world: World):
        made = api.post(PATH, world.company().owner.token, json_body={"name": "deploy"}).data
        assert made["key"][:4] != made["keyId"][:4]

    def test_the_counter_equals_the_number_of_keys(self, api: Api, world: World):
        company = world.company()
        for _ in range(3):
            api.post(PATH, company.owner.token, json_body={"name": "deploy"})
        assert stored_count(company) == (3, 3)


class Test400:
    @each(
        "body",
        [
            {},
            {"name": ""},
            {"name": "   "},
            {"name": "n" * 101},
            {"name": None},
            {"name": 5},
            {"name": True},
            {"name": ["deploy"]},
            {"name": {"a": "b"}},
            {"Name": "deploy"},
            [],
            "deploy",
            5,
            [{"name": "deploy"}],
        ],
    )
    def test_returns_400_without_a_name_of_1_to_100_characters_and_writes_nothing(self, body, api: Api, world: World):
        company = world.company()
        before = stored_count(company)
        reply = api.post(PATH, company.owner.token, json_body=body)
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
        assert stored_count(company) == before

    @each(
        "raw",
        [
            b"",
            b"{",
            b'{"name":"a","name":"b"}',
            b'{"name":"\\ud800"}',
            b'{"name":"a\\u0000"}',
            b'{"name":NaN}',
            b'{"name":"\xff"}',
            b"[" * 5000,
        ],
    )
    def test_a_body_that_is_not_strict_json_is_rejected(self, raw, api: Api, world: World):
        reply = api.post(PATH, world.company().owner.token, raw_body=raw)
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")

    def test_the_invalid_field_is_named(self, api: Api, world: World):
        (problem,) = api.post(PATH, world.company().owner.token, json_body={"name": ""}).error["details"]
        assert problem["path"] == ["name"]


class Test402:
    def test_the_free_plan_has_no_keys(self, api: Api, world: World):
        company = world.company("free")
        reply = api.post(PATH, company.owner.token, json_body={"name": "deploy"})
        assert (reply.status, reply.code) == (402, "PLAN_REQUIRED")
        assert stored_count(company) == (0, 0)

    def test_a_downgrade_between_read_and_commit_is_rejected(self, api: Api, world: World):
        company = world.company()

        with before_the_transaction(table.client, lambda: billing.change_plan(company.organization_id, "free")):
            reply = api.post(PATH, company.owner.token, json_body={"name": "deploy"})
        assert reply.code == "PLAN_REQUIRED"
        assert stored_count(company) == (0, 0)

    def test_an_unknown_organization_gets_no_key(self, world: World):
        with pytest.raises(organizations.UnknownOrganization):
            api_keys.create_key("org_0000000000000000", "deploy", world.person().user_id, "test")

    def test_an_upgrade_between_read_and_commit_grants_the_new_rate(self, api: Api, world: World):
        company = world.company("starter")

        with before_the_transaction(table.client, lambda: billing.change_plan(company.organization_id, "pro")):
            reply = api.post(PATH, company.owner.token, json_body={"name": "deploy"})
        assert reply.data["rateLimit"] == 1500


class Test403:
    def test_a_member_may_not_create_a_key(self, api: Api, world: World):
        company = world.company()
        reply = api.post(PATH, world.member(company).token, json_body={"name": "deploy"})
        assert (reply.status, reply.code) == (403, "FORBIDDEN")
        assert stored_count(company) == (0, 0)

    def test_a_role_lost_between_authorization_and_commit_is_rejected(self, api: Api, world: World):
        company = world.company()
        admin = world.member(company, "admin")

        with before_the_transaction(table.client, lambda: world.leave(company, admin)):
            reply = api.post(PATH, admin.token, json_body={"name": "deploy"})
        assert reply.code == "FORBIDDEN"
        assert stored_count(company) == (0, 0)

    def test_returns_403_for_an_api_key_without_the_scope(self, api: Api, world: World):
        reply = api.post(PATH, world.key(world.company()), json_body={"name": "deploy"})
        assert reply.code == "INSUFFICIENT_SCOPE"
        assert reply.error["details"] == {"requiredScope": "api-keys.write"}
        assert reply.challenge == 'Bearer error="insufficient_scope", scope="api-keys.write"'

    def test_a_missing_scope_is_reported_before_an_invalid_body(self, api: Api, world: World):
        company = world.company()
        token = world.token(company.owner.user_id, [scope for scope in ALL_SCOPES if scope != "api-keys.write"])
        assert api.post(PATH, token, raw_body=b"{").code == "INSUFFICIENT_SCOPE"

    def test_another_organization_is_rejected(self, api: Api, world: World):
        other = world.company()
        reply = api.post(
            f"{PATH}?organizationId={other.organization_id}", world.company().owner.token, json_body={"name": "x"}
        )
        assert reply.code == "FORBIDDEN"
        assert stored_count(other) == (0, 0)


class Test409:
    def test_the_51st_key_is_rejected(self, api: Api, world: World):
        company = world.company()
        fill(world, company)
        reply = api.post(PATH, company.owner.token, json_body={"name": "one more"})
        assert (reply.status, reply.code) == (409, "KEY_LIMIT_REACHED")
        assert reply.error["details"] == {"limit": 50}
        assert stored_count(company) == (50, 50)

    def test_the_limit_is_per_organization_and_a_deleted_key_makes_room(self, api: Api, world: World):
        company = world.company()
        fill(world, company)
        other = world.company(owner=company.owner)
        body, token = {"name": "deploy"}, company.owner.token
        assert api.post(f"{PATH}?organizationId={other.organization_id}", token, json_body=body).status == 201
        here = f"?organizationId={company.organization_id}"
        key_id = api.get(PATH + here, token).data[0]["keyId"]
        assert api.delete(f"{PATH}/{key_id}{here}", token).status == 200
        assert api.post(PATH + here, token, json_body=body).status == 201
        assert api.post(PATH + here, token, json_body=body).code == "KEY_LIMIT_REACHED"
        assert stored_count(company) == (50, 50)
