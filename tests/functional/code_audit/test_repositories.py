"""The connected repositories and their links: which projects each is scanned for, and when."""

from functools import partial

import pytest

from controlplane.code_host import installations, repositories
from controlplane.code_host.items import Link
from controlplane.platform.core import clock
from controlplane.platform.core.schedules import next_run
from controlplane.platform.table.table import table
from controlplane.projects import changes as project_changes
from controlplane.projects import store as projects
from tests.functional.code_audit.conftest import REPOSITORIES, Organization
from tests.functional.projects.builders import make_project
from tests.support.calls import before_the_transaction
from tests.support.each import each

DEFAULTS = {
    "productionBranch": None,
    "rootDirectory": None,
    "pullRequestScansEnabled": False,
    "scanOnPush": False,
    "schedule": None,
    "failureThreshold": "P1",
    "nextScheduledScanAt": None,
}
SETTINGS = {
    "productionBranch": "release/2",
    "rootDirectory": "apps/web",
    "pullRequestScansEnabled": True,
    "scanOnPush": True,
    "schedule": "weekly",
    "failureThreshold": "P0",
}


class Links:
    """The links of a repository, which has one."""

    def __init__(self, acme: Organization) -> None:
        self.acme, self.repository = acme, acme.connect()
        self.id, self.first = self.repository.repository_id, self.repository.links[0].project_id

    def send(self, method, project_id="", body=None, who=None, query="", **headers):
        path = f"{REPOSITORIES}/{self.id}/links{project_id and '/'}{project_id}{query}"
        return self.acme.send(method, path, body, who, **headers)

    def link(self, project_id, **body):
        return self.send("POST", body={"projectId": project_id, **body})

    def list(self, query="", who=None):
        return self.send("GET", query=query, who=who)

    def stored(self):
        return [it.project_id for it in repositories.get_repository(self.id).links]


@pytest.fixture
def links(acme):
    return Links(acme)


@pytest.fixture
def new_project(acme):
    return lambda: make_project(acme.company).project_id


def named(project_id):
    project = projects.get_project(project_id)
    return {"projectId": project_id, "projectSlug": project.slug, "projectName": project.name}


def delete(project_id):
    projects.delete_project(projects.get_project(project_id))


def test_links_are_listed_by_project_without_deleted_ones(links, new_project):
    made = [links.first, *(new_project() for _ in range(3))]
    for project_id in made[1:]:
        links.link(project_id)
    delete(made[1])
    whole = links.list("?limit=3")
    assert [it["projectId"] for it in whole.data] == sorted({*made} - {made[1]})
    assert whole.body["pagination"] == {"nextCursor": None, "hasMore": False}


def test_a_new_link_has_defaults_or_the_settings_and_the_next_scheduled_scan(links, new_project):
    plain, scheduled = new_project(), new_project()
    reply = links.link(plain)
    assert (reply.status, reply.data) == (201, {**named(plain), **DEFAULTS})
    reply = links.link(scheduled, **SETTINGS)
    next_scan = clock.timestamp(next_run("weekly", links.id, scheduled, clock.now()))
    assert (reply.status, reply.data) == (201, {**named(scheduled), **SETTINGS, "nextScheduledScanAt": next_scan})
    assert reply.data in links.list().data


@each(
    ("field", "values"),
    [
        ("productionBranch", ["", "a b", "a..b", "/a", "a.lock", "@", "x" * 256, "ä" * 200]),
        ("rootDirectory", ["", "/apps", "apps/", "../apps", "apps/../..", "a\\b", "x" * 201]),
    ],
)
def test_an_unusable_setting_returns_400_and_links_nothing(field, values, links, new_project):
    project_id = new_project()
    for value in values:
        reply = links.link(project_id, **{field: value})
        assert (value, reply.status, reply.code) == (value, 400, "INVALID_PAYLOAD")
    assert links.stored() == [links.first]


def test_a_project_that_is_deleted_or_of_another_organization_returns_404(acme, links, new_project, world):
    deleted, deleted_late = new_project(), new_project()
    delete(deleted)
    foreign = make_project(world.company(owner=acme.owner)).project_id
    for project_id in (deleted, foreign, "prj_x"):
        assert links.link(project_id).code == "NOT_FOUND"
    with before_the_transaction(table.client, partial(delete, deleted_late)):
        assert links.link(deleted_late).status == 404
    assert links.stored() == [links.first]


def test_a_linked_project_and_an_eleventh_link_return_409(links, new_project):
    reply = links.link(links.first, schedule="daily")
    assert (reply.status, reply.code) == (409, "CONFLICT")
    assert links.list().data == [{**named(links.first), **DEFAULTS}]
    replies = [links.link(new_project()) for _ in range(10)]
    assert [it.status for it in replies] == [201] * 9 + [409]
    assert replies[-1].error["details"] == {"reason": "link_limit", "limit": 10}


def test_a_change_keeps_the_other_settings_and_the_order(links, new_project):
    links.link(second := new_project())
    shown = {**named(links.first), **DEFAULTS}
    for change in (
        {"productionBranch": "main"},
        {"scanOnPush": True, "failureThreshold": "P3"},
        {"productionBranch": None, "pullRequestScansEnabled": True},
        {"scanOnPush": False, "failureThreshold": "P1"},
    ):
        shown |= change
        reply = links.send("PATCH", links.first, change)
        assert (reply.status, reply.data) == (200, shown)
    assert shown in links.list().data
    assert links.send("PATCH", second, {"scanOnPush": True}).status == 200
    assert links.stored() == [links.first, second]


def test_invalid_changes_return_400_and_a_project_that_is_not_linked_404(links, new_project):
    for body in ({}, {"projectId": "prj_x"}, {"scanOnPush": 1}, {"pullRequestScansEnabled": "no"}):
        assert links.send("PATCH", links.first, body).status == 400
    for project_id in (new_project(), "prj_x"):
        assert links.send("PATCH", project_id, {"schedule": "daily"}).code == "NOT_FOUND"


def test_a_project_is_unlinked_once_even_if_it_is_deleted(links):
    delete(links.first)
    reply = links.send("DELETE", links.first)
    assert (reply.data, links.stored()) == ({"deleted": True, "projectId": links.first}, [])
    assert links.send("DELETE", links.first).status == 404


def test_a_repository_is_disconnected_once(acme, links):
    path = f"{REPOSITORIES}/{links.id}"
    assert acme.send("DELETE", path).data == {"deleted": True, "repositoryId": links.id}
    assert repositories.find_repository(links.id) is None
    assert acme.send("DELETE", path).status == 404


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


def test_a_linked_project_is_shown_however_many_newer_ones_there_are(acme, monkeypatch):
    monkeypatch.setattr("code_audit.routes._PROJECTS_AHEAD", 1)
    made = {it.repository_id: [it.links[0].project_id] for it in (acme.connect() for _ in range(3))}
    assert {entry["id"]: [it["projectId"] for it in entry["projects"]] for entry in listed(acme).data} == made
