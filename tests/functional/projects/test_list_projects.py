"""GET /v1/projects: an organization's projects, page by page."""

from controlplane.core.ids import ProjectId
from controlplane.store import projects
from controlplane.store.table import table
from tests.functional.projects.builders import make_project, without_consent
from tests.support.api import Api
from tests.support.calls import intercepted
from tests.support.each import each
from tests.support.world import World


class Test200:
    def test_lists_a_project_in_the_older_shape(self, api: Api, world: World):
        company = world.company()
        project = make_project(company, origins=["example.com", "shop.example.com"])
        (listed,) = api.get("/v1/projects", world.key(company)).data
        dashboard = f"https://dashboard.assent.test/organizations/{company.slug}/projects/shop"
        assert listed == {
            "projectId": project.project_id,
            "projectSlug": "shop",
            "projectName": "Shop",
            "description": None,
            "organizationId": company.organization_id,
            "organizationSlug": company.slug,
            "dashboardURL": dashboard,
            "products": {
                "consent": {
                    "instanceId": "ins_" + project.project_id.removeprefix("prj_"),
                    "instanceSlug": "shop",
                    "instanceName": "Shop",
                    "trustedOrigins": ["example.com", "shop.example.com"],
                    "branding": "assent",
                    "backendURL": None,
                    "dashboardURL": f"{dashboard}/consent",
                    "backendVersion": "2.0.0",
                }
            },
        }

    def test_a_project_without_consent_has_null(self, api: Api, world: World):
        company = world.company()
        without_consent(make_project(company))
        (listed,) = api.get("/v1/projects", world.key(company)).data
        assert listed["products"] == {"consent": None}

    def test_an_organization_without_projects_has_an_empty_page(self, api: Api, world: World):
        reply = api.get("/v1/projects", world.key(world.company()))
        assert reply.data == []
        assert reply.body["pagination"] == {"nextCursor": None, "hasMore": False}

    def test_the_newest_project_comes_first(self, api: Api, world: World, now):
        company = world.company()
        for name in ("one", "two", "three"):
            make_project(company, name)
            now.advance(1)
        listed = api.get("/v1/projects", world.key(company)).data
        assert [project["projectName"] for project in listed] == ["three", "two", "one"]

    @each("limit", [1, 2, 3, 6, 7, 8, 100])
    def test_paging_returns_every_project_once(self, limit: int, api: Api, world: World):
        company = world.company()
        made = {make_project(company, f"Shop {number}").project_id for number in range(7)}
        key = world.key(company)
        met: list[str] = []
        query = f"?limit={limit}"
        while True:
            reply = api.get(f"/v1/projects{query}", key)
            assert len(reply.data) <= limit
            met += [project["projectId"] for project in reply.data]
            if not reply.body["pagination"]["hasMore"]:
                break
            query = f"?limit={limit}&cursor={reply.body['pagination']['nextCursor']}"
        assert len(met) == 7
        assert set(met) == made

    def test_paging_continues_after_the_last_returned_project_is_deleted(self, api: Api, world: World):
        company = world.company()
        for number in range(3):
            make_project(company, f"Shop {number}")
        key = world.key(company)
        first = api.get("/v1/projects?limit=1", key)
        projects.delete_project(projects.get_project(ProjectId.stored(first.data[0]["projectId"])))
        rest = api.get(f"/v1/projects?cursor={first.body['pagination']['nextCursor']}", key).data
        assert len(rest) == 2

    def test_only_the_requested_organization_is_listed(self, api: Api, world: World):
        company = world.company()
        other = world.company(owner=company.owner)
        mine, theirs = make_project(company), make_project(other)
        for found, project in ((company, mine), (other, theirs)):
            listed = api.get(f"/v1/projects?organizationId={found.organization_id}", company.owner.token).data
            assert [entry["projectId"] for entry in listed] == [project.project_id]

    def test_a_key_makes_two_table_calls_and_a_user_four_of_which_two_are_simultaneous(self, api: Api, world: World):
        company = world.company()
        make_project(company)
        for token, expected in ((world.key(company), 2), (company.owner.token, 4)):
            api.get("/v1/projects", token)
            calls: list[str] = []

            def noting(call, proceed, calls=calls):
                calls.append(call.operation)
                return proceed()

            with intercepted(table.client, noting):
                api.get(f"/v1/projects?organizationId={company.organization_id}", token)
            assert len(calls) == expected


class Test400:
    def test_a_cursor_of_another_organization_is_rejected(self, api: Api, world: World):
        company, other = world.company(), world.company()
        for number in range(2):
            make_project(company, f"Shop {number}")
        cursor = api.get("/v1/projects?limit=1", world.key(company)).body["pagination"]["nextCursor"]
        assert api.get(f"/v1/projects?cursor={cursor}", world.key(other)).code == "INVALID_PAYLOAD"
        assert api.get(f"/v1/projects?cursor={cursor}", world.key(company)).status == 200
