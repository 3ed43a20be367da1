"""Rate counters other than the credential's: calls by IP address, requests by user or organization, and user code
attempts."""

from contextlib import suppress
from typing import NamedTuple

from controlplane.platform.core import clock
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.table import ConditionFailed, TableUnavailable, Throttled, Unrecorded, Update, table

ADDRESS_WINDOW_SECONDS = 60
TRIES_WINDOW_SECONDS = 900
# Networks kept in memory, some 100 KB. Beyond that, the oldest is evicted.
_MAX_NETWORKS = 1000


class Counted(NamedTuple):
    """A request's rate window: the limit per minute, the requests so far, and the window's end (Unix time)."""

    limit: int
    hits: int
    resets_at: int


def count_address(operation: str, address: str, limit: int) -> Counted:
    """Counts the address's call of the operation in this minute, including refused calls, in one unconditional write.

    Raises Throttled: a call that can't be counted is rejected.
    """
    window = int(clock.now()) // ADDRESS_WINDOW_SECONDS
    return _count(keys.address_count(operation, address, window), limit, (window + 1) * ADDRESS_WINDOW_SECONDS)


def count_in_memory(counts: dict[str, tuple[int, int]], network: str, limit: int) -> Counted:
    """Counts the network's call in this minute without a write, and so in this environment only.

    counts: the last minute of each network, and its calls in it.
    """
    window = int(clock.now()) // ADDRESS_WINDOW_SECONDS
    last, hits = counts.pop(network, (window, 0))
    hits = hits + 1 if last == window else 1
    if len(counts) >= _MAX_NETWORKS:
        counts.pop(next(iter(counts), ""), None)
    counts[network] = window, hits
    return Counted(limit, hits, (window + 1) * ADDRESS_WINDOW_SECONDS)


def reserve_requests(owner_id: str, minute: int, amount: int) -> int:
    """Adds requests to the minute of a user, organization, or consent instance, in one write.

    Returns the sum. Raises Throttled.
    """
    ends_at = (minute + 1) * ADDRESS_WINDOW_SECONDS
    return _count(keys.owner_count(owner_id, minute), 0, ends_at, amount).hits


def count_try(user_id: str, limit: int) -> Counted:
    """Counts a user's attempt at a user code in this 15-minute window. Raises Throttled."""
    window = int(clock.now()) // TRIES_WINDOW_SECONDS
    return _count(keys.code_tries(user_id, window), limit, (window + 1) * TRIES_WINDOW_SECONDS)


def return_try(user_id: str) -> None:
    """Refunds an attempt, because the code was valid. Doesn't fail: without a refund, one of five attempts is lost."""
    window = int(clock.now()) // TRIES_WINDOW_SECONDS
    key = keys.code_tries(user_id, window)
    # ConditionFailed: a new window has begun, and the old count no longer matters.
    with suppress(ConditionFailed, Throttled, TableUnavailable):
        table.update(
            Update(key, "SET #hits = #hits - :one", "#hits > :zero", {"one": 1, "zero": 0}), Unrecorded.COUNTER
        )


def _count(key: Key, limit: int, ends_at: int, amount: int = 1) -> Counted:
    # Kept one window longer than it counts, so that instances with clock skew still share a counter.
    values = {"amount": amount, "until": ends_at + TRIES_WINDOW_SECONDS}
    item = table.update(Update(key, "ADD #hits :amount SET #expiresAt = :until", values=values), Unrecorded.COUNTER)
    return Counted(limit, item["hits"], ends_at)
