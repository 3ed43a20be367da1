"""`assent-ops repository`: connected repositories and the projects linked to them."""
# ruff: noqa: PLC0415 (see ops.command.command)

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ops.arguments import Organization, Yes
from ops.command import command
from ops.errors import Conflict, NotFound
from ops.output import Result, confirm

if TYPE_CHECKING:
    from controlplane.core.ids import RepositoryId
    from controlplane.store.repository_items import HostedRepository, RepositoryItem

app = typer.Typer(no_args_is_help=True, help="Connected repositories, and the projects linked to them.")

_FULL_NAME = re.compile(r"([A-Za-z0-9][A-Za-z0-9_-]{0,99})/((?!\.\.?$)[A-Za-z0-9._-]{1,100})")
_VISIBILITIES = ("public", "private", "internal")


def parse_full_name(text: str) -> str:
    if not _FULL_NAME.fullmatch(text):
        raise typer.BadParameter("Write OWNER/NAME, for example acme/shop.")
    return text


def _parse_visibility(text: str) -> str:
    if text not in _VISIBILITIES:
        raise typer.BadParameter(f"It is one of {', '.join(_VISIBILITIES)}.")
    return text


def _parse_folder(text: str) -> str:
    from controlplane.core.naming import is_folder

    if not is_folder(text):
        raise typer.BadParameter("Write a path relative to the repository's root, for example apps/web.")
    return text


Repository = Annotated[str, typer.Argument(metavar="REPOSITORY_ID", help="rep_…")]
Project = Annotated[str, typer.Argument(metavar="PROJECT_ID", help="prj_…")]


@command(app, "connect")
def connect_repository(  # noqa: PLR0917 (Typer passes them by name)
    organization: Organization,
    full_name: Annotated[str, typer.Argument(metavar="OWNER/NAME", parser=parse_full_name)],
    installation: Annotated[
        int | None,
        typer.Option(
            "--installation", min=1, help="The id of the GitHub App's installation. Skips the lookup on GitHub."
        ),
    ] = None,
    default_branch: Annotated[
        str | None, typer.Option("--default-branch", help="The branch to scan if a link doesn't set one.")
    ] = None,
    visibility: Annotated[
        str | None, typer.Option("--visibility", parser=_parse_visibility, help=f"One of {', '.join(_VISIBILITIES)}.")
    ] = None,
    url: Annotated[str | None, typer.Option("--url", help="Its page.")] = None,
) -> Result:
    """Connect a repository to an organization, or update one that is already connected.

    Looks up the App's installation, and every value that you omit, on GitHub. With --installation, GitHub isn't called
    and the defaults are: branch main, visibility private, and the page on github.com.
    """
    from controlplane.store import repositories
    from controlplane.store.repository_items import HostedRepository
    from ops.lookup import get_organization_id

    organization_id = get_organization_id(organization)
    owner, _, name = full_name.partition("/")
    if installation is None:
        hosted = _fetch_repository(owner, name)
    else:
        page = f"https://github.com/{full_name}"
        hosted = HostedRepository(
            installation_id=installation,
            owner=owner,
            name=name,
            html_url=page,
            default_branch="main",
            visibility="private",
        )
    hosted = replace(
        hosted,
        html_url=url or hosted.html_url,
        default_branch=default_branch or hosted.default_branch,
        visibility=visibility or hosted.visibility,
    )
    return Result(_document(repositories.connect_repository(organization_id, hosted)))


@command(app, "list")
def list_repositories(organization: Organization) -> Result:
    """List an organization's repositories, most recently connected first."""
    from controlplane.store import repositories
    from ops.lookup import get_organization_id

    organization_id, found, after = get_organization_id(organization), [], None
    while True:
        page = repositories.list_repositories(organization_id, 100, after)
        found += [_document(repository) for repository in page.repositories]
        after = page.next_sk
        if after is None:
            return Result(found)


@command(app, "show")
def show_repository(repository: Repository) -> Result:
    """Show a repository and its active scan."""
    from controlplane.store import keys
    from controlplane.store.table import table

    found = _get_repository(repository)
    item = table.get(keys.repository(*found.location)) or {}
    active = item.get("activeScanId") or item.get("activeRequestId")
    return Result(_document(found) | {"previewUsed": found.preview_used, "activeScan": active})


@command(app, "link")
def link_project(
    repository: Repository,
    project: Project,
    branch: Annotated[
        str | None, typer.Option("--branch", help="The production branch. Default: the repository's default branch.")
    ] = None,
    root_directory: Annotated[
        str | None,
        typer.Option(
            "--root-directory", parser=_parse_folder, help="The folder to scan. Default: the whole repository."
        ),
    ] = None,
    pull_request_scans: Annotated[bool, typer.Option("--pull-request-scans", help="Also scan pull requests.")] = False,
) -> Result:
    """Link a project of the same organization, or change its link. Scans require at least one link.

    A link that exists keeps its schedule, whether pushes are scanned, and the threshold for pull requests.
    """
    from controlplane.core.ids import ProjectId
    from controlplane.store import repositories
    from controlplane.store.repository_items import Link

    repository_id, project_id = _parse_repository_id(repository), ProjectId.parse(project)
    unknown_project = NotFound(f"The repository's organization has no project {project}.")
    if project_id is None:
        raise unknown_project
    found = repositories.find_repository(repository_id)
    kept = (found.find_link(project_id) if found else None) or Link(project_id, None, None, False)
    link = kept._replace(
        production_branch=branch, root_directory=root_directory, pull_request_scans_enabled=pull_request_scans
    )
    try:
        return Result(_document(repositories.link_project(repository_id, link)))
    except repositories.UnknownRepository:
        raise NotFound(f"There is no repository {repository}.") from None
    except repositories.ProjectGone:
        raise unknown_project from None
    except repositories.LinkLimitReached:
        raise Conflict(f"The repository has {repositories.MAX_LINKS} linked projects. Unlink one first.") from None


@command(app, "unlink")
def unlink_project(repository: Repository, project: Project, yes: Yes = False) -> Result:
    """Unlink a project. A repository without linked projects can't be scanned."""
    from controlplane.core.ids import ProjectId
    from controlplane.store import repositories

    confirm(f"Unlink the project {project}?", yes=yes)
    repository_id, project_id = _parse_repository_id(repository), ProjectId.parse(project)
    not_linked = NotFound(f"The repository is not linked to {project}.")
    if project_id is None:
        raise not_linked
    try:
        return Result(_document(repositories.unlink_project(repository_id, project_id)))
    except repositories.UnknownRepository:
        raise NotFound(f"There is no repository {repository}.") from None
    except repositories.NotLinked:
        raise not_linked from None


@command(app, "disconnect")
def disconnect_repository(repository: Repository, yes: Yes = False) -> Result:
    """Permanently disconnect a repository from its organization. Ends a running scan.

    Its scans, their findings, and its inbox items are deleted in the background. If you connect it again, it is a new
    repository whose first scan is a free preview. This doesn't change anything on GitHub: uninstall the App there.
    """
    from controlplane.store import repositories

    found = _get_repository(repository)
    confirm(f"Disconnect {found.owner}/{found.name} and delete everything its scans found?", yes=yes)
    try:
        return Result({"disconnected": True, **_document(repositories.disconnect_repository(found.repository_id))})
    except repositories.UnknownRepository:
        raise NotFound(f"There is no repository {repository}.") from None


def _fetch_repository(owner: str, name: str) -> "HostedRepository":
    """Returns the repository as GitHub reports it now, with its new name if it was renamed."""
    from controlplane.store.repository_items import HostedRepository
    from ops import code_host

    installation_id, found = code_host.find_repository(owner, name)
    return HostedRepository(
        installation_id=installation_id,
        owner=found.owner,
        name=found.name,
        html_url=found.html_url,
        default_branch=found.default_branch,
        visibility="private" if found.is_private else "public",
    )


def _get_repository(text: str) -> "RepositoryItem":
    from controlplane.store import repositories

    repository = repositories.find_repository(_parse_repository_id(text))
    if repository is None:
        raise NotFound(f"There is no repository {text}.")
    return repository


def _parse_repository_id(text: str) -> "RepositoryId":
    from controlplane.core.ids import RepositoryId

    repository_id = RepositoryId.parse(text)
    if repository_id is None:
        raise NotFound(f"There is no repository {text}.")
    return repository_id


def _document(repository: "RepositoryItem") -> dict[str, Any]:
    return {
        "repositoryId": repository.repository_id,
        "organizationId": repository.organization_id,
        "owner": repository.owner,
        "name": repository.name,
        "url": repository.html_url,
        "installation": repository.installation_id,
        "defaultBranch": repository.default_branch,
        "visibility": repository.visibility,
        "connectedAt": repository.connected_at,
        "projects": [
            {
                "projectId": link.project_id,
                "productionBranch": link.production_branch,
                "rootDirectory": link.root_directory,
                "pullRequestScans": link.pull_request_scans_enabled,
                "scanOnPush": link.scan_on_push,
                "schedule": link.schedule,
                "failureThreshold": link.failure_threshold,
            }
            for link in repository.links
        ],
    }
