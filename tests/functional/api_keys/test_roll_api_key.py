"""POST /v1/api-keys/{keyId}/roll: replaces a key with a new one in one transaction."""

import pytest

from controlplane.core import ids
from controlplane.core.ids import KeyId
from controlplane.core.plans import API_KEYS_PER_ORGANIZATION
from controlplane.store import api_keys, billing, keys
from controlplane.store.table import table
from tests.support.api import Api
from tests.support.calls import before_the_transaction, intercepted
from tests.support.recorded import recorded_calls
from tests.support.world import World


def make(api: Api, company) -> dict:
    path = f"/v1/api-keys?organizationId={company.organization_id}"
    return api.post(path, company.owner.token, json_body={"name": "deploy"}).data


def roll(api: Api, key_id: str, token: str, **options):
    return api.post(f"/v1/api-keys/{key_id}/roll", token, **options)


class Test200:
    def test_rolling_returns_a_new_secret_and_id_and_revokes_the_old_secret(self, api: Api, world: World, now):
        company = world.company()
        admin = world.member(company, "admin")
        old = make(api, company)
        now.advance(60)
        reply = roll(api, old["keyId"], admin.token)
        assert reply.status == 200
        assert reply.headers["cache-control"] == "no-store"
        new = reply.data
        assert new == {
            **old,
            "keyId": new["keyId"],
            "key": new["key"],
            "start": new["key"][:11],
            "createdAt": "2026-03-04T05:07:07.000Z",
            "meta": {
                "createdBy": admin.user_id,
                "createdFrom": "api",
                "createdAt": "2026-03-04T05:07:07.000Z",
            },
            "replacedKeyId": old["keyId"],
            "previous": None,
        }
        assert new["keyId"] != old["keyId"]
        assert new["key"] != old["key"]
        assert api.get("/v1/me", old["key"]).status == 401
        assert api.get("/v1/me", new["key"]).data["principal"]["keyId"] == new["keyId"]
        assert [key["keyId"] for key in api.get("/v1/api-keys", admin.token).data] == [new["keyId"]]

    @pytest.mark.parametrize("body", [None, b"", b"{}"])
    def test_a_body_is_optional(self, body, api: Api, world: World):
        company = world.company()
        reply = roll(api, make(api, company)["keyId"], company.owner.token, raw_body=body)
        assert (reply.status, reply.data["name"]) == (200, "deploy")

    def test_rolling_at_the_limit_works_and_does_not_change_the_count(self, api: Api, world: World):
        company = world.company()
        old = make(api, company)
        for _ in range(API_KEYS_PER_ORGANIZATION - 1):
            world.key(company)
        assert roll(api, old["keyId"], company.owner.token).status == 200
        organization = table.get(keys.organization(company.organization_id))
        assert organization is not None
        assert organization["keys"] == API_KEYS_PER_ORGANIZATION
        assert len(api.get("/v1/api-keys?limit=100", company.owner.token).data) == API_KEYS_PER_ORGANIZATION

    def test_a_rolled_key_has_the_current_plans_rate_and_a_fresh_window(self, api: Api, world: World):
        company = world.company("starter")
        old = make(api, company)
        assert api.get("/v1/me", old["key"]).headers["x-ratelimit-remaining"] == "599"
        billing.change_plan(company.organization_id, "enterprise")
        assert api.get("/v1/me", old["key"]).headers["x-ratelimit-limit"] == "600"
        new = roll(api, old["keyId"], company.owner.token).data
        assert new["rateLimit"] == 3000
        headers = api.get("/v1/me", new["key"]).headers
        assert (headers["x-ratelimit-limit"], headers["x-ratelimit-remaining"]) == ("3000", "2999")

    def test_the_named_organization_is_used(self, api: Api, world: World):
        first = world.company()
        second = world.company(owner=first.owner)
        path = f"/v1/api-keys/{make(api, second)['keyId']}/roll?organizationId="
        assert api.post(path + first.organization_id, first.owner.token).code == "NOT_FOUND"
        assert api.post(path + second.organization_id, first.owner.token).status == 200

    def test_rolling_takes_four_round_trips_like_any_write_of_a_person(self, api: Api, world: World):
        company = world.company()
        old = make(api, company)
        path = f"/v1/api-keys/{old['keyId']}/roll?organizationId={company.organization_id}"
        with recorded_calls() as calls:
            api.post(path, company.owner.token)
        assert [call.operation for call in calls] == ["UpdateItem", "GetItem", "BatchGetItem", "TransactWriteItems"]


class Test402:
    def test_rolling_is_rejected_on_the_free_plan(self, api: Api, world: World):
        company = world.company()
        old = make(api, company)
        billing.change_plan(company.organization_id, "free")
        reply = roll(api, old["keyId"], company.owner.token)
        assert (reply.status, reply.code) == (402, "PLAN_REQUIRED")
        billing.change_plan(company.organization_id, "pro")
        assert api.get("/v1/me", old["key"]).status == 200

    def test_a_downgrade_between_read_and_commit_is_rejected(self, api: Api, world: World):
        company = world.company()
        old = make(api, company)

        with before_the_transaction(table.client, lambda: billing.change_plan(company.organization_id, "free")):
            assert roll(api, old["keyId"], company.owner.token).code == "PLAN_REQUIRED"
        assert [key["keyId"] for key in api.get("/v1/api-keys", company.owner.token).data] == [old["keyId"]]


class Test403:
    def test_a_member_may_not_roll_a_key(self, api: Api, world: World):
        company = world.company()
        old = make(api, company)
        assert roll(api, old["keyId"], world.member(company).token).code == "FORBIDDEN"
        assert api.get("/v1/me", old["key"]).status == 200

    def test_returns_403_for_an_api_key_rolling_itself(self, api: Api, world: World):
        old = make(api, world.company())
        assert roll(api, old["keyId"], old["key"]).code == "INSUFFICIENT_SCOPE"

    def test_a_role_lost_between_authorization_and_commit_is_rejected(self, api: Api, world: World):
        company = world.company()
        admin, old = world.member(company, "admin"), make(api, company)

        with before_the_transaction(table.client, lambda: world.leave(company, admin)):
            assert roll(api, old["keyId"], admin.token).code == "FORBIDDEN"
        assert api.get("/v1/me", old["key"]).status == 200


class Test404:
    def test_an_unknown_key_looks_like_another_organizations_key(self, api: Api, world: World):
        company = world.company()
        theirs = make(api, world.company())
        unknown = KeyId.of(company.organization_id, ids.new_local())
        replies = [roll(api, key_id, company.owner.token) for key_id in (theirs["keyId"], unknown, "key_x")]
        assert [(reply.status, reply.code) for reply in replies] == [(404, "NOT_FOUND")] * 3
        assert len({reply.text for reply in replies}) == 1
        assert api.get("/v1/me", theirs["key"]).status == 200

    def test_a_rolled_or_deleted_key_returns_404(self, api: Api, world: World):
        company = world.company()
        old = make(api, company)
        new = roll(api, old["keyId"], company.owner.token).data
        assert roll(api, old["keyId"], company.owner.token).status == 404
        assert api.delete(f"/v1/api-keys/{new['keyId']}", company.owner.token).status == 200
        assert roll(api, new["keyId"], company.owner.token).status == 404

    def test_a_key_replaced_by_a_concurrent_roll_returns_404(self, api: Api, world: World):
        company = world.company()
        old = make(api, company)

        def roll_first(call, proceed):
            if call.operation == "TransactWriteItems" and not rolled:
                rolled.append(call)
                rolled.append(api_keys.roll_key(KeyId.stored(old["keyId"]), "usr_other", "api", grace_seconds=0).item)
            return proceed()

        rolled: list = []
        with intercepted(table.client, roll_first):
            assert roll(api, old["keyId"], company.owner.token).status == 404
        assert [key["keyId"] for key in api.get("/v1/api-keys", company.owner.token).data] == [rolled[1].key_id]
