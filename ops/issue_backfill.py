"""Backfill of issues that were opened before the inbox followed them: the entries that lead from an issue to its item.

For each it also writes a message to the outbox, for `github_events`, which reads from GitHub whether the issue has been
closed since.
"""

from typing import Any

from controlplane.core import clock
from controlplane.core.ids import InboxItemId, RepositoryId
from controlplane.queues import messages
from controlplane.queues.messages import HostEvent, Queue
from controlplane.store import keys, opened_issues, repositories
from controlplane.store.outbox import Entry
from ops import backfill

_RETRIED_SECONDS = 86_400


def run(*, again: bool = False) -> dict[str, Any]:
    """Indexes the issues. Returns the numbers of issues read and indexed, and when it finished.

    again: starts over, for example after a rollback to an older release.
    """
    condition = (
        "begins_with(#pk, :organization) AND begins_with(#sk, :item) AND attribute_exists(#githubIssue)"
        " AND attribute_exists(#repositoryId)"
    )
    values = {"organization": keys.organization_pk(""), "item": keys.INBOX_PREFIX}
    outcome = backfill.run(keys.issue_backfill(), condition, values, _index, again=again)
    return {"completedAt": outcome.completed_at, "read": outcome.read, "indexed": outcome.changed}


def _index(item: dict[str, Any]) -> bool:
    """Returns True if the item's issue didn't lead to it before."""
    issue, repository_id = item["githubIssue"], item["repositoryId"]
    if not issue or not repository_id:
        return False
    number = issue["number"]
    stored_id = RepositoryId.stored(repository_id)
    return opened_issues.index(stored_id, number, InboxItemId.stored(item["itemId"]), _message(stored_id, number))


def _message(repository_id: RepositoryId, number: int) -> Entry | None:
    """Returns the message to read the issue, if the repository is still connected and GitHub's number is known."""
    repository = repositories.find_repository(repository_id)
    if repository is None or repository.hosted_id is None:
        return None
    event = HostEvent(
        event="issues",
        installation_id=repository.installation_id,
        hosted_id=repository.hosted_id,
        subject=number,
        until=int(clock.now()) + _RETRIED_SECONDS,
    )
    return messages.entry(Queue.GITHUB_EVENTS, event)
