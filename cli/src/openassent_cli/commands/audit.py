"""`assent audit`: the website itself, in a browser on this machine."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from openassent_cli.commands.shared import Group, Priority
from openassent_cli.invocation import invocation
from openassent_cli.output import print_json, written_to
from openassent_cli.problems import Exit, Problem
from openassent_cli.progress import VisitProgress

app = Group()


@app.add("audit")
def audit(
    url: Annotated[str, typer.Argument(metavar="URL", help="The address of the website's start page.")],
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the report to this file instead.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a picture of the page before any choice, as JPEG.")
    ] = None,
    pages: Annotated[int, typer.Option(min=1, max=20, help="How many pages a visit opens.")] = 5,
    settle: Annotated[float, typer.Option(min=0.5, max=60, help="How many seconds each page may run.")] = 5,
    fail_on: Annotated[Priority | None, typer.Option(help="Exit with 3 if a finding is at least this urgent.")] = None,
) -> None:
    """Visit a website in Chromium, and list what it loads without consent: on this machine, without an account."""
    # Imported here, because only this command needs the extra `audit`.
    from openassent_audit import Limits, audit_website  # noqa: PLC0415
    from openassent_cli.reports import website  # noqa: PLC0415

    address = url if "://" in url else f"https://{url}"
    # A loop of its own. `asyncio.run` would also remove the thread's loop.
    with VisitProgress() as progress, asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        run = audit_website(address, limits=Limits(pages=pages, settle_seconds=settle), on_progress=progress.update)
        try:
            made = runner.run(run)
        except ValueError as error:
            raise Problem(str(error), code=Exit.USAGE) from None
    if picture and made.picture:
        picture.write_bytes(made.picture)
    with written_to(output):
        if invocation().json:
            print_json(made.as_json())
        else:
            website.print_report(made)
    if made.outcome == "blocked" and made.reason:
        raise Problem(made.reason.message)
    if fail_on and any(it.priority <= fail_on for it in made.findings):
        raise typer.Exit(Exit.FINDINGS)
