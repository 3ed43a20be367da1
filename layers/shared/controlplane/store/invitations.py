"""Invitations: at most one pending in an organization for an email address, in whatever letter case.

An invitation is two items: what the organization lists, in the order of creation, and the one by address, which is the
lock. Both live seven days. Conditions compare the time; TTL, which may come days late, only cleans up.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from controlplane import clock, ids
from controlplane.emails import normalize_email
from controlplane.store import keys, organizations
from controlplane.store.organizations import Role
from controlplane.store.table import Check, Delete, Leg, LegFailed, Put, QueryPage, StoreError, Throttled, Update, table

LIFE_SECONDS = 7 * 24 * 3600
_TRIES = 8


class AlreadyInvited(StoreError):
    """The address has a pending invitation: `invitation_id`, until `expires_at` (Unix time)."""

    def __init__(self, invitation_id: str, expires_at: int) -> None:
        super().__init__("already invited")
        self.invitation_id = invitation_id
        self.expires_at = expires_at


class AlreadyMember(StoreError):
    """The address is that of a member."""


class CallerMayNot(StoreError):
    """The caller lost the role that allowed it."""


class UnknownInvitation(StoreError):
    """No such invitation, or no longer."""


class InviterMayNot(StoreError):
    """The invitation is to own the organization, and who sent it does not own it any more."""


class Invitation(NamedTuple):
    """A pending invitation as the invited person sees it. `expires_at` is a Unix time."""

    invitation_id: str
    organization_id: str
    organization_name: str
    role: Role
    invited_by: str
    expires_at: int


def list_invitations(organization_id: str, limit: int, after: str | None) -> QueryPage:
    """One page of the pending ones, newest first.

    All live equally long, so those that are expired stand behind one point of the order, where the range ends.
    """
    oldest = ids.local_at(int(clock.now() - LIFE_SECONDS) + 1)
    return table.query(
        keys.organization_pk(organization_id),
        prefix=keys.INVITATION_PREFIX,
        lowest=keys.invitation(organization_id, oldest).sk,
        newest_first=True,
        limit=limit,
        after=after,
    )


def is_pending(invitation: Mapping[str, Any]) -> bool:
    return bool(invitation["expiresAt"] > clock.now())


def create_invitation(
    organization_id: str, email: str, role: Role, *, inviter_id: str, least: Role, beside: Mapping[str, Leg]
) -> dict[str, Any]:
    """A new invitation, while the inviter has at least the role `least`.

    Raises AlreadyInvited, AlreadyMember, CallerMayNot; LegFailed for a leg of `beside`, which go first.
    """
    address = normalize_email(email)
    invitee = keys.invitee(address, organization_id)
    for _ in range(_TRIES):
        inviter, account, lock = table.batch_get(
            [keys.member(organization_id, inviter_id), keys.user_email(address), invitee]
        )
        if inviter is None:
            raise CallerMayNot
        item = _new_invitation(organization_id, email, role, inviter)
        legs: dict[str, Leg] = {
            **beside,
            "inviter": organizations.role_check(inviter_id, organization_id, least),
            **_no_member(organization_id, account),
            **_instead_of(organization_id, lock),
            "invitee": _lock(invitee, item, lock),
            "invitation": Put(item, "attribute_not_exists(pk)"),
        }
        try:
            table.transact(legs)
        except LegFailed as refusal:
            held = refusal.items.get("invitee")
            if held is not None and held["invitationId"] == item["invitationId"]:
                return item  # our own write, whose answer was lost before it was sent again
            _refuse(refusal)
            continue  # the lock's old holder went away, or made room for another: look again
        return item
    raise Throttled("the invitation of this address keeps changing")


def delete_invitation(organization_id: str, invitation: Mapping[str, Any], caller_id: str, least: Role) -> None:
    """Cancels the invitation, while the caller has at least the role `least`.

    Raises UnknownInvitation, CallerMayNot.
    """
    invitee = keys.invitee(normalize_email(invitation["email"]), organization_id)
    ours = {"id": invitation["invitationId"]}
    legs: dict[str, Leg] = {
        "caller": organizations.role_check(caller_id, organization_id, least),
        "invitation": Delete(_listed(organization_id, invitation["invitationId"]), "attribute_exists(pk)"),
        "invitee": Delete(invitee, "#invitationId = :id", ours),
    }
    try:
        table.transact(legs)
    except LegFailed as refusal:
        raise (CallerMayNot if refusal.leg == "caller" else UnknownInvitation) from None


def list_for_address(email: str) -> list[Invitation]:
    """What an address is invited to, the soonest to expire first. The address is taken as verified."""
    locks = table.query(keys.invitee_pk(normalize_email(email)), consistent=True).items
    pending = [lock for lock in locks if is_pending(lock)]
    items = table.batch_get(
        [key for lock in pending for key in (_listed_by_lock(lock), keys.organization(_organization_of(lock)))]
    )
    found = [
        Invitation(
            item["invitationId"],
            organization["organizationId"],
            organization["name"],
            item["role"],
            item["invitedBy"]["name"],
            item["expiresAt"],
        )
        for item, organization in zip(items[::2], items[1::2], strict=True)
        if item is not None and organization is not None
    ]
    return sorted(found, key=lambda invitation: invitation.expires_at)


def accept_invitation(invitation_id: str, profile: Mapping[str, Any]) -> organizations.Membership:
    """Makes the person of the profile, whose address is verified, a member in the invitation's role.

    Membership, the count of owners and the invitation's end are one write. To own an organization takes an owner's word
    that still counts. Raises UnknownInvitation (also where it is for another address, or expired), AlreadyMember (the
    invitation is then gone), InviterMayNot.
    """
    item, organization = _find_for(invitation_id, profile)
    organization_id, role = organization["organizationId"], item["role"]
    roster, own = organizations.member_items(
        organization_id, organization["slug"], organization["name"], role, dict(profile)
    )
    legs: dict[str, Leg] = {**_consume(organization_id, item), **_granted(organization_id, item)}
    try:
        table.transact({**legs, "roster": roster, "membership": own})
    except LegFailed as refusal:
        if {"invitation", "invitee"} & refusal.items.keys():
            raise UnknownInvitation from None
        if "inviter" in refusal.items:
            raise InviterMayNot from None
        if not {"roster", "membership"} & refusal.items.keys():
            raise
        _discard(organization_id, item)
        raise AlreadyMember from None
    return organizations.Membership(organization_id, organization["slug"], organization["name"], role)


def decline_invitation(invitation_id: str, profile: Mapping[str, Any]) -> str:
    """Ends the invitation without a membership; the organization's name. Raises UnknownInvitation."""
    item, organization = _find_for(invitation_id, profile)
    if not _discard(organization["organizationId"], item):
        raise UnknownInvitation
    return str(organization["name"])


def _find_for(invitation_id: str, profile: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A pending invitation for the person's address, and its organization. Raises UnknownInvitation."""
    located = ids.locate(ids.INVITATION, invitation_id)
    if located is None:
        raise UnknownInvitation
    item, organization = table.batch_get([keys.invitation(*located), keys.organization(located.organization_id)])
    if item is None or organization is None or not is_pending(item):
        raise UnknownInvitation
    if normalize_email(item["email"]) != profile["email"]:
        raise UnknownInvitation
    return item, organization


def _consume(organization_id: str, item: Mapping[str, Any]) -> dict[str, Leg]:
    """Takes both items of a pending invitation away; its time is compared as the transaction finds it."""
    invitee = keys.invitee(normalize_email(item["email"]), organization_id)
    pending = "#expiresAt > :now"
    return {
        "invitation": Delete(_listed(organization_id, item["invitationId"]), pending, {"now": int(clock.now())}),
        "invitee": Delete(invitee, "#invitationId = :id", {"id": item["invitationId"]}),
    }


def _granted(organization_id: str, item: Mapping[str, Any]) -> dict[str, Leg]:
    """What the role needs beside the membership: another owner counted, by the word of one who still is."""
    key = keys.organization(organization_id)
    if item["role"] != "owner":
        return {"organization": Check(key, "attribute_exists(pk)")}
    return {
        "inviter": organizations.role_check(item["invitedBy"]["id"], organization_id, "owner"),
        "organization": Update(key, "SET #owners = #owners + :one", "attribute_exists(pk)", {"one": 1}),
    }


def _discard(organization_id: str, item: Mapping[str, Any]) -> bool:
    """Ends the invitation; False where it was not there any more."""
    try:
        table.transact(_consume(organization_id, item))
    except LegFailed:
        return False
    return True


def _organization_of(lock: Mapping[str, Any]) -> str:
    return str(lock["sk"]).partition("#")[2]


def _listed_by_lock(lock: Mapping[str, Any]) -> keys.Key:
    return _listed(_organization_of(lock), lock["invitationId"])


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
    """Refuses an address whose account is a member; one without an account is nobody's yet."""
    if account is None:
        return {}
    return {"member": Check(keys.member(organization_id, account["userId"]), "attribute_not_exists(pk)")}


def _instead_of(organization_id: str, lock: dict[str, Any] | None) -> dict[str, Leg]:
    """Takes an expired invitation of the address away, for as long as TTL has not."""
    if lock is None or is_pending(lock):
        return {}
    return {"expired": Delete(_listed(organization_id, lock["invitationId"]))}


def _lock(invitee: keys.Key, item: dict[str, Any], seen: dict[str, Any] | None) -> Put:
    lock = {**invitee._asdict(), "invitationId": item["invitationId"], "expiresAt": item["expiresAt"]}
    if seen is None:
        return Put(lock, "attribute_not_exists(pk)")
    # Free where what was seen there is expired, and still the one whose listed item goes away in this transaction.
    free = "#invitationId = :seen AND #expiresAt <= :now"
    return Put(lock, free, {"seen": seen["invitationId"], "now": int(clock.now())})


def _refuse(refusal: LegFailed) -> None:
    """Raises what the refused transaction means, unless it only says that the address must be looked at again."""
    if refusal.leg not in {"inviter", "member", "invitee"}:
        raise refusal
    if "inviter" in refusal.items:
        raise CallerMayNot from None
    if "member" in refusal.items:
        raise AlreadyMember from None
    held = refusal.items["invitee"]
    if held is not None and is_pending(held):
        raise AlreadyInvited(held["invitationId"], held["expiresAt"]) from None


def _listed(organization_id: str, invitation_id: str) -> keys.Key:
    located = ids.locate(ids.INVITATION, invitation_id)
    if located is None:
        raise LookupError("an invitation's item holds no invitation id")
    return keys.invitation(organization_id, located.local)
