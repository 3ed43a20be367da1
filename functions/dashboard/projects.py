"""Business rules of the projects' pages: which project a URL identifies, and the list of projects."""

import re
from typing import NamedTuple

from controlplane.core.errors import NotFound
from controlplane.core.ids import ProjectId
from controlplane.store import keys, projects, repositories
from controlplane.store.organizations import Membership
from controlplane.store.parallel import read_both
from controlplane.store.project_items import ProjectItem
from controlplane.store.projects import ProjectPage
from controlplane.store.repositories import RepositoryItem
from controlplane.store.scans.items import ScanItem
from dashboard import scans
from dashboard.organizations import find_membership

PROJECTS_PER_PAGE = 50

_SLUG = re.compile(r"[a-z0-9-]{1,64}")


class NoProject(NotFound):
    message = "This project doesn't exist, or you aren't a member of its organization."


class ShownProject(NamedTuple):
    """A project with its linked repositories and their latest scans."""

    organization: Membership
    project: ProjectItem
    repositories: list[RepositoryItem]
    scans: list[ScanItem]


def get_project(organization_slug: str, project_slug: str, user_id: str) -> tuple[Membership, ProjectItem]:
    """Returns a project of one of the user's organizations, by its current slug or a former one. Raises NoProject.

    The branding is the one that the plan includes.
    """
    membership = _get_membership(organization_slug, project_slug, user_id)
    try:
        project, plan = projects.get_project_by_slug(membership.organization_id, project_slug)
    except projects.UnknownProject:
        raise NoProject from None
    return membership, project.served_on(plan)


def get_project_with_scans(organization_slug: str, project_slug: str, user_id: str) -> ShownProject:
    """Returns the project as `get_project` does, with its latest scans, in as many round trips. Raises NoProject."""
    membership = _get_membership(organization_slug, project_slug, user_id)
    organization_id = membership.organization_id
    try:
        (project_id, plan), connected = read_both(
            lambda: projects.resolve_slug(organization_id, project_slug),
            lambda: repositories.list_all_repositories(organization_id),
        )
        linked = [repository for repository in connected if repository.find_link(project_id)]
        project, latest = read_both(
            lambda: projects.get_project(project_id),
            lambda: scans.list_latest(project_id, [repository.repository_id for repository in linked]),
        )
    except projects.UnknownProject:
        raise NoProject from None
    return ShownProject(membership, project.served_on(plan), linked, latest)


def _get_membership(organization_slug: str, project_slug: str, user_id: str) -> Membership:
    membership = find_membership(organization_slug, user_id)
    if membership is None or not _SLUG.fullmatch(project_slug):
        raise NoProject
    return membership


def list_projects(organization_id: str, after: str | None) -> ProjectPage:
    """Returns a page of the organization's projects, newest first. `after` is the last ID of the previous page."""
    last = ProjectId.parse(after or "")
    is_own = last is not None and last.organization_id == organization_id
    position = keys.project(*last.location).sk if last is not None and is_own else None
    return projects.list_projects(organization_id, PROJECTS_PER_PAGE, position)
