"""GET /v1/organizations: the organizations the caller belongs to."""

from controlplane.organizations import store as organizations
from tests.support.api import Api
from tests.support.world import World

PATH = "/v1/organizations"
LAST_PAGE = {"nextCursor": None, "hasMore": False}


def test_all_organizations_are_listed_by_slug_on_one_page_with_the_callers_role(api: Api, world: World):
    person = world.person()
    companies = [world.company(owner=person, name="Acme Shops"), world.company(), world.company(owner=person)]
    world.member(companies[1], "admin", person)
    organizations.save_default(person.user_id, companies[2].organization_id)
    world.company()
    reply = api.get(PATH, person.token)
    assert (reply.status, reply.body["pagination"]) == (200, LAST_PAGE)
    assert reply.data == [
        {
            "organizationId": company.organization_id,
            "organizationSlug": company.slug,
            "organizationName": company.name,
            "role": role,
        }
        for company, role in sorted(
            zip(companies, ("owner", "admin", "owner"), strict=True), key=lambda listed: listed[0].slug
        )
    ]


def test_a_key_sees_its_own_organization_as_an_admin(api: Api, world: World):
    company = world.company()
    world.company(owner=company.owner)
    reply = api.get(PATH, world.key(company))
    assert [(it["organizationId"], it["role"]) for it in reply.data] == [(company.organization_id, "admin")]


def test_a_changed_role_and_a_left_organization_are_visible_in_the_next_call(api: Api, world: World):
    company = world.company()
    person = world.member(company)
    member_id = f"mem_{company.organization_id[4:]}{person.user_id[4:]}"
    for role in ("member", "admin"):
        api.patch(f"/v1/members/{member_id}", company.owner.token, json_body={"role": role})
        assert [it["role"] for it in api.get(PATH, person.token).data] == [role]
    world.leave(company, person)
    assert api.get(PATH, person.token).body == {"success": True, "data": [], "pagination": LAST_PAGE}
