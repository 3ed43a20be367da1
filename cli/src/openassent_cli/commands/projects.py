"""`assent project`: projects and their consent instances."""

from typing import Annotated

import typer

import openassent
from openassent_cli.commands.shared import DEFAULT_LIMIT, DryRun, Group, Limit, Yes, confirm
from openassent_cli.finding import project_id
from openassent_cli.invocation import invocation
from openassent_cli.output import counted, done, show, show_list
from openassent_cli.problems import Exit, Problem

app = Group()
Name = Annotated[str, typer.Argument(metavar="PROJECT", help="The project's ID, slug, or name.")]


@app.add("list")
def list_projects(limit: Limit = DEFAULT_LIMIT) -> None:
    """List the organization's projects."""
    with invocation().client() as client:
        show_list(
            client.projects.list(),
            {"SLUG": "slug", "NAME": "name", "DESCRIPTION": "description", "ID": "id"},
            limit=limit,
            empty="There are no projects. Create one with `assent project create`.",
        )


@app.add("show")
def show_project(project: Name) -> None:
    """Show a project."""
    with invocation().client() as client:
        found = client.projects.get(project_id(client, project))
    consent = found.consent
    show(
        found,
        [
            ("Name", found.name),
            ("Slug", found.slug),
            ("ID", found.id),
            ("Description", found.description),
            ("Organization", found.organization_slug),
            ("Region", found.region),
            ("Websites", [it.origin for it in found.websites] or "none"),
            ("Trusted origins", consent.trusted_origins if consent else None),
            ("Branding", consent.branding if consent else None),
            ("Consent backend", consent.backend_url if consent else None),
            ("Dashboard", found.dashboard_url),
            ("Created", found.created_at),
        ],
    )


@app.add("create", "assent project create Shop --region eu-central --website shop.example.com")
def create(
    name: Annotated[str, typer.Argument(help="The project's name.")],
    region: Annotated[str, typer.Option(help="Where its configuration is served: `assent api GET /v1/regions`.")],
    website: Annotated[list[str] | None, typer.Option(help="The address of a website; repeatable.")] = None,
    dry_run: DryRun = False,
) -> None:
    """Create a project with a consent instance."""
    with invocation().client() as client:
        created = client.projects.create(
            name=name,
            region=region,
            websites=website or None,
            dry_run=dry_run,
        )
        done(created, f"{'Would create' if dry_run else 'Created'} {created.name} ({created.slug}): {created.id}")


@app.add("update")
def update(
    project: Name,
    name: Annotated[str | None, typer.Option(help="The new name.")] = None,
    description: Annotated[str | None, typer.Option(help="The new description.")] = None,
    website: Annotated[list[str] | None, typer.Option(help="Replaces all websites; repeatable.")] = None,
    dry_run: DryRun = False,
) -> None:
    """Change a project. Options that aren't given change nothing."""
    if name is None and description is None and website is None:
        raise Problem("No change was given.", "Give an option, such as --name.", Exit.USAGE)
    with invocation().client() as client:
        updated = client.projects.update(
            project_id(client, project),
            name=name,
            description=openassent.OMIT if description is None else description,
            websites=website or None,
            dry_run=dry_run,
        )
        done(updated, f"{'Would change' if dry_run else 'Changed'} {updated.name}.")


@app.add("delete")
def delete(project: Name, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Delete a project with its consent instance, websites, and vendors."""
    with invocation().client() as client:
        found = project_id(client, project)
        if not dry_run:
            confirm(f"Delete the project {project} and everything in it?", yes=yes)
        deleted = client.projects.delete(found, dry_run=dry_run)
        websites = counted(deleted.deleted_websites, "website")
        done(deleted, f"{'Would delete' if dry_run else 'Deleted'} {project} with {websites}.")
