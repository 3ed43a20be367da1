"""Device authorization requests: a device requests access, a user decides by user code, the device redeems its code.

pending → approved → redeemed, or pending → denied. The user who approved can still deny until the device redeems. Each
step is one conditional write, so only one of two concurrent steps succeeds, and none after the request's 15 minutes.
A request stays readable for another day, so that a reused code is recognized.

Pages use `find_by_user_code`, `approve`, and `deny`, which take the code as the user typed it.
"""

import secrets
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from controlplane.core import clock, ids, keyring, tokens
from controlplane.core.settings import settings
from controlplane.store import credential_index, keys, rate, token_families, users
from controlplane.store.table import Check, ConditionFailed, Leg, LegFailed, Put, StoreError, Throttled, Update, table
from controlplane.store.token_families import Pair

LIFE_SECONDS = 900
FIRST_INTERVAL_SECONDS = 5
SLOWER_BY_SECONDS = 5
# No vowels, to avoid words. RFC 8628 section 6.1.
USER_CODE_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
# With 8 of 20 letters, 5 attempts have a 2^-32 chance to guess a code. RFC 8628 section 5.1.
PEOPLE_PER_CODE = 5
TRIES_PER_PERSON = 5
_KEPT_SECONDS = 24 * 3600
_TRIES = 8
# Network jitter: a poll that is early by no more than this is on time.
_TOLERANCE_MILLISECONDS = 500

type Status = Literal["pending", "approved", "denied", "redeemed", "expired"]


class UnknownUserCode(StoreError):
    """No request has that code, or the maximum number of people have looked it up."""


class TooManyTries(StoreError):
    """The user tried too many invalid codes. They can try again after `retry_after_seconds`."""

    def __init__(self, retry_after_seconds: int) -> None:
        super().__init__("too many tries")
        self.retry_after_seconds = retry_after_seconds


class RequestExpired(StoreError):
    """The request's 15 minutes have passed."""


class AlreadyDecided(StoreError):
    """The request was already decided: `status` is `approved`, `denied`, or `redeemed`."""

    def __init__(self, status: str) -> None:
        super().__init__(f"already {status}")
        self.status = status


class ScopeNotRequested(StoreError):
    """The approval includes scopes that the device did not request."""


class NotRedeemable(StoreError):
    """The request is not in the expected status, or no longer is. Read it again."""


class DeviceRequest(NamedTuple):
    """A request as shown to the user who decides. Times are Unix times; `address` is the device's IP address."""

    user_code: str
    client_id: str
    device_name: str | None
    scopes: list[str]
    address: str
    created_at: int
    expires_at: int
    status: Status


class Issued(NamedTuple):
    """The two codes of a new request. Only their digests are stored."""

    device_code: str
    user_code: str


def normalize_user_code(text: str) -> str | None:
    """Returns the code in its issued form, `ABCD-EFGH`, from any case and separators. None if it isn't valid."""
    letters = [letter for letter in text.upper() if not letter.isspace() and letter not in "-_.\u2010\u2011\u2013"]
    if len(letters) != 8 or not set(letters) <= set(USER_CODE_LETTERS):
        return None
    return "".join(letters[:4]) + "-" + "".join(letters[4:])


def find_by_user_code(code: str, user_id: str) -> DeviceRequest:
    """Returns the request with the user code. It may be expired or decided, as `status` shows.

    Up to five people can look up a code, any number of times; for others it is unknown. After five invalid codes in 15
    minutes, a person has to wait. Raises UnknownUserCode, TooManyTries.
    """
    _count_try(user_id)
    user_code = normalize_user_code(code)
    if user_code is None:
        raise UnknownUserCode
    first_look = Update(
        _pointer_key(user_code),
        "SET #seenBy = list_append(#seenBy, :people)",
        "attribute_exists(pk) AND NOT contains(#seenBy, :user) AND size(#seenBy) < :most",
        {"people": [user_id], "user": user_id, "most": PEOPLE_PER_CODE},
    )
    try:
        pointer = table.update(first_look)
    except ConditionFailed as failure:
        if failure.item is None or user_id not in failure.item["seenBy"]:
            raise UnknownUserCode from None
        pointer = failure.item
    item = table.get(keys.device_request(pointer["digest"]))
    if item is None:
        raise UnknownUserCode
    rate.return_try(user_id)
    return _request(user_code, item)


def approve(code: str, user_id: str, scopes: list[str]) -> None:
    """Approves the device for this user with `scopes`, some or all of the requested ones.

    Adds the approval to the index of the user's credentials. Raises UnknownUserCode and TooManyTries as a lookup does,
    ScopeNotRequested, RequestExpired, AlreadyDecided.
    """
    item = _find(code, user_id)
    if not set(scopes) <= set(item["scopes"]):
        raise ScopeNotRequested
    change = "SET #status = :status, #decision = :decision, #userId = :user, #granted = :granted"
    values = {"status": "approved", "user": user_id, "granted": sorted(scopes), "pending": "pending"}
    listed = _entry({**item, "userId": user_id, "granted": scopes}, expires_at=item["validUntil"])
    legs: dict[str, Leg] = {"person": users.exists_check(user_id), "listed": listed}
    _decide(item, change, "#status = :pending", values, legs)


def deny(code: str, user_id: str) -> None:
    """Denies the device. The user who approved it can still deny it until it has redeemed its code.

    Raises UnknownUserCode and TooManyTries as a lookup does, RequestExpired, AlreadyDecided.
    """
    item = _find(code, user_id)
    change = "SET #status = :status, #decision = :decision, #userId = :user REMOVE #deviceName, #address"
    when = "(#status = :pending OR (#status = :approved AND #userId = :user))"
    values = {"status": "denied", "user": user_id, "pending": "pending", "approved": "approved"}
    _decide(item, change, when, values, {"listed": credential_index.removal({**item, "userId": user_id})})


def withdraw(digest: str, user_id: str) -> str | None:
    """Revokes an approval that the device hasn't redeemed, and its index entry. `digest` is that of the device code.

    Returns the token family's id if the device has redeemed it, else None. Does nothing if it isn't approved.
    """
    key = keys.device_request(digest)
    item = table.get(key)
    if item is None:
        return None
    refusal = Update(
        key,
        "SET #status = :denied REMOVE #deviceName, #address",
        "#status = :approved AND #userId = :user",
        {"denied": "denied", "approved": "approved", "user": user_id},
    )
    listed = credential_index.removal({**item, "userId": user_id})
    try:
        table.transact({"request": refusal, "listed": listed})
    except LegFailed as failure:
        met = failure.item
        return met["familyId"] if met and met["status"] == "redeemed" and met["userId"] == user_id else None
    return None


def list_older_approval(item: Mapping[str, Any]) -> None:
    """Lists an approved request from before the index of credentials. Raises LegFailed if it isn't approved now."""
    same = Check(keys.Key(item["pk"], item["sk"]), "#status = :approved", {"approved": "approved"})
    table.transact({"request": same, "listed": _entry(item, item["validUntil"])})


def create(client_id: str, challenge: str, scopes: list[str], device_name: str | None, address: str) -> Issued:
    """Creates a request that is pending for 15 minutes.

    `challenge` is the PKCE challenge (S256), `address` the device's IP address.
    """
    for _ in range(_TRIES):
        issued = Issued(tokens.mint(settings.service_brand + tokens.DEVICE_CODE), _new_user_code())
        now = int(clock.now())
        digest = tokens.digest(issued.device_code)
        times = {"validUntil": now + LIFE_SECONDS, "expiresAt": now + LIFE_SECONDS + _KEPT_SECONDS}
        request = {
            **keys.device_request(digest)._asdict(),
            "clientId": client_id,
            "challenge": challenge,
            "scopes": sorted(scopes),
            "deviceName": device_name,
            "address": address,
            "status": "pending",
            "interval": FIRST_INTERVAL_SECONDS,
            "polledAt": 0,
            "createdAt": now,
            "listedAs": ids.new_local(),
            **times,
        }
        key, *other = _code_keys(issued.user_code)
        pointer = {**key._asdict(), "digest": digest, "seenBy": [], **times}
        free = "attribute_not_exists(pk) OR #validUntil <= :now"
        legs: dict[str, Leg] = {
            "code": Put(pointer, free, {"now": now}),
            "request": Put(request, "attribute_not_exists(pk)"),
        }
        if other:
            legs["code under the other key"] = Check(other[0], free, {"now": now})
        try:
            table.transact(legs)
        except LegFailed:
            continue  # another live request has the user code: retry with a new one
        return issued
    raise Throttled("no user code is free")


def find(device_code: str) -> dict[str, Any] | None:
    """Returns the request's item by device code, or None. Consistent: poll responses depend on it."""
    if tokens.prefix_of(device_code) != settings.service_brand + tokens.DEVICE_CODE:
        return None
    return table.get(keys.device_request(tokens.digest(device_code)))


def is_expired(item: Mapping[str, Any]) -> bool:
    return bool(item["validUntil"] <= clock.now())


def note_poll(item: Mapping[str, Any]) -> bool:
    """Records a poll of a pending request. Returns True if it came too early, which adds 5 seconds to the interval.

    Raises NotRedeemable if the request is no longer pending. One write.
    """
    now = int(clock.now() * 1000)
    early = bool(now < item["polledAt"] + item["interval"] * 1000 - _TOLERANCE_MILLISECONDS)
    poll = Update(
        keys.Key(item["pk"], item["sk"]),
        "SET #polledAt = :now, #interval = #interval + :slower",
        # One of two concurrent polls is recorded. The other was too early, unless it is a retry of the same write.
        "#status = :pending AND #polledAt = :seen",
        {"now": now, "slower": SLOWER_BY_SECONDS if early else 0, "pending": "pending", "seen": item["polledAt"]},
    )
    try:
        table.update(poll)
    except ConditionFailed as failure:
        if failure.item is None or failure.item["status"] != "pending":
            raise NotRedeemable from None
        return early or bool(failure.item["polledAt"] != now)
    return early


def redeem(item: Mapping[str, Any]) -> Pair:
    """Issues the tokens of an approved request, once. Raises NotRedeemable unless it is approved and hasn't expired."""
    local = credential_index.local_of(item)
    family_id, pair, legs = token_families.begin(item["userId"], item["clientId"], item["granted"], local)
    values = {"redeemed": "redeemed", "family": family_id, "approved": "approved", "now": int(clock.now())}
    redemption = Update(
        keys.Key(item["pk"], item["sk"]),
        "SET #status = :redeemed, #familyId = :family REMOVE #deviceName, #address",
        # A request is approved only once, so the user and scopes that were read are still current.
        "#status = :approved AND #validUntil > :now",
        values,
    )
    try:
        listed = _entry(item, int(clock.now()) + token_families.REFRESH_SECONDS, family_id)
        table.transact({"request": redemption, "listed": listed, **legs})
    except LegFailed as refusal:
        if refusal.leg != "request":
            raise
        raise NotRedeemable from None
    return pair


def _count_try(user_id: str) -> None:
    """Counts one of the user's tries before the code is checked. Raises TooManyTries."""
    tries = rate.count_try(user_id, TRIES_PER_PERSON)
    if tries.hits > tries.limit:
        raise TooManyTries(tries.resets_at - int(clock.now()))


def _find(code: str, user_id: str) -> dict[str, Any]:
    """Returns the request's item by user code. An invalid code counts as a try, as in a lookup."""
    _count_try(user_id)
    user_code = normalize_user_code(code)
    pointer = table.get(_pointer_key(user_code)) if user_code else None
    item = table.get(keys.device_request(pointer["digest"])) if pointer else None
    if item is None:
        raise UnknownUserCode
    rate.return_try(user_id)
    return item


def _entry(item: Mapping[str, Any], expires_at: int, family_id: str | None = None) -> Update:
    """Returns the leg that adds an approved request, or its token family, to the index of the user's credentials."""
    now = clock.timestamp()
    return credential_index.entry(
        item["userId"],
        credential_index.local_of(item),
        "device",
        client=item["clientId"],
        scopes=item["granted"],
        expires_at=expires_at,
        last_used_at=now,
        created_at=now,
        # A denied request no longer has these. The condition on its status then fails the transaction.
        device_name=item.get("deviceName"),
        address=item.get("address"),
        family_id=family_id,
        request_digest=item["pk"].partition("#")[2],
    )


def _decide(
    item: Mapping[str, Any], change: str, when: str, values: dict[str, Any], extra_legs: Mapping[str, Leg]
) -> None:
    """Changes the request in one transaction with `extra_legs`."""
    decision = secrets.token_hex(16)
    more = {"decision": decision, "now": int(clock.now())}
    try:
        key = keys.Key(item["pk"], item["sk"])
        table.transact(
            {"request": Update(key, change, f"{when} AND #validUntil > :now", {**values, **more}), **extra_legs}
        )
    except LegFailed as failure:
        met = failure.item
        if failure.leg != "request" or met is None:
            raise UnknownUserCode from None  # the account or the request was just deleted
        if met.get("decision") == decision:
            return  # our own write: its response was lost and it was retried
        if met["status"] == "pending":
            raise RequestExpired from None
        raise AlreadyDecided(met["status"]) from None


def _request(user_code: str, item: Mapping[str, Any]) -> DeviceRequest:
    over = is_expired(item) and item["status"] in {"pending", "approved"}
    return DeviceRequest(
        user_code=user_code,
        client_id=item["clientId"],
        # Both are removed once the request is denied or redeemed.
        device_name=item.get("deviceName"),
        scopes=item["scopes"],
        address=item.get("address", ""),
        created_at=item["createdAt"],
        expires_at=item["validUntil"],
        status="expired" if over else item["status"],
    )


def _new_user_code() -> str:
    letters = "".join(secrets.choice(USER_CODE_LETTERS) for _ in range(8))
    return f"{letters[:4]}-{letters[4:]}"


def _code_keys(user_code: str) -> list[keys.Key]:
    """Returns the possible keys of a code's pointer, one per signing key of the ring. Writes use the first."""
    return [keys.user_code(key.digest("user code", user_code)) for key in keyring.ring()]


def _pointer_key(user_code: str) -> keys.Key:
    """Returns the key of the code's pointer, if it exists. With two signing keys, this reads both possible items."""
    places = _code_keys(user_code)
    if len(places) == 1:
        return places[0]
    # A code can be reused once it has expired, so an old pointer may exist under the other key.
    found = [pointer for pointer in table.batch_get(places) if pointer is not None]
    latest = max(found, key=lambda pointer: int(pointer["validUntil"]), default=None)
    return keys.Key(latest["pk"], latest["sk"]) if latest else places[0]
