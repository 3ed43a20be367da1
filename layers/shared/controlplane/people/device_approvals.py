"""Decisions on device authorization requests: a user finds a request by its user code, then approves or denies it.

The functions take the code as the user typed it. The device's side is in `people.device`.
"""

import secrets
from collections.abc import Callable, Mapping
from typing import Any

from controlplane.people import device, users
from controlplane.people.device import USER_CODE_LETTERS, DeviceRequestItem
from controlplane.platform.core import clock
from controlplane.platform.core.errors import Conflict, NotFound, RateLimited, known
from controlplane.platform.table import keys, rate
from controlplane.platform.table.keys import Key
from controlplane.platform.table.parallel import read_both
from controlplane.platform.table.table import (
    ConditionFailed,
    Delete,
    Leg,
    LegFailed,
    StoreError,
    Unrecorded,
    Update,
    table,
)

# With 8 of 20 letters, 5 attempts have a 2^-32 chance to guess a code. RFC 8628 section 5.1.
PEOPLE_PER_CODE = 5
TRIES_PER_PERSON = 5


class UnknownUserCode(NotFound):
    """No request has that code, or the maximum number of people have looked it up."""

    message = "No request has this code. Check the letters, or request a new code on your device."


class TooManyTries(RateLimited):
    """The user tried too many invalid codes."""

    message = "You entered too many wrong codes. Wait 15 minutes, then try again."


class RequestExpired(Conflict):
    """The request's 15 minutes have passed."""

    message = "This code has expired. Request a new one on your device."


class AlreadyDecided(Conflict):
    """The request was approved or denied. `decision` is its status: `approved`, `denied`, or `redeemed`."""

    message = "This request was already approved or denied. Request a new code on your device if you need one."

    def __init__(self, decision: str) -> None:
        super().__init__(decision=decision)


class ScopeNotRequested(StoreError):
    """The approval includes scopes that the device did not request."""


def normalize_user_code(text: str) -> str | None:
    """Returns the code in its issued form, `ABCD-EFGH`, from any case and separators. None if it isn't valid."""
    letters = [letter for letter in text.upper() if not letter.isspace() and letter not in "-_.\u2010\u2011\u2013"]
    if len(letters) != 8 or not set(letters) <= set(USER_CODE_LETTERS):
        return None
    return "".join(letters[:4]) + "-" + "".join(letters[4:])


def find_by_user_code(code: str, user_id: str) -> DeviceRequestItem:
    """Returns the request with the user code. It may be expired or decided, as `shown_status` says.

    Up to five people can look up a code, any number of times; for others it is unknown. After five invalid codes in 15
    minutes, a person has to wait. Raises UnknownUserCode, TooManyTries.
    """
    pointer = _count_and_find(code, user_id)
    _, request = read_both(lambda: _note_look(pointer, user_id), lambda: device.find_by_digest(pointer["digest"]))
    if request is None:
        raise UnknownUserCode
    rate.return_try(user_id)
    return request


def approve(code: str, user_id: str, scopes: list[str]) -> None:
    """Approves the device for this user with `scopes`, some or all of the requested ones.

    Adds the approval to the index of the user's credentials. Raises UnknownUserCode and TooManyTries as a lookup does,
    ScopeNotRequested, RequestExpired, AlreadyDecided.
    """

    def decide(request: DeviceRequestItem) -> None:
        if not set(scopes) <= set(request.scopes):
            raise ScopeNotRequested
        change = "SET #status = :status, #decision = :decision, #userId = :user, #granted = :granted"
        values = {"status": "approved", "user": user_id, "granted": sorted(scopes), "pending": "pending"}
        listed = request.entry(user_id, scopes, request.valid_until).upsert()
        legs: dict[str, Leg] = {"person": users.exists_check(user_id), "listed": listed}
        _decide(request, change, "#status = :pending", values, legs)

    _find_and_decide(code, user_id, decide)


def deny(code: str, user_id: str) -> None:
    """Denies the device. The user who approved it can still deny it until it has redeemed its code.

    Raises UnknownUserCode and TooManyTries as a lookup does, RequestExpired, AlreadyDecided.
    """

    def decide(request: DeviceRequestItem) -> None:
        change = "SET #status = :status, #decision = :decision, #userId = :user REMOVE #deviceName, #address"
        when = "(#status = :pending OR (#status = :approved AND #userId = :user))"
        values = {"status": "denied", "user": user_id, "pending": "pending", "approved": "approved"}
        _decide(request, change, when, values, {"listed": Delete(keys.credential(user_id, request.listed_as))})

    _find_and_decide(code, user_id, decide)


def withdraw(digest: str, user_id: str) -> str | None:
    """Revokes an approval that the device hasn't redeemed, and its index entry. `digest` is that of the device code.

    Returns the token family's id if the device has redeemed it, else None. Does nothing if it isn't approved.
    """
    request = device.find_by_digest(digest)
    if request is None:
        return None
    denial = Update(
        request.key,
        "SET #status = :denied REMOVE #deviceName, #address",
        "#status = :approved AND #userId = :user",
        {"denied": "denied", "approved": "approved", "user": user_id},
    )
    listed = Delete(keys.credential(user_id, request.listed_as))
    try:
        table.transact({"request": denial, "listed": listed}, Unrecorded.CREDENTIAL)
    except LegFailed as failure:
        current = DeviceRequestItem.from_item(failure.item) if failure.item else None
        if current and current.user_id == user_id:
            return current.family_id
    return None


def _count_and_find(code: str, user_id: str) -> dict[str, Any]:
    """Counts one of the user's tries. Returns the code's pointer.

    The pointer is read while the try is counted, and only used if the count is within the limit. Raises TooManyTries,
    UnknownUserCode.
    """
    user_code = normalize_user_code(code)
    tries, pointer = read_both(
        lambda: rate.count_try(user_id, TRIES_PER_PERSON), lambda: _find_pointer(user_code) if user_code else None
    )
    if tries.hits > tries.limit:
        raise TooManyTries(tries.resets_at - int(clock.now()))
    if pointer is None:
        raise UnknownUserCode
    return pointer


def _note_look(pointer: Mapping[str, Any], user_id: str) -> None:
    """Records that the user has looked up the code. Raises UnknownUserCode for a sixth person."""
    if user_id in pointer["seenBy"]:
        return
    first_look = Update(
        Key(pointer["pk"], pointer["sk"]),
        "SET #seenBy = list_append(#seenBy, :people)",
        # An expired code can be reused: it then leads to another request than the pointer that was read.
        "#digest = :digest AND NOT contains(#seenBy, :user) AND size(#seenBy) < :most",
        {"people": [user_id], "user": user_id, "most": PEOPLE_PER_CODE, "digest": pointer["digest"]},
    )
    try:
        table.update(first_look, Unrecorded.CREDENTIAL)
    except ConditionFailed as failure:
        current = failure.item
        if current is None or current["digest"] != pointer["digest"] or user_id not in current["seenBy"]:
            raise UnknownUserCode from None


def _find_and_decide(code: str, user_id: str, decide: Callable[[DeviceRequestItem], None]) -> None:
    """Calls `decide` with the request, and refunds the try at the same time. A wrong code counts, as in a lookup."""
    pointer = _count_and_find(code, user_id)
    request = known(device.find_by_digest(pointer["digest"]), UnknownUserCode)
    read_both(lambda: decide(request), lambda: rate.return_try(user_id))


def _decide(
    request: DeviceRequestItem, change: str, when: str, values: Mapping[str, Any], extra_legs: Mapping[str, Leg]
) -> None:
    """Changes the request in one transaction with `extra_legs`."""
    decision = secrets.token_hex(16)
    values = {**values, "decision": decision, "now": int(clock.now())}
    try:
        table.transact(
            {"request": Update(request.key, change, f"{when} AND #validUntil > :now", values), **extra_legs},
            Unrecorded.CREDENTIAL,
        )
    except LegFailed as failure:
        if failure.item is None:
            raise UnknownUserCode from None  # the account or the request was just deleted
        current = DeviceRequestItem.from_item(failure.item)
        if current.decision == decision:
            return  # our own write: its response was lost and it was retried
        if current.status == "pending":
            raise RequestExpired from None
        raise AlreadyDecided(current.status) from None


def _find_pointer(user_code: str) -> dict[str, Any] | None:
    """Returns the code's pointer, or None. With two signing keys, it can be in either of two items."""
    # An expired code can be reused, so an old pointer may exist under the other key.
    found = [pointer for pointer in table.batch_get(device.user_code_keys(user_code)) if pointer]
    return max(found, key=lambda pointer: int(pointer["validUntil"]), default=None)
