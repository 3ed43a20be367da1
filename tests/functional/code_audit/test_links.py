"""/v1/code-audit/repositories/{repositoryId}/links: which projects a repository is scanned for, and when."""

from typing import Any

import pytest

from controlplane.core import clock
from controlplane.core.ids import ProjectId
from controlplane.core.schedules import next_run
from controlplane.store import projects, repositories
from controlplane.store.repository_items import RepositoryItem
from controlplane.store.table import table
from tests.functional.projects.builders import make_project
from tests.support.api import Api
from tests.support.calls import before_the_transaction
from tests.support.world import Company, World, table_dump

REPOSITORIES = "/v1/code-audit/repositories"
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


@pytest.fixture
def company(world: World) -> Company:
    return world.company()


@pytest.fixture
def repository(world: World, company: Company) -> RepositoryItem:
    return world.connected_repository(company)


def links_of(repository: RepositoryItem) -> str:
    return f"{REPOSITORIES}/{repository.repository_id}/links"


def project_of(company: Company, name: str = "Shop") -> ProjectId:
    return make_project(company, name).project_id


def named(project_id: ProjectId) -> dict[str, Any]:
    project = projects.get_project(project_id)
    return {"projectId": project_id, "projectSlug": project.slug, "projectName": project.name}


class TestList:
    def test_returns_every_link_once_page_by_page_without_deleted_projects(
        self, api: Api, company: Company, repository: RepositoryItem
    ):
        made = [repository.links[0].project_id, *(project_of(company) for _ in range(3))]
        for project_id in made[1:]:
            api.post(links_of(repository), company.owner.token, json_body={"projectId": project_id})
        projects.delete_project(projects.get_project(made[1]))
        first = api.get(f"{links_of(repository)}?limit=2", company.owner.token)
        cursor = first.body["pagination"]["nextCursor"]
        second = api.get(f"{links_of(repository)}?limit=2&cursor={cursor}", company.owner.token)
        assert [it["projectId"] for it in first.data + second.data] == sorted({*made} - {made[1]})
        assert second.body["pagination"] == {"nextCursor": None, "hasMore": False}
        whole = api.get(f"{links_of(repository)}?limit=3", company.owner.token)
        assert (len(whole.data), whole.body["pagination"]) == (3, {"nextCursor": None, "hasMore": False})

    def test_returns_400_for_a_cursor_of_another_repository(
        self, api: Api, world: World, company: Company, repository: RepositoryItem
    ):
        api.post(links_of(repository), company.owner.token, json_body={"projectId": project_of(company)})
        first = api.get(f"{links_of(repository)}?limit=1", company.owner.token)
        other = links_of(world.connected_repository(company))
        reply = api.get(f"{other}?cursor={first.body['pagination']['nextCursor']}", company.owner.token)
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")

    def test_a_member_can_list_links_with_default_settings(
        self, api: Api, world: World, company: Company, repository: RepositoryItem
    ):
        member = world.member(company)
        (link,) = repository.links
        assert api.get(links_of(repository), member.token).data == [{**named(link.project_id), **DEFAULTS}]


class TestCreate:
    def test_returns_201_with_the_link_and_its_next_scheduled_scan(
        self, api: Api, company: Company, repository: RepositoryItem
    ):
        plain, scheduled = project_of(company), project_of(company)
        reply = api.post(links_of(repository), company.owner.token, json_body={"projectId": plain})
        assert (reply.status, reply.data) == (201, {**named(plain), **DEFAULTS})
        reply = api.post(links_of(repository), company.owner.token, json_body={"projectId": scheduled, **SETTINGS})
        next_scan = next_run("weekly", repository.repository_id, scheduled, clock.now())
        expected = {**named(scheduled), **SETTINGS, "nextScheduledScanAt": clock.timestamp(next_scan)}
        assert (reply.status, reply.data) == (201, expected)
        assert expected in api.get(links_of(repository), company.owner.token).data

    def test_a_repeated_request_with_the_same_key_returns_the_first_response(
        self, api: Api, company: Company, repository: RepositoryItem
    ):
        headers, body = {"Idempotency-Key": "one"}, {"projectId": project_of(company)}
        first, again = (
            api.call("POST", links_of(repository), company.owner.token, json_body=body, headers=headers)
            for _ in range(2)
        )
        assert (first.status, again.status, again.data) == (201, 201, first.data)
        assert again.headers["idempotency-replayed"] == "true"

    def test_returns_400_for_an_idempotency_key_of_another_repository(
        self, api: Api, world: World, company: Company, repository: RepositoryItem
    ):
        headers, body = {"Idempotency-Key": "one"}, {"projectId": project_of(company)}
        api.post(links_of(repository), company.owner.token, json_body=body, headers=headers)
        other = world.connected_repository(company)
        reply = api.post(links_of(other), company.owner.token, json_body=body, headers=headers)
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")

    def test_returns_400_for_an_unusable_branch_or_folder(self, api: Api, company: Company, repository: RepositoryItem):
        body, before = {"projectId": project_of(company)}, table_dump()
        for wrong in (
            *({"productionBranch": name} for name in ("", "a b", "a..b", "/a", "a.lock", "@", "x" * 256, "ä" * 200)),
            *({"rootDirectory": path} for path in ("", "/apps", "apps/", "../apps", "apps/../..", "a\\b", "x" * 201)),
            {"schedule": "hourly"},
            {"failureThreshold": "P4"},
        ):
            reply = api.post(links_of(repository), company.owner.token, json_body={**body, **wrong})
            assert (wrong, reply.status, reply.code) == (wrong, 400, "INVALID_PAYLOAD")
        assert _links(table_dump()) == _links(before)

    def test_returns_404_for_a_project_that_is_deleted_or_of_another_organization(
        self, api: Api, world: World, company: Company, repository: RepositoryItem
    ):
        deleted = project_of(company)
        projects.delete_project(projects.get_project(deleted))
        foreign = project_of(world.company(owner=company.owner))
        for project_id in (deleted, foreign, "prj_x"):
            reply = api.post(links_of(repository), company.owner.token, json_body={"projectId": project_id})
            assert (reply.status, reply.code) == (404, "NOT_FOUND")

    def test_returns_404_for_a_project_that_is_deleted_before_the_write(
        self, api: Api, company: Company, repository: RepositoryItem
    ):
        project = projects.get_project(project_of(company))
        body = {"projectId": project.project_id}
        with before_the_transaction(table.client, lambda: projects.delete_project(project)):
            reply = api.post(links_of(repository), company.owner.token, json_body=body)
        assert (reply.status, reply.code) == (404, "NOT_FOUND")
        assert repositories.get_repository(repository.repository_id).links == repository.links

    def test_returns_409_for_a_linked_project_and_for_an_eleventh_link(
        self, api: Api, company: Company, repository: RepositoryItem
    ):
        body = {"projectId": repository.links[0].project_id, "schedule": "daily"}
        reply = api.post(links_of(repository), company.owner.token, json_body=body)
        assert (reply.status, reply.code) == (409, "CONFLICT")
        assert repositories.get_repository(repository.repository_id).links == repository.links
        replies = [
            api.post(links_of(repository), company.owner.token, json_body={"projectId": project_of(company)})
            for _ in range(10)
        ]
        assert [it.status for it in replies] == [201] * 9 + [409]
        assert replies[-1].error["details"] == {"reason": "link_limit", "limit": 10}


class TestUpdate:
    def test_changes_only_the_fields_of_the_request(self, api: Api, company: Company, repository: RepositoryItem):
        (link,) = repository.links
        path, shown = f"{links_of(repository)}/{link.project_id}", {**named(link.project_id), **DEFAULTS}
        for change in (
            {"productionBranch": "main"},
            {"scanOnPush": True, "failureThreshold": "P3"},
            {"productionBranch": None, "pullRequestScansEnabled": True},
            {"scanOnPush": False, "failureThreshold": "P1"},
        ):
            shown = {**shown, **change}
            reply = api.call("PATCH", path, company.owner.token, json_body=change)
            assert (reply.status, reply.data) == (200, shown)
        assert api.get(links_of(repository), company.owner.token).data == [shown]

    def test_a_changed_link_keeps_its_place(self, api: Api, company: Company, repository: RepositoryItem):
        first, second = repository.links[0].project_id, project_of(company)
        api.post(links_of(repository), company.owner.token, json_body={"projectId": second})
        for project_id in (first, second):
            path = f"{links_of(repository)}/{project_id}"
            assert api.call("PATCH", path, company.owner.token, json_body={"scanOnPush": True}).status == 200
            after = repositories.get_repository(repository.repository_id).links
            assert [it.project_id for it in after] == [first, second]

    def test_returns_400_for_no_change_and_for_invalid_ones(
        self, api: Api, company: Company, repository: RepositoryItem
    ):
        path = f"{links_of(repository)}/{repository.links[0].project_id}"
        for body in ({}, {"projectId": "prj_x"}, {"scanOnPush": 1}, {"pullRequestScansEnabled": "no"}):
            assert api.call("PATCH", path, company.owner.token, json_body=body).status == 400

    def test_returns_404_for_a_project_that_is_not_linked(self, api: Api, company: Company, repository: RepositoryItem):
        for project_id in (project_of(company), "prj_x"):
            reply = api.call(
                "PATCH", f"{links_of(repository)}/{project_id}", company.owner.token, json_body={"schedule": "daily"}
            )
            assert (reply.status, reply.code) == (404, "NOT_FOUND")


class TestDelete:
    def test_unlinks_a_project_once_even_if_it_is_deleted(self, api: Api, company: Company, repository: RepositoryItem):
        project_id = repository.links[0].project_id
        projects.delete_project(projects.get_project(project_id))
        path = f"{links_of(repository)}/{project_id}"
        assert api.delete(path, company.owner.token).data == {"deleted": True, "projectId": project_id}
        assert repositories.get_repository(repository.repository_id).links == ()
        assert api.delete(path, company.owner.token).status == 404

    def test_disconnecting_deletes_the_repository_once(self, api: Api, company: Company, repository: RepositoryItem):
        path = f"{REPOSITORIES}/{repository.repository_id}"
        reply = api.delete(path, company.owner.token)
        assert reply.data == {"deleted": True, "repositoryId": repository.repository_id}
        assert repositories.find_repository(repository.repository_id) is None
        assert api.delete(path, company.owner.token).status == 404


def test_members_and_api_keys_cannot_change_links(api: Api, world: World, company: Company, repository: RepositoryItem):
    admin, member = world.member(company, "admin"), world.member(company)
    project_id = project_of(company)
    changes: list[tuple[str, str, dict[str, Any] | None]] = [
        ("POST", links_of(repository), {"projectId": project_id}),
        ("PATCH", f"{links_of(repository)}/{project_id}", {"schedule": "daily"}),
        ("DELETE", f"{links_of(repository)}/{project_id}", None),
        ("DELETE", f"{REPOSITORIES}/{repository.repository_id}", None),
    ]
    for method, path, body in changes:
        refused = [api.call(method, path, token, json_body=body) for token in (member.token, world.key(company))]
        assert [it.code for it in refused] == ["FORBIDDEN", "INSUFFICIENT_SCOPE"]
        assert api.call(method, path, admin.token, json_body=body).status in {200, 201}


def _links(items: list[dict[str, Any]]) -> list[Any]:
    return [item["links"] for item in items if "links" in item]
