"""GET /v1/api-keys, and GET /v1/auth/keys, its earlier path."""

import pytest

from controlplane.core import cursors
from controlplane.store import api_keys, billing
from tests.support.api import Api
from tests.support.each import each
from tests.support.operations import operations
from tests.support.world import UNLIMITED, World

both_addresses = pytest.mark.parametrize("path", ["/v1/api-keys", "/v1/auth/keys"])


@both_addresses
class Test200:
    def test_a_key_is_listed_with_its_origin_and_without_its_secret(self, path, api: Api, world: World):
        company = world.company()
        made = api.post("/v1/api-keys", company.owner.token, json_body={"name": "deploy"}).data
        reply = api.get(path, company.owner.token)
        assert reply.data == [
            {
                "keyId": made["keyId"],
                "name": "deploy",
                "start": made["key"][:11],
                "createdAt": "2026-03-04T05:06:07.000Z",
                "lastUsedAt": None,
                "rateLimit": 1500,
                "meta": {
                    "createdBy": company.owner.user_id,
                    "createdFrom": "api",
                    "createdAt": "2026-03-04T05:06:07.000Z",
                },
                **UNLIMITED,
                "previous": None,
            }
        ]
        assert reply.body["pagination"] == {"nextCursor": None, "hasMore": False}

    def test_paging_returns_each_key_once_newest_first(self, path, api: Api, world: World, now):
        company = world.company()
        for number in range(7):
            world.key(company, f"key {number}")
            now.advance(1)
        reply = api.get(f"{path}?limit=3", company.owner.token)
        names = [key["name"] for key in reply.data]
        while cursor := reply.body["pagination"]["nextCursor"]:
            assert len(reply.data) == 3
            reply = api.get(f"{path}?limit=3&cursor={cursor}", company.owner.token)
            names += [key["name"] for key in reply.data]
        assert names == [f"key {number}" for number in (6, 5, 4, 3, 2, 1, 0)]

    def test_an_organization_without_keys_has_an_empty_list(self, path, api: Api, world: World):
        assert api.get(path, world.company().owner.token).data == []

    def test_any_member_can_list_keys(self, path, api: Api, world: World):
        company = world.company()
        assert api.get(path, world.member(company).token).status == 200

    def test_a_key_lists_only_the_keys_of_its_own_organization(self, path, api: Api, world: World):
        company, other = world.company(), world.company()
        world.key(other, "theirs")
        assert [key["name"] for key in api.get(path, world.key(company, "ours")).data] == ["ours"]

    def test_keys_are_listed_on_the_free_plan(self, path, api: Api, world: World):
        company = world.company()
        world.key(company)
        billing.change_plan(company.organization_id, "free")
        assert len(api.get(path, company.owner.token).data) == 1

    def test_last_use_is_accurate_to_the_hour(self, path, api: Api, world: World, now):
        company = world.company()
        secret = world.key(company)

        def last_used() -> str:
            return api.get(path, company.owner.token).data[0]["lastUsedAt"]

        api.get("/v1/me", secret)
        first = last_used()
        assert first == "2026-03-04T05:06:07.000Z"
        now.advance(53 * 60)
        api.get("/v1/me", secret)
        assert last_used() == first
        now.advance(60)
        api.get("/v1/me", secret)
        assert last_used() == "2026-03-04T06:00:07.000Z"

    def test_the_named_organization_is_used(self, path, api: Api, world: World):
        first = world.company()
        second = world.company(owner=first.owner)
        world.key(second, "second's")
        assert api.get(f"{path}?organizationId={first.organization_id}", first.owner.token).data == []
        names = [
            key["name"] for key in api.get(f"{path}?organizationId={second.organization_id}", first.owner.token).data
        ]
        assert names == ["second's"]


@both_addresses
class Test400:
    @each("limit", ["0", "101", "-1", "1.0", "ten", "", "1e1", "5_0", "%2B5", "٣"])
    def test_a_page_size_outside_1_to_100_is_rejected(self, path, limit, api: Api, world: World):
        reply = api.get(f"{path}?limit={limit}", world.company().owner.token)
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
        assert reply.error["details"][0]["path"] == ["limit"]

    def test_a_cursor_of_another_organization_is_rejected(self, path, api: Api, world: World):
        first = world.company()
        second = world.company(owner=first.owner)
        for company in (first, first, second, second):
            world.key(company)
        theirs = api.get(f"{path}?limit=1&organizationId={first.organization_id}", first.owner.token)
        cursor = theirs.body["pagination"]["nextCursor"]
        reply = api.get(f"{path}?organizationId={second.organization_id}&cursor={cursor}", first.owner.token)
        assert reply.code == "INVALID_PAYLOAD"

    def test_a_cursor_of_the_other_path_is_rejected(self, path, api: Api, world: World):
        company = world.company()
        for _ in range(2):
            world.key(company)
        (other,) = {"/v1/api-keys", "/v1/auth/keys"} - {path}
        cursor = api.get(f"{other}?limit=1", company.owner.token).body["pagination"]["nextCursor"]
        assert api.get(f"{other}?cursor={cursor}", company.owner.token).status == 200
        reply = api.get(f"{path}?cursor={cursor}", company.owner.token)
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
        assert reply.error["details"][0]["path"] == ["cursor"]

    def test_several_organizations_require_a_choice(self, path, api: Api, world: World):
        first = world.company()
        world.company(owner=first.owner)
        world.clear_default(first.owner)
        reply = api.get(path, first.owner.token)
        assert reply.code == "INVALID_PAYLOAD"
        assert reply.error["details"][0]["path"] == ["organizationId"]


@both_addresses
class Test402:
    def test_a_key_of_an_organization_on_the_free_plan_is_rejected(self, path, api: Api, world: World):
        company = world.company()
        secret = world.key(company)
        billing.change_plan(company.organization_id, "free")
        assert (reply := api.get(path, secret)).status == 402
        assert reply.code == "PLAN_REQUIRED"


@both_addresses
class Test403:
    def test_another_organization_is_rejected(self, path, api: Api, world: World):
        reply = api.get(f"{path}?organizationId={world.company().organization_id}", world.company().owner.token)
        assert reply.code == "FORBIDDEN"

    def test_a_key_may_not_name_another_organization(self, path, api: Api, world: World):
        reply = api.get(f"{path}?organizationId={world.company().organization_id}", world.key(world.company()))
        assert reply.code == "FORBIDDEN"


class TestDescription:
    def test_the_earlier_path_is_marked_deprecated(self):
        deprecated = {operation.name: bool(operation.route.deprecated) for operation in operations()}
        assert deprecated["GET /v1/auth/keys"] is True
        assert deprecated["GET /v1/api-keys"] is False


def test_a_cursor_issued_before_the_paths_had_separate_cursors_still_works(api: Api, world: World):
    company = world.company()
    for _ in range(2):
        world.key(company)
    position = api_keys.list_keys(company.organization_id, 1, None).next_sk
    cursor = cursors.seal(("listApiKeys", company.organization_id), position)
    assert len(api.get(f"/v1/api-keys?cursor={cursor}", company.owner.token).data) == 1
