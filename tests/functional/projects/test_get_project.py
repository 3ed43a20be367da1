"""GET /v1/projects/{projectId}: one project, with the field names of both API generations."""

from controlplane.core.settings import settings
from controlplane.store.table import table
from tests.functional.projects.builders import add_audits, create, make_project, without_consent
from tests.support.api import Api
from tests.support.calls import intercepted
from tests.support.world import World


class Test200:
    def test_the_response_has_the_fields_of_both_generations(self, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        dashboard = f"https://dashboard.assent.test/organizations/{company.slug}/projects/shop"
        shown = api.get(f"/v1/projects/{project.project_id}", world.key(company)).data
        assert shown == {
            "id": project.project_id,
            "slug": "shop",
            "name": "Shop",
            "description": None,
            "organizationId": company.organization_id,
            "organizationSlug": company.slug,
            "dashboardUrl": dashboard,
            "websites": [
                {
                    "id": project.websites[0].website_id,
                    "origin": "example.com",
                    "kind": "domain",
                    "primary": True,
                    "audited": False,
                }
            ],
            "consent": {
                "trustedOrigins": ["example.com"],
                "branding": "assent",
                "backendUrl": None,
                "dashboardUrl": f"{dashboard}/consent",
                "version": "2.0.0",
            },
            "projectId": project.project_id,
            "projectSlug": "shop",
            "projectName": "Shop",
            "dashboardURL": dashboard,
            "products": {
                "consent": {
                    "instanceId": "ins_" + project.project_id.removeprefix("prj_"),
                    "instanceSlug": "shop",
                    "instanceName": "Shop",
                    "trustedOrigins": ["example.com"],
                    "branding": "assent",
                    "backendURL": None,
                    "dashboardURL": f"{dashboard}/consent",
                    "backendVersion": "2.0.0",
                }
            },
            "region": "eu-central",
            "createdAt": "2026-03-04T05:06:07.000Z",
        }

    def test_the_response_has_every_field_of_list_and_creation_with_the_same_value(self, api: Api, world: World):
        key = world.key(world.company())
        body = {"name": "Shop", "region": "us-east", "websites": ["example.com", "*"]}
        created = api.post("/v1/projects", key, json_body=body).data
        (listed,) = api.get("/v1/projects", key).data
        shown = api.get(f"/v1/projects/{created['id']}", key).data
        assert {**shown, **created} == shown
        assert {**shown, **listed} == shown

    def test_an_audited_website_is_marked(self, api: Api, world: World):
        company = world.company()
        project = make_project(company, origins=["example.com", "shop.example.com"])
        add_audits(project, position=1)
        shown = api.get(f"/v1/projects/{project.project_id}", world.key(company)).data
        assert [website["audited"] for website in shown["websites"]] == [False, True]

    def test_without_consent_both_generations_return_null(self, api: Api, world: World):
        company = world.company()
        project = without_consent(make_project(company))
        shown = api.get(f"/v1/projects/{project.project_id}", world.key(company)).data
        assert shown["consent"] is None
        assert shown["products"] == {"consent": None}

    def test_a_member_may_read_it_without_naming_the_organization(self, api: Api, world: World):
        company = world.company()
        person = world.member(company)
        world.member(world.company(), person=person)
        project = make_project(company)
        assert api.get(f"/v1/projects/{project.project_id}", person.token).status == 200

    def test_keys_and_users_make_two_table_calls(self, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        for token in (world.key(company), company.owner.token):
            api.get(f"/v1/projects/{project.project_id}", token)
            calls: list[str] = []

            def noting(call, proceed, calls=calls):
                calls.append(call.operation)
                return proceed()

            with intercepted(table.client, noting):
                api.get(f"/v1/projects/{project.project_id}", token)
            assert len(calls) == 2

    def test_the_consent_runtimes_url_is_returned_if_configured(self, api: Api, world: World, monkeypatch):
        company = world.company()
        project = make_project(company)
        monkeypatch.setitem(settings.__dict__, "consent_runtime_base_url", "https://consent.assent.test")
        shown = api.get(f"/v1/projects/{project.project_id}", world.key(company)).data
        address = "https://consent.assent.test/ins_" + project.project_id.removeprefix("prj_")
        assert shown["consent"]["backendUrl"] == address
        assert shown["products"]["consent"]["backendURL"] == address

    def test_the_consent_runtimes_version_is_the_configured_one(self, api: Api, world: World, monkeypatch):
        company = world.company()
        project = make_project(company)
        monkeypatch.setitem(settings.__dict__, "consent_runtime_version", "2.1.0")
        shown = api.get(f"/v1/projects/{project.project_id}", world.key(company)).data
        assert shown["consent"]["version"] == shown["products"]["consent"]["backendVersion"] == "2.1.0"

    def test_the_region_is_that_of_the_creation(self, api: Api, world: World):
        key = world.key(world.company())
        made = create(api, key, region="eu-west").data
        assert api.get(f"/v1/projects/{made['id']}", key).data["region"] == "eu-west"


class Test404:
    def test_a_former_member_gets_404(self, api: Api, world: World):
        company = world.company()
        person = world.member(company)
        project = make_project(company)
        world.leave(company, person)
        assert api.get(f"/v1/projects/{project.project_id}", person.token).code == "NOT_FOUND"

    def test_another_organizations_project_looks_like_an_unknown_one(self, api: Api, world: World):
        project = make_project(world.company())
        stranger = world.company()
        unknown = project.project_id[:-1] + ("0" if project.project_id[-1] != "0" else "1")
        for token in (stranger.owner.token, world.key(stranger)):
            foreign = api.get(f"/v1/projects/{project.project_id}", token)
            assert foreign.status == 404
            assert foreign.text == api.get(f"/v1/projects/{unknown}", token).text

    def test_a_consent_instance_id_is_not_a_project_id(self, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        assert project.consent is not None
        assert api.get(f"/v1/projects/{project.consent.instance_id}", world.key(company)).code == "NOT_FOUND"
