"""Starts the worker that opens or links an issue, with a message for each attempt, and another one if it is overdue.

An attempt stays in the table until its outcome is known, so it is its own outbox: if its message was never sent, or had
no result, the sweep sends it again. `findings.issue_attempts` describes the life cycle.
"""

from awsclient.errors import AwsError
from controlplane.findings import issue_attempts
from controlplane.findings.issue_attempts import AttemptItem
from controlplane.platform.core.ids import InboxItemId, RepositoryId
from controlplane.platform.core.observability import describe, logger
from controlplane.platform.queues.messages import CreateIssue, Queue, Unreachable, send
from controlplane.platform.queues.sweep_runs import SweepRun
from controlplane.platform.table import keys

# How long a message that was sent again may wait for others of its organization, before it counts as lost.
_RESENT_SECONDS = 600


def request_issue(item_id: InboxItemId, user_id: str, existing: int | None, repository_id: RepositoryId) -> AttemptItem:
    """Begins the attempt at the item's issue, or returns the pending one, and sends its message to the worker.

    existing: the number of the issue to link; None opens one.

    A pending attempt's message is sent again only if the attempt is overdue. If the queue is unavailable, the sweep
    sends the message later. Raises IssueExists, RoleLost, RepositoryUnlinked, UnknownItem.
    """
    attempt, is_new = issue_attempts.begin_attempt(item_id, user_id, existing, repository_id=repository_id)
    if is_new or attempt.is_overdue:
        try:
            send_message(item_id)
        except (Unreachable, AwsError) as error:
            logger.warning("attempt left to the sweep", extra={"itemId": item_id, **describe(error)})
    return attempt


def resend_overdue(run: SweepRun) -> None:
    """Sends the messages of attempts that a worker should have taken or settled by now. Runs as a step of the sweep."""
    for item in run.entries([keys.ISSUE_ATTEMPTS_PK]):
        with run.isolating(item):
            attempt = AttemptItem.from_item(item)
            if attempt.is_overdue:
                send_message(attempt.item_id)
                issue_attempts.put_off(attempt, _RESENT_SECONDS)
                run.finished += 1


def send_message(item_id: InboxItemId) -> None:
    """Sends the message for the item's attempt. Raises Unreachable."""
    send(Queue.ISSUE_CREATION, CreateIssue(item_id=item_id).model_dump(by_alias=True))
