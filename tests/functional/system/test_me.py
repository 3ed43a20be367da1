"""GET /v1/me: the calling credential."""

from controlplane.billing import store as billing
from controlplane.platform.core.scopes import API_KEY_SCOPES
from tests.support.api import Api
from tests.support.world import World


def test_a_user_token_lists_its_organizations_under_both_generations_of_names(api: Api, world: World):
    company = world.company()
    organization_id, user_id = company.organization_id, company.owner.user_id
    me = api.get("/v1/me", company.owner.token).data
    assert me["principal"] == {"type": "oauth", "userId": user_id, "activeOrganizationId": organization_id}
    assert me["organizations"] == [
        {
            "id": organization_id,
            "slug": company.slug,
            "name": company.name,
            "organizationId": organization_id,
            "organizationSlug": company.slug,
            "organizationName": company.name,
            "role": "owner",
        }
    ]
    assert api.get("/v1/me", world.token(user_id, ["projects.read"])).data["organizations"] == []
    world.company(owner=company.owner)
    world.clear_default(company.owner)
    assert api.get("/v1/me", company.owner.token).data["activeOrganizationId"] is None


def test_a_key_returns_itself_its_organization_and_its_creator_but_no_acting_user(api: Api, world: World):
    company = world.company()
    me = api.get("/v1/me", world.key(company)).data
    assert me["principal"].pop("keyId").startswith("key_")
    assert me["principal"] == {
        "type": "api_key",
        "organizationId": company.organization_id,
        "createdBy": company.owner.user_id,
        "activeOrganizationId": company.organization_id,
    }
    assert me["scopes"] == sorted(API_KEY_SCOPES)


def test_a_key_without_api_access_is_refused_until_the_plan_has_it(api: Api, world: World):
    company = world.company()
    key = world.key(company)
    billing.change_plan(company.organization_id, "free")
    assert api.get("/v1/me", key).code == "PLAN_REQUIRED"
    billing.change_plan(company.organization_id, "starter")
    assert api.get("/v1/me", key).status == 200
