"""Has attempts at opening an issue taken up: the message that follows one, and the sweep that repeats it.

An attempt stands in the table until it is settled, so it is its own outbox: a message that was never sent, or that came
to nothing, is sent again from there.
"""

from botocore.exceptions import BotoCoreError, ClientError

from controlplane.observability import describe, logger
from controlplane.queues import CreateIssue, Queue, Unreachable, send
from controlplane.store import issue_attempts

_PAGE = 100


def announce(item_id: str) -> None:
    """Sends the message of the item's attempt. Raises Unreachable."""
    send(Queue.ISSUE_CREATION, CreateIssue(item_id=item_id).model_dump(by_alias=True))


def try_to_announce(item_id: str) -> None:
    """The same, and never fails: a sweep sends what could not be sent."""
    try:
        announce(item_id)
    except (Unreachable, ClientError, BotoCoreError) as error:
        logger.warning("attempt left to the sweep", extra={"itemId": item_id, **describe(error)})


def announce_overdue() -> int:
    """Sends the messages of all attempts that should have been taken up, or settled, by now: how many."""
    sent, after = 0, None
    while True:
        page = issue_attempts.list_attempts(_PAGE, after)
        for attempt in page.attempts:
            if attempt.is_overdue:
                announce(attempt.item_id)
                sent += 1
        if page.next_sk is None:
            return sent
        after = page.next_sk
