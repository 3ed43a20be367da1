"""Shares out a queue's workers: an organization holds at most half of them, so that the others' messages don't wait.

A message that finds its organization's share taken goes to the end of its queue, as a new message that is delayed until
its turn. So it keeps all of its receives, and its worker is free. SQS also gets each message's organization, as its
group: it delivers the messages of others before those of a busy one (fair queues).

The slots of an organization and queue are one item. A message that finds no slot gets a place in a line, which says
when to look again. The slot of a crashed worker is free again when its lease expires.
"""

import math
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from controlplane.platform.core import clock, deadline
from controlplane.platform.core.settings import settings
from controlplane.platform.queues.messages import Queue
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.table import ConditionFailed, StoreError, Unrecorded, Update, table

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
# The longest that SQS delays a message.
_LONGEST_WAIT_SECONDS = 900
_KEPT_SECONDS = 86_400
# Another worker may take a slot that was just seen free.
_TRIES = 3


class NoSlot(StoreError):
    """All of the organization's slots are taken. Its message should look again after `seconds`."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds


class Slot(NamedTuple):
    """A slot that is held."""

    key: Key
    number: int
    holder: str


def _acquire(organization_id: str, queue: str, count: int, lease_seconds: float, pace_seconds: float) -> Slot:
    """Takes one of the organization's `count` slots, usually in one write.

    pace_seconds: how far apart the messages in the line come back. Raises NoSlot.
    """
    key, holder, now = keys.worker_slots(organization_id, queue), secrets.token_hex(8), clock.now()
    values = {
        "holder": holder,
        "now": int(now),
        "until": math.ceil(now + lease_seconds),
        "expires": int(now) + _KEPT_SECONDS,
    }
    number, line_ends_at = secrets.randbelow(count), 0
    for _ in range(_TRIES):
        try:
            table.update(
                Update(
                    key,
                    f"SET #until{number} = :until, #holder{number} = :holder, #expiresAt = :expires",
                    # The last case is our own write, whose response was lost.
                    f"attribute_not_exists(#until{number}) OR #until{number} <= :now OR #holder{number} = :holder",
                    values,
                ),
                Unrecorded.LEASE,
            )
        except ConditionFailed as failure:
            item = failure.item or {}
        else:
            return Slot(key, number, holder)
        line_ends_at = item.get("lineEndsAt", 0)
        free = [other for other in range(count) if item.get(f"until{other}", 0) <= now]
        if not free:
            break
        number = free[0]
    raise NoSlot(_join_line(key, line_ends_at, now, pace_seconds))


def _join_line(key: Key, ends_at: int, now: float, pace_seconds: float) -> int:
    """Returns in how many seconds the message's turn is. Two that join at once may share a place, which does no harm.

    ends_at: the time of the last place, in milliseconds.
    """
    wait_ms = min(max(ends_at / 1000 - now, 0) + pace_seconds, _LONGEST_WAIT_SECONDS) * 1000
    values = {"ends": math.ceil(now * 1000 + wait_ms), "expires": int(now) + _KEPT_SECONDS}
    table.update(Update(key, "SET #lineEndsAt = :ends, #expiresAt = :expires", values=values), Unrecorded.LEASE)
    return math.ceil(wait_ms / 1000)


def _release(slot: Slot) -> None:
    """Frees the slot if the holder still has it. One that can't be freed expires."""
    held = f"#holder{slot.number} = :holder"
    with suppress(StoreError):
        table.update(
            Update(slot.key, f"SET #until{slot.number} = :free", held, {"free": 0, "holder": slot.holder}),
            Unrecorded.LEASE,
        )


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
    slot = _acquire(organization_id, queue.value, count, seconds, pace)
    try:
        yield
    finally:
        _release(slot)
