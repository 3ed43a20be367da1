"""`assent-ops issue`: the creation of GitHub issues whose outcome is unknown."""
# ruff: noqa: PLC0415 (see ops.command.command)

from typing import Annotated

import typer

from ops.arguments import Yes
from ops.command import command
from ops.errors import Conflict, Misused
from ops.output import Result, confirm

app = typer.Typer(no_args_is_help=True, help="Issues that are being created, and those with an unknown outcome.")


def _parse_url(text: str) -> str:
    if not text.startswith(("https://", "http://")):
        raise typer.BadParameter("Write the URL like this: https://github.com/acme/shop/issues/42.")
    return text


@command(app, "list")
def list_attempts() -> Result:
    """List pending issue creations, in all organizations, oldest first."""
    from ops import issues

    return Result(issues.list_attempts())


@command(app, "reconcile")
def reconcile(
    item: Annotated[str, typer.Argument(metavar="ITEM_ID", help="inb_…")],
    number: Annotated[int | None, typer.Option("--number", min=1, help="The number of the existing issue.")] = None,
    url: Annotated[str | None, typer.Option("--url", parser=_parse_url, help="The issue's address.")] = None,
    absent: Annotated[
        bool, typer.Option("--absent", help="The issue doesn't exist, and won't be created by an earlier request.")
    ] = False,
    yes: Yes = False,
) -> Result:
    """Resolve a pending issue creation.

    Without options, the worker searches for the issue again. With --number and --url, that issue is recorded for the
    item. With --absent, the attempt ends, and the next request creates a new issue. The issue's body has the `marker`
    that `issue list` shows, in a comment.
    """
    from controlplane.findings.items import GithubIssue
    from controlplane.platform.core import clock
    from ops import issues

    if absent and (number or url):
        raise Misused("Pass either --absent or --number with --url, not both.")
    if (number is None) != (url is None):
        raise Misused("Pass --number and --url together.")
    progress = issues.get_progress(item)
    if number is not None and url is not None:
        confirm(f"Record {url} as the issue of {item}?", yes=yes)
        issues.record_issue(progress.item, GithubIssue(number, url, clock.timestamp()))
        return Result({"itemId": item, "outcome": "recorded", "number": number, "url": url})
    if progress.attempt is None:
        raise Conflict("This item has no pending issue creation.")
    if absent:
        confirm(f"End the issue creation for {item}?", yes=yes)
        issues.withdraw(progress.attempt)
        return Result({"itemId": item, "outcome": "withdrawn"})
    issues.send_message(progress.item.item_id)
    return Result(
        {"itemId": item, "outcome": "sent"}, "The worker is searching for the issue. Check `issue list` shortly."
    )
