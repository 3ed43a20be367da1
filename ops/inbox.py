"""Lookup and display of inbox items and of attempts to create issues."""

import json
from typing import Any

from controlplane.core import clock
from controlplane.core.ids import InboxItemId
from controlplane.queues.messages import CreateIssue
from controlplane.store import inbox, issue_attempts
from controlplane.store.inbox_items import GithubIssue, InboxItem
from controlplane.store.issue_attempts import UNSETTLED_SECONDS, AttemptItem, IssueProgress
from controlplane.store.status_history import Status
from ops.errors import Conflict, NotFound, Refused
from ops.target import find_queue

QUEUE, QUEUE_VARIABLE = "IssueCreationQueue", "ISSUE_CREATION_QUEUE_URL"


def list_items(organization_id: str, status: Status | None, limit: int) -> list[dict[str, Any]]:
    """Returns summaries of the organization's most recently changed items."""
    page = inbox.list_items(organization_id, status, limit, None)
    names = ("itemId", "status", "priority", "source", "title", "updatedAt")
    return [{name: document(item)[name] for name in names} for item in page.items]


def get_progress(text: str) -> IssueProgress:
    """Returns the item with that id and the state of its issue creation. Raises NotFound."""
    item_id = InboxItemId.parse(text)
    progress = issue_attempts.find_progress(item_id) if item_id else None
    if progress is None:
        raise NotFound(f"There is no inbox item {text}.")
    return progress


def document(item: InboxItem) -> dict[str, Any]:
    """Returns the complete item."""
    issue, vendor = item.github_issue, item.runtime_vendor
    return {
        "itemId": item.item_id,
        "organizationId": item.organization_id,
        "status": item.status,
        "statusReason": item.status_reason,
        "resolvedBy": item.resolved_by,
        "priority": item.priority,
        "source": item.source,
        "title": item.title,
        "summary": item.summary,
        "projectId": item.project_id,
        "repositoryId": item.repository_id,
        "repositoryName": item.repository_name,
        "ruleId": item.rule_id,
        "vendorId": vendor.vendor_id if vendor else None,
        "evidence": [evidence.url or evidence.description for evidence in item.evidence],
        "issueUrl": issue.url if issue else None,
        "updatedAt": item.updated_at,
        "version": item.version,
    }


def progress_document(progress: IssueProgress) -> dict[str, Any]:
    """Returns the item with the state of its issue creation."""
    attempt, refusal = progress.attempt, progress.refusal
    return {
        **document(progress.item),
        "issueAttempt": attempt_document(attempt) if attempt else None,
        "issueRefusal": refusal.reason if refusal else None,
    }


def attempt_document(attempt: AttemptItem) -> dict[str, Any]:
    return {
        "itemId": attempt.item_id,
        "state": attempt.state,
        "requestedBy": attempt.requested_by,
        "requestedAt": attempt.requested_at,
        "sentAt": clock.timestamp(attempt.sent_at) if attempt.sent_at else None,
        "overdue": attempt.is_overdue,
        "marker": attempt.marker,
    }


def list_attempts() -> list[dict[str, Any]]:
    """Returns all open attempts, oldest first."""
    attempts = sorted(issue_attempts.list_attempts().attempts, key=lambda attempt: attempt.requested_at)
    return [attempt_document(attempt) for attempt in attempts]


def record_issue(item: InboxItem, issue: GithubIssue) -> None:
    """Records that the issue exists. Raises Conflict if the item already has one, NotFound."""
    try:
        issue_attempts.complete(item.item_id, None, issue, item.repository_id, item.path)
    except issue_attempts.IssueExists:
        raise Conflict("The item already has an issue: see `inbox show`.") from None
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
