"""`assent vendor`: the vendors that were detected on a project's websites and in its code."""

from typing import Annotated

import typer

from openassent_cli.commands.projects import Name
from openassent_cli.commands.shared import DEFAULT_LIMIT, DryRun, Group, Limit
from openassent_cli.finding import project_id
from openassent_cli.invocation import invocation
from openassent_cli.output import done, show_list

app = Group()
Vendor = Annotated[str, typer.Argument(help="The vendor's ID.")]


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


@app.add("approve")
def approve(project: Name, vendor: Vendor, dry_run: DryRun = False) -> None:
    """Approve a vendor: the project may use it, once visitors have consented."""
    _decide(project, vendor, "approve", "Approved", dry_run=dry_run)


@app.add("ignore")
def ignore(project: Name, vendor: Vendor, dry_run: DryRun = False) -> None:
    """Ignore a vendor: the next scan resolves open code findings about loading only ignored vendors."""
    _decide(project, vendor, "ignore", "Ignored", dry_run=dry_run)


def _decide(project: str, vendor: str, decision: str, past: str, *, dry_run: bool) -> None:
    with invocation().client() as client:
        result = client.vendors.decide(project_id(client, project), vendor, decision=decision, dry_run=dry_run)
        done(result, f"{f'Would {decision}' if dry_run else past} {vendor}.")
