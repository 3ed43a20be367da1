"""Records of requests with an Idempotency-Key: in progress, took effect, or completed.

Each attempt at a request has a random id, and the creation's transaction has a leg that succeeds only while the record
contains that id. So at most one of all attempts with a key takes effect, even if messages are lost, delayed, or
repeated. This module doesn't know how the record's key is built or what an answer contains.
"""

from typing import Any

from controlplane.core import clock
from controlplane.store.keys import Key
from controlplane.store.table import ConditionFailed, Delete, LegFailed, Put, StoreError, Update, table

KEPT_SECONDS = 24 * 3600
# Longer than a function can run (Timeout in template.yaml). Correctness doesn't depend on it: it is how long retries
# are told to wait after a crash.
LEASE_SECONDS = 30

IN_PROGRESS = "INPROGRESS"
COMPLETED = "COMPLETED"


class RecordStands(StoreError):
    """Another attempt holds the key. `item` is its record; `answer_lost` means that it took effect, then crashed."""

    def __init__(self, item: dict[str, Any]) -> None:
        super().__init__("the key is in use")
        self.item = item
        running = item["leaseUntil"] >= int(clock.now())
        self.answer_lost = item["status"] == IN_PROGRESS and "effective" in item and not running


def begin_attempt(key: Key, attempt: str, payload: str, also_known_as: Key | None = None) -> None:
    """Claims the key for this attempt. `payload` is the digest of the request. Raises RecordStands.

    A key is free if it was never used, was used more than a day ago, or if its attempt's lease expired before it took
    effect.

    `also_known_as` is the record's key under the other signing key, while the ring has two. Both must be free, and the
    same transaction deletes the other record: at most one of the two exists, so an attempt that holds the other one
    can no longer take effect (see `effect_leg`).
    """
    now = int(clock.now())
    item = {
        **key._asdict(),
        "status": IN_PROGRESS,
        "attempt": attempt,
        "payload": payload,
        "leaseUntil": now + LEASE_SECONDS,
        "expiresAt": now + KEPT_SECONDS,
    }
    unused = "attribute_not_exists(pk)"
    # Compares the time because TTL can delete items days late.
    expired = "#expiresAt <= :now"
    given_up = "(#status = :inProgress AND #leaseUntil < :now AND attribute_not_exists(#effective))"
    free = f"{unused} OR {expired} OR {given_up}"
    values = {"now": now, "inProgress": IN_PROGRESS}
    try:
        if also_known_as is None:
            table.put(Put(item, free, values))
        else:
            table.transact({"record": Put(item, free, values), "other": Delete(also_known_as, free, values)})
    except (ConditionFailed, LegFailed) as failure:
        if failure.item is None:
            raise
        # If it is the attempt's own record, the first response was lost and the SDK retried the write.
        if failure.item["attempt"] != attempt:
            raise RecordStands(failure.item) from None


def effect_leg(key: Key, attempt: str) -> Update:
    """Returns the creation's leg, which fails if another attempt holds the key. Else it records that it took effect."""
    return Update(key, "SET #effective = :true", "#attempt = :attempt", {"true": True, "attempt": attempt})


def complete_attempt(key: Key, attempt: str, answer: str) -> None:
    """Stores the answer for retries. Raises ConditionFailed if another attempt holds the key."""
    change = "SET #status = :completed, #data = :answer"
    values = {"completed": COMPLETED, "answer": answer, "attempt": attempt}
    table.update(Update(key, change, "#attempt = :attempt", values))


def abandon_attempt(key: Key, attempt: str) -> None:
    """Releases the key of a rejected attempt. Raises ConditionFailed if the attempt took effect or lost the key."""
    mine = "#attempt = :attempt AND attribute_not_exists(#effective)"
    table.delete(Delete(key, mine, {"attempt": attempt}))
