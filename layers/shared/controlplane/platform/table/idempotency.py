"""Records of requests with an Idempotency-Key: in progress, took effect, or completed.

Each attempt at a request has a random id, and the creation's transaction has a leg that succeeds only while the record
contains that id. So at most one of all attempts with a key takes effect, even if messages are lost, delayed, or
repeated. This module doesn't know how the record's key is built or what an answer contains.
"""

from dataclasses import dataclass
from typing import Annotated

from controlplane.platform.core import clock
from controlplane.platform.table.keys import Key
from controlplane.platform.table.stored import OWN_KEY, SPARSE, Named, StoredItem
from controlplane.platform.table.table import (
    ConditionFailed,
    Delete,
    LegFailed,
    Put,
    StoreError,
    Unrecorded,
    Update,
    table,
)

KEPT_SECONDS = 24 * 3600
# Longer than a function can run (Timeout in template.yaml). Correctness doesn't depend on it: it is how long retries
# are told to wait after a crash.
LEASE_SECONDS = 30

IN_PROGRESS = "INPROGRESS"
COMPLETED = "COMPLETED"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordItem(StoredItem):
    """A record: the attempt that holds the key, and the answer once it has completed.

    payload: the digest of the request.
    effective: whether the attempt's creation took effect.
    """

    key: Annotated[Key, OWN_KEY]
    status: str
    attempt: str
    payload: str
    lease_until: int
    expires_at: int
    effective: Annotated[bool, SPARSE] = False
    answer: Annotated[str, Named("data"), SPARSE] = ""

    @property
    def is_answer_lost(self) -> bool:
        """True if the attempt took effect, then crashed before it stored its answer."""
        return self.status == IN_PROGRESS and self.effective and self.lease_until < int(clock.now())


class KeyInUse(StoreError):
    """Another attempt holds the key. `record` is its record."""

    def __init__(self, record: RecordItem) -> None:
        super().__init__("the key is in use")
        self.record = record


def begin_attempt(key: Key, attempt: str, payload: str, also_known_as: Key | None = None) -> None:
    """Claims the key for this attempt. `payload` is the digest of the request. Raises KeyInUse.

    A key is free if it was never used, was used more than a day ago, or if its attempt's lease expired before it took
    effect.

    `also_known_as` is the record's key under the other signing key, while the ring has two. Both must be free, and the
    same transaction deletes the other record: at most one of the two exists, so an attempt that holds the other one
    can no longer take effect (see `effect_leg`).
    """
    now = int(clock.now())
    record = RecordItem(
        key=key,
        status=IN_PROGRESS,
        attempt=attempt,
        payload=payload,
        lease_until=now + LEASE_SECONDS,
        expires_at=now + KEPT_SECONDS,
    )
    claim = record.to_item()
    unused = "attribute_not_exists(pk)"
    # Compares the time because TTL can delete items days late.
    expired = "#expiresAt <= :now"
    given_up = "(#status = :inProgress AND #leaseUntil < :now AND attribute_not_exists(#effective))"
    free = f"{unused} OR {expired} OR {given_up}"
    values = {"now": now, "inProgress": IN_PROGRESS}
    try:
        if also_known_as is None:
            table.put(Put(claim, free, values), Unrecorded.ANSWER)
        else:
            table.transact(
                {"record": Put(claim, free, values), "other": Delete(also_known_as, free, values)}, Unrecorded.ANSWER
            )
    except (ConditionFailed, LegFailed) as failure:
        if failure.item is None:
            raise
        # If it is the attempt's own record, the first response was lost and the SDK retried the write.
        holder = RecordItem.from_item(failure.item)
        if holder.attempt != attempt:
            raise KeyInUse(holder) from None


def effect_leg(key: Key, attempt: str) -> Update:
    """Returns the creation's leg, which fails if another attempt holds the key. Else it records that it took effect."""
    return Update(key, "SET #effective = :true", "#attempt = :attempt", {"true": True, "attempt": attempt})


def complete_attempt(key: Key, attempt: str, answer: str) -> None:
    """Stores the answer for retries. Raises ConditionFailed if another attempt holds the key."""
    change = "SET #status = :completed, #data = :answer"
    values = {"completed": COMPLETED, "answer": answer, "attempt": attempt}
    table.update(Update(key, change, "#attempt = :attempt", values), Unrecorded.ANSWER)


def abandon_attempt(key: Key, attempt: str) -> None:
    """Releases the key of a rejected attempt. Raises ConditionFailed if the attempt took effect or lost the key."""
    mine = "#attempt = :attempt AND attribute_not_exists(#effective)"
    table.delete(Delete(key, mine, {"attempt": attempt}), Unrecorded.ANSWER)
