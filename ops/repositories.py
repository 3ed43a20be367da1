"""`assent-ops repository`: connected repositories and the projects linked to them."""

from typing import Annotated, Any

import typer

from controlplane.code_host import repositories
from controlplane.code_host.items import HostedRepository, Link, RepositoryItem
from controlplane.platform.core.ids import ProjectId, RepositoryId
from controlplane.platform.core.naming import is_folder
from ops import code_host
from ops.arguments import Organization, Project, new_group, parse_full_name
from ops.lookup import get_organization_id, parse_id
from ops.output import Conflict, NotFound, Result, fields

app = new_group("Connected repositories, and the projects linked to them.")


def _parse_folder(text: str) -> str:
    if not is_folder(text):
        raise typer.BadParameter("Write a path relative to the repository's root, for example apps/web.")
    return text


@app.command("connect")
def connect_repository(
    organization: Organization,
    full_name: Annotated[str, typer.Argument(metavar="OWNER/NAME", parser=parse_full_name)],
    installation: Annotated[
        int | None,
        typer.Option(
            "--installation", min=1, help="The id of the GitHub App's installation. Skips the lookup on GitHub."
        ),
    ] = None,
    url: Annotated[str | None, typer.Option("--url", help="Its page, with --installation.")] = None,
) -> Result:
    """Connect a repository to an organization, or update one that is already connected.

    Looks up the App's installation, the default branch, and the visibility on GitHub. With --installation, GitHub isn't
    called: the branch is main and the visibility private.
    """
    organization_id = get_organization_id(organization)
    owner, _, name = full_name.partition("/")
    if installation is None:
        hosted = _fetch_repository(owner, name)
    else:
        hosted = HostedRepository(
            installation_id=installation,
            owner=owner,
            name=name,
            html_url=url or f"https://github.com/{full_name}",
            default_branch="main",
            visibility="private",
        )
    return Result(_document(repositories.connect_repository(organization_id, hosted)))


@app.command("link")
def link_project(
    repository: Annotated[str, typer.Argument(metavar="REPOSITORY_ID", help="rep_…")],
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
) -> Result:
    """Link a project of the same organization, or change its link. Scans require at least one link.

    A link that exists keeps its other settings.
    """
    repository_id = parse_id(RepositoryId, repository, "repository")
    project_id = parse_id(ProjectId, project, "project")
    found = repositories.find_repository(repository_id)
    kept = (found.find_link(project_id) if found else None) or Link(project_id, None, None, False)
    link = kept._replace(production_branch=branch, root_directory=root_directory)
    try:
        return Result(_document(repositories.link_project(repository_id, link)))
    except repositories.ProjectGone:
        raise NotFound(f"The repository's organization has no project {project}.") from None
    except repositories.LinkLimitReached:
        raise Conflict(f"The repository has {repositories.MAX_LINKS} linked projects. Unlink one first.") from None


def _fetch_repository(owner: str, name: str) -> HostedRepository:
    """Returns the repository as GitHub reports it now, with its new name if it was renamed."""
    installation_id, found = code_host.find_repository(owner, name)
    return HostedRepository(
        installation_id=installation_id,
        owner=found.owner,
        name=found.name,
        html_url=found.html_url,
        default_branch=found.default_branch,
        visibility="private" if found.is_private else "public",
    )


def _document(repository: RepositoryItem) -> dict[str, Any]:
    shown = ("repository_id", "organization_id", "owner", "name", "default_branch", "visibility", "connected_at")
    in_links = ("project_id", "production_branch", "root_directory", "scan_on_push", "schedule", "failure_threshold")
    return {
        **fields(repository, *shown),
        "url": repository.html_url,
        "installation": repository.installation_id,
        "projects": [
            {**fields(link, *in_links), "pullRequestScans": link.pull_request_scans_enabled}
            for link in repository.links
        ],
    }
