"""GET /v1/organizations/{organizationId}: one organization of the caller."""

from tests.support.api import Api
from tests.support.each import each
from tests.support.world import World

PATH = "/v1/organizations/"


@each("caller", ["owner", "admin", "member", "key"])
def test_the_organization_is_shown_with_the_callers_role(caller, api: Api, world: World):
    company = world.company(name="Acme Shops")
    world.company(owner=company.owner)
    token = world.key(company) if caller == "key" else world.member(company, caller).token
    reply = api.get(PATH + company.organization_id, token)
    assert (reply.status, reply.data) == (
        200,
        {
            "id": company.organization_id,
            "slug": company.slug,
            "name": "Acme Shops",
            "role": "admin" if caller == "key" else caller,
        },
    )


def test_another_organization_looks_like_an_unknown_one(api: Api, world: World):
    mine, other = world.company(), world.company()
    former = world.member(other)
    world.leave(other, former)
    for token in (mine.owner.token, world.key(mine), former.token):
        foreign, unknown = (api.get(PATH + named, token) for named in (other.organization_id, "org_0000000000000000"))
        assert (foreign.status, foreign.text, {*foreign.headers}) == (404, unknown.text, {*unknown.headers})
