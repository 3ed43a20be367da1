"""`assent project`: projects and their consent instances."""

from typing import Annotated

import typer

from assent_cli.commands.finding import project_id
from assent_cli.commands.shared import DEFAULT_LIMIT, DryRun, Group, Limit, Yes, confirm
from assent_cli.invocation import invocation
from assent_cli.output import done, show, show_list

app = Group("Projects and their consent instances.")
Name = Annotated[str, typer.Argument(metavar="PROJECT", help="The project's ID, slug, or name.")]


@app.command("list")
def list_projects(limit: Limit = DEFAULT_LIMIT) -> None:
    """List the organization's projects."""
    with invocation().client() as client:
        show_list(
            client.projects.list(),
            [
                ("SLUG", lambda it: it.slug),
                ("NAME", lambda it: it.name),
                ("WEBSITES", lambda it: [website.origin for website in it.websites]),
                ("ID", lambda it: it.id),
            ],
            limit=limit,
            empty="There are no projects. Create one with `assent project create`.",
        )


@app.command("show")
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
            ("Websites", "\n".join(it.origin for it in found.websites) or "none"),
            ("Trusted origins", "\n".join(consent.trusted_origins) if consent else None),
            ("Branding", consent.branding if consent else None),
            ("Consent backend", consent.backend_url if consent else None),
            ("Dashboard", found.dashboard_url),
            ("Created", found.created_at),
        ],
    )


@app.command("create")
def create(
    name: Annotated[str, typer.Argument(help="The project's name.")],
    region: Annotated[str, typer.Option(help="Where its consent data is stored. `assent project regions` lists them.")],
    website: Annotated[list[str] | None, typer.Option(help="The address of a website; repeatable.")] = None,
    trusted_origin: Annotated[
        list[str] | None, typer.Option(help="An origin that may use the consent instance; repeatable.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Create a project with a consent instance."""
    with invocation().client() as client:
        created = client.projects.create(
            name=name,
            region=region,
            websites=website or None,
            consent={"trustedOrigins": trusted_origin} if trusted_origin else None,
            dry_run=dry_run,
        )
        done(created, f"{'Would create' if dry_run else 'Created'} {created.name} ({created.slug}): {created.id}")


@app.command("update")
def update(
    project: Name,
    name: Annotated[str | None, typer.Option(help="The new name.")] = None,
    description: Annotated[str | None, typer.Option(help="The new description.")] = None,
    website: Annotated[list[str] | None, typer.Option(help="Replaces all websites; repeatable.")] = None,
    dry_run: DryRun = False,
) -> None:
    """Change a project. Options that aren't given change nothing."""
    changes = {"project_name": name, "description": description, "websites": website or None}
    with invocation().client() as client:
        given = {field: value for field, value in changes.items() if value is not None}
        updated = client.projects.update(project_id(client, project), dry_run=dry_run, **given)
        done(updated, f"{'Would change' if dry_run else 'Changed'} {updated.project_name}.")


@app.command("delete")
def delete(project: Name, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Delete a project with its consent instance, websites, and vendors."""
    with invocation().client() as client:
        found = project_id(client, project)
        if not dry_run:
            confirm(f"Delete the project {project} and everything in it?", yes=yes)
        deleted = client.projects.delete(found, dry_run=dry_run)
        done(deleted, f"{'Would delete' if dry_run else 'Deleted'} {project} with {deleted.deleted_websites} websites.")


@app.command("regions")
def regions() -> None:
    """List the regions that consent data can be stored in."""
    with invocation().client() as client:
        show_list(
            client.regions.list(), [("ID", lambda it: it.id), ("NAME", lambda it: it.label)], limit=1_000, empty=""
        )
