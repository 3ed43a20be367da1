"""Records of refused requests, so that `GET /v1/requests/{requestId}` can say why, for a day.

A record has facts only: codes, names of declared fields, ids, numbers, and the limits at that time. It has no text that
was sent, no address, no person's name or id, and only the id of an API key.

A record costs the refused request one write, and a successful request none. The number of writes is bounded for each
owner (an organization, or a person whose request named none) and, within it, for each caller: the records of a minute
are in a fixed number of items, each caller belongs to one of them, and each item takes a fixed number of records. What
is refused beyond that has no record. A record never changes a response: if it can't be written, it is missing.
"""

import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from controlplane.platform.core import clock
from controlplane.platform.core.errors import ApiError
from controlplane.platform.core.ids import request_began_at
from controlplane.platform.core.tokens import digest
from controlplane.platform.table import keys, shards
from controlplane.platform.table.keys import Key
from controlplane.platform.table.legs import present
from controlplane.platform.table.table import ConditionFailed, StoreError, Unrecorded, Update, table

# Explained requests are at most this old.
EXPLAINED_SECONDS = 86_400
# Items of an owner and a minute, so that one caller's records don't take the place of all others'.
ITEMS_PER_MINUTE = 8
# An item with that many records has less than 8 KB, so that no write takes more than 8 units.
RECORDS_PER_ITEM = 10
_MINUTE_SECONDS = 60
# Details that are numbers, ids, or values of enumerations.
_DETAILS = (
    "current",
    "currentStatus",
    "field",
    "limit",
    "lockedCount",
    "number",
    "plan",
    "preparationId",
    "reason",
    "remainingCredits",
    "requiredCredits",
    "requiredRole",
    "requiredScope",
    "role",
    "scanId",
    "scope",
    "status",
    "unlockCredits",
)
_PROBLEMS = 10
_WORD_START = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Refusal(NamedTuple):
    """A refused request. declared: the names of the operation's fields, parameters, and headers."""

    error: ApiError
    operation: str
    request_id: str
    declared: Collection[str]


# Items that are full, of the latest minute that this environment has seen.
_full: set[Key] = set()


def record(refusal: Refusal, owner_id: str, caller_id: str, key_id: str | None, limits: Mapping[str, Any]) -> None:
    """Records a refusal for its owner, unless the caller's item of that minute is full. At most one write.

    limits: those of the caller at that time, with None for one that the request didn't get to know.

    An item that is known to be full isn't written to again, so that a flood of refusals costs each environment at most
    one rejected write a minute.
    """
    began = request_began_at(refusal.request_id)
    if began is None:
        return
    counted_as = key_id or caller_id
    key = keys.refusals(owner_id, int(began) // _MINUTE_SECONDS, shards.shard_of(counted_as, ITEMS_PER_MINUTE))
    if key in _full:
        return
    mark = _mark(refusal.request_id, counted_as)
    new = {"requestId": refusal.request_id, "caller": mark, **_facts(refusal, key_id, limits)}
    values = {"new": [new], "none": [], "one": 1, "most": RECORDS_PER_ITEM}
    change = Update(
        key,
        "SET #refusals = list_append(if_not_exists(#refusals, :none), :new), #expiresAt = :until ADD #count :one",
        "attribute_not_exists(#count) OR #count < :most",
        {**values, "until": int(clock.now()) + EXPLAINED_SECONDS + _MINUTE_SECONDS},
    )
    is_full = False
    with suppress(StoreError):
        try:
            is_full = table.update(change, Unrecorded.REFUSAL)["count"] >= RECORDS_PER_ITEM
        except ConditionFailed:
            is_full = True
    if is_full:
        _note_full(key)


def _facts(refusal: Refusal, key_id: str | None, limits: Mapping[str, Any]) -> dict[str, Any]:
    error, details = refusal.error, refusal.error.details
    facts: dict[str, Any] = {
        "at": clock.timestamp(),
        "status": error.status,
        "code": error.code,
        "rule": _WORD_START.sub("_", type(error).__name__).lower(),
        "operation": refusal.operation,
        "keyId": key_id,
        "limits": present(**limits),
    }
    if isinstance(details, list):
        facts["problems"] = [_problem(problem, refusal.declared) for problem in details[:_PROBLEMS]]
    elif isinstance(details, dict):
        facts["details"] = {name: details[name] for name in _DETAILS if name in details}
    return present(**facts)


def _problem(problem: dict[str, Any], declared: Collection[str]) -> dict[str, Any]:
    """Returns the code of the problem, and its field or parameter if the operation declares that."""
    return {"code": problem["code"], "field": next((name for name in problem["path"][:1] if name in declared), None)}


def _note_full(key: Key) -> None:
    minute = keys.minute_of_refusals(key)
    if any(keys.minute_of_refusals(other) != minute for other in _full):
        _full.clear()
    _full.add(key)


def find(owner_id: str, request_id: str, began: float) -> Mapping[str, Any] | None:
    """Returns the facts of a request's refusal, or None if there is no record. Consistent."""
    minute = int(began) // _MINUTE_SECONDS
    page = table.query(keys.refusals_pk(owner_id), prefix=keys.refusals_of_minute(minute), consistent=True)
    return next(
        (found for item in page.items for found in item["refusals"] if found["requestId"] == request_id),
        None,
    )


def is_of(facts: Mapping[str, Any], caller_id: str) -> bool:
    """Returns whether the request was this person's or this API key's."""
    return facts.get("caller") == _mark(facts["requestId"], caller_id)


def _mark(request_id: str, caller_id: str) -> str:
    """Returns a text that is compared with that of a known caller, and doesn't say who it is."""
    return digest(f"{request_id} {caller_id}")[:32]
