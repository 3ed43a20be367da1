"""The invited person's side of invitations: list, accept, decline, and block.

Invitations are matched by the account's verified address. Blocking an organization hides its invitations from the
person. The organization isn't notified: it can still invite, and its invitations stay pending until they expire.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from controlplane.core import clock, ids
from controlplane.core.emails import normalize_email
from controlplane.store import invitations, keys, organizations
from controlplane.store.invitations import AlreadyMember, UnknownInvitation, is_pending, least_inviter, listed_key
from controlplane.store.organizations import Membership, Ownership, Role
from controlplane.store.table import Check, Delete, Leg, LegFailed, Put, QueryPage, StoreError, Throttled, Update, table

_TRIES = 8
_PAGE = 50
# Limits the read if most stored invitations are hidden because they expired or their organization is blocked.
_MAX_PAGES = 20


class InviterMayNot(StoreError):
    """The invitation is void: the inviter lost the role that is required to send it."""


class Invitation(NamedTuple):
    """An unexpired invitation as the invited person sees it. `expires_at` is a Unix time."""

    invitation_id: str
    organization_id: str
    organization_name: str
    role: Role
    invited_by: str
    expires_at: int
    is_void: bool


class Received(NamedTuple):
    """Invitations, the soonest to expire first, and whether more are pending than were requested."""

    pending: list[Invitation]
    void: list[Invitation]
    has_more: bool


def list_received(profile: Mapping[str, Any], most: int) -> Received:
    """Returns at most `most` pending and `most` void invitations to the profile's address.

    Omits those of blocked organizations. Void ones never displace pending ones.
    """
    pending: list[Invitation] = []
    void: list[Invitation] = []
    after = None
    for _ in range(_MAX_PAGES):
        page = table.query(
            keys.invitee_pk(normalize_email(profile["email"])),
            prefix=keys.INVITEE_PREFIX,
            limit=_PAGE,
            after=after,
            consistent=True,
        )
        for invitation in _resolve(profile["userId"], page):
            (void if invitation.is_void else pending).append(invitation)
        after = page.next_sk
        if after is None or len(pending) > most:
            break
    has_more = after is not None or len(pending) > most
    return Received(_soonest_first(pending[:most]), _soonest_first(void[:most]), has_more)


def list_for_address(email: str) -> list[Invitation]:
    """Returns all unexpired invitations to an address, including void ones and those of blocked organizations."""
    locks = table.query(keys.invitee_pk(normalize_email(email)), prefix=keys.INVITEE_PREFIX, consistent=True)
    return _resolve(None, locks)


def accept_invitation(invitation_id: str, profile: Mapping[str, Any], limit: int | None = None) -> Membership:
    """Makes the profile's user, whose address is verified, a member with the invitation's role.

    One transaction creates the membership, updates the owner count, and removes the invitation. It also checks that
    the user still has the invited address and the inviter the required role. `limit` is the number of organizations
    that the user can own. Raises UnknownInvitation (also if it expired or is for another address), AlreadyMember (the
    invitation is then removed), InviterMayNot, OwnsTooMany.
    """
    person = dict(profile)
    for _ in range(_TRIES):
        item, organization = _find_for(invitation_id, person)
        joined = Membership(organization["organizationId"], organization["slug"], organization["name"], item["role"])
        ownership = organizations.count_ownership(person, limit) if joined.role == "owner" else None
        try:
            table.transact(_acceptance(joined, item, person, ownership))
        except LegFailed as refusal:
            if {"roster", "membership"} & refusal.items.keys() and not _is_ended(refusal):
                _discard(item)
                raise AlreadyMember from None
            person = _read_again(refusal, ownership)
        else:
            return joined
    raise Throttled("the account keeps changing")


def decline_invitation(invitation_id: str, profile: Mapping[str, Any]) -> str:
    """Declines the invitation. Returns the organization's name. Raises UnknownInvitation."""
    item, organization = _find_for(invitation_id, profile)
    if not _discard(item):
        raise UnknownInvitation
    return str(organization["name"])


def block_organization(invitation_id: str, profile: Mapping[str, Any]) -> str:
    """Declines the invitation and blocks its organization. Returns the organization's name.

    Raises UnknownInvitation.
    """
    item, organization = _find_for(invitation_id, profile)
    key = keys.block(profile["userId"], organization["organizationId"])
    block = {
        **key._asdict(),
        "organizationId": organization["organizationId"],
        "name": organization["name"],
        "createdAt": clock.timestamp(),
    }
    exists = Check(keys.user(profile["userId"]), "attribute_exists(pk)")
    if not _discard(item, {"account": exists, "block": Put(block)}):
        raise UnknownInvitation
    return str(organization["name"])


def unblock_organization(user_id: str, organization_id: str) -> str | None:
    """Unblocks the organization's invitations. Returns its name, or None if it wasn't blocked."""
    block = table.delete(Delete(keys.block(user_id, organization_id)))
    return str(block["name"]) if block else None


def list_blocked(user_id: str, limit: int, after: str | None) -> QueryPage:
    """Returns one page of the organizations that the user has blocked, ordered by id."""
    return table.query(keys.blocks_pk(user_id), limit=limit, after=after, consistent=True)


def forget_address(email: str) -> None:
    """Removes everything stored about invitations to an address, after the pending ones were declined."""
    left: list[keys.Key] = []
    for item in table.query(keys.invitee_pk(normalize_email(email)), consistent=True).items:
        left.append(keys.Key(item["pk"], item["sk"]))
        if "invitationId" in item:
            left.append(listed_key(item["invitationId"]))
    table.delete_all(left)


def forget_blocks(user_id: str) -> None:
    """Removes the list of organizations that a deleted user has blocked."""
    table.delete_all(keys.block(user_id, item["organizationId"]) for item in list_all_blocked(user_id))


def list_all_blocked(user_id: str) -> list[dict[str, Any]]:
    """Returns every organization that the user has blocked, ordered by id."""
    return table.query(keys.blocks_pk(user_id), consistent=True).items


def _soonest_first(found: list[Invitation]) -> list[Invitation]:
    return sorted(found, key=lambda invitation: invitation.expires_at)


def _resolve(user_id: str | None, page: QueryPage) -> list[Invitation]:
    found = invitations.resolve_locks(user_id, page.items)
    valid = {item["invitationId"] for item in invitations.keep_valid([item for item, _ in found])}
    return [
        Invitation(
            item["invitationId"],
            organization["organizationId"],
            organization["name"],
            item["role"],
            item["invitedBy"]["name"],
            item["expiresAt"],
            item["invitationId"] not in valid,
        )
        for item, organization in found
    ]


def _find_for(invitation_id: str, profile: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns a pending invitation to the profile's address, and its organization. Raises UnknownInvitation."""
    located = ids.locate(ids.INVITATION, invitation_id)
    if located is None:
        raise UnknownInvitation
    item, organization = table.batch_get([keys.invitation(*located), keys.organization(located.organization_id)])
    if item is None or organization is None or not is_pending(item):
        raise UnknownInvitation
    if normalize_email(item["email"]) != profile["email"]:
        raise UnknownInvitation
    return item, organization


def _acceptance(
    joined: Membership, item: dict[str, Any], person: dict[str, Any], ownership: Ownership | None
) -> dict[str, Leg]:
    organization_id, slug, name, role = joined
    key, exists = keys.organization(organization_id), "attribute_exists(pk)"
    one_more = Update(key, "SET #owners = #owners + :one", exists, {"one": 1})
    same_address = Check(keys.user(person["userId"]), "#email = :email", {"email": person["email"]})
    roster, own = organizations.member_items(organization_id, slug, name, role, person)
    return {
        **_consume(item),
        "inviter": organizations.role_check(item["invitedBy"]["id"], organization_id, least_inviter(role)),
        "organization": one_more if ownership else Check(key, exists),
        "account": ownership.leg if ownership else same_address,
        "roster": roster,
        "membership": own,
    }


def _is_ended(refusal: LegFailed) -> bool:
    return bool({"invitation", "invitee", "inviter"} & refusal.items.keys())


def _read_again(refusal: LegFailed, ownership: Ownership | None) -> dict[str, Any]:
    """Returns the current profile after a failed acceptance, for a retry, or raises the error for the failure."""
    if {"invitation", "invitee"} & refusal.items.keys():
        raise UnknownInvitation from None
    if "inviter" in refusal.items:
        raise InviterMayNot from None
    if refusal.leg != "account":
        raise refusal
    if ownership is not None:
        ownership.refuse()
    if refusal.item is None:
        raise UnknownInvitation from None
    return refusal.item


def _consume(item: Mapping[str, Any]) -> dict[str, Leg]:
    """Returns the legs that remove both items of a pending invitation. They fail if it has expired by then."""
    invitation_id = item["invitationId"]
    invitee = keys.invitee(normalize_email(item["email"]), invitations.organization_of(invitation_id))
    return {
        "invitation": Delete(listed_key(invitation_id), "#expiresAt > :now", {"now": int(clock.now())}),
        "invitee": Delete(invitee, "#invitationId = :id", {"id": invitation_id}),
    }


def _discard(item: Mapping[str, Any], extra_legs: Mapping[str, Leg] | None = None) -> bool:
    """Removes the invitation in one transaction with `extra_legs`. Returns False if the transaction fails."""
    try:
        table.transact({**_consume(item), **(extra_legs or {})})
    except LegFailed:
        return False
    return True
