"""`assent-ops inbox` and `assent-ops issue`: findings, and the creation of GitHub issues for them."""
# ruff: noqa: PLC0415 (see ops.command.command)

from typing import Annotated

import typer

from ops.arguments import Organization, Yes
from ops.command import command
from ops.errors import Conflict, Misused
from ops.output import Result, confirm

app = typer.Typer(no_args_is_help=True, help="An organization's inbox of findings.")
issue_app = typer.Typer(no_args_is_help=True, help="Issues that are being created, and those with an unknown outcome.")

_STATUSES = ("open", "accepted", "dismissed", "resolved")


def _parse_status(text: str) -> str:
    if text not in _STATUSES:
        raise typer.BadParameter(f"A status is one of {', '.join(_STATUSES)}.")
    return text


def _parse_url(text: str) -> str:
    if not text.startswith(("https://", "http://")):
        raise typer.BadParameter("Write the URL like this: https://github.com/acme/shop/issues/42.")
    return text


def _parse_time(text: str) -> str:
    from datetime import datetime

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise typer.BadParameter("Write the time like this: 2026-03-04T05:06:07Z.")
    return text


Item = Annotated[str, typer.Argument(metavar="ITEM_ID", help="inb_…")]


@command(app, "list")
def list_items(
    organization: Organization,
    status: Annotated[
        str | None,
        typer.Option("--status", parser=_parse_status, metavar="STATUS", help=f"One of {', '.join(_STATUSES)}."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100, help="The maximum number.")] = 50,
) -> Result:
    """List an organization's findings, most recently updated first."""
    from ops import inbox
    from ops.lookup import get_organization_id

    return Result(inbox.list_items(get_organization_id(organization), status, limit))  # type: ignore[arg-type]


@command(app, "show")
def show_item(item: Item) -> Result:
    """Show a finding and the state of its issue creation."""
    from ops import inbox

    return Result(inbox.progress_document(inbox.get_progress(item)))


@command(issue_app, "list")
def list_attempts() -> Result:
    """List pending issue creations, in all organizations, oldest first."""
    from ops import inbox

    return Result(inbox.list_attempts())


@command(issue_app, "reconcile")
def reconcile(  # noqa: PLR0917 (Typer passes them by name)
    item: Item,
    number: Annotated[int | None, typer.Option("--number", min=1, help="The number of the existing issue.")] = None,
    url: Annotated[str | None, typer.Option("--url", parser=_parse_url, help="The issue's address.")] = None,
    created_at: Annotated[
        str | None,
        typer.Option("--created-at", parser=_parse_time, metavar="TIME", help="When it was created. Default: now."),
    ] = None,
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
    from controlplane.core import clock
    from controlplane.store.inbox_items import GithubIssue
    from ops import inbox

    if absent and (number or url):
        raise Misused("Pass either --absent or --number with --url, not both.")
    if (number is None) != (url is None):
        raise Misused("Pass --number and --url together.")
    progress = inbox.get_progress(item)
    if number is not None and url is not None:
        confirm(f"Record {url} as the issue of {item}?", yes=yes)
        issue = GithubIssue(number, url, created_at or clock.timestamp())
        inbox.record_issue(progress.item, issue)
        return Result({"itemId": item, "outcome": "recorded", "number": number, "url": url})
    if progress.attempt is None:
        raise Conflict("This item has no pending issue creation.")
    if absent:
        confirm(f"End the issue creation for {item}?", yes=yes)
        inbox.withdraw(progress.attempt)
        return Result({"itemId": item, "outcome": "withdrawn"})
    inbox.send_message(progress.item.item_id)
    return Result(
        {"itemId": item, "outcome": "sent"}, "The worker is searching for the issue. Check `inbox show` shortly."
    )
