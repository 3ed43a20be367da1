"""DELETE /v1/members/{memberId}: ends a membership."""

import pytest

from controlplane.core.ids import MemberId
from controlplane.store import keys, members, organizations
from controlplane.store.table import table
from tests.support import invariants
from tests.support.api import Api, Reply
from tests.support.calls import before_the_transaction
from tests.support.each import each
from tests.support.world import ALL_SCOPES, Company, Person, World, get_profile


def remove(api: Api, company: Company, caller: Person, person: Person) -> Reply:
    return api.delete(f"/v1/members/{MemberId.of_user(company.organization_id, person.user_id)}", caller.token)


def belongs(company: Company, person: Person) -> bool:
    """Checks all invariants, including both sides of memberships. Returns whether the person is a member."""
    invariants.check_all(invariants.read_items(table.client, table.name))
    return organizations.find_membership(person.user_id, company.organization_id) is not None


@pytest.fixture
def company(world: World) -> Company:
    return world.company()


class Test200:
    @pytest.mark.parametrize("role", ["owner", "admin", "member"])
    def test_an_owner_can_remove_any_other_member(self, api: Api, world: World, company: Company, role):
        person = world.member(company, role)
        reply = remove(api, company, company.owner, person)
        assert reply.status == 200
        assert reply.data == {"deleted": True}
        assert not belongs(company, person)
        assert table.get(keys.member(company.organization_id, person.user_id)) is None

    @pytest.mark.parametrize("role", ["admin", "member"])
    def test_an_admin_can_remove_members_who_are_not_owners(self, api: Api, world: World, company: Company, role):
        admin, person = world.member(company, "admin"), world.member(company, role)
        assert remove(api, company, admin, person).data == {"deleted": True}
        assert not belongs(company, person)

    def test_an_owner_can_remove_the_founder(self, api: Api, world: World, company: Company):
        second = world.member(company, "owner")
        assert get_profile(company.owner.user_id).saved_organization_id == company.organization_id
        assert remove(api, company, second, company.owner).status == 200
        assert not belongs(company, company.owner)
        assert get_profile(company.owner.user_id).saved_organization_id is None

    def test_a_removed_members_tokens_stop_working_and_their_keys_continue(
        self, api: Api, world: World, company: Company
    ):
        second = world.member(company, "owner")
        key = world.key(company)
        remove(api, company, second, company.owner)
        query = f"?organizationId={company.organization_id}"
        assert api.get(f"/v1/members{query}", company.owner.token).status == 403
        assert api.get(f"/v1/organizations/{company.organization_id}", company.owner.token).status == 404
        assert api.get("/v1/organizations", key).status == 200

    def test_other_memberships_of_the_person_remain(self, api: Api, world: World, company: Company):
        person = world.member(company)
        other = world.company(owner=person)
        remove(api, company, company.owner, person)
        assert belongs(other, person)


class Test403:
    @pytest.mark.parametrize("role", ["owner", "admin"])
    def test_returns_403_for_removing_yourself(self, api: Api, world: World, company: Company, role):
        person = world.member(company, role)
        reply = remove(api, company, person, person)
        assert (reply.status, reply.code) == (403, "FORBIDDEN")
        assert reply.error["details"] == {"reason": "self"}
        assert belongs(company, person)

    def test_returns_403_if_the_last_owner_leaves(self, api: Api, world: World, company: Company):
        world.member(company, "admin")
        assert remove(api, company, company.owner, company.owner).error["details"] == {"reason": "self"}
        assert belongs(company, company.owner)

    def test_returns_403_if_a_non_owner_removes_an_owner(self, api: Api, world: World, company: Company):
        admin, owner = world.member(company, "admin"), world.member(company, "owner")
        for chosen in (owner, company.owner):
            assert remove(api, company, admin, chosen).error["details"] == {"reason": "owner_required"}
            assert belongs(company, chosen)

    def test_an_admin_cant_remove_who_concurrently_becomes_an_owner(self, api: Api, world: World, company: Company):
        admin, person = world.member(company, "admin"), world.member(company)
        found = members.get_member(company.organization_id, person.user_id)
        owner_id = company.owner.user_id
        with before_the_transaction(table.client, lambda: members.change_role(found, "owner", owner_id, "owner")):
            reply = remove(api, company, admin, person)
        assert reply.error["details"] == {"reason": "owner_required"}
        assert belongs(company, person)

    def test_returns_403_if_a_member_removes_someone(self, api: Api, world: World, company: Company):
        person, other = world.member(company), world.member(company)
        for chosen in (other, person, company.owner):
            assert remove(api, company, person, chosen).code == "FORBIDDEN"
            assert belongs(company, chosen)

    def test_returns_403_for_an_api_key(self, api: Api, world: World, company: Company):
        person = world.member(company)
        member_id = MemberId.of_user(company.organization_id, person.user_id)
        reply = api.delete(f"/v1/members/{member_id}", world.key(company))
        assert reply.error["details"] == {"requiredScope": "members.write"}
        assert belongs(company, person)

    def test_returns_403_without_the_scope(self, api: Api, world: World, company: Company):
        person = world.member(company)
        member_id = MemberId.of_user(company.organization_id, person.user_id)
        token = world.token(company.owner.user_id, [scope for scope in ALL_SCOPES if scope != "members.write"])
        assert api.delete(f"/v1/members/{member_id}", token).code == "INSUFFICIENT_SCOPE"


class Test404:
    def test_another_organizations_member_looks_like_an_unknown_one(self, api: Api, world: World, company: Company):
        other = world.company()
        stranger = world.member(other)
        foreign = remove(api, other, company.owner, stranger)
        unknown = api.delete(f"/v1/members/mem_{'0' * 32}", company.owner.token)
        assert (foreign.status, foreign.text) == (404, unknown.text)
        assert belongs(other, stranger)

    def test_returns_404_for_a_removed_member(self, api: Api, world: World, company: Company):
        person = world.member(company)
        assert remove(api, company, company.owner, person).status == 200
        assert remove(api, company, company.owner, person).code == "NOT_FOUND"

    @each("named", ["x", "mem_", "mem_" + "i" * 32, "%00", "..", "inv_" + "0" * 34])
    def test_returns_404_for_a_malformed_id(self, api: Api, company: Company, named: str):
        assert api.delete(f"/v1/members/{named}", company.owner.token).code == "NOT_FOUND"
