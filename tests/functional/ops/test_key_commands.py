"""`assent-ops key`."""

import pytest

from controlplane.core.plans import API_KEYS_PER_ORGANIZATION
from controlplane.store import keys
from controlplane.store.table import Update, table
from tests.functional.ops.conftest import Ops
from tests.support.api import Api
from tests.support.table import PREPARED
from tests.support.world import World, table_dump


class TestCreate:
    def test_key_create_makes_a_working_key_attributed_to_the_member(self, ops: Ops, api: Api, world: World):
        company = world.company()
        made = ops("key", "create", company.slug, "--name", "CI", "--created-by", company.owner.email).document
        principal = api.get("/v1/me", made["key"]).data["principal"]
        assert principal["keyId"] == made["keyId"]
        assert principal["createdBy"] == company.owner.user_id == made["createdBy"]
        assert principal["organizationId"] == company.organization_id == made["organizationId"]

    def test_key_create_stores_only_a_hash_and_lists_show_no_secret(self, ops: Ops, world: World):
        company = world.company()
        made = ops("key", "create", company.slug, "--name", "CI", "--created-by", company.owner.email).document
        assert made["key"] not in str(table_dump())
        assert made["key"] not in ops("key", "list", company.slug).stdout

    def test_creation_is_rejected_on_a_plan_without_api_access(self, ops: Ops, world: World):
        company = world.company("free")
        before = table_dump()
        outcome = ops("key", "create", company.slug, "--name", "CI", "--created-by", company.owner.email)
        assert outcome.exit_code == 1
        assert "plan set" in outcome.error["message"]
        assert table_dump() == before

    def test_exit_code_4_at_the_limit_of_keys(self, ops: Ops, world: World):
        company = world.company()
        full = {"cap": API_KEYS_PER_ORGANIZATION}
        table.update(Update(keys.organization(company.organization_id), "SET #keys = :cap", None, full), PREPARED)
        outcome = ops("key", "create", company.slug, "--name", "CI", "--created-by", company.owner.email)
        assert outcome.exit_code == 4

    def test_a_key_is_attributed_to_members_only(self, ops: Ops, world: World):
        company, stranger = world.company(), world.person()
        before = table_dump()
        outcome = ops("key", "create", company.slug, "--name", "CI", "--created-by", stranger.email)
        assert outcome.exit_code == 1
        assert table_dump() == before

    def test_key_create_exits_3_for_an_unknown_organization_or_user(self, ops: Ops, world: World):
        company = world.company()
        assert ops("key", "create", "nowhere", "--name", "CI", "--created-by", company.owner.email).exit_code == 3
        assert ops("key", "create", company.slug, "--name", "CI", "--created-by", "unknown@example.com").exit_code == 3


class TestList:
    def test_lists_all_keys_of_the_organization_newest_first(self, ops: Ops, world: World, now):
        company, other = world.company(), world.company()
        world.key(other)
        for name in ("first", "second"):
            world.key(company, name)
            now.advance(1)
        assert [key["name"] for key in ops("key", "list", company.slug).document] == ["second", "first"]

    def test_key_list_is_readable_as_text(self, ops_text: Ops, world: World):
        company = world.company()
        world.key(company, "deploy")
        assert "deploy" in ops_text("key", "list", company.slug).stdout


class TestDelete:
    def test_the_secret_of_a_deleted_key_is_rejected(self, ops: Ops, api: Api, world: World):
        company = world.company()
        made = ops("key", "create", company.slug, "--name", "CI", "--created-by", company.owner.email).document
        assert ops("key", "delete", made["keyId"], "--yes").document == {"deleted": True, "keyId": made["keyId"]}
        assert api.get("/v1/me", made["key"]).status == 401
        assert ops("organization", "show", company.slug).document["apiKeys"] == 0

    def test_asks_first_and_exits_2_without_a_terminal(self, ops: Ops, world: World):
        company = world.company()
        made = ops("key", "create", company.slug, "--name", "CI", "--created-by", company.owner.email).document
        before = table_dump()
        outcome = ops("key", "delete", made["keyId"], input="y\n")
        assert outcome.exit_code == 2
        assert "--yes" in outcome.error["message"]
        assert table_dump() == before

    @pytest.mark.parametrize("key_id", ["key_", "nonsense", "key_" + "0" * 34])
    def test_exit_code_3_for_an_unknown_key(self, ops: Ops, key_id: str):
        assert ops("key", "delete", key_id, "--yes").exit_code == 3
