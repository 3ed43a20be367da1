"""What a request with an Idempotency-Key came to: in progress, took effect, or answered.

Each attempt of a request writes under a random id of its own, and the transaction of the creation carries a leg that
holds only while that id stands in the record. So of all attempts under one key at most one takes effect, whatever is
lost, late or repeated on the way. What the record's key is made of, and what an answer is, this module does not know.
"""

from typing import Any

from controlplane import clock
from controlplane.store.keys import Key
from controlplane.store.table import ConditionFailed, Delete, LegFailed, Put, StoreError, Update, table

KEPT_SECONDS = 24 * 3600
# Longer than a function may run (Timeout in template.yaml). Nothing rests on it: it is how long a repetition is told
# to wait after a crash.
LEASE_SECONDS = 30

IN_PROGRESS = "INPROGRESS"
COMPLETED = "COMPLETED"


class RecordStands(StoreError):
    """Another attempt has the key. `item` is its record; `answer_lost` means that it took effect and then died."""

    def __init__(self, item: dict[str, Any]) -> None:
        super().__init__("the key is in use")
        self.item = item
        running = item["leaseUntil"] >= int(clock.now())
        self.answer_lost = item["status"] == IN_PROGRESS and "effective" in item and not running


def begin_attempt(key: Key, attempt: str, payload: str, also_known_as: Key | None = None) -> None:
    """Takes the key for this attempt. `payload` is the digest of the request. Raises RecordStands.

    Free are a key never used, one used a day ago, and one whose attempt neither took effect nor ended in its time.

    `also_known_as` is the record's key under the other signing key, while the ring has two. Both have to be free, and
    the other record is deleted by the same transaction: at most one of the two exists, so an attempt that holds the
    other one can't take effect anymore (see `effect_leg`).
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
    # The rule compares the time itself: TTL deletes days late.
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
        # The attempt's own record: the first answer was lost and the SDK sent the write again.
        if failure.item["attempt"] != attempt:
            raise RecordStands(failure.item) from None


def effect_leg(key: Key, attempt: str) -> Update:
    """The leg that a creation carries: refused once another attempt has the key, else proof of what took effect."""
    return Update(key, "SET #effective = :true", "#attempt = :attempt", {"true": True, "attempt": attempt})


def complete_attempt(key: Key, attempt: str, answer: str) -> None:
    """Keeps the answer for repetitions. Raises ConditionFailed where another attempt has the key."""
    change = "SET #status = :completed, #data = :answer"
    values = {"completed": COMPLETED, "answer": answer, "attempt": attempt}
    table.update(Update(key, change, "#attempt = :attempt", values))


def abandon_attempt(key: Key, attempt: str) -> None:
    """Frees the key of an attempt that was refused. Raises ConditionFailed where it took effect after all."""
    mine = "#attempt = :attempt AND attribute_not_exists(#effective)"
    table.delete(Delete(key, mine, {"attempt": attempt}))
