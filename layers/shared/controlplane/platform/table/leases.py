"""Leases on work items: one worker at a time, with a claim that expires and that fences off late writes.

A work item has `status`, `attempts`, `claim`, and `leaseUntil`. A worker acquires it by writing a random claim, and
each later write of that worker is conditional on the claim: once another worker has acquired the item, these writes
fail. Attempts are counted and limited, so work that crashes its worker also ends.
"""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from controlplane.platform.core import clock
from controlplane.platform.table.keys import Key
from controlplane.platform.table.stored import SPARSE, Named, StoredMap
from controlplane.platform.table.table import ConditionFailed, StoreError, Unrecorded, Update, table

MAX_ATTEMPTS = 4
# The condition of every write by a worker; the value `claim` is the lease's.
HELD = "#claim = :claim"
# The condition that no worker has acquired or released the item since it was read; its values are LeaseState's.
UNCHANGED = "#leaseUntil = :until AND #attempts = :attempts"
# The value of `leaseUntil` while no worker has the item and a delivery is pending.
_RELEASED = 0


class Finished(StoreError):
    """The work has ended or doesn't exist: a redelivery has no effect."""


class Held(StoreError):
    """Another worker has the lease, for at most `seconds` more."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds


class Exhausted(StoreError):
    """All attempts have been used without ending the work."""


class LeaseLost(StoreError):
    """Another worker has acquired the item, or the work has ended: the write didn't happen."""


class Lease(NamedTuple):
    """The right to write an item. `attempt` counts from 1; `last` is True for the final attempt."""

    key: Key
    claim: str
    attempt: int

    @property
    def last(self) -> bool:
        return self.attempt >= MAX_ATTEMPTS


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseState(StoredMap):
    """The lease as a work item stores it: the attempts so far, and the last claim with its expiry."""

    attempts: int = 0
    claim: Annotated[str | None, SPARSE] = None
    until: Annotated[int, Named("leaseUntil")] = _RELEASED

    @property
    def is_waiting(self) -> bool:
        """Returns whether the item waits for its message: it was never acquired, or it was released."""
        return self.until == _RELEASED

    def is_abandoned(self, grace_seconds: int) -> bool:
        """Returns whether the worker crashed: its lease expired over `grace_seconds` ago without a release."""
        return not self.is_waiting and self.until + grace_seconds < clock.now()

    @property
    def values(self) -> dict[str, Any]:
        """The values of the condition UNCHANGED."""
        return {"until": self.until, "attempts": self.attempts}


def acquire(
    key: Key,
    open_statuses: Iterable[str],
    seconds: int,
    change: str = "",
    values: Mapping[str, Any] | None = None,
) -> tuple[Lease, dict[str, Any]]:
    """Acquires the item for `seconds`. Returns the lease and the updated item.

    `change` extends the SET of the same write (`, #name = :value…`). Raises Finished, Held, Exhausted.
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
        item = table.update(update, Unrecorded.LEASE)
    except ConditionFailed as failure:
        stored = failure.item
        if stored is None or stored["status"] not in statuses.values():
            raise Finished from None
        state = LeaseState.from_item(stored)
        if state.claim != claim:  # if equal, it is our own write, whose response was lost
            if state.until > now:
                raise Held(state.until - now) from None
            raise Exhausted("no attempt is left") from None
        item = stored
    return Lease(key, claim, item["attempts"]), item


def release(lease: Lease, *, redelivered: bool = True, counted: bool = True) -> None:
    """Releases the item before the lease expires. Does nothing if the lease is lost.

    redelivered: whether the queue redelivers the worker's message, so that the item is acquired again. If not, the
    sweep has to send another message, so the lease expires now, as if the worker had crashed.
    counted: whether this was one of the attempts. If not, the worker must have written nothing under its number.
    """
    attempts = lease.attempt if counted else lease.attempt - 1
    until = _RELEASED if redelivered else int(clock.now())
    values = {"claim": lease.claim, "until": until, "attempts": attempts}
    try:
        table.update(
            Update(lease.key, "SET #leaseUntil = :until, #attempts = :attempts", HELD, values), Unrecorded.LEASE
        )
    except ConditionFailed:
        return


def release_abandoned(key: Key, state: LeaseState, change: str, when: str, values: Mapping[str, Any]) -> Update:
    """Returns a leg that releases an abandoned item, unless the item has changed since `state` was read.

    `change` and `when` extend the write's SET and condition (`, #name = :value…` and ` AND …`).
    """
    return Update(
        key, "SET #leaseUntil = :released" + change, UNCHANGED + when, {**values, **state.values, "released": _RELEASED}
    )
