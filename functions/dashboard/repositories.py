"""Business rules of the repositories' pages: what is connected and linked, and the forms that change it."""

from collections.abc import Mapping
from typing import NamedTuple, cast, get_args

from controlplane.core.errors import InvalidPayload, NotFound
from controlplane.core.ids import ProjectId, RepositoryId
from controlplane.core.naming import is_branch, is_folder
from controlplane.core.schedules import Schedule
from controlplane.store import projects, repositories
from controlplane.store.inbox_items import Priority
from controlplane.store.organizations import Membership
from controlplane.store.parallel import read_both
from controlplane.store.project_items import ProjectItem
from controlplane.store.repositories import Link, LinkSettings, RepositoryItem
from dashboard.organizations import get_organization, require_admin

SCHEDULES = get_args(Schedule)
PRIORITIES = get_args(Priority)
_PROJECTS = 100


class NoRepository(NotFound):
    message = "This repository isn't connected, or you aren't a member of its organization."


class NotAcceptable(InvalidPayload):
    def __init__(self, message: str) -> None:
        super().__init__(message, details=[])


class ShownRepository(NamedTuple):
    """A repository with its links, the linked projects, and the projects that aren't linked."""

    organization: Membership
    repository: RepositoryItem
    links: list[tuple[Link, ProjectItem]]
    unlinked: list[ProjectItem]


def list_connected(organization_id: str) -> list[RepositoryItem]:
    """Returns the organization's repositories by name."""
    found = repositories.list_all_repositories(organization_id, consistent=True)
    return sorted(found, key=lambda it: (it.owner.lower(), it.name.lower()))


def get_repository(organization_slug: str, repository_id: str, user_id: str) -> tuple[Membership, RepositoryItem]:
    """Returns a repository of one of the user's organizations. Raises NotMember, NoRepository."""
    organization = get_organization(organization_slug, user_id)
    parsed = RepositoryId.parse(repository_id)
    if parsed is None or parsed.organization_id != organization.organization_id:
        raise NoRepository
    repository = repositories.find_repository(parsed)
    if repository is None:
        raise NoRepository
    return organization, repository


def get_shown(organization: Membership, repository: RepositoryItem) -> ShownRepository:
    """Returns the repository with its links, and up to 100 other projects of the organization."""
    linked, own = read_both(
        lambda: repositories.find_linked_projects([repository]),
        lambda: projects.list_projects(organization.organization_id, _PROJECTS, None).projects,
    )
    links = [(link, linked[link.project_id]) for link in repository.links if link.project_id in linked]
    return ShownRepository(organization, repository, links, [it for it in own if it.project_id not in linked])


def save_link(
    organization: Membership, repository: RepositoryItem, form: Mapping[str, str], user_id: str
) -> tuple[RepositoryItem, str]:
    """Creates or changes the link that the form describes. Returns the updated repository, and what was done.

    Raises NotAdmin, NotAcceptable, NoRepository, Forbidden.
    """
    require_admin(organization)
    settings, project_id = _read_settings(form), _read_project(form)
    try:
        if repository.find_link(project_id) is None:
            link = Link(project_id, None, None, False)._replace(**settings)
            return repositories.create_link(repository, link, user_id, {}), "The project is linked."
        return repositories.update_link(repository, project_id, settings, user_id), "The link is changed."
    except repositories.UnknownRepository:
        raise NoRepository from None
    except repositories.ProjectGone:
        raise NotAcceptable("This project doesn't exist anymore. Choose another one.") from None
    except (repositories.AlreadyLinked, repositories.NotLinked):
        raise NotAcceptable("Someone else changed this link at the same time. Check it and try again.") from None
    except repositories.LinkLimitReached:
        raise NotAcceptable(
            f"A repository can have {repositories.MAX_LINKS} linked projects. Unlink one first."
        ) from None


def unlink(
    organization: Membership, repository: RepositoryItem, form: Mapping[str, str], user_id: str
) -> tuple[RepositoryItem, str]:
    """Unlinks the project of the form. Returns the updated repository, and what was done.

    Raises NotAdmin, NotAcceptable, NoRepository, Forbidden.
    """
    require_admin(organization)
    try:
        updated = repositories.unlink_project(repository.repository_id, _read_project(form), user_id)
    except repositories.UnknownRepository:
        raise NoRepository from None
    except repositories.NotLinked:
        raise NotAcceptable("This project isn't linked.") from None
    return updated, "The project is unlinked."


def disconnect(organization: Membership, repository: RepositoryItem, user_id: str) -> None:
    """Disconnects the repository. Raises NotAdmin, NoRepository, Forbidden."""
    require_admin(organization)
    try:
        repositories.disconnect_repository(repository.repository_id, user_id)
    except repositories.UnknownRepository:
        raise NoRepository from None


def form_of(link: Link) -> dict[str, str]:
    """Returns the fields of a form with the link's settings. A checkbox that isn't checked has no field."""
    checked = {
        "pull_request_scans_enabled": link.pull_request_scans_enabled,
        "scan_on_push": link.scan_on_push,
    }
    return {
        "production_branch": link.production_branch or "",
        "root_directory": link.root_directory or "",
        "schedule": link.schedule or "",
        "failure_threshold": link.failure_threshold,
        **{name: "yes" for name, value in checked.items() if value},
    }


def _read_project(form: Mapping[str, str]) -> ProjectId:
    project_id = ProjectId.parse(form.get("project_id", ""))
    if project_id is None:
        raise NotAcceptable("Choose a project.")
    return project_id


def _read_settings(form: Mapping[str, str]) -> LinkSettings:
    """Returns all settings of the form. An empty text means the default. Raises NotAcceptable."""
    branch, folder = form.get("production_branch", "").strip(), form.get("root_directory", "").strip()
    schedule, threshold = form.get("schedule", ""), form.get("failure_threshold", "")
    if branch and not is_branch(branch):
        raise NotAcceptable("That can't be the name of a branch. Check the production branch.")
    if folder and not is_folder(folder):
        raise NotAcceptable("Enter the folder as a path relative to the repository's root, for example apps/web.")
    if (schedule and schedule not in SCHEDULES) or threshold not in PRIORITIES:
        raise NotAcceptable("Choose one of the schedules and priorities.")
    return LinkSettings(
        production_branch=branch or None,
        root_directory=folder or None,
        pull_request_scans_enabled="pull_request_scans_enabled" in form,
        scan_on_push="scan_on_push" in form,
        schedule=cast("Schedule", schedule) if schedule else None,
        failure_threshold=cast("Priority", threshold),
    )
