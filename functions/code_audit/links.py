"""Business rules of connected repositories and of their links to projects."""

from collections.abc import Mapping
from typing import NamedTuple

from code_audit.link_schemas import LinkCreate, LinkUpdate
from controlplane.code_host import repositories
from controlplane.code_host.items import Link, RepositoryItem
from controlplane.platform.core.errors import InvalidPayload
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.table.table import Leg
from controlplane.projects import store as projects
from controlplane.projects.items import ProjectItem


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
    """Links the project. Raises the errors of `repositories.create_link`."""
    project_id = _parse_project(body.project_id)
    project = _get_project(repository, project_id)
    link = Link(**body.model_dump(exclude={"project_id"}), project_id=project_id)
    return LinkedBy(repositories.create_link(repository, link, caller_id, extra_legs), link, project)


def update_link(repository: RepositoryItem, project_id: str, body: LinkUpdate, caller_id: str) -> LinkedBy:
    """Changes the link. Raises InvalidPayload and the errors of `repositories.update_link`."""
    settings = body.settings
    if not settings:
        raise InvalidPayload.at([], "Name at least one thing to change.", "empty")
    parsed = _parse_project(project_id)
    project = _get_project(repository, parsed)
    updated = repositories.update_link(repository, parsed, settings, caller_id)
    return LinkedBy(updated, next(link for link in updated.links if link.project_id == parsed), project)


def delete_link(repository: RepositoryItem, project_id: str, caller_id: str) -> ProjectId:
    """Unlinks the project, which may be deleted. Raises the errors of `repositories.unlink_project`."""
    parsed = ProjectId.parse(project_id)
    if parsed is None:
        raise repositories.NotLinked
    repositories.unlink_project(repository.repository_id, parsed, caller_id)
    return parsed


def _parse_project(project_id: str) -> ProjectId:
    parsed = ProjectId.parse(project_id)
    if parsed is None:
        raise repositories.ProjectGone
    return parsed


def _get_project(repository: RepositoryItem, project_id: ProjectId) -> ProjectItem:
    """Returns the project of the repository's organization. Raises ProjectGone."""
    if project_id.organization_id != repository.organization_id:
        raise repositories.ProjectGone
    try:
        return projects.get_project(project_id)
    except projects.UnknownProject:
        raise repositories.ProjectGone from None
