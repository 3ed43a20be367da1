"""Installations, names, and links of repositories: each belongs to one, and changes only by someone who may, at commit.

An invariant follows each name to a repository that has it: a name that leads nowhere can't be connected again.
"""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.code_host import installations, repositories
from controlplane.code_host.installations import InstallationTaken
from controlplane.code_host.repositories import UnknownRepository
from controlplane.organizations import members
from controlplane.platform.core.errors import RoleRequired
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from controlplane.projects import store as projects
from tests.functional.projects.builders import make_project
from tests.races.stage import Stage, race
from tests.support.api import Reply
from tests.support.audits import describe
from tests.support.world import Company, Person, World, hosted_repository

INSTALLATION = 4711
REPOSITORIES = "/v1/code-audit/repositories"


def connects(company: Company, name: str, user_id: str | None = None) -> Callable[[], str]:
    """Returns an act that connects the repository, and returns what came of it."""
    hosted = hosted_repository(name, hosted_id=len(name), installation_id=INSTALLATION)

    def connect() -> str:
        try:
            installations.connect_granted(company.organization_id, hosted, user_id or company.owner.user_id)
        except (InstallationTaken, RoleRequired) as failure:
            return type(failure).__name__
        return "connected"

    return connect


def names(company: Company) -> dict[str, str]:
    """Returns the names of the connected repositories, by ID."""
    found = repositories.list_all_repositories(company.organization_id, consistent=True)
    return {repository.repository_id: repository.name for repository in found}


def owner_of_installation() -> str | None:
    item = table.get(keys.installation(INSTALLATION))
    return item["organizationId"] if item else None


def demotes(company: Company, admin: Person) -> Callable[[], object]:
    owner_id = company.owner.user_id
    member: Any = members.find_member_and_caller(company.organization_id, admin.user_id, owner_id)[0]
    return lambda: members.change_role(member, "member", owner_id, "owner")


@race(ends={("connected", "InstallationTaken"), ("InstallationTaken", "connected")})
def test_one_of_two_organizations_gets_an_installation(world):
    companies = world.company(), world.company()
    results = yield [connects(companies[0], "shop"), connects(companies[1], "blog")]
    winner = companies[results.index("connected")]
    assert owner_of_installation() == winner.organization_id
    assert [*names(companies[0]).values(), *names(companies[1]).values()] == [
        "shop" if winner is companies[0] else "blog"
    ]
    return tuple(results)


@race()
def test_an_installation_is_not_released_while_a_repository_is_connected(world):
    company = world.company()
    connects(company, "shop")()
    (repository_id,) = names(company)
    repositories.disconnect_repository(repository_id)
    entry: Any = table.get(keys.organization_installation(company.organization_id, INSTALLATION))

    def release() -> None:
        """Releases the installation if nothing is connected through it, as the cleanup does."""
        if not names(company):
            installations.release(company.organization_id, INSTALLATION, entry["version"])

    yield [connects(company, "blog"), release]
    assert [*names(company).values()] == ["blog"]
    assert owner_of_installation() == company.organization_id
    assert table.get(keys.organization_installation(company.organization_id, INSTALLATION))


@race()
def test_a_former_admin_connects_nothing(world, stage):
    company = world.company()
    admin = world.member(company, "admin")
    result, _ = yield [connects(company, "shop", admin.user_id), demotes(company, admin)]
    assert result == ("RoleRequired" if stage.came_first(1) else "connected")
    assert [*names(company).values()] == (["shop"] if result == "connected" else [])
    assert (owner_of_installation() is not None) == (result == "connected")


class Named:
    """An organization with the repositories "shop" and "blog". The code host renames them."""

    def __init__(self, world: World) -> None:
        self.world, self.company = world, world.company()
        self.shop, self.blog = (self.connect(name) for name in ("shop", "blog"))

    def connect(self, name: str) -> Any:
        return self.world.connected_repository(self.company, linked=False, name=name)

    def connect_again(self) -> str:
        try:
            return str(self.connect("shop").repository_id)
        except UnknownRepository:
            return "renamed"

    def disconnect(self) -> None:
        repositories.disconnect_repository(self.shop.repository_id)


@race()
def test_a_repository_that_is_renamed_while_it_is_disconnected_leaves_no_name(world):
    named = Named(world)
    yield [named.disconnect, lambda: describe(named.shop, name="store")]
    assert named.shop.repository_id not in names(named.company)
    again = named.connect("shop")
    assert names(named.company)[again.repository_id] == "shop"


@race()
def test_a_repository_whose_name_another_one_takes_is_disconnected_without_it(world):
    named = Named(world)
    yield [named.disconnect, lambda: describe(named.blog, name="shop")]
    assert names(named.company) == {named.blog.repository_id: "shop"}


@race()
def test_a_repository_that_is_connected_again_under_its_former_name_has_one_name(world):
    named = Named(world)
    connected, _ = yield [named.connect_again, lambda: describe(named.shop, name="store")]
    assert names(named.company)[named.shop.repository_id] in {"store", "shop"}
    assert connected in {*names(named.company), "renamed"}


class Linked:
    """An organization with an owner, an admin, a repository with one link, and a project that isn't linked."""

    def __init__(self, world: World, stage: Stage) -> None:
        self.api, self.company = stage.api, world.company()
        self.admin = world.member(self.company, "admin")
        self.repository = world.connected_repository(self.company)
        self.path = f"{REPOSITORIES}/{self.repository.repository_id}"
        self.linked, self.project = self.repository.links[0].project_id, make_project(self.company)

    def link(self) -> Reply:
        body = {"projectId": self.project.project_id}
        return self.api.post(f"{self.path}/links", self.admin.token, json_body=body)

    def change(self) -> Reply:
        body = {"schedule": "daily"}
        return self.api.patch(f"{self.path}/links/{self.linked}", self.admin.token, json_body=body)

    def unlink(self) -> Reply:
        return self.api.delete(f"{self.path}/links/{self.linked}", self.admin.token)

    def disconnect(self) -> Reply:
        return self.api.delete(self.path, self.company.owner.token)

    def demote(self) -> Callable[[], object]:
        return demotes(self.company, self.admin)

    def delete_project(self) -> Callable[[], object]:
        return lambda: projects.delete_project(self.project)

    def links(self) -> dict[str, str | None]:
        """Returns the schedules of the linked projects."""
        stored = repositories.find_repository(self.repository.repository_id)
        return {link.project_id: link.schedule for link in stored.links} if stored else {}


@race()
def test_concurrent_changes_of_different_links_are_both_kept(world, stage):
    it = Linked(world, stage)
    replies = yield [it.link, it.change]
    assert [reply.status for reply in replies] == [201, 200]
    assert it.links() == {it.linked: "daily", it.project.project_id: None}


@pytest.mark.parametrize(("other", "refused"), [("demote", 403), ("delete_project", 404)])
@race()
def test_a_former_admin_links_nothing_and_a_deleted_project_isnt_linked(world, stage, other, refused):
    it = Linked(world, stage)
    linked, _ = yield [it.link, getattr(it, other)()]
    assert linked.status == (refused if stage.came_first(1) else 201)
    assert (it.project.project_id in it.links()) == (linked.status == 201)


@pytest.mark.parametrize(("act", "done", "end"), [("link", 201, "disconnect"), ("change", 200, "unlink")])
@race()
def test_no_link_remains_of_what_is_disconnected_or_unlinked(world, stage, act, done, end):
    it = Linked(world, stage)
    changed, ended = yield [getattr(it, act), getattr(it, end)]
    assert changed.status == (404 if stage.came_first(1) else done)
    assert ended.status == 200
    assert it.links() == {}
