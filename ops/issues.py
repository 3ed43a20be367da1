"""The operator's actions on attempts to create issues."""

import json
from typing import Any

from controlplane.findings import issue_attempts
from controlplane.findings.issue_attempts import UNSETTLED_SECONDS, AttemptItem, IssueProgress
from controlplane.findings.items import GithubIssue, InboxItem
from controlplane.platform.core import clock
from controlplane.platform.core.ids import InboxItemId
from controlplane.platform.queues.messages import CreateIssue
from ops.errors import Conflict, NotFound, Refused
from ops.target import find_queue

QUEUE, QUEUE_VARIABLE = "IssueCreationQueue", "ISSUE_CREATION_QUEUE_URL"


def get_progress(text: str) -> IssueProgress:
    """Returns the item with that id and the state of its issue creation. Raises NotFound."""
    item_id = InboxItemId.parse(text)
    progress = issue_attempts.find_progress(item_id) if item_id else None
    if progress is None:
        raise NotFound(f"There is no inbox item {text}.")
    return progress


def list_attempts() -> list[dict[str, Any]]:
    """Returns all open attempts, oldest first."""
    attempts = sorted(issue_attempts.list_attempts().attempts, key=lambda attempt: attempt.requested_at)
    return [
        {
            "itemId": attempt.item_id,
            "state": attempt.state,
            "requestedBy": attempt.requested_by,
            "requestedAt": attempt.requested_at,
            "sentAt": clock.timestamp(attempt.sent_at) if attempt.sent_at else None,
            "overdue": attempt.is_overdue,
            "marker": attempt.marker,
        }
        for attempt in attempts
    ]


def record_issue(item: InboxItem, issue: GithubIssue) -> None:
    """Records that the issue exists. Raises Conflict if the item already has one, NotFound."""
    try:
        issue_attempts.complete(item.item_id, None, issue, item.repository_id, item.path)
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
        issue_attempts.withdraw(attempt)
    except issue_attempts.AttemptChanged:
        raise Conflict("The attempt has changed since it was read. Check it again.") from None


def send_message(item_id: InboxItemId) -> None:
    """Sends the attempt's message, so that the worker processes it now."""
    client, url = find_queue(QUEUE, QUEUE_VARIABLE)
    client.send_message(QueueUrl=url, MessageBody=json.dumps(CreateIssue(item_id=item_id).model_dump(by_alias=True)))
