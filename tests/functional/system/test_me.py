"""GET /v1/me: the calling credential."""

from controlplane.core.scopes import API_KEY_SCOPES
from tests.support.api import Api
from tests.support.world import World


class Test200:
    def test_a_user_token_lists_its_organizations_under_both_generations_of_names(self, api: Api, world: World):
        company = world.company()
        reply = api.get("/v1/me", company.owner.token)
        assert reply.status == 200
        assert reply.data["principal"] == {
            "type": "oauth",
            "userId": company.owner.user_id,
            "activeOrganizationId": company.organization_id,
        }
        assert reply.data["organizations"] == [
            {
                "id": company.organization_id,
                "slug": company.slug,
                "name": company.name,
                "organizationId": company.organization_id,
                "organizationSlug": company.slug,
                "organizationName": company.name,
                "role": "owner",
            }
        ]

    def test_a_key_returns_itself_its_organization_and_its_creator_but_no_acting_user(self, api: Api, world: World):
        company = world.company()
        principal = api.get("/v1/me", world.key(company)).data["principal"]
        assert principal.pop("keyId").startswith("key_")
        assert principal == {
            "type": "api_key",
            "organizationId": company.organization_id,
            "createdBy": company.owner.user_id,
            "activeOrganizationId": company.organization_id,
        }

    def test_a_key_has_exactly_its_six_scopes_sorted(self, api: Api, world: World):
        assert api.get("/v1/me", world.key(world.company())).data["scopes"] == sorted(API_KEY_SCOPES)

    def test_organizations_are_empty_without_their_scope(self, api: Api, world: World):
        company = world.company()
        token = world.token(company.owner.user_id, ["projects.read"])
        assert api.get("/v1/me", token).data["organizations"] == []

    def test_with_several_organizations_and_none_saved_none_is_active(self, api: Api, world: World):
        first = world.company()
        world.company(owner=first.owner)
        world.clear_default(first.owner)
        assert api.get("/v1/me", first.owner.token).data["activeOrganizationId"] is None


class Test402:
    def test_returns_402_for_a_key_without_api_access(self, api: Api, world: World):
        from controlplane.store import billing

        company = world.company()
        key = world.key(company)
        billing.change_plan(company.organization_id, "free")
        assert api.get("/v1/me", key).code == "PLAN_REQUIRED"
        billing.change_plan(company.organization_id, "starter")
        assert api.get("/v1/me", key).status == 200
