"""`assent open`: the pages of the dashboard."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openassent_cli import git
from openassent_cli.commands.shared import Group
from openassent_cli.finding import chosen_slug, project_id
from openassent_cli.invocation import invocation
from openassent_cli.output import print_json
from openassent_cli.problems import Exit, NotSignedIn, Problem

if TYPE_CHECKING:
    from openassent import Assent

app = Group()


@app.add("open", "assent open", "assent open shop", "assent open scn_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t --no-browser")
def open_page(
    what: Annotated[
        str | None,
        typer.Argument(help="A project's ID, slug, or name, or the ID of a finding, scan, or organization."),
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Open a page of the dashboard, and print its address.

    Without an argument, it is the page of the project whose repository this folder belongs to, or that of the
    organization.
    """
    from openassent_cli.login import open_browser  # noqa: PLC0415 (imports the SDK)

    with invocation().client() as client:
        address = _address(client, what)
    if invocation().json:
        print_json({"url": address})
    else:
        typer.echo(address)
    if browser:
        open_browser(address)


def _address(client: "Assent", what: str | None) -> str:
    kind = (what or "").partition("_")[0]
    if what and kind not in {"scn", "inb", "org"}:
        return client.projects.get(project_id(client, what)).dashboard_url
    if what is None and (project := _project_here(client)):
        return client.projects.get(project).dashboard_url
    organization = _organization_page(client, what if kind == "org" else None)
    area = {"scn": "scans", "inb": "inbox"}.get(kind)
    return f"{organization}/{area}/{what}" if area else organization


def _project_here(client: "Assent") -> str | None:
    """Returns the ID of the first project that is linked to the repository of this folder."""
    remote = git.remote_name(Path())
    if remote is None:
        return None
    linked = (it for it in client.repositories.list() if f"{it.owner}/{it.name}".lower() == remote.lower())
    return next((link.project_id for it in linked for link in it.projects), None)


def _organization_page(client: "Assent", wanted: str | None) -> str:
    """Returns the address of an organization's page. wanted: its ID, or None for the chosen one."""
    settings = invocation().settings()
    if settings.dashboard is None:
        raise NotSignedIn("The address of the dashboard isn't known.")
    slug = chosen_slug(client.me.get(), wanted or settings.organization)
    if slug is None:
        raise Problem("No organization is chosen.", "Give --org, or run `assent org use`.", Exit.USAGE)
    return f"{settings.dashboard}/organizations/{slug}"
