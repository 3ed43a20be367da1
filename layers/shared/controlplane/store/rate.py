"""Counters beyond the credential's own: calls by an address, requests of a person or an organization, and wrong user
codes."""

from contextlib import suppress

from controlplane import clock
from controlplane.store import keys
from controlplane.store.credentials import Counted
from controlplane.store.keys import Key
from controlplane.store.table import ConditionFailed, Update, table

ADDRESS_WINDOW_SECONDS = 60
TRIES_WINDOW_SECONDS = 900


def count_address(operation: str, address: str, limit: int) -> Counted:
    """Counts a call of the operation by the address in this minute, refused ones too. One write, never conditional.

    Raises Throttled: a call that cannot be counted is not admitted.
    """
    window = int(clock.now()) // ADDRESS_WINDOW_SECONDS
    return _count(keys.address_count(operation, address, window), limit, (window + 1) * ADDRESS_WINDOW_SECONDS)


def reserve_requests(owner_id: str, minute: int, amount: int) -> int:
    """Adds requests to the minute of a person or an organization. Returns the sum. One write. Raises Throttled."""
    ends_at = (minute + 1) * ADDRESS_WINDOW_SECONDS
    return _count(keys.owner_count(owner_id, minute), 0, ends_at, amount).hits


def count_try(user_id: str, limit: int) -> Counted:
    """Counts a person's try of a user code in this quarter of an hour. Raises Throttled."""
    window = int(clock.now()) // TRIES_WINDOW_SECONDS
    return _count(keys.code_tries(user_id, window), limit, (window + 1) * TRIES_WINDOW_SECONDS)


def return_try(user_id: str) -> None:
    """Takes a try back that was none: the code was right."""
    window = int(clock.now()) // TRIES_WINDOW_SECONDS
    key = keys.code_tries(user_id, window)
    with suppress(ConditionFailed):  # the quarter of an hour turned: the old count matters no more
        table.update(Update(key, "SET #hits = #hits - :one", "#hits > :zero", {"one": 1, "zero": 0}))


def _count(key: Key, limit: int, ends_at: int, amount: int = 1) -> Counted:
    # Kept a window longer than it counts: instances whose clocks differ still count into one.
    values = {"amount": amount, "until": ends_at + TRIES_WINDOW_SECONDS}
    item = table.update(Update(key, "ADD #hits :amount SET #expiresAt = :until", values=values))
    return Counted(limit, item["hits"], ends_at)
