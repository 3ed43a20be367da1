"""Slots for an organization's messages in a queue: a limit on how many of them are processed at the same time.

One item for each organization and queue. A message that finds no slot gets a place in a line, which says when to look
again. The slot of a crashed worker is free again when its lease expires.
"""

import math
import secrets
from contextlib import suppress
from typing import NamedTuple

from controlplane.platform.core import clock
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.table import ConditionFailed, StoreError, Unrecorded, Update, table

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


def acquire(organization_id: str, queue: str, count: int, lease_seconds: float, pace_seconds: float) -> Slot:
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


def release(slot: Slot) -> None:
    """Frees the slot if the holder still has it. One that can't be freed expires."""
    held = f"#holder{slot.number} = :holder"
    with suppress(StoreError):
        table.update(
            Update(slot.key, f"SET #until{slot.number} = :free", held, {"free": 0, "holder": slot.holder}),
            Unrecorded.LEASE,
        )
