"""GET /v1/organizations/{organizationId}: one organization of the caller."""

import pytest

from tests.support.api import Api
from tests.support.each import each
from tests.support.world import ALL_SCOPES, World

PATH = "/v1/organizations/"


class Test200:
    @pytest.mark.parametrize("role", ["owner", "admin", "member"])
    def test_returns_the_callers_role(self, api: Api, world: World, role):
        company = world.company(name="Acme Shops")
        person = world.member(company, role)
        reply = api.get(PATH + company.organization_id, person.token)
        assert reply.status == 200
        assert reply.data == {
            "id": company.organization_id,
            "slug": company.slug,
            "name": "Acme Shops",
            "role": role,
        }

    def test_a_key_reads_its_own_organization_as_an_admin(self, api: Api, world: World):
        company = world.company()
        reply = api.get(PATH + company.organization_id, world.key(company))
        assert (reply.data["id"], reply.data["role"]) == (company.organization_id, "admin")

    def test_needs_no_saved_organization(self, api: Api, world: World):
        first = world.company()
        second = world.company(owner=first.owner)
        assert api.get(PATH + second.organization_id, first.owner.token).data["slug"] == second.slug


class Test403:
    def test_returns_403_without_the_scope(self, api: Api, world: World):
        company = world.company()
        token = world.token(company.owner.user_id, [scope for scope in ALL_SCOPES if scope != "organizations.read"])
        reply = api.get(PATH + company.organization_id, token)
        assert reply.error["details"] == {"requiredScope": "organizations.read"}

    def test_the_scope_is_checked_before_the_organization(self, api: Api, world: World):
        token = world.token(world.person().user_id, ["projects.read"])
        assert api.get(PATH + "org_0000000000000000", token).code == "INSUFFICIENT_SCOPE"


class Test404:
    @each(
        "named",
        [
            "org_0000000000000000",
            "org_",
            "nonsense",
            "org_" + "0" * 5000,
            "%F0%9F%9A%80",
            "org_0000000000000000%0A",
            "ORG_0000000000000000",
            "..%2F",
        ],
    )
    def test_returns_404_for_an_unknown_organization(self, api: Api, world: World, named: str):
        assert api.get(PATH + named, world.company().owner.token).code == "NOT_FOUND"

    def test_another_organization_looks_like_an_unknown_one(self, api: Api, world: World):
        mine, other = world.company(), world.company()
        for token in (mine.owner.token, world.key(mine)):
            foreign = api.get(PATH + other.organization_id, token)
            unknown = api.get(PATH + "org_0000000000000000", token)
            assert (foreign.status, foreign.text) == (404, unknown.text)
            assert set(foreign.headers) == set(unknown.headers)

    def test_returns_404_to_a_former_member(self, api: Api, world: World):
        company = world.company()
        person = world.member(company)
        world.leave(company, person)
        assert api.get(PATH + company.organization_id, person.token).status == 404
