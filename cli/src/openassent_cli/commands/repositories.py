"""`assent repo`: connected repositories, and the projects that they are linked to."""

from enum import StrEnum
from typing import Annotated

import typer

import openassent
from openassent_cli.commands.projects import Name as Project
from openassent_cli.commands.shared import DEFAULT_LIMIT, DryRun, Group, Limit, Yes, confirm
from openassent_cli.finding import project_id, repository_id
from openassent_cli.invocation import invocation
from openassent_cli.output import done, show_list


class Schedule(StrEnum):
    DAILY = "daily"
    WEEKLY = "weekly"
    OFF = "off"


app = Group()
Repository = Annotated[str, typer.Argument(metavar="REPOSITORY", help="The repository's ID, or owner/name.")]
Branch = Annotated[str | None, typer.Option(help="The production branch.")]
Root = Annotated[str | None, typer.Option("--root", help="The folder that belongs to the project.")]
PullRequests = Annotated[bool | None, typer.Option(help="Scan pull requests.")]
Pushes = Annotated[bool | None, typer.Option(help="Scan pushes to the production branch.")]


@app.add("list")
def list_repositories(limit: Limit = DEFAULT_LIMIT) -> None:
    """List the organization's connected repositories."""
    with invocation().client() as client:
        show_list(
            client.repositories.list(),
            {
                "REPOSITORY": lambda it: f"{it.owner}/{it.name}",
                "BRANCH": "default_branch",
                "PROJECTS": lambda it: [link.project_slug for link in it.projects],
                "ACCESS": lambda it: "lost" if it.access_lost_at else "yes",
                "ID": "id",
            },
            limit=limit,
            empty="No repositories are connected. Connect GitHub on the organization's page.",
        )


@app.add("link", "assent repo link acme/shop shop --pull-requests")
def link(
    *,
    repository: Repository,
    project: Project,
    branch: Branch = None,
    root: Root = None,
    pull_requests: PullRequests = None,
    pushes: Pushes = None,
    schedule: Annotated[Schedule | None, typer.Option(help="Also scan it: daily, weekly, or off.")] = None,
    dry_run: DryRun = False,
) -> None:
    """Link a repository to a project, or change the link."""
    every = None if schedule is Schedule.OFF else schedule
    with invocation().client() as client:
        repo, wanted = repository_id(client, repository), project_id(client, project)
        if any(it.project_id == wanted for it in client.links.list(repo)):
            result = client.links.update(
                repo,
                wanted,
                production_branch=branch or openassent.OMIT,
                root_directory=openassent.OMIT if root is None else root or None,
                pull_request_scans_enabled=pull_requests,
                scan_on_push=pushes,
                schedule=openassent.OMIT if schedule is None else every,
                dry_run=dry_run,
            )
        else:
            result = client.links.create(
                repo,
                project_id=wanted,
                production_branch=branch,
                root_directory=root or None,
                pull_request_scans_enabled=pull_requests,
                scan_on_push=pushes,
                schedule=every,
                dry_run=dry_run,
            )
        done(result, f"{'Would link' if dry_run else 'Linked'} {repository} to {result.project_name}.")


@app.add("unlink")
def unlink(repository: Repository, project: Project, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Remove the link of a repository to a project."""
    with invocation().client() as client:
        repo, wanted = repository_id(client, repository), project_id(client, project)
        if not dry_run:
            confirm(f"Unlink {repository} from {project}?", yes=yes)
        deleted = client.links.delete(repo, wanted, dry_run=dry_run)
        done(deleted, f"{'Would unlink' if dry_run else 'Unlinked'} {repository} from {project}.")
