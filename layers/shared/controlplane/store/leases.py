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


def release(lease: Lease, *, redelivered: bool = True) -> None:
    """Gives the item back before the lease ends. Does nothing if the lease is lost.

    redelivered: whether the worker's message comes again, which takes the item. If not, the sweep has to send another
    one: the lease then ends now, as if the worker had died.
    """
    values = {"claim": lease.claim, "until": _RELEASED if redelivered else int(clock.now())}
    try:
        table.update(Update(lease.key, "SET #leaseUntil = :until", HELD, values))
    except ConditionFailed:
        return


def is_waiting(item: Mapping[str, Any]) -> bool:
    """Whether no worker has the item, and its message is still to come: it was never taken, or it was given back."""
    return bool(item["leaseUntil"] == _RELEASED)


def is_abandoned(item: Mapping[str, Any], grace_seconds: int) -> bool:
    """Whether the item's worker died: its lease ended so long ago, and it wasn't given back for another delivery."""
    return not is_waiting(item) and bool(item["leaseUntil"] + grace_seconds < clock.now())


def given_back(item: Mapping[str, Any], change: str, when: str, values: Mapping[str, Any]) -> Update:
    """Gives an abandoned item back in the dead worker's place, unless the item has changed since it was read.

    `change` and `when` are parts of the same write (`, #name = :value…` and ` AND …`).
    """
    unchanged = {"seen": item["leaseUntil"], "attempts": item["attempts"], "released": _RELEASED}
    return Update(
        Key(item["pk"], item["sk"]),
        "SET #leaseUntil = :released" + change,
        "#leaseUntil = :seen AND #attempts = :attempts" + when,
        {**values, **unchanged},
    )


NEVER_TAKEN: dict[str, Any] = {"attempts": 0, "leaseUntil": _RELEASED}
