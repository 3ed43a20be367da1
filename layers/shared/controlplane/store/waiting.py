"""Slots for requests that wait for a worker: how many environments may be held by waiting, all functions together.

A slot is an item of its own, so no partition is hot. A request that finds none doesn't wait. A slot whose holder died
is free again when its lease expires.
"""

import math
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from controlplane import clock
from controlplane.settings import settings
from controlplane.store import keys
from controlplane.store.table import ConditionFailed, StoreError, Update, table

# The share of the concurrency that may wait.
_SHARE = 10
# The first slot is picked at random. With half of them taken, one request in eight finds none.
_TRIES = 3
# How much longer than its waiting a request may take to read what it waits for.
_MARGIN_SECONDS = 2


@contextmanager
def slot(seconds: float) -> Iterator[bool]:
    """Whether the request may wait that long, within the block. Waiting for no time takes no slot."""
    held = acquire_slot(seconds) if seconds else None
    try:
        yield held is not None
    finally:
        if held is not None:
            release_slot(*held)


def acquire_slot(seconds: float) -> tuple[int, str] | None:
    """The number of a free slot and its holder's name, or None if none was found. One write, as a rule."""
    count = max(1, settings.account_concurrency // _SHARE)
    first, holder, now = secrets.randbelow(count), secrets.token_hex(8), clock.now()
    values = {"holder": holder, "now": int(now), "until": math.ceil(now + seconds) + _MARGIN_SECONDS}
    for number in range(first, first + min(_TRIES, count)):
        key = keys.waiting_slot(number % count)
        is_free = "attribute_not_exists(pk) OR #expiresAt <= :now"
        try:
            table.update(Update(key, "SET #holder = :holder, #expiresAt = :until", is_free, values))
        except ConditionFailed:
            continue
        except StoreError:  # throttled, or no answer in time
            return None
        return number % count, holder
    return None


def release_slot(number: int, holder: str) -> None:
    """Frees the slot if it is still the holder's. A slot that could not be released expires."""
    with suppress(StoreError):
        table.update(
            Update(
                keys.waiting_slot(number),
                "SET #expiresAt = :now",
                "#holder = :holder",
                {"now": int(clock.now()), "holder": holder},
            )
        )
