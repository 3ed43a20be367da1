"""The forms of a repository's links to projects, and the repositories that forms offer to choose from."""

from collections.abc import Mapping
from typing import get_args

from controlplane.code_host import repositories
from controlplane.code_host.items import Link, LinkSettings, RepositoryItem
from controlplane.platform.core.errors import known
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.core.naming import is_branch, is_folder
from controlplane.platform.core.priorities import Priority
from controlplane.platform.core.schedules import Schedule
from dashboard.forms import NotAcceptable, read_choice

SCHEDULES: tuple[Schedule, ...] = get_args(Schedule)
PRIORITIES: tuple[Priority, ...] = get_args(Priority)
# The offered repositories fit in one response of DynamoDB.
_MOST_OFFERED = 500
_CHOOSE = "Choose one of the schedules and priorities."


def list_choices(organization_id: str) -> list[RepositoryItem]:
    """Returns the most recently connected repositories, sorted by name. Needs one read."""
    found = repositories.list_repositories(organization_id, _MOST_OFFERED, None).items
    return sorted(found, key=lambda it: (it.owner.lower(), it.name.lower()))


def save_link(repository: RepositoryItem, form: Mapping[str, str], user_id: str) -> str:
    """Creates or changes the link that the form describes. Returns the code of the confirmation.

    Raises NotAcceptable, UnknownRepository, Forbidden.
    """
    settings, project_id = _read_settings(form), read_project(form)
    is_new = repository.find_link(project_id) is None
    try:
        if is_new:
            link = Link(project_id, None, None, False)._replace(**settings)
            repositories.create_link(repository, link, user_id, {})
        else:
            repositories.update_link(repository, project_id, settings, user_id)
    except repositories.ProjectGone:
        raise NotAcceptable("This project doesn't exist anymore. Choose another one.") from None
    except (repositories.AlreadyLinked, repositories.NotLinked):
        raise NotAcceptable("Someone else changed this link at the same time. Check it and try again.") from None
    except repositories.LinkLimitReached:
        raise NotAcceptable(
            f"A repository can have {repositories.MAX_LINKS} linked projects. Unlink one first."
        ) from None
    return "linked" if is_new else "changed"


def unlink(repository: RepositoryItem, form: Mapping[str, str], user_id: str) -> str:
    """Unlinks the project of the form. Returns the code of the confirmation.

    Raises NotAcceptable, UnknownRepository, Forbidden.
    """
    try:
        repositories.unlink_project(repository.repository_id, read_project(form), user_id)
    except repositories.NotLinked:
        raise NotAcceptable("This project isn't linked.") from None
    return "unlinked"


def fields_of(link: Link) -> dict[str, str]:
    """Returns the fields of a form with the link's settings. A checkbox that isn't checked has no field."""
    shown = {name: value for name, value in link._asdict().items() if value}
    return {name: "yes" if value is True else value for name, value in shown.items()}


def read_project(form: Mapping[str, str]) -> ProjectId:
    """Returns the chosen project. Raises NotAcceptable."""
    return known(ProjectId.parse(form.get("project_id", "")), NotAcceptable("Choose a project."))


def _read_settings(form: Mapping[str, str]) -> LinkSettings:
    """Returns all settings of the form. An empty text means the default. Raises NotAcceptable."""
    branch, folder = form.get("production_branch", "").strip(), form.get("root_directory", "").strip()
    if branch and not is_branch(branch):
        raise NotAcceptable("That can't be the name of a branch. Check the production branch.")
    if folder and not is_folder(folder):
        raise NotAcceptable("Enter the folder as a path relative to the repository's root, for example apps/web.")
    return LinkSettings(
        production_branch=branch or None,
        root_directory=folder or None,
        pull_request_scans_enabled="pull_request_scans_enabled" in form,
        scan_on_push="scan_on_push" in form,
        schedule=read_choice(form, "schedule", SCHEDULES, _CHOOSE) if form.get("schedule") else None,
        failure_threshold=read_choice(form, "failure_threshold", PRIORITIES, _CHOOSE),
    )
