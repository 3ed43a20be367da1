"""`assent-ops member`."""

import pytest

from controlplane.store import keys
from controlplane.store.organizations import Membership, membership_legs
from controlplane.store.table import table
from controlplane.store.users import UserItem
from tests.functional.ops.conftest import Ops
from tests.support.api import Api
from tests.support.table import PREPARED
from tests.support.world import Company, World, table_dump


def owners(company: Company) -> int:
    organization = table.get(keys.organization(company.organization_id))
    assert organization is not None
    return organization["owners"]


class TestAdd:
    @pytest.mark.parametrize(("role", "count"), [("owner", 2), ("admin", 1), ("member", 1)])
    def test_member_add_writes_both_sides_and_the_owner_count(
        self, ops: Ops, api: Api, world: World, role: str, count: int
    ):
        company, person = world.company(), world.person()
        added = ops("member", "add", company.slug, person.email, "--role", role).document
        assert added == {"organizationId": company.organization_id, "userId": person.user_id, "role": role}
        assert api.get("/v1/me", person.token).data["organizations"][0]["role"] == role
        roster = ops("member", "list", company.slug).document
        assert {it["userId"]: it["role"] for it in roster} == {company.owner.user_id: "owner", person.user_id: role}
        assert owners(company) == count

    def test_member_add_grants_the_member_role_by_default(self, ops: Ops, world: World):
        assert ops("member", "add", world.company().slug, world.person().email).document["role"] == "member"

    def test_member_add_exits_4_for_an_existing_member(self, ops: Ops, world: World):
        company = world.company()
        before = table_dump()
        assert ops("member", "add", company.slug, company.owner.email, "--role", "owner").exit_code == 4
        assert table_dump() == before

    def test_member_add_exits_3_for_an_unknown_organization_or_user(self, ops: Ops, world: World):
        company = world.company()
        assert ops("member", "add", "nowhere", company.owner.email).exit_code == 3
        assert ops("member", "add", company.slug, "unknown@example.com").exit_code == 3

    def test_member_add_exits_2_for_an_invalid_role(self, ops: Ops, world: World):
        assert ops("member", "add", world.company().slug, world.person().email, "--role", "king").exit_code == 2


class TestList:
    def test_member_list_shows_more_than_one_page(self, ops: Ops, world: World):
        company = world.company()
        membership = Membership(
            organization_id=company.organization_id, slug=company.slug, name=company.name, role="member"
        )
        for number in range(101):
            profile = UserItem(
                user_id=f"usr_{number:016}",
                email=f"max{number}@example.com",
                name="Max",
                image=None,
                created_at="2026-03-04T05:06:07.000Z",
            )
            roster, _ = membership_legs(membership, profile)
            table.put(roster, PREPARED)
        assert len({it["userId"] for it in ops("member", "list", company.slug).document}) == 102

    def test_member_list_shows_names_and_addresses(self, ops: Ops, world: World):
        company = world.company()
        assert ops("member", "list", company.slug).document == [
            {
                "userId": company.owner.user_id,
                "email": company.owner.email,
                "name": company.owner.name,
                "role": "owner",
                "joinedAt": "2026-03-04T05:06:07.000Z",
            }
        ]


class TestSetRole:
    def test_member_set_role_updates_both_sides_and_the_owner_count(self, ops: Ops, api: Api, world: World):
        company = world.company()
        admin = world.member(company, "admin")
        ops("member", "set-role", company.slug, admin.email, "owner")
        assert owners(company) == 2
        ops("member", "set-role", company.slug, company.owner.email, "member")
        assert owners(company) == 1
        assert api.get("/v1/me", admin.token).data["organizations"][0]["role"] == "owner"
        assert api.get("/v1/me", company.owner.token).data["organizations"][0]["role"] == "member"

    def test_member_set_role_with_the_same_role_changes_nothing(self, ops: Ops, world: World):
        company = world.company()
        before = table_dump()
        assert ops("member", "set-role", company.slug, company.owner.email, "owner").document["role"] == "owner"
        assert table_dump() == before

    def test_member_set_role_refuses_to_demote_the_last_owner(self, ops: Ops, world: World):
        company = world.company()
        world.member(company, "admin")
        before = table_dump()
        outcome = ops("member", "set-role", company.slug, company.owner.email, "admin")
        assert outcome.exit_code == 1
        assert outcome.error["code"] == "REFUSED"
        assert "last owner" in outcome.error["message"]
        assert table_dump() == before

    def test_member_set_role_exits_3_for_a_nonmember(self, ops: Ops, world: World):
        assert ops("member", "set-role", world.company().slug, world.person().email, "owner").exit_code == 3


class TestRemove:
    def test_member_remove_ends_the_membership(self, ops: Ops, api: Api, world: World):
        company = world.company()
        person = world.member(company)
        removed = ops("member", "remove", company.slug, person.email, "--yes").document
        assert removed == {"removed": True, "organizationId": company.organization_id, "userId": person.user_id}
        assert api.get("/v1/me", person.token).data["organizations"] == []
        assert len(ops("member", "list", company.slug).document) == 1

    def test_member_remove_allows_removing_one_of_two_owners(self, ops: Ops, world: World):
        company = world.company()
        world.member(company, "owner")
        assert ops("member", "remove", company.slug, company.owner.email, "--yes").exit_code == 0
        assert owners(company) == 1

    def test_member_remove_refuses_the_last_owner(self, ops: Ops, world: World):
        company = world.company()
        before = table_dump()
        outcome = ops("member", "remove", company.slug, company.owner.email, "--yes")
        assert outcome.exit_code == 1
        assert "last owner" in outcome.error["message"]
        assert table_dump() == before

    def test_member_remove_exits_3_for_a_nonmember(self, ops: Ops, world: World):
        assert ops("member", "remove", world.company().slug, world.person().email, "--yes").exit_code == 3

    def test_member_remove_asks_first_and_exits_2_without_a_terminal(self, ops: Ops, world: World):
        company = world.company()
        person = world.member(company)
        before = table_dump()
        assert ops("member", "remove", company.slug, person.email).exit_code == 2
        assert table_dump() == before
