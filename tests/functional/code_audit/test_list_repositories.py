"""GET /v1/code-audit/repositories: the connected repositories and their linked projects."""

import pytest

from controlplane.core import clock
from controlplane.core.ids import ProjectId
from controlplane.core.schedules import next_run
from controlplane.store import hosted_repositories, keys, project_changes, projects, repositories
from controlplane.store.repository_items import Link
from tests.support.api import Api
from tests.support.recorded import recorded_calls
from tests.support.world import World

PATH = "/v1/code-audit/repositories"


class Test200:
    def test_lists_each_repository_with_its_linked_projects(self, api: Api, world: World):
        company = world.company()
        repository = world.connected_repository(company, name="shop")
        project_id = repository.links[0].project_id
        link = Link(
            project_id, "release", "apps/web", True, scan_on_push=True, schedule="daily", failure_threshold="P2"
        )
        repositories.link_project(repository.repository_id, link)
        (shown,) = api.get(PATH, company.owner.token).data
        project = projects.get_project(ProjectId.stored(project_id))
        next_scan = next_run("daily", repository.repository_id, project_id, clock.now())
        assert shown == {
            "id": repository.repository_id,
            "organizationId": company.organization_id,
            "owner": "acme",
            "name": "shop",
            "htmlUrl": "https://github.com/acme/shop",
            "defaultBranch": "main",
            "visibility": "private",
            "connectedAt": "2026-03-04T05:06:07.000Z",
            "accessLostAt": None,
            "projects": [
                {
                    "projectId": project_id,
                    "projectSlug": project.slug,
                    "projectName": project.name,
                    "productionBranch": "release",
                    "rootDirectory": "apps/web",
                    "pullRequestScansEnabled": True,
                    "scanOnPush": True,
                    "schedule": "daily",
                    "failureThreshold": "P2",
                    "nextScheduledScanAt": clock.timestamp(next_scan),
                }
            ],
        }

    def test_says_since_when_a_repository_cannot_be_read(self, api: Api, world: World):
        company = world.company()
        hosted_repositories.lose_access(world.connected_repository(company))
        (shown,) = api.get(PATH, company.owner.token).data
        assert shown["accessLostAt"] == "2026-03-04T05:06:07.000Z"

    def test_shows_current_project_names_and_no_deleted_projects(self, api: Api, world: World):
        company = world.company()
        renamed = world.connected_repository(company)
        orphaned = world.connected_repository(company)
        before = projects.get_project(ProjectId.stored(renamed.links[0].project_id))
        project_changes.update_project(before, {"name": "Renamed"}, may_remove_websites=True)
        projects.delete_project(projects.get_project(ProjectId.stored(orphaned.links[0].project_id)))
        shown = {entry["id"]: entry["projects"] for entry in api.get(PATH, company.owner.token).data}
        assert [project["projectName"] for project in shown[renamed.repository_id]] == ["Renamed"]
        assert shown[orphaned.repository_id] == []

    def test_omits_another_organizations_repositories(self, api: Api, world: World):
        world.connected_repository(world.company())
        assert api.get(PATH, world.company().owner.token).data == []

    def test_paging_returns_each_repository_once_and_reads_only_its_pages(self, api: Api, world: World):
        company = world.company()
        made = {world.connected_repository(company, linked=False).repository_id for _ in range(5)}
        seen, cursor = [], ""
        for _ in range(3):
            with recorded_calls() as calls:
                reply = api.get(f"{PATH}?limit=2{cursor}", company.owner.token)
            read = [call.parameters for call in calls if call.operation == "Query" and "Limit" in call.parameters]
            (query,) = [it for it in read if it["ExpressionAttributeValues"][":low"]["S"] == keys.REPOSITORY_PREFIX]
            assert query["Limit"] <= 4
            seen += [entry["id"] for entry in reply.data]
            cursor = f"&cursor={reply.body['pagination']['nextCursor']}"
        assert reply.body["pagination"]["hasMore"] is False
        assert len(seen) == 5
        assert set(seen) == made

    def test_a_linked_project_is_shown_however_many_newer_ones_there_are(
        self, api: Api, world: World, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr("code_audit.routes._PROJECTS_AHEAD", 1)
        company = world.company()
        made = [world.connected_repository(company) for _ in range(3)]
        shown = api.get(PATH, company.owner.token).data
        found = {entry["id"]: [project["projectId"] for project in entry["projects"]] for entry in shown}
        assert found == {it.repository_id: [it.links[0].project_id] for it in made}


class Test400:
    def test_returns_400_for_a_cursor_of_another_organization(self, api: Api, world: World):
        company = world.company()
        other = world.company(owner=company.owner)
        for _ in range(2):
            world.connected_repository(company, linked=False)
        first = api.get(f"{PATH}?organizationId={company.organization_id}&limit=1", company.owner.token)
        cursor = first.body["pagination"]["nextCursor"]
        reply = api.get(f"{PATH}?organizationId={other.organization_id}&cursor={cursor}", company.owner.token)
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
