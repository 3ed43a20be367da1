"""Slots for requests that wait for a worker: a limit on waiting execution environments across all functions.

Visitors' checks of code have slots of their own, because anyone can send one.

Each slot is a separate item, so no partition is hot. A request that finds no slot doesn't wait. The slot of a crashed
holder is free again when its lease expires.
"""

import math
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from controlplane.platform.core import acting, clock
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.table import ConditionFailed, StoreError, Unrecorded, Update, table

# One in this many concurrent executions can wait.
_SHARE = 10
# The first slot is random. With half of the slots taken, one request in eight finds none.
_SLOTS_TRIED = 3
# Extra lease time for a request to read the result after its wait.
_MARGIN_SECONDS = 2


class Kind(NamedTuple):
    """Slots that only requests of one kind use. most: how many there are. None: the share of the concurrency."""

    prefix: str = ""
    most: int | None = None


WAITING, CHECKS = Kind(), Kind("check#", 2)


@contextmanager
def slot(seconds: float, kind: Kind = WAITING) -> Iterator[bool]:
    """Holds a slot during the block. Yields whether the request can wait that long; with 0 seconds it takes no slot.

    A dry run never waits, because nothing that it could wait for has begun.
    """
    held = acquire_slot(seconds, kind) if seconds and not acting.is_dry_run() else None
    try:
        yield held is not None
    finally:
        if held is not None:
            release_slot(*held, kind)


def acquire_slot(seconds: float, kind: Kind = WAITING) -> tuple[int, str] | None:
    """Acquires a free slot, usually in one write. Returns its number and holder, or None if it found no free slot."""
    count = kind.most or max(1, settings.account_concurrency // _SHARE)
    first, holder, now = secrets.randbelow(count), secrets.token_hex(8), clock.now()
    values = {"holder": holder, "now": int(now), "until": math.ceil(now + seconds) + _MARGIN_SECONDS}
    for number in range(first, first + min(_SLOTS_TRIED, count)):
        key = keys.waiting_slot(f"{kind.prefix}{number % count}")
        is_free = "attribute_not_exists(pk) OR #expiresAt <= :now"
        try:
            table.update(Update(key, "SET #holder = :holder, #expiresAt = :until", is_free, values), Unrecorded.LEASE)
        except ConditionFailed:
            continue
        except StoreError:  # throttled or timed out
            return None
        return number % count, holder
    return None


def release_slot(number: int, holder: str, kind: Kind = WAITING) -> None:
    """Releases the slot if the holder still has it. A slot that can't be released expires."""
    with suppress(StoreError):
        table.update(
            Update(
                keys.waiting_slot(f"{kind.prefix}{number}"),
                "SET #expiresAt = :now",
                "#holder = :holder",
                {"now": int(clock.now()), "holder": holder},
            ),
            Unrecorded.LEASE,
        )
