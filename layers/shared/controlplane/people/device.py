"""Device authorization requests, as the device sees them: it requests access, polls, and redeems its code.

pending → approved → redeemed, or pending → denied. The user who approved can still deny until the device redeems. Each
step is one conditional write, so only one of two concurrent steps succeeds, and none after the request's 15 minutes.
A request stays readable for another day, so that a reused code is recognized.

The user's side is in `people.device_approvals`.
"""

import secrets
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from controlplane.people import token_families
from controlplane.people.credential_index import CredentialItem
from controlplane.people.token_families import Pair
from controlplane.platform.core import clock, ids, keyring, tokens
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.stored import SPARSE, KeyPart, StoredItem
from controlplane.platform.table.table import Check, ConditionFailed, Leg, Put, Unrecorded, Update, table

LIFE_SECONDS = 900
FIRST_INTERVAL_SECONDS = 5
SLOWER_BY_SECONDS = 5
# No vowels, to avoid words. RFC 8628 section 6.1.
USER_CODE_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
_KEPT_SECONDS = 24 * 3600
# Network jitter: a poll that is early by no more than this is on time.
_TOLERANCE_MILLISECONDS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRequestItem(StoredItem):
    """A request. `digest` is that of its device code; the times are Unix times, `polled_at` in milliseconds.

    device_name, address: as sent by the device. Removed once the request is denied or redeemed.
    user_id, granted, family_id: set once a user has decided, has approved, and the device has redeemed.
    decision: identifies the write that decided.
    listed_as: the local id of its entry in the credential index of the user who approves it.
    """

    digest: KeyPart
    client_id: str
    challenge: str
    scopes: list[str]
    status: Literal["pending", "approved", "denied", "redeemed"]
    interval: int
    polled_at: int
    created_at: int
    valid_until: int
    expires_at: int
    device_name: Annotated[str | None, SPARSE] = None
    address: Annotated[str | None, SPARSE] = None
    user_id: Annotated[str | None, SPARSE] = None
    granted: Annotated[list[str] | None, SPARSE] = None
    family_id: Annotated[str | None, SPARSE] = None
    decision: Annotated[str | None, SPARSE] = None
    listed_as: str

    @property
    def key(self) -> Key:
        return keys.device_request(self.digest)

    @property
    def is_expired(self) -> bool:
        return self.valid_until <= clock.now()

    @property
    def shown_status(self) -> str:
        """The status, or `expired` for a request that can no longer be decided or redeemed."""
        return "expired" if self.is_expired and self.status in {"pending", "approved"} else self.status

    def approval(self) -> tuple[str, list[str]]:
        """Returns the user who approved the request and the granted scopes. Raises LookupError if it isn't approved."""
        if self.user_id is None or self.granted is None:
            raise LookupError("this device request isn't approved")
        return self.user_id, self.granted

    def entry(self, user_id: str, scopes: list[str], expires_at: int, family_id: str | None = None) -> CredentialItem:
        """Returns the entry of the approved request, or of its token family, in the user's credential index."""
        now = clock.timestamp()
        return CredentialItem(
            user_id=user_id,
            local=self.listed_as,
            kind="device",
            client=self.client_id,
            scopes=sorted(scopes),
            expires_at=expires_at,
            last_used_at=now,
            created_at=now,
            # A denied request no longer has these. The condition on its status then fails the transaction.
            device_name=self.device_name,
            address=self.address,
            family_id=family_id,
            request_digest=self.digest,
        )


class Issued(NamedTuple):
    """The two codes of a new request. Only their digests are stored."""

    device_code: str
    user_code: str


def create(client_id: str, challenge: str, scopes: list[str], device_name: str | None, address: str) -> Issued:
    """Creates a request that is pending for 15 minutes.

    `challenge` is the PKCE challenge (S256), `address` the device's IP address.
    """

    def attempt() -> Issued:
        issued = Issued(tokens.mint(settings.service_brand + tokens.DEVICE_CODE), _new_user_code())
        now = int(clock.now())
        request = DeviceRequestItem(
            digest=tokens.digest(issued.device_code),
            client_id=client_id,
            challenge=challenge,
            scopes=sorted(scopes),
            device_name=device_name,
            address=address,
            status="pending",
            interval=FIRST_INTERVAL_SECONDS,
            polled_at=0,
            created_at=now,
            valid_until=now + LIFE_SECONDS,
            expires_at=now + LIFE_SECONDS + _KEPT_SECONDS,
            listed_as=ids.new_local(),
        )
        # Fails if another live request has the user code. The next attempt has a new one.
        table.transact_or_retry(_creation(request, issued.user_code), Unrecorded.CREDENTIAL)
        return issued

    return retry_on_conflict(attempt, "the new user code")


def _creation(request: DeviceRequestItem, user_code: str) -> dict[str, Leg]:
    key, *other = user_code_keys(user_code)
    pointer = {
        **key._asdict(),
        "digest": request.digest,
        "seenBy": [],
        "validUntil": request.valid_until,
        "expiresAt": request.expires_at,
    }
    free, values = "attribute_not_exists(pk) OR #validUntil <= :now", {"now": request.created_at}
    legs: dict[str, Leg] = {
        "code": Put(pointer, free, values),
        "request": Put(request.to_item()),
    }
    if other:
        legs["code under the other key"] = Check(other[0], free, values)
    return legs


def find(device_code: str) -> DeviceRequestItem | None:
    """Returns the request by device code, or None. Consistent: poll responses depend on it."""
    if tokens.prefix_of(device_code) != settings.service_brand + tokens.DEVICE_CODE:
        return None
    return find_by_digest(tokens.digest(device_code))


def find_by_digest(digest: str) -> DeviceRequestItem | None:
    """Returns the request by the digest of its device code, or None. Consistent."""
    return table.find(keys.device_request(digest), DeviceRequestItem.from_item)


def note_poll(request: DeviceRequestItem) -> bool:
    """Records a poll of a pending request. Returns True if it came too early, which adds 5 seconds to the interval.

    Raises WriteConflict if the request is no longer pending. One write.
    """
    now = int(clock.now() * 1000)
    early = now < request.polled_at + request.interval * 1000 - _TOLERANCE_MILLISECONDS
    poll = Update(
        request.key,
        "SET #polledAt = :now, #interval = #interval + :slower",
        # One of two concurrent polls is recorded. The other was too early, unless it is a retry of the same write.
        "#status = :pending AND #polledAt = :previous",
        {
            "now": now,
            "slower": SLOWER_BY_SECONDS if early else 0,
            "pending": "pending",
            "previous": request.polled_at,
        },
    )
    try:
        table.update(poll, Unrecorded.CREDENTIAL)
    except ConditionFailed as failure:
        if failure.item is None or failure.item["status"] != "pending":
            raise WriteConflict from None
        return early or bool(failure.item["polledAt"] != now)
    return early


def redeem(request: DeviceRequestItem) -> Pair:
    """Issues the tokens of an approved request, once. Raises WriteConflict if it is redeemed, denied, or expired."""
    user_id, granted = request.approval()
    family_id, pair, legs = token_families.begin(user_id, request.client_id, granted, request.listed_as)
    now = int(clock.now())
    redemption = Update(
        request.key,
        "SET #status = :redeemed, #familyId = :family REMOVE #deviceName, #address",
        # A request is approved only once, so the user and scopes that were read are still current.
        "#status = :approved AND #validUntil > :now",
        {"redeemed": "redeemed", "family": family_id, "approved": "approved", "now": now},
    )
    listed = request.entry(user_id, granted, now + token_families.REFRESH_SECONDS, family_id).upsert()
    table.transact_or_retry({"request": redemption, "listed": listed, **legs}, Unrecorded.CREDENTIAL)
    return pair


def user_code_keys(user_code: str) -> list[Key]:
    """Returns the possible keys of a code's pointer, one per signing key of the ring. Writes use the first."""
    return [keys.user_code(key.digest("user code", user_code)) for key in keyring.ring()]


def _new_user_code() -> str:
    letters = "".join(secrets.choice(USER_CODE_LETTERS) for _ in range(8))
    return f"{letters[:4]}-{letters[4:]}"
