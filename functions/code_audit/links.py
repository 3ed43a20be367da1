"""Business rules of connected repositories and of their links to projects."""

from collections.abc import Mapping
from typing import NamedTuple

from code_audit.link_schemas import LinkCreate, LinkUpdate
from controlplane.code_host import repositories
from controlplane.code_host.items import Link, RepositoryItem
from controlplane.platform.core.errors import Conflict, InvalidPayload, NotFound
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.table.table import Leg
from controlplane.projects import store as projects
from controlplane.projects.items import ProjectItem


class NoProject(NotFound):
    message = "The repository's organization has no project with this ID."


class NoLink(NotFound):
    message = "The project isn't linked to this repository. Link it first."


class LinkExists(Conflict):
    message = "The project is already linked to this repository. Change the link with PATCH."


class TooManyLinks(Conflict):
    message = f"The repository has the maximum of {repositories.MAX_LINKS} linked projects. Unlink one first."

    def __init__(self) -> None:
        super().__init__(details={"reason": "link_limit", "limit": repositories.MAX_LINKS})


class LinkedBy(NamedTuple):
    """A link with its repository and project."""

    repository: RepositoryItem
    link: Link
    project: ProjectItem


def list_links(repository: RepositoryItem) -> list[LinkedBy]:
    """Returns the links ordered by project, without those to deleted projects."""
    found = repositories.find_linked_projects([repository])
    linked = [
        LinkedBy(repository, link, found[link.project_id]) for link in repository.links if link.project_id in found
    ]
    return sorted(linked, key=lambda it: it.link.project_id)


def create_link(
    repository: RepositoryItem, body: LinkCreate, caller_id: str, extra_legs: Mapping[str, Leg]
) -> LinkedBy:
    """Links the project. Raises NoProject, LinkExists, TooManyLinks, UnknownRepository, Forbidden."""
    project_id = _parse_project(body.project_id)
    project = _get_project(repository, project_id)
    link = Link(**body.model_dump(exclude={"project_id"}), project_id=project_id)
    try:
        updated = repositories.create_link(repository, link, caller_id, extra_legs)
    except repositories.ProjectGone:
        raise NoProject from None
    except repositories.AlreadyLinked:
        raise LinkExists from None
    except repositories.LinkLimitReached:
        raise TooManyLinks from None
    return LinkedBy(updated, link, project)


def update_link(repository: RepositoryItem, project_id: str, body: LinkUpdate, caller_id: str) -> LinkedBy:
    """Changes the link. Raises InvalidPayload, NoLink, NoProject, UnknownRepository, Forbidden."""
    settings = body.settings
    if not settings:
        raise InvalidPayload.at([], "Name at least one thing to change.", "empty")
    parsed = _parse_project(project_id)
    project = _get_project(repository, parsed)
    try:
        updated = repositories.update_link(repository, parsed, settings, caller_id)
    except repositories.ProjectGone:
        raise NoProject from None
    except repositories.NotLinked:
        raise NoLink from None
    return LinkedBy(updated, next(link for link in updated.links if link.project_id == parsed), project)


def delete_link(repository: RepositoryItem, project_id: str, caller_id: str) -> ProjectId:
    """Unlinks the project, which may be deleted. Raises NoLink, UnknownRepository, Forbidden."""
    parsed = ProjectId.parse(project_id)
    if parsed is None:
        raise NoLink
    try:
        repositories.unlink_project(repository.repository_id, parsed, caller_id)
    except repositories.NotLinked:
        raise NoLink from None
    return parsed


def _parse_project(project_id: str) -> ProjectId:
    parsed = ProjectId.parse(project_id)
    if parsed is None:
        raise NoProject
    return parsed


def _get_project(repository: RepositoryItem, project_id: ProjectId) -> ProjectItem:
    """Returns the project of the repository's organization. Raises NoProject."""
    if project_id.organization_id != repository.organization_id:
        raise NoProject
    try:
        return projects.get_project(project_id)
    except projects.UnknownProject:
        raise NoProject from None
