"""The organization's side of invitations: at most one pending per email address, in any letter case.

An invitation has two items: the one that the organization lists, in order of creation, and the one by address, which
is the lock. Both expire after seven days. Conditions compare the time; TTL, which can be days late, only cleans up. An
invitation is void if the inviter lost the role that is required to send it. The invited person's side is in
`invitees`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from controlplane.core import clock, ids
from controlplane.core.emails import normalize_email
from controlplane.store import caps, keys, organizations
from controlplane.store.caps import Room
from controlplane.store.organizations import ROLES, Role
from controlplane.store.table import Check, Delete, Leg, LegFailed, Put, QueryPage, StoreError, Throttled, table

LIFE_SECONDS = 7 * 24 * 3600
# The counter outlives every invitation that it counted.
_COUNT_LIFE_SECONDS = LIFE_SECONDS + 24 * 3600
_TRIES = 8


class AlreadyInvited(StoreError):
    """The address has a pending invitation, `invitation_id`, which expires at `expires_at` (Unix time)."""

    def __init__(self, invitation_id: str, expires_at: int) -> None:
        super().__init__("already invited")
        self.invitation_id = invitation_id
        self.expires_at = expires_at


class AlreadyMember(StoreError):
    """The address belongs to a member."""


class CallerMayNot(StoreError):
    """The caller no longer has the required role."""


class UnknownInvitation(StoreError):
    """The invitation doesn't exist, or has ended."""


class OrganizationFull(StoreError):
    """The organization has reached its limit of pending invitations, as in `room`."""

    def __init__(self, room: Room) -> None:
        super().__init__("too many pending invitations")
        self.room = room


class AddressFull(StoreError):
    """The address has reached its limit of pending invitations, across all organizations."""


class Limits(NamedTuple):
    """The maximum number of pending invitations in one organization, and for one address."""

    organization: int
    address: int


class _Seen(NamedTuple):
    """The state that an invitation depends on. `lock_is_free`: no lock, or one of an expired or void invitation."""

    inviter: dict[str, Any]
    account: dict[str, Any] | None
    lock: dict[str, Any] | None
    lock_is_free: bool
    organization_room: Room
    address_room: Room


def least_inviter(role: Role) -> Role:
    """Returns the lowest role that can invite to that role. Checked when the invitation is sent and when accepted."""
    return "owner" if role == "owner" else "admin"


def list_invitations(organization_id: str, limit: int, after: str | None) -> QueryPage:
    """Returns one page of pending invitations, newest first, without void ones."""
    items: list[dict[str, Any]] = []
    while True:
        page = _query_unexpired(organization_id, limit - len(items), after)
        items += keep_valid(page.items)
        if page.next_sk is None or len(items) == limit:
            return QueryPage(items, page.next_sk)
        after = page.next_sk


def is_pending(invitation: Mapping[str, Any]) -> bool:
    """Returns True if the invitation hasn't expired. It may still be void."""
    return bool(invitation["expiresAt"] > clock.now())


def keep_valid(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the listed items that are not void. One consistent read per 100 inviters."""
    inviters = [keys.membership(item["invitedBy"]["id"], organization_of(item["invitationId"])) for item in items]
    distinct = list(dict.fromkeys(inviters))
    roles = {key: found["role"] for key, found in zip(distinct, table.batch_get(distinct), strict=True) if found}
    return [
        item
        for item, inviter in zip(items, inviters, strict=True)
        if inviter in roles and ROLES.index(roles[inviter]) >= ROLES.index(least_inviter(item["role"]))
    ]


def create_invitation(
    organization_id: str, email: str, role: Role, *, inviter_id: str, limits: Limits, extra_legs: Mapping[str, Leg]
) -> dict[str, Any]:
    """Creates an invitation if the inviter has the required role and the limits allow it.

    The legs in `extra_legs` go first in the transaction. Raises AlreadyInvited, AlreadyMember, CallerMayNot,
    OrganizationFull, AddressFull, and LegFailed if a leg of `extra_legs` fails.
    """
    address = normalize_email(email)
    for _ in range(_TRIES):
        seen = _look(organization_id, address, inviter_id, limits)
        item = _new_invitation(organization_id, email, role, seen.inviter)
        expires_at = int(clock.now()) + _COUNT_LIFE_SECONDS
        received = keys.invitations_received(address)
        legs: dict[str, Leg] = {
            **extra_legs,
            "inviter": organizations.role_check(inviter_id, organization_id, least_inviter(role)),
            **_no_member(organization_id, seen.account),
            **_instead_of(seen),
            "invitee": _lock(keys.invitee(address, organization_id), item, seen),
            "organization": caps.make_one(keys.invitations_made(organization_id), "made", seen.organization_room),
            "address": caps.make_one(received, "made", seen.address_room, ", #expiresAt = :until", until=expires_at),
            "invitation": Put(item, "attribute_not_exists(pk)"),
        }
        try:
            table.transact(legs)
        except LegFailed as refusal:
            held = refusal.items.get("invitee")
            if held is not None and held["invitationId"] == item["invitationId"]:
                return item  # our own write: its response was lost and it was retried
            _refuse(refusal, seen)
            continue  # the state that was read has changed: retry
        return item
    raise Throttled("the invitations of this address keep changing")


def delete_invitation(organization_id: str, invitation: Mapping[str, Any], caller_id: str, least: Role) -> None:
    """Cancels the invitation if the caller has at least the role `least`.

    Raises UnknownInvitation, CallerMayNot.
    """
    invitee = keys.invitee(normalize_email(invitation["email"]), organization_id)
    ours = {"id": invitation["invitationId"]}
    legs: dict[str, Leg] = {
        "caller": organizations.role_check(caller_id, organization_id, least),
        "invitation": Delete(listed_key(invitation["invitationId"]), "attribute_exists(pk)"),
        "invitee": Delete(invitee, "#invitationId = :id", ours),
    }
    try:
        table.transact(legs)
    except LegFailed as refusal:
        raise (CallerMayNot if refusal.leg == "caller" else UnknownInvitation) from None


def organization_of(invitation_id: str) -> str:
    return _locate(invitation_id).organization_id


def listed_key(invitation_id: str) -> keys.Key:
    """Returns the key of the item that the organization lists."""
    return keys.invitation(*_locate(invitation_id))


def resolve_locks(
    user_id: str | None, locks: Sequence[Mapping[str, Any]]
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Returns the invitations for the locks of one address, each with its organization. Includes void ones.

    Omits expired invitations and those of organizations that the user has blocked. Consistent.
    """
    wanted: list[keys.Key] = []
    for lock in locks:
        if is_pending(lock):
            organization_id = organization_of(lock["invitationId"])
            # Without an account there are no blocks: no block is stored under an empty id.
            block = keys.block(user_id or "", organization_id)
            wanted += [listed_key(lock["invitationId"]), keys.organization(organization_id), block]
    found = table.batch_get(wanted)
    return [
        (item, organization)
        for item, organization, blocked in zip(found[::3], found[1::3], found[2::3], strict=True)
        if item is not None and organization is not None and blocked is None
    ]


def _look(organization_id: str, address: str, inviter_id: str, limits: Limits) -> _Seen:
    """Reads the state that an invitation depends on. Raises CallerMayNot if the inviter isn't a member."""
    inviter, account, lock, made, received = table.batch_get(
        [
            keys.member(organization_id, inviter_id),
            keys.user_email(address),
            keys.invitee(address, organization_id),
            keys.invitations_made(organization_id),
            keys.invitations_received(address),
        ]
    )
    if inviter is None:
        raise CallerMayNot
    return _Seen(
        inviter,
        account,
        lock,
        _is_free(lock),
        caps.look(made, "made", limits.organization, lambda: _count_sent(organization_id, limits.organization)),
        caps.look(received, "made", limits.address, lambda: _count_received(address, account, limits.address)),
    )


def _count_sent(organization_id: str, limit: int) -> int:
    """Returns the number of pending invitations of the organization. Void ones are excluded only at the limit."""
    items = _query_unexpired(organization_id, None, None, consistent=True).items
    return len(items) if len(items) < limit else len(keep_valid(items))


def _count_received(address: str, account: Mapping[str, Any] | None, limit: int) -> int:
    """Returns the number of pending invitations for the address.

    At the limit, counts only those that the person sees as pending, because they can answer only these.
    """
    locks = table.query(keys.invitee_pk(address), prefix=keys.INVITEE_PREFIX, consistent=True).items
    pending = [lock for lock in locks if is_pending(lock)]
    if len(pending) < limit:
        return len(pending)
    seen = resolve_locks(account["userId"] if account else None, pending)
    return len(keep_valid([item for item, _ in seen]))


def _is_free(lock: dict[str, Any] | None) -> bool:
    if lock is None or not is_pending(lock):
        return True
    listed = table.get(listed_key(lock["invitationId"]))
    return listed is None or not keep_valid([listed])


def _query_unexpired(
    organization_id: str, limit: int | None, after: str | None, *, consistent: bool = False
) -> QueryPage:
    """Returns a page of the organization's unexpired invitations, newest first.

    All have the same lifetime, so creation order is expiry order, and the range ends at the first expired one.
    """
    oldest = ids.local_at(int(clock.now() - LIFE_SECONDS) + 1)
    return table.query(
        keys.organization_pk(organization_id),
        prefix=keys.INVITATION_PREFIX,
        lowest=keys.invitation(organization_id, oldest).sk,
        newest_first=True,
        limit=limit,
        after=after,
        consistent=consistent,
    )


def _locate(invitation_id: str) -> ids.Located:
    located = ids.locate(ids.INVITATION, invitation_id)
    if located is None:
        raise LookupError("an invitation's item holds no invitation id")
    return located


def _new_invitation(organization_id: str, email: str, role: Role, inviter: dict[str, Any]) -> dict[str, Any]:
    local = ids.new_local()
    return {
        **keys.invitation(organization_id, local)._asdict(),
        "invitationId": ids.owned(ids.INVITATION, organization_id, local),
        "email": email,
        "role": role,
        "createdAt": clock.timestamp(),
        "expiresAt": int(clock.now()) + LIFE_SECONDS,
        "invitedBy": {"id": inviter["userId"], "name": inviter["name"], "email": inviter["email"]},
    }


def _no_member(organization_id: str, account: dict[str, Any] | None) -> dict[str, Leg]:
    """Returns the leg that fails if the address's account is a member. Empty if the address has no account."""
    if account is None:
        return {}
    return {"member": Check(keys.member(organization_id, account["userId"]), "attribute_not_exists(pk)")}


def _instead_of(seen: _Seen) -> dict[str, Leg]:
    """Returns the leg that removes the address's expired or void invitation, which the new one replaces."""
    if seen.lock is None or not seen.lock_is_free:
        return {}
    return {"replaced": Delete(listed_key(seen.lock["invitationId"]))}


def _lock(invitee: keys.Key, item: dict[str, Any], seen: _Seen) -> Put:
    lock = {**invitee._asdict(), "invitationId": item["invitationId"], "expiresAt": item["expiresAt"]}
    if seen.lock is None or not seen.lock_is_free:
        return Put(lock, "attribute_not_exists(pk)")
    # The lock must still be that of the invitation whose listed item this transaction removes.
    return Put(lock, "#invitationId = :seen", {"seen": seen.lock["invitationId"]})


def _refuse(refusal: LegFailed, seen: _Seen) -> None:
    """Raises the error for the failed transaction. Returns if it should be retried with a new read."""
    if refusal.leg not in {"inviter", "member", "invitee", "organization", "address"}:
        raise refusal
    if "inviter" in refusal.items:
        raise CallerMayNot from None
    if "member" in refusal.items:
        raise AlreadyMember from None
    held = refusal.items.get("invitee")
    if held is not None and not seen.lock_is_free and seen.lock == held:
        raise AlreadyInvited(held["invitationId"], held["expiresAt"]) from None
    if "invitee" in refusal.items:
        return
    if "organization" in refusal.items and seen.organization_room.is_full:
        raise OrganizationFull(seen.organization_room) from None
    if "address" in refusal.items and seen.address_room.is_full:
        raise AddressFull from None
