"""POST /v1/projects in its older shape, with `organizationId` and `trustedOrigins`."""

from tests.functional.projects.builders import create, projects_counted
from tests.support.api import Api
from tests.support.world import World


class Test201:
    def test_a_body_with_an_organization_returns_the_older_shape(self, api: Api, world: World):
        company = world.company()
        reply = create(
            api, company.owner.token, organizationId=company.organization_id, trustedOrigins=["https://example.com"]
        )
        assert reply.status == 201
        project = reply.data
        dashboard = f"https://dashboard.assent.test/organizations/{company.slug}/projects/shop"
        assert project == {
            "projectId": project["projectId"],
            "projectSlug": "shop",
            "projectName": "Shop",
            "description": None,
            "organizationId": company.organization_id,
            "organizationSlug": company.slug,
            "dashboardURL": dashboard,
            "products": {
                "consent": {
                    "instanceId": "ins_" + project["projectId"].removeprefix("prj_"),
                    "instanceSlug": "shop",
                    "instanceName": "Shop",
                    "trustedOrigins": ["example.com"],
                    "branding": "assent",
                    "backendURL": None,
                    "dashboardURL": f"{dashboard}/consent",
                    "backendVersion": "2.0.0",
                }
            },
        }

    def test_trusted_origins_may_be_missing_or_empty(self, api: Api, world: World):
        company = world.company()
        for fields in ({}, {"trustedOrigins": []}):
            reply = create(api, world.key(company), organizationId=company.organization_id, **fields)
            assert reply.data["products"]["consent"]["trustedOrigins"] == []

    def test_a_user_of_several_organizations_names_one_in_the_body(self, api: Api, world: World):
        company = world.company()
        other = world.company(owner=company.owner)
        reply = create(api, company.owner.token, organizationId=other.organization_id)
        assert reply.data["organizationId"] == other.organization_id
        assert projects_counted(other) == 1

    def test_query_and_body_can_name_the_same_organization(self, api: Api, world: World):
        company = world.company()
        query = f"?organizationId={company.organization_id}"
        assert create(api, company.owner.token, query, organizationId=company.organization_id).status == 201

    def test_the_branding_of_the_older_shape_is_the_requested_one(self, api: Api, world: World):
        company = world.company("pro")
        reply = create(api, world.key(company), organizationId=company.organization_id, consent={"branding": "none"})
        assert reply.data["products"]["consent"]["branding"] == "none"


class Test400:
    def test_websites_and_origins_of_consent_contradict_the_older_shape(self, api: Api, world: World):
        company = world.company()
        for fields, path in (
            ({"websites": ["https://example.com"]}, ["websites"]),
            ({"consent": {"trustedOrigins": ["https://example.com"]}}, ["consent", "trustedOrigins"]),
        ):
            reply = create(api, company.owner.token, organizationId=company.organization_id, **fields)
            (problem,) = reply.error["details"]
            assert (reply.status, problem["code"], problem["path"]) == (400, "contradiction", path)
        assert projects_counted(company) == 0
