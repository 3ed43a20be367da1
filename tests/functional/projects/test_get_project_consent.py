"""GET /v1/projects/{projectId}/consent: the consent instance in the older shape."""

from tests.functional.projects.builders import make_project, without_consent
from tests.support.api import Api
from tests.support.world import World


class Test200:
    def test_it_equals_the_consent_in_the_list_of_projects(self, api: Api, world: World):
        company = world.company()
        project = make_project(company, origins=["example.com", "shop.example.com"])
        key = world.key(company)
        consent = api.get(f"/v1/projects/{project.project_id}/consent", key).data
        assert consent == api.get("/v1/projects", key).data[0]["products"]["consent"]
        assert consent["trustedOrigins"] == ["example.com", "shop.example.com"]

    def test_the_instance_keeps_its_name_and_slug_when_the_project_is_renamed(self, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        key = world.key(company)
        api.patch(f"/v1/projects/{project.project_id}", key, json_body={"projectName": "Market"})
        consent = api.get(f"/v1/projects/{project.project_id}/consent", key).data
        assert (consent["instanceName"], consent["instanceSlug"]) == ("Shop", "shop")
        assert consent["dashboardURL"].endswith("/projects/market/consent")


class Test404:
    def test_a_project_without_consent_returns_404(self, api: Api, world: World):
        company = world.company()
        project = without_consent(make_project(company))
        reply = api.get(f"/v1/projects/{project.project_id}/consent", world.key(company))
        assert reply.code == "NOT_FOUND"
        assert "consent" in reply.error["message"]
