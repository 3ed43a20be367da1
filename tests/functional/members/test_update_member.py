"""PATCH /v1/members/{memberId}: a member's role."""

from typing import Any

import pytest

from controlplane.core.ids import MemberId
from controlplane.store import default_organizations, keys, members, organizations, users
from controlplane.store.table import table
from tests.support import invariants
from tests.support.api import Api, Reply
from tests.support.calls import before_the_transaction
from tests.support.each import each
from tests.support.world import ALL_SCOPES, Company, Person, World, get_profile, table_dump

ROLES = ["owner", "admin", "member"]


def target(company: Company, person: Person) -> str:
    return f"/v1/members/{MemberId.of_user(company.organization_id, person.user_id)}"


def give(api: Api, company: Company, caller: Person, person: Person, role: Any) -> Reply:
    return api.patch(target(company, person), caller.token, json_body={"role": role})


def role_of(company: Company, person: Person) -> str:
    """Returns the role, which both sides of the membership agree on."""
    invariants.check_all(invariants.read_items(table.client, table.name))
    membership = organizations.find_membership(person.user_id, company.organization_id)
    assert membership is not None
    return membership.role


@pytest.fixture
def company(world: World) -> Company:
    return world.company()


class Test200:
    @each("old", ROLES)
    @each("new", ROLES)
    def test_an_owner_can_grant_any_role(self, api: Api, world: World, company: Company, old, new):
        person = world.member(company, old)
        reply = give(api, company, company.owner, person, new)
        assert reply.status == 200
        assert reply.data == {"updated": old != new}
        assert role_of(company, person) == new

    @each("old", ["admin", "member"])
    @each("new", ["admin", "member"])
    def test_an_admin_can_change_roles_below_owner(self, api: Api, world: World, company: Company, old, new):
        admin, person = world.member(company, "admin"), world.member(company, old)
        assert give(api, company, admin, person, new).data == {"updated": old != new}
        assert role_of(company, person) == new

    def test_an_owner_can_step_down_if_another_remains(self, api: Api, world: World, company: Company):
        world.member(company, "owner")
        assert give(api, company, company.owner, company.owner, "member").data == {"updated": True}
        assert role_of(company, company.owner) == "member"

    def test_an_admin_can_step_down(self, api: Api, world: World, company: Company):
        admin = world.member(company, "admin")
        assert give(api, company, admin, admin, "member").data == {"updated": True}
        assert role_of(company, admin) == "member"

    def test_the_new_role_applies_to_the_next_request(self, api: Api, world: World, company: Company):
        person, other = world.member(company), world.member(company)
        assert give(api, company, person, other, "admin").status == 403
        give(api, company, company.owner, person, "admin")
        assert give(api, company, person, other, "admin").status == 200
        give(api, company, company.owner, person, "member")
        assert give(api, company, person, other, "member").status == 403

    def test_a_repeated_request_changes_nothing(self, api: Api, world: World, company: Company):
        person = world.member(company)
        assert give(api, company, company.owner, person, "owner").data == {"updated": True}
        assert give(api, company, company.owner, person, "owner").data == {"updated": False}
        organization = table.get(keys.organization(company.organization_id))
        assert organization is not None
        assert organization["owners"] == 2

    def test_a_concurrent_change_to_the_same_role_is_reported(self, api: Api, world: World, company: Company):
        person = world.member(company)
        found = members.get_member(company.organization_id, person.user_id)
        owner_id = company.owner.user_id
        with before_the_transaction(table.client, lambda: members.change_role(found, "admin", owner_id, "owner")):
            assert give(api, company, company.owner, person, "admin").data == {"updated": True}

    def test_the_new_owners_address_can_change_concurrently(self, api: Api, world: World, company: Company):
        person = world.member(company)
        profile = get_profile(person.user_id)
        with before_the_transaction(table.client, lambda: users.change_address(profile, "new@example.com")):
            assert give(api, company, company.owner, person, "owner").data == {"updated": True}

    def test_the_id_determines_the_organization(self, api: Api, world: World, company: Company):
        other = world.company(owner=company.owner)
        default_organizations.save(company.owner.user_id, other.organization_id)
        person = world.member(company)
        path = f"{target(company, person)}?organizationId={other.organization_id}"
        assert api.patch(path, company.owner.token, json_body={"role": "admin"}).data == {"updated": True}
        assert role_of(company, person) == "admin"

    def test_ignores_unknown_fields(self, api: Api, world: World, company: Company):
        person = world.member(company)
        body = {"role": "admin", "name": "Eve", "userId": company.owner.user_id, "joinedAt": "now"}
        assert api.patch(target(company, person), company.owner.token, json_body=body).data == {"updated": True}
        roster = table.get(keys.member(company.organization_id, person.user_id))
        assert roster is not None
        assert (roster["name"], roster["userId"]) == (person.name, person.user_id)


class Test400:
    @each("role", [None, "", "Owner", "owner ", "root", 1, True, ["admin"], {"a": 1}, "x" * 9000])
    def test_returns_400_for_an_invalid_role(self, api: Api, world: World, company: Company, role: Any):
        person = world.member(company)
        before = len(table_dump())
        reply = give(api, company, company.owner, person, role)
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
        assert [problem["path"] for problem in reply.error["details"]] == [["role"]]
        assert len(table_dump()) == before
        assert role_of(company, person) == "member"

    @each("raw", [b"", b"{}", b"[]", b"null", b'"admin"', b"{", b'{"role":"admin","role":"owner"}'])
    def test_returns_400_for_an_invalid_body(self, api: Api, world: World, company: Company, raw: bytes):
        person = world.member(company)
        assert api.patch(target(company, person), company.owner.token, raw_body=raw).code == "INVALID_PAYLOAD"
        assert role_of(company, person) == "member"


class Test403:
    def test_returns_403_if_a_non_owner_grants_owner(self, api: Api, world: World, company: Company):
        admin, person = world.member(company, "admin"), world.member(company)
        for chosen in (person, admin):
            reply = give(api, company, admin, chosen, "owner")
            assert (reply.status, reply.code) == (403, "FORBIDDEN")
            assert reply.error["details"] == {"reason": "owner_required"}
        assert (role_of(company, person), role_of(company, admin)) == ("member", "admin")

    @pytest.mark.parametrize("role", ROLES)
    def test_returns_403_if_a_non_owner_changes_an_owner(self, api: Api, world: World, company: Company, role: str):
        admin, owner = world.member(company, "admin"), world.member(company, "owner")
        assert give(api, company, admin, owner, role).error["details"] == {"reason": "owner_required"}
        assert role_of(company, owner) == "owner"

    def test_an_admin_cant_demote_who_concurrently_becomes_an_owner(self, api: Api, world: World, company: Company):
        admin, person = world.member(company, "admin"), world.member(company)
        found = members.get_member(company.organization_id, person.user_id)
        owner_id = company.owner.user_id
        with before_the_transaction(table.client, lambda: members.change_role(found, "owner", owner_id, "owner")):
            reply = give(api, company, admin, person, "admin")
        assert reply.error["details"] == {"reason": "owner_required"}
        assert role_of(company, person) == "owner"

    @pytest.mark.parametrize("role", ["admin", "member"])
    def test_returns_403_if_the_last_owner_is_demoted(self, api: Api, world: World, company: Company, role: str):
        world.member(company, "admin")
        reply = give(api, company, company.owner, company.owner, role)
        assert (reply.status, reply.code) == (403, "FORBIDDEN")
        assert reply.error["details"] == {"reason": "last_owner"}
        assert role_of(company, company.owner) == "owner"

    def test_returns_403_if_a_member_changes_a_role(self, api: Api, world: World, company: Company):
        person, other = world.member(company), world.member(company)
        for chosen in (person, other, company.owner):
            assert give(api, company, person, chosen, "member").code == "FORBIDDEN"

    def test_returns_403_for_an_api_key(self, api: Api, world: World, company: Company):
        person = world.member(company)
        reply = api.patch(target(company, person), world.key(company), json_body={"role": "admin"})
        assert reply.error["details"] == {"requiredScope": "members.write"}
        assert role_of(company, person) == "member"

    def test_returns_403_without_the_scope(self, api: Api, world: World, company: Company):
        person = world.member(company)
        token = world.token(company.owner.user_id, [scope for scope in ALL_SCOPES if scope != "members.write"])
        reply = api.patch(target(company, person), token, json_body={"role": 7})
        assert reply.error["details"] == {"requiredScope": "members.write"}


class Test404:
    def test_another_organizations_member_looks_like_an_unknown_one(self, api: Api, world: World, company: Company):
        other = world.company()
        stranger = world.member(other)
        foreign = give(api, company, company.owner, stranger, "admin")
        before = len(table_dump())
        elsewhere = api.patch(target(other, stranger), company.owner.token, json_body={"role": "admin"})
        unknown = api.patch(f"/v1/members/mem_{'0' * 32}", company.owner.token, json_body={"role": "admin"})
        assert {foreign.status, elsewhere.status, unknown.status} == {404}
        assert foreign.text == elsewhere.text == unknown.text
        assert len(table_dump()) == before
        assert role_of(other, stranger) == "member"

    @each(
        "named",
        ["x", "mem_", "mem_" + "0" * 31, "mem_" + "u" * 32, "usr_0000000000000000", "%0A", "mem_%23"],
    )
    def test_returns_404_for_a_malformed_id(self, api: Api, company: Company, named: str):
        reply = api.patch(f"/v1/members/{named}", company.owner.token, json_body={"role": "admin"})
        assert reply.code == "NOT_FOUND"

    def test_returns_404_for_a_former_member_and_for_a_former_caller(self, api: Api, world: World, company: Company):
        admin, person = world.member(company, "admin"), world.member(company)
        world.leave(company, admin)
        assert give(api, company, company.owner, admin, "member").status == 404
        assert give(api, company, admin, person, "admin").status == 404

    @pytest.mark.parametrize("leaves", ["caller", "member"])
    def test_returns_404_if_either_leaves_concurrently(self, api: Api, world: World, company: Company, leaves: str):
        admin, person = world.member(company, "admin"), world.member(company)
        leaving = admin if leaves == "caller" else person
        with before_the_transaction(table.client, lambda: world.leave(company, leaving)):
            assert give(api, company, admin, person, "admin").status == 404
