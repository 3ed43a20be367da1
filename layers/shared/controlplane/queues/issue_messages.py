"""Sends the messages that make a worker open an issue: one after each attempt, and again by the sweep.

An attempt stays in the table until it is settled, so it is its own outbox: if its message was never sent, or had no
result, the sweep sends it again.
"""

from botocore.exceptions import BotoCoreError, ClientError

from controlplane.core.observability import describe, logger
from controlplane.queues.messages import CreateIssue, Queue, Unreachable, send
from controlplane.store import issue_attempts
from controlplane.store.sweep_runs import SweepRun


def announce(item_id: str) -> None:
    """Sends the message for the item's attempt. Raises Unreachable."""
    send(Queue.ISSUE_CREATION, CreateIssue(item_id=item_id).model_dump(by_alias=True))


def try_to_announce(item_id: str) -> None:
    """Like `announce`, but only logs errors: the sweep sends the message later."""
    try:
        announce(item_id)
    except (Unreachable, ClientError, BotoCoreError) as error:
        logger.warning("attempt left to the sweep", extra={"itemId": item_id, **describe(error)})


def announce_overdue(run: SweepRun) -> None:
    """Sends the messages of attempts that a worker should have taken or settled by now. Runs as a step of the sweep."""
    issue_attempts.resume_overdue(run, announce)
