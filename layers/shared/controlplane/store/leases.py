"""Work that one worker at a time does: a claim that expires, and a fence that no late write passes.

An item of work has `status`, `attempts`, `claim` and `leaseUntil`. Who acquires it writes a random claim, and each
later write of that worker is conditional on the claim: once another worker has the item, the first one changes nothing
more. Attempts are counted and limited, so work that kills its worker ends as well.
"""

import secrets
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from controlplane import clock
from controlplane.store.keys import Key
from controlplane.store.table import ConditionFailed, StoreError, Update, table

MAX_ATTEMPTS = 4
# The condition of every write of a worker; `claim` among the values is that of its lease.
HELD = "#claim = :claim"
# What `leaseUntil` says while nobody has the item and a delivery is still to come.
_RELEASED = 0


class Finished(StoreError):
    """The work is done, or there is none: a delivery more changes nothing."""


class Held(StoreError):
    """Another worker has it, for `seconds` more at most."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"held for {seconds} s")
        self.seconds = seconds


class Exhausted(StoreError):
    """Every attempt it may have was made, and none has ended it. `item` is how it stands."""

    def __init__(self, item: dict[str, Any]) -> None:
        super().__init__("no attempt is left")
        self.item = item


class LeaseLost(StoreError):
    """Another worker has the item by now, or it has ended: this worker's writes are refused."""


class Lease(NamedTuple):
    """The right to write an item. `attempt` counts from 1, and `last` says that no other one follows."""

    key: Key
    claim: str
    attempt: int

    @property
    def last(self) -> bool:
        return self.attempt >= MAX_ATTEMPTS


def acquire(
    key: Key,
    open_statuses: Iterable[str],
    seconds: int,
    change: str = "",
    values: Mapping[str, Any] | None = None,
) -> tuple[Lease, dict[str, Any]]:
    """Takes the item for so many seconds: the lease, and the item as it stands then.

    `change` is set in the same write (`, #name = :value…`). Raises Finished, Held, Exhausted.
    """
    now = int(clock.now())
    claim = secrets.token_hex(8)
    statuses = {f"status{number}": status for number, status in enumerate(open_statuses)}
    is_open = f"#status IN ({', '.join(f':{name}' for name in statuses)})"
    update = Update(
        key,
        "SET #attempts = #attempts + :one, #claim = :claim, #leaseUntil = :until" + change,
        f"{is_open} AND #leaseUntil <= :now AND #attempts < :most",
        {
            **statuses,
            **(values or {}),
            "one": 1,
            "claim": claim,
            "until": now + seconds,
            "now": now,
            "most": MAX_ATTEMPTS,
        },
    )
    try:
        item = table.update(update)
    except ConditionFailed as failure:
        stands = failure.item
        if stands is None or stands["status"] not in statuses.values():
            raise Finished from None
        if stands.get("claim") != claim:  # else our own write, whose answer was lost
            if stands["leaseUntil"] > now:
                raise Held(stands["leaseUntil"] - now) from None
            raise Exhausted(stands) from None
        item = stands
    return Lease(key, claim, item["attempts"]), item


def release(lease: Lease) -> None:
    """Gives the item back before its time, for the next delivery to take. A lost lease is no failure."""
    values = {"claim": lease.claim, "released": _RELEASED}
    try:
        table.update(Update(lease.key, "SET #leaseUntil = :released", HELD, values))
    except ConditionFailed:
        return


def is_abandoned(item: Mapping[str, Any], grace_seconds: int) -> bool:
    """Whether the item's worker died: its lease ran out so long ago, and it was not given back."""
    until = item["leaseUntil"]
    return bool(until != _RELEASED and until + grace_seconds < clock.now())


NEVER_TAKEN: dict[str, Any] = {"attempts": 0, "leaseUntil": _RELEASED}
