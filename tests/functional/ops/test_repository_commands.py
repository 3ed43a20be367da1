"""`assent-ops repository`."""

import pytest

from controlplane.core.ids import ProjectId
from controlplane.store import projects, repositories
from controlplane.store.repository_items import RepositoryItem
from tests.functional.ops.conftest import Ops
from tests.functional.projects.builders import make_project
from tests.support.each import each
from tests.support.world import Company, World, table_dump


@pytest.fixture
def company(world: World) -> Company:
    return world.company()


@pytest.fixture
def repository(world: World, company: Company) -> RepositoryItem:
    return world.connected_repository(company, name="shop")


class TestConnect:
    def test_repository_connect_allows_scans_once_it_is_linked(self, ops: Ops, company: Company):
        made = ops("repository", "connect", company.slug, "acme/shop", "--installation", "4711").document
        assert made == {
            "repositoryId": made["repositoryId"],
            "organizationId": company.organization_id,
            "owner": "acme",
            "name": "shop",
            "url": "https://github.com/acme/shop",
            "installation": 4711,
            "defaultBranch": "main",
            "visibility": "private",
            "connectedAt": "2026-03-04T05:06:07.000Z",
            "projects": [],
        }

    def test_connecting_again_in_another_letter_case_updates_the_repository(self, ops: Ops, company: Company):
        connect = ("repository", "connect", company.slug)
        first = ops(*connect, "acme/shop", "--installation", "1").document
        options = ("--installation", "2", "--default-branch", "trunk", "--visibility", "public")
        again = ops(*connect, "Acme/Shop", *options).document
        assert again["repositoryId"] == first["repositoryId"]
        assert (again["installation"], again["defaultBranch"], again["visibility"]) == (2, "trunk", "public")

    @each("name", ["shop", "acme/", "/shop", "a/b/c", "acme/..", "ac me/shop"])
    def test_repository_connect_exits_2_for_an_invalid_name(self, name: str, ops: Ops, company: Company):
        assert ops("repository", "connect", company.slug, name, "--installation", "1").exit_code == 2

    def test_repository_connect_exits_3_for_an_unknown_organization(self, ops: Ops):
        assert ops("repository", "connect", "nowhere", "acme/shop", "--installation", "1").exit_code == 3


class TestLink:
    def test_repository_link_updates_a_link_and_keeps_its_other_settings(
        self, ops: Ops, company: Company, repository: RepositoryItem
    ):
        project_id = repository.links[0].project_id
        scheduled = repository.links[0]._replace(schedule="daily", scan_on_push=True, failure_threshold="P0")
        repositories.link_project(repository.repository_id, scheduled)
        options = ("--branch", "release", "--root-directory", "apps/web", "--pull-request-scans")
        linked = ops("repository", "link", repository.repository_id, project_id, *options).document
        assert linked["projects"] == [
            {
                "projectId": project_id,
                "productionBranch": "release",
                "rootDirectory": "apps/web",
                "pullRequestScans": True,
                "scanOnPush": True,
                "schedule": "daily",
                "failureThreshold": "P0",
            }
        ]

    @each("folder", ["/apps", "../apps", "apps/../..", "apps/", ""])
    def test_repository_link_exits_2_for_a_folder_outside_the_repository(
        self, folder: str, ops: Ops, repository: RepositoryItem
    ):
        project_id = repository.links[0].project_id
        outcome = ops("repository", "link", repository.repository_id, project_id, "--root-directory", folder)
        assert outcome.exit_code == 2

    def test_repository_link_exits_3_for_another_organizations_or_a_deleted_project(
        self, ops: Ops, world: World, repository: RepositoryItem
    ):
        foreign = world.connected_repository(world.company()).links[0].project_id
        gone = repository.links[0].project_id
        projects.delete_project(projects.get_project(ProjectId.stored(gone)))
        before = table_dump()
        for project_id in (foreign, gone, "nonsense"):
            assert ops("repository", "link", repository.repository_id, project_id).exit_code == 3
        assert ops("repository", "link", "rep_nonsense", gone).exit_code == 3
        assert table_dump() == before

    def test_repository_link_exits_4_at_ten_links(
        self, ops: Ops, world: World, company: Company, repository: RepositoryItem
    ):
        for _ in range(repositories.MAX_LINKS - 1):
            project_id = world.connected_repository(company).links[0].project_id
            assert ops("repository", "link", repository.repository_id, project_id).exit_code == 0
        another = world.connected_repository(company).links[0].project_id
        assert ops("repository", "link", repository.repository_id, another).exit_code == 4


class TestUnlink:
    def test_repository_unlink_removes_the_link_once(self, ops: Ops, repository: RepositoryItem):
        unlink = ("repository", "unlink", repository.repository_id, repository.links[0].project_id, "--yes")
        assert ops(*unlink).document["projects"] == []
        assert ops(*unlink).exit_code == 3


class TestShowAndList:
    def test_repository_list_shows_every_page(self, ops: Ops, world: World, company: Company):
        made = {world.connected_repository(company, linked=False).repository_id for _ in range(3)}
        listed = ops("repository", "list", company.slug).document
        assert {entry["repositoryId"] for entry in listed} == made

    def test_repository_show_says_whether_a_scan_is_running(self, ops: Ops, repository: RepositoryItem):
        shown = ops("repository", "show", repository.repository_id).document
        assert (shown["activeScan"], shown["previewUsed"]) == (None, False)

    def test_repository_show_exits_3_for_an_unknown_repository(self, ops: Ops):
        assert ops("repository", "show", "rep_nonsense").exit_code == 3


class TestDisconnect:
    def test_repository_disconnect_removes_it_from_the_organization(
        self, ops: Ops, repository: RepositoryItem, company: Company
    ):
        done = ops("repository", "disconnect", repository.repository_id, "--yes").document
        assert (done["disconnected"], done["repositoryId"]) == (True, repository.repository_id)
        assert ops("repository", "list", company.slug).document == []
        assert ops("repository", "disconnect", repository.repository_id, "--yes").exit_code == 3

    def test_repository_disconnect_asks_first(self, ops: Ops, repository: RepositoryItem):
        before = table_dump()
        assert ops("repository", "disconnect", repository.repository_id).exit_code == 2
        assert table_dump() == before


class TestLinkLimit:
    def test_the_link_limit_ignores_links_to_deleted_projects(self, ops: Ops, world: World, company: Company):
        repository = world.connected_repository(company, linked=False)
        made = [make_project(company, f"P{number}") for number in range(12)]
        for project in made[:10]:
            assert ops("repository", "link", repository.repository_id, project.project_id).exit_code == 0
        assert ops("repository", "link", repository.repository_id, made[10].project_id).exit_code == 4
        projects.delete_project(made[0])
        linked = ops("repository", "link", repository.repository_id, made[10].project_id).document["projects"]
        assert [it["projectId"] for it in linked] == [project.project_id for project in made[1:11]]
        assert ops("repository", "link", repository.repository_id, made[11].project_id).exit_code == 4
