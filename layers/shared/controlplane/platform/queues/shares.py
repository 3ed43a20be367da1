"""Shares out a queue's workers: an organization holds at most half of them, so that the others' messages don't wait.

A message that finds its organization's share taken goes to the end of its queue, as a new message that is delayed until
its turn. So it keeps all of its receives, and its worker is free. SQS also gets each message's organization, as its
group: it delivers the messages of others before those of a busy one (fair queues).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from controlplane.platform.core import deadline
from controlplane.platform.core.settings import settings
from controlplane.platform.queues import worker_slots
from controlplane.platform.queues.messages import Queue

# About how long a message takes. The waiting messages of an organization come back that far apart, so that its slots
# are seldom idle, and looking costs the other workers little.
_PACE_SECONDS = {
    Queue.NOTIFICATIONS: 0.5,
    Queue.EMAILS: 0.25,
    Queue.ISSUE_CREATION: 1,
    Queue.GITHUB_EVENTS: 1,
    Queue.SCAN_PREPARATION: 1,
    Queue.SCAN_EXECUTION: 10,
}
# Without a time limit, as in local runs.
_LEASE_SECONDS = 60
# Lambda ends a worker that is still running after the time limit of its calls.
_MARGIN_SECONDS = 2


@contextmanager
def hold(queue: Queue, find_organization: Callable[[], str | None]) -> Iterator[None]:
    """Holds one of the organization's slots during the block. Raises NoSlot if it holds its share already.

    Does nothing if the message belongs to no organization, or if the queue isn't shared out.
    """
    workers, pace = settings.worker_concurrency, _PACE_SECONDS.get(queue)
    organization_id = find_organization() if workers and pace else None
    if workers is None or pace is None or organization_id is None:
        yield
        return
    count = (workers + 1) // 2
    seconds = (deadline.remaining() or _LEASE_SECONDS) + _MARGIN_SECONDS
    slot = worker_slots.acquire(organization_id, queue.value, count, seconds, pace)
    try:
        yield
    finally:
        worker_slots.release(slot)
