"""Business rules of the repositories' pages: connected and linked ones, and the forms that change them."""

from collections.abc import Mapping
from typing import NamedTuple, cast, get_args

from controlplane.code_host import repositories
from controlplane.code_host.items import Link, LinkSettings, RepositoryItem
from controlplane.code_host.repositories import RepositoryPage
from controlplane.organizations.store import Account, Membership
from controlplane.platform.core.errors import NotFound
from controlplane.platform.core.ids import ProjectId, RepositoryId
from controlplane.platform.core.naming import is_branch, is_folder
from controlplane.platform.core.priorities import Priority
from controlplane.platform.core.schedules import Schedule
from controlplane.platform.table import keys
from controlplane.platform.table.parallel import read_both
from controlplane.projects import store as projects
from controlplane.projects.items import ProjectItem
from dashboard.forms import NotAcceptable
from dashboard.organizations import get_organization, require_admin

SCHEDULES = get_args(Schedule)
PRIORITIES = get_args(Priority)
PER_PAGE = 50
_PROJECTS = 100
# They fit in one response of DynamoDB.
_CHOICES = 500


class NoRepository(NotFound):
    message = "This repository isn't connected, or you aren't a member of its organization."


class ShownRepository(NamedTuple):
    """A repository with its links, the linked projects, and the projects that aren't linked."""

    organization: Membership
    repository: RepositoryItem
    links: list[tuple[Link, ProjectItem]]
    unlinked: list[ProjectItem]


def list_connected(organization_id: str, after: str | None) -> RepositoryPage:
    """Returns a page of the organization's repositories. `after` is the last ID of the previous page."""
    last = RepositoryId.parse(after or "")
    is_own = last is not None and last.organization_id == organization_id
    position = keys.repository(*last.location).sk if last is not None and is_own else None
    return repositories.list_repositories(organization_id, PER_PAGE, position, consistent=True)


def list_choices(organization_id: str) -> list[RepositoryItem]:
    """Returns the repositories to choose from, by name: those that were connected last, so that one read suffices."""
    found = repositories.list_repositories(organization_id, _CHOICES, None).repositories
    return sorted(found, key=lambda it: (it.owner.lower(), it.name.lower()))


def get_repository(organization_slug: str, repository_id: str, account: Account) -> tuple[Membership, RepositoryItem]:
    """Returns a repository of one of the account's organizations. Raises NotMember, NoRepository."""
    organization = get_organization(organization_slug, account)
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


def save_link(organization: Membership, repository: RepositoryItem, form: Mapping[str, str], user_id: str) -> str:
    """Creates or changes the link that the form describes. Returns the code of the confirmation.

    Raises NotAdmin, NotAcceptable, NoRepository, Forbidden.
    """
    require_admin(organization)
    settings, project_id = _read_settings(form), _read_project(form)
    is_new = repository.find_link(project_id) is None
    try:
        if is_new:
            link = Link(project_id, None, None, False)._replace(**settings)
            repositories.create_link(repository, link, user_id, {})
        else:
            repositories.update_link(repository, project_id, settings, user_id)
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
    return "linked" if is_new else "changed"


def unlink(organization: Membership, repository: RepositoryItem, form: Mapping[str, str], user_id: str) -> str:
    """Unlinks the project of the form. Returns the code of the confirmation.

    Raises NotAdmin, NotAcceptable, NoRepository, Forbidden.
    """
    require_admin(organization)
    try:
        repositories.unlink_project(repository.repository_id, _read_project(form), user_id)
    except repositories.UnknownRepository:
        raise NoRepository from None
    except repositories.NotLinked:
        raise NotAcceptable("This project isn't linked.") from None
    return "unlinked"


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
