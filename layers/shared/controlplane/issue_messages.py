"""Has attempts at opening an issue taken up: the message that follows one, and the sweep that repeats it.

An attempt stands in the table until it is settled, so it is its own outbox: a message that was never sent, or that came
to nothing, is sent again from there.
"""

from botocore.exceptions import BotoCoreError, ClientError

from controlplane.observability import describe, logger
from controlplane.queues import CreateIssue, Queue, Unreachable, send
from controlplane.store import issue_attempts
from controlplane.store.sweep_runs import SweepRun


def announce(item_id: str) -> None:
    """Sends the message of the item's attempt. Raises Unreachable."""
    send(Queue.ISSUE_CREATION, CreateIssue(item_id=item_id).model_dump(by_alias=True))


def try_to_announce(item_id: str) -> None:
    """The same, and never fails: a sweep sends what could not be sent."""
    try:
        announce(item_id)
    except (Unreachable, ClientError, BotoCoreError) as error:
        logger.warning("attempt left to the sweep", extra={"itemId": item_id, **describe(error)})


def announce_overdue(run: SweepRun) -> None:
    """A step of the sweep: sends the messages of attempts that a worker should have taken or settled by now."""
    issue_attempts.resume_overdue(run, announce)
