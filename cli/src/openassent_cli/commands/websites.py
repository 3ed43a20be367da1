"""`assent website`: the websites of a project."""

from typing import Annotated

import typer

from openassent_cli.commands.projects import Name
from openassent_cli.commands.shared import DryRun, Group, Yes, confirm
from openassent_cli.finding import found_by_name, project_id
from openassent_cli.invocation import invocation
from openassent_cli.output import done, show_list

app = Group()
Address = Annotated[str, typer.Argument(help="The website's address, such as https://shop.example.")]


@app.add("list")
def list_websites(project: Name) -> None:
    """List a project's websites."""
    with invocation().client() as client:
        websites = client.projects.get(project_id(client, project)).websites
    show_list(
        websites,
        {"ADDRESS": "origin", "PRIMARY": "primary", "AUDITED": "audited", "ID": "id"},
        empty="The project has no websites. Add one with `assent website add`.",
    )


@app.add("add")
def add(project: Name, address: Address, dry_run: DryRun = False) -> None:
    """Add a website to a project."""
    with invocation().client() as client:
        found = client.projects.get(project_id(client, project))
        origins = [it.origin for it in found.websites]
        updated = client.projects.update(found.id, websites=[*origins, address], dry_run=dry_run)
        done(updated, f"{'Would add' if dry_run else 'Added'} {address} to {found.name}.")


@app.add("remove")
def remove(
    project: Name,
    website: Annotated[str, typer.Argument(help="The website's ID or address.")],
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Remove a website from a project."""
    with invocation().client() as client:
        found = client.projects.get(project_id(client, project))
        wanted = found_by_name("website", website, found.websites, "id", "origin")
        if not dry_run:
            confirm(f"Remove {wanted.origin} from {found.name}?", yes=yes)
        deleted = client.projects.delete_website(found.id, wanted.id, dry_run=dry_run)
        done(deleted, f"{'Would remove' if dry_run else 'Removed'} {wanted.origin}.")
