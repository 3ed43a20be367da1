"""`assent-ops issue`: the creation of GitHub issues whose outcome is unknown."""

import json
from typing import Annotated

import typer

from controlplane.findings import issue_attempts
from controlplane.findings.issue_attempts import UNSETTLED_SECONDS, AttemptItem
from controlplane.findings.items import GithubIssue, InboxItem
from controlplane.platform.core import clock
from controlplane.platform.core.ids import InboxItemId
from controlplane.platform.queues.messages import CreateIssue
from ops.arguments import Yes, new_group
from ops.output import Conflict, Misused, NotFound, Refused, Result, confirm, fields
from ops.target import create_client, find_resource

app = new_group("Issues whose creation is pending.")


def _parse_url(text: str) -> str:
    if not text.startswith(("https://", "http://")):
        raise typer.BadParameter("Write the URL like this: https://github.com/acme/shop/issues/42.")
    return text


@app.command("list")
def list_attempts() -> Result:
    """List pending issue creations, in all organizations, oldest first."""
    attempts = sorted(issue_attempts.list_attempts(), key=lambda attempt: attempt.requested_at)
    return Result(
        [
            {
                **fields(attempt, "item_id", "state", "requested_by", "requested_at"),
                "sentAt": clock.timestamp(attempt.sent_at) if attempt.sent_at else None,
                "overdue": attempt.is_overdue,
                "marker": attempt.marker,
            }
            for attempt in attempts
        ]
    )


@app.command("reconcile")
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
    if absent and (number or url):
        raise Misused("Pass either --absent or --number with --url, not both.")
    if (number is None) != (url is None):
        raise Misused("Pass --number and --url together.")
    item_id = InboxItemId.parse(item)
    progress = issue_attempts.find_progress(item_id) if item_id else None
    if progress is None:
        raise NotFound(f"There is no inbox item {item}.")
    if number is not None and url is not None:
        confirm(f"Record {url} as the issue of {item}?", yes=yes)
        record_issue(progress.item, GithubIssue(number, url, clock.timestamp()))
        return Result({"itemId": item, "outcome": "recorded", "number": number, "url": url})
    if progress.attempt is None:
        raise Conflict("This item has no pending issue creation.")
    if absent:
        confirm(f"End the issue creation for {item}?", yes=yes)
        withdraw(progress.attempt)
        return Result({"itemId": item, "outcome": "withdrawn"})
    queue_url = find_resource("IssueCreationQueue", "ISSUE_CREATION_QUEUE_URL")
    message = CreateIssue(item_id=progress.item.item_id).model_dump(by_alias=True)
    create_client("sqs").send_message(QueueUrl=queue_url, MessageBody=json.dumps(message))
    return Result(
        {"itemId": item, "outcome": "sent"}, "The worker is searching for the issue. Check `issue list` shortly."
    )


def record_issue(item: InboxItem, issue: GithubIssue) -> None:
    """Records that the issue exists. Raises Conflict if the item already has one, NotFound."""
    try:
        issue_attempts.complete(item.item_id, None, issue, item.repository_id)
    except issue_attempts.IssueExists:
        raise Conflict("The item already has an issue.") from None
    except issue_attempts.AttemptChanged:
        raise NotFound(f"There is no inbox item {item.item_id}.") from None


def withdraw(attempt: AttemptItem) -> None:
    """Records that no issue was created. Raises Refused if one may still appear, Conflict if the attempt changed."""
    age_seconds = clock.now() - attempt.sent_at if attempt.sent_at else UNSETTLED_SECONDS
    if age_seconds < UNSETTLED_SECONDS:
        until = clock.timestamp(clock.now() - age_seconds + UNSETTLED_SECONDS)
        raise Refused(f"The issue may have been created but not listed yet. Check again at {until}.")
    try:
        issue_attempts.refuse(attempt, "withdrawn")
    except issue_attempts.AttemptChanged:
        raise Conflict("The attempt has changed since it was read. Check it again.") from None
