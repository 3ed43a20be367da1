"""GET /v1/code-audit/repositories: the connected repositories and their linked projects."""

from controlplane.code_host import installations, repositories
from controlplane.code_host.items import Link
from controlplane.platform.core import clock
from controlplane.platform.core.schedules import next_run
from controlplane.platform.table import keys
from controlplane.projects import changes as project_changes
from controlplane.projects import store as projects
from tests.functional.code_audit.conftest import REPOSITORIES, Organization
from tests.support.recorded import recorded_calls


def listed(acme, query=""):
    return acme.send("GET", f"{REPOSITORIES}?organizationId={acme.id}{query}")


def test_a_repository_has_all_fields_and_its_linked_projects(acme):
    repository = acme.connect(name="shop")
    project = projects.get_project(repository.links[0].project_id)
    link = Link(
        project.project_id, "release", "apps/web", True, scan_on_push=True, schedule="daily", failure_threshold="P2"
    )
    repositories.link_project(repository.repository_id, link)
    next_scan = next_run("daily", repository.repository_id, project.project_id, clock.now())
    shown = {
        "id": repository.repository_id,
        "organizationId": acme.id,
        "owner": "acme",
        "name": "shop",
        "htmlUrl": "https://github.com/acme/shop",
        "defaultBranch": "main",
        "visibility": "private",
        "connectedAt": "2026-03-04T05:06:07.000Z",
        "accessLostAt": None,
        "projects": [
            {
                "projectId": project.project_id,
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
    assert listed(acme).data == [shown]
    installations.lose_access(repository)
    assert listed(acme).data == [{**shown, "accessLostAt": "2026-03-04T05:06:07.000Z"}]


def test_projects_have_their_current_names_and_deleted_ones_are_left_out(acme):
    renamed, orphaned = acme.connect(), acme.connect()
    before = projects.get_project(renamed.links[0].project_id)
    project_changes.update_project(before, {"name": "Renamed"}, may_remove_websites=True)
    projects.delete_project(projects.get_project(orphaned.links[0].project_id))
    shown = {entry["id"]: [it["projectName"] for it in entry["projects"]] for entry in listed(acme).data}
    assert shown == {renamed.repository_id: ["Renamed"], orphaned.repository_id: []}


def test_paging_returns_each_repository_once_and_reads_only_its_pages(acme, api, world):
    Organization(api, world).connect()
    made = {acme.connect(linked=False).repository_id for _ in range(5)}
    seen, cursor = [], ""
    for _ in range(3):
        with recorded_calls() as calls:
            reply = listed(acme, f"&limit=2{cursor}")
        read = [call.parameters for call in calls if call.operation == "Query" and "Limit" in call.parameters]
        (query,) = [it for it in read if it["ExpressionAttributeValues"][":low"]["S"] == keys.REPOSITORY_PREFIX]
        assert query["Limit"] <= 4
        seen += [entry["id"] for entry in reply.data]
        cursor = f"&cursor={reply.body['pagination']['nextCursor']}"
    assert (reply.body["pagination"]["hasMore"], len(seen), set(seen)) == (False, 5, made)


def test_a_linked_project_is_shown_however_many_newer_ones_there_are(acme, monkeypatch):
    monkeypatch.setattr("code_audit.routes._PROJECTS_AHEAD", 1)
    made = {it.repository_id: [it.links[0].project_id] for it in (acme.connect() for _ in range(3))}
    assert {entry["id"]: [it["projectId"] for it in entry["projects"]] for entry in listed(acme).data} == made
