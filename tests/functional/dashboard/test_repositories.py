"""The pages of connected repositories: what is linked, changing it, and disconnecting a repository."""

import re
from dataclasses import replace
from itertools import islice

import pytest

from controlplane.code_host import repositories
from controlplane.code_host.items import Link, RepositoryItem
from controlplane.platform.core import clock, ids
from controlplane.platform.core.ids import ProjectId, RepositoryId
from controlplane.platform.core.schedules import next_run
from controlplane.platform.table.table import table
from controlplane.projects import store as projects
from tests.functional.dashboard.conftest import pages_of
from tests.functional.projects.builders import make_project
from tests.support.browser import Browser, text_of
from tests.support.calls import intercepted
from tests.support.reply import Reply
from tests.support.table import PREPARED
from tests.support.world import Company

SETTINGS = {
    "production_branch": "release",
    "root_directory": "apps/web",
    "schedule": "daily",
    "failure_threshold": "P2",
    "scan_on_push": "yes",
    "pull_request_scans_enabled": "yes",
}


@pytest.fixture
def repository(world, company):
    return world.connected_repository(company, linked=False)


def path(company: Company, repository: RepositoryItem, below: str = "") -> str:
    return f"/organizations/{company.slug}/repositories/{repository.repository_id}{below}"


def stored(repository: RepositoryItem) -> tuple[Link, ...]:
    return repositories.get_repository(repository.repository_id).links


def forge_link(
    visitor: Browser, company: Company, repository: RepositoryItem, project: ProjectId, **changes: str
) -> Reply:
    return visitor.forge(path(company, repository, "/links"), {"project_id": project, **SETTINGS, **changes})


class TestLinks:
    def test_an_admin_links_a_project_changes_the_link_and_removes_it(self, visitor, company, repository):
        project_id = make_project(company, "Storefront").project_id
        assert "No project is linked" in text_of(visitor.get(path(company, repository)))
        entered: dict[str, str | bool] = {
            "Project": "Storefront",
            "Production branch": "release",
            "Root directory": "apps/web",
            "Scheduled scans": "Daily",
            "A pull request's check fails for new findings of": "P2 or more urgent",
            "Scan each push to the production branch": True,
            "Scan pull requests": True,
        }
        reply = visitor.follow(visitor.press("Link this project", fill=entered))
        assert "The project is linked." in text_of(reply)
        made = Link(project_id, "release", "apps/web", True, True, "daily", "P2")
        assert stored(repository) == (made,)
        day = clock.timestamp(next_run("daily", repository.repository_id, project_id, clock.now()))[8:10].lstrip("0")
        assert f"The next scheduled scan starts on March {day}, 2026" in text_of(reply)
        assert (visitor.entered("Production branch"), visitor.entered("Root directory")) == ("release", "apps/web")
        changes: dict[str, str | bool] = {
            "Production branch": " ",
            "Root directory": "",
            "Scheduled scans": "Never",
            "A pull request's check fails for new findings of": "P1 or more urgent",
            "Scan each push to the production branch": False,
            "Scan pull requests": False,
        }
        reply = visitor.follow(visitor.press("Save", fill=changes))
        assert "The link is changed." in text_of(reply)
        assert stored(repository) == (Link(project_id, None, None, False),)
        reply = visitor.follow(visitor.press("Unlink"))
        assert "The project is unlinked." in text_of(reply)
        assert stored(repository) == ()

    def test_a_deleted_or_foreign_project_and_an_eleventh_one_are_rejected(self, visitor, world, company, repository):
        deleted, foreign = make_project(company), make_project(world.company())
        projects.delete_project(deleted)
        for project in (deleted, foreign):
            reply = forge_link(visitor, company, repository, project.project_id)
            assert (reply.status, "doesn't exist anymore" in text_of(reply)) == (400, True)
        for _ in range(repositories.MAX_LINKS):
            link = Link(make_project(company).project_id, None, None, False)
            repositories.link_project(repository.repository_id, link)
        reply = forge_link(visitor, company, repository, make_project(company).project_id)
        assert (reply.status, "Unlink one first" in text_of(reply)) == (400, True)


def test_an_admin_disconnects_a_repository_after_confirming_and_a_member_only_sees_it(visitor, world, company):
    repository, member = world.connected_repository(company), world.member(company)
    other = Browser(visitor.api).signed_in(member.user_id)
    shown = other.get(path(company, repository))
    assert "The default branch" in text_of(shown)
    assert path(company, repository, "/links") not in shown.text
    assert other.get(path(company, repository, "/disconnect")).status == 403
    assert "This cannot be undone" in text_of(visitor.get(path(company, repository, "/disconnect")))
    reply = visitor.follow(visitor.press("Disconnect this repository"))
    assert "The repository is disconnected." in text_of(reply)
    assert repositories.find_repository(repository.repository_id) is None
    assert visitor.get(path(company, repository)).status == 404


def test_many_repositories_are_listed_by_pages_and_never_read_at_once(visitor, person, world):
    company = world.company("enterprise", owner=person)
    first = world.connected_repository(company, name="shop")
    copies = [
        replace(first, repository_id=RepositoryId.of(company.organization_id, ids.new_local())) for _ in range(560)
    ]
    table.put_all((it.to_item() for it in copies), PREPARED)
    own = f"/organizations/{company.slug}"
    pages = [*islice(pages_of(visitor, f"{own}/repositories"), 3)]
    seen = [{*re.findall(r"/repositories/(rep[a-z]*_\w+)\"", page.text)} for page in pages]
    assert [len(page) for page in seen] == [50, 50, 50]
    assert len(set.union(*seen)) == 150
    read = 0

    def counting(_call, proceed):
        nonlocal read
        answer = proceed()
        read = max(read, len(answer.get("Items", [])))
        return answer

    with intercepted(table.client, counting):
        for below in ("", "/repositories", "/inbox", "/scans", "/projects/shop"):
            assert visitor.get(own + below).status == 200
    assert read == 501
