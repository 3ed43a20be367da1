"""GET /v1/organizations and one of them: the organizations that the caller belongs to."""

from controlplane.organizations import store as organizations
from tests.support.each import each

PATH = "/v1/organizations"
LAST_PAGE = {"nextCursor": None, "hasMore": False}


def test_all_organizations_are_listed_by_slug_on_one_page_with_the_callers_role(api, world):
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


def test_a_key_sees_its_own_organization_and_a_person_each_change_in_the_next_call(api, world):
    company = world.company()
    world.company(owner=company.owner)
    listed = api.get(PATH, world.key(company)).data
    assert [(it["organizationId"], it["role"]) for it in listed] == [(company.organization_id, "admin")]
    person = world.member(company)
    member_id = f"mem_{company.organization_id[4:]}{person.user_id[4:]}"
    for role in ("member", "admin"):
        api.patch(f"/v1/members/{member_id}", company.owner.token, json_body={"role": role})
        assert [it["role"] for it in api.get(PATH, person.token).data] == [role]
    world.leave(company, person)
    assert api.get(PATH, person.token).body == {"success": True, "data": [], "pagination": LAST_PAGE}


@each("caller", ["owner", "admin", "member", "key"])
def test_the_organization_is_shown_with_the_callers_role(caller, api, world):
    company = world.company(name="Acme Shops")
    world.company(owner=company.owner)
    token = world.key(company) if caller == "key" else world.member(company, caller).token
    reply = api.get(f"{PATH}/{company.organization_id}", token)
    assert (reply.status, reply.data) == (
        200,
        {
            "id": company.organization_id,
            "slug": company.slug,
            "name": "Acme Shops",
            "role": "admin" if caller == "key" else caller,
        },
    )


def test_a_list_helper_pages_through_organizations_and_regions_like_through_every_list(api, world):
    person = world.person()
    slugs = sorted(world.company(owner=person).slug for _ in range(3))
    regions = [it["id"] for it in api.get("/v1/regions").data]

    def read_all(path, token, field, limit):
        found, cursor = [], ""
        while True:
            reply = api.get(f"{path}?limit={limit}{cursor}", token)
            assert len(reply.data) <= limit
            found += [it[field] for it in reply.data]
            if not reply.body["pagination"]["hasMore"]:
                return found
            cursor = f"&cursor={reply.body['pagination']['nextCursor']}"

    for limit in (1, 2, 3, 100):
        assert read_all(PATH, person.token, "organizationSlug", limit) == slugs
        assert read_all("/v1/regions", None, "id", limit) == regions
    cursor = api.get(f"{PATH}?limit=1", person.token).body["pagination"]["nextCursor"]
    other = world.company().owner.token
    for path, token in ((PATH, other), ("/v1/regions", None)):
        assert api.get(f"{path}?cursor={cursor}", token).error["details"][0]["code"] == "invalid_cursor"
