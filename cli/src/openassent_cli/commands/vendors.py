"""`assent vendor`: the vendors that were detected on a project's websites and in its code."""

from enum import StrEnum
from typing import Annotated

import typer

from openassent_cli.commands.projects import Name
from openassent_cli.commands.shared import DEFAULT_LIMIT, DryRun, Group, Limit
from openassent_cli.finding import project_id
from openassent_cli.invocation import invocation, note
from openassent_cli.output import counted, done, print_json, show_list
from openassent_cli.printable import printable, printable_line

app = Group()
Vendor = Annotated[str, typer.Argument(help="The vendor's ID.")]


class TableFormat(StrEnum):
    HTML = "html"
    MARKDOWN = "markdown"
    JSON = "json"


Format = Annotated[TableFormat, typer.Option("--format", help="html, markdown, or json.")]


@app.add("list")
def list_vendors(project: Name, limit: Limit = DEFAULT_LIMIT) -> None:
    """List a project's vendors."""
    with invocation().client() as client:
        show_list(
            client.vendors.list(project_id(client, project)),
            {
                "VENDOR": "vendor_id",
                "NAME": "name",
                "CATEGORY": "category",
                "DECISION": "review_state",
                "LAST SEEN": "last_seen_at",
                "REPOSITORIES": lambda it: ", ".join(use.repository_name for use in it.repositories if use.found),
            },
            limit=limit,
            empty="No vendors were seen on this project.",
        )


@app.add("table")
def table(project: Name, form: Format = TableFormat.MARKDOWN) -> None:
    """Print the privacy table: the approved vendors with their cookies."""
    with invocation().client() as client:
        found = client.vendors.privacy_table(project_id(client, project))
    if invocation().json or form is TableFormat.JSON:
        print_json(found)
        return
    typer.echo(printable(found.html if form is TableFormat.HTML else found.markdown), nl=False)
    left_out = {
        "without a decision": found.undecided,
        "ignored, but found": found.ignored,
        "approved, but not found": found.unseen,
    }
    for reason, names in left_out.items():
        if names:
            note(f"Not in the table: {counted(len(names), 'vendor')} {reason} ({printable_line(', '.join(names))}).")


@app.add("approve")
def approve(project: Name, vendor: Vendor, dry_run: DryRun = False) -> None:
    """Approve a vendor that the project may use after consent."""
    _decide(project, vendor, "approve", "Approved", dry_run=dry_run)


@app.add("ignore")
def ignore(project: Name, vendor: Vendor, dry_run: DryRun = False) -> None:
    """Ignore a vendor: the next scan resolves findings about it.

    These are the open findings about loading it in code, unless they involve a vendor that isn't ignored.
    """
    _decide(project, vendor, "ignore", "Ignored", dry_run=dry_run)


def _decide(project: str, vendor: str, decision: str, past: str, *, dry_run: bool) -> None:
    with invocation().client() as client:
        result = client.vendors.decide(project_id(client, project), vendor, decision=decision, dry_run=dry_run)
        done(result, f"{f'Would {decision}' if dry_run else past} {vendor}.")
