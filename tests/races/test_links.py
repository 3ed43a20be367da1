"""Links change only if, at commit, their project and repository exist and the caller is still an admin."""

from collections.abc import Callable

import pytest

from controlplane.store import members, projects, repositories
from controlplane.store.repository_items import RepositoryItem
from tests.functional.projects.builders import make_project
from tests.races.stage import Stage
from tests.races.yields import came_first
from tests.support.api import Reply
from tests.support.asgi import DirectApi
from tests.support.schedules import Race
from tests.support.world import Person, World

pytestmark = pytest.mark.races

REPOSITORIES = "/v1/code-audit/repositories"


class Shop:
    """An organization with an owner, an admin, a repository with one link, and two projects that aren't linked."""

    def __init__(self, world: World, api: DirectApi) -> None:
        self.api = api
        self.company = world.company()
        self.admin = world.member(self.company, "admin")
        self.repository = world.connected_repository(self.company)
        self.linked = self.repository.links[0].project_id
        self.projects = [make_project(self.company) for _ in range(2)]

    def links(self, number: int = 0, person: Person | None = None) -> Callable[[], Reply]:
        path, token = f"{REPOSITORIES}/{self.repository.repository_id}/links", (person or self.admin).token
        return lambda: self.api.post(path, token, json_body={"projectId": self.projects[number].project_id})

    def changes(self, **body: object) -> Callable[[], Reply]:
        path = f"{REPOSITORIES}/{self.repository.repository_id}/links/{self.linked}"
        return lambda: self.api.call("PATCH", path, self.admin.token, json_body=body)

    def unlinks(self) -> Callable[[], Reply]:
        path = f"{REPOSITORIES}/{self.repository.repository_id}/links/{self.linked}"
        return lambda: self.api.delete(path, self.admin.token)

    def disconnects(self) -> Callable[[], Reply]:
        return lambda: self.api.delete(f"{REPOSITORIES}/{self.repository.repository_id}", self.company.owner.token)

    def demotes(self) -> Callable[[], None]:
        owner_id, organization_id = self.company.owner.user_id, self.company.organization_id
        member, _ = members.find_member_and_caller(organization_id, self.admin.user_id, owner_id)
        assert member is not None
        return lambda: members.change_role(member, "member", owner_id, "owner")

    def deletes_project(self) -> Callable[[], object]:
        return lambda: projects.delete_project(self.projects[0])

    def stored(self) -> RepositoryItem | None:
        return repositories.find_repository(self.repository.repository_id)

    def linked_projects(self) -> list[str]:
        stored = self.stored()
        return [link.project_id for link in stored.links] if stored else []


@pytest.fixture
def race(stage: Stage) -> Callable[..., None]:
    def run(acts: Callable[[Shop], list], check: Callable[..., None]) -> None:
        def scenario(world: World) -> Race:
            shop = Shop(world, stage.api)
            return Race(acts(shop), lambda outcomes: check(shop, *[outcome.get() for outcome in outcomes]))

        stage.race(scenario)

    return run


def test_concurrent_changes_of_different_links_are_both_kept(race: Callable[..., None]):
    def check(shop: Shop, linked: Reply, changed: Reply) -> None:
        assert (linked.status, changed.status) == (201, 200)
        assert shop.linked_projects() == [shop.linked, shop.projects[0].project_id]
        stored = shop.stored()
        assert stored
        assert stored.links[0].schedule == "daily"

    race(lambda shop: [shop.links(), shop.changes(schedule="daily")], check)


def test_a_former_admin_links_nothing(stage: Stage, race: Callable[..., None]):
    def check(shop: Shop, linked: Reply, _: object) -> None:
        assert linked.status == (403 if came_first(stage.ran, 1) else 201)
        assert (shop.projects[0].project_id in shop.linked_projects()) == (linked.status == 201)

    race(lambda shop: [shop.links(), shop.demotes()], check)


def test_a_deleted_project_is_linked_only_if_the_link_came_first(stage: Stage, race: Callable[..., None]):
    def check(shop: Shop, linked: Reply, _: object) -> None:
        assert linked.status == (404 if came_first(stage.ran, 1) else 201)
        assert (shop.projects[0].project_id in shop.linked_projects()) == (linked.status == 201)

    race(lambda shop: [shop.links(), shop.deletes_project()], check)


def test_a_disconnected_repository_gets_no_link(stage: Stage, race: Callable[..., None]):
    def check(shop: Shop, linked: Reply, disconnected: Reply) -> None:
        assert linked.status == (404 if came_first(stage.ran, 1) else 201)
        assert disconnected.status == 200
        assert shop.stored() is None

    race(lambda shop: [shop.links(), shop.disconnects()], check)


def test_an_unlinked_project_is_not_linked_again_by_a_change(stage: Stage, race: Callable[..., None]):
    def check(shop: Shop, changed: Reply, unlinked: Reply) -> None:
        assert changed.status == (404 if came_first(stage.ran, 1) else 200)
        assert unlinked.status == 200
        assert shop.linked_projects() == []

    race(lambda shop: [shop.changes(scanOnPush=True), shop.unlinks()], check)
