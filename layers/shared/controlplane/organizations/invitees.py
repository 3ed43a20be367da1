"""The invited person's side of invitations: list, accept, decline, and block.

Invitations are matched by the account's verified address. Blocking an organization hides its invitations from the
person. The organization isn't notified: it can still invite, and its invitations stay pending until they expire.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from controlplane.organizations import invitations
from controlplane.organizations import store as organizations
from controlplane.organizations.invitations import Resolved, least_inviter
from controlplane.organizations.items import InvitationItem, InvitationLock, OrganizationItem
from controlplane.organizations.store import Account, Joining, Membership
from controlplane.people import users
from controlplane.people.users import UserItem
from controlplane.platform.core import clock
from controlplane.platform.core.actions import Action
from controlplane.platform.core.errors import Conflict, NotFound, known
from controlplane.platform.core.ids import InvitationId, MemberId
from controlplane.platform.core.naming import normalize_email
from controlplane.platform.queues import events
from controlplane.platform.table import keys
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.stored import StoredMap
from controlplane.platform.table.table import Check, Delete, Leg, LegFailed, Put, QueryPage, Unrecorded, Update, table

_PAGE = 50
# Limits the read if most stored invitations are hidden because they expired or their organization is blocked.
_MAX_PAGES = 20


class InvitationGone(NotFound):
    """The invitation doesn't exist, has expired, or is for another address."""

    message = "This invitation is no longer available. It was canceled or used, or it has expired."


class AlreadyMember(Conflict):
    message = "You are already a member of this organization. The invitation was removed."


class InvitationVoid(Conflict):
    message = (
        "This invitation is no longer valid, because the person who sent it can't invite people to that role anymore. "
        "Ask an admin or owner of the organization for a new one."
    )


class OwnsTooMany(Conflict):
    message = (
        "You already own the maximum number of organizations. Hand another one over first, or ask to be invited as an "
        "admin."
    )


class NotBlocked(NotFound):
    message = "You haven't blocked this organization."


class Received(NamedTuple):
    """Invitations, the soonest to expire first, and whether more are pending than were requested."""

    pending: list[Resolved]
    void: list[Resolved]
    has_more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockItem(StoredMap):
    """An organization whose invitations the user has blocked."""

    organization_id: str
    name: str
    created_at: str

    def to_item(self, user_id: str) -> dict[str, Any]:
        return {**keys.block(user_id, self.organization_id)._asdict(), **self.to_map()}


def list_received(profile: UserItem, most: int) -> Received:
    """Returns at most `most` pending and `most` void invitations to the profile's address.

    Omits those of blocked organizations. Void ones never displace pending ones.
    """
    pending: list[Resolved] = []
    void: list[Resolved] = []
    after = None
    for _ in range(_MAX_PAGES):
        page = table.query(
            keys.invitee_pk(normalize_email(profile.email)),
            prefix=keys.INVITEE_PREFIX,
            limit=_PAGE,
            after=after,
            consistent=True,
        )
        for found in _resolve(profile.user_id, page.items):
            (pending if found.is_valid else void).append(found)
        after = page.next_sk
        if after is None or len(pending) > most:
            break
    has_more = after is not None or len(pending) > most
    return Received(_soonest_first(pending[:most]), _soonest_first(void[:most]), has_more)


def find_received(invitation_id: InvitationId, profile: UserItem) -> Resolved | None:
    """Returns the invitation if it is to the profile's address, pending, and not void or blocked. Consistent."""
    organization_id = invitation_id.organization_id
    item, organization, block = table.batch_get(
        [
            keys.invitation(*invitation_id.location),
            keys.organization(organization_id),
            keys.block(profile.user_id, organization_id),
        ]
    )
    if item is None or organization is None or block is not None:
        return None
    invitation = InvitationItem.from_item(item)
    is_addressed = normalize_email(invitation.email) == profile.email
    if not is_addressed or not invitation.is_pending or not invitations.keep_valid([invitation]):
        return None
    return Resolved(invitation, OrganizationItem.from_item(organization), is_valid=True)


class Invited(NamedTuple):
    """A pending invitation with its organization, and whether the address's person has blocked it."""

    invitation: InvitationItem
    organization: OrganizationItem
    is_blocked: bool


def find_invited(invitation_id: InvitationId) -> Invited | None:
    """Returns the invitation if it is pending and not void."""
    found = _find_pending(invitation_id)
    if found is None or not invitations.keep_valid([found[0]]):
        return None
    invitation, organization = found
    account = table.get(keys.user_email(normalize_email(invitation.email)))
    block = table.get(keys.block(account["userId"], invitation_id.organization_id)) if account else None
    return Invited(invitation, organization, block is not None)


def list_for_address(email: str) -> list[Resolved]:
    """Returns all unexpired invitations to an address, including void ones and those of blocked organizations."""
    locks = table.query(keys.invitee_pk(normalize_email(email)), prefix=keys.INVITEE_PREFIX, consistent=True)
    return _resolve(None, locks.items)


def accept_invitation(invitation_id: InvitationId, user_id: str, limit: int | None = None) -> Membership:
    """Makes the user, whose address is verified, a member with the invitation's role.

    One transaction creates the membership, updates the owner count, and removes the invitation. It also checks that
    the user still has the invited address and the inviter the required role. `limit` is the number of organizations
    that the user can own. Raises InvitationGone, AlreadyMember (the invitation is then removed), InvitationVoid,
    OwnsTooMany.
    """

    def accept() -> Membership:
        account = organizations.get_account(user_id)
        if account.profile is None:
            raise InvitationGone
        invitation, organization = _get_pending(invitation_id, account.profile.email)
        if invitation.invited_by.id == user_id:  # the inviter has taken over the invited address
            raise _own_invitation_error(invitation, account)
        joined = Membership(
            organization_id=organization.organization_id,
            slug=organization.slug,
            name=organization.name,
            role=invitation.role,
        )
        joining = organizations.join(joined, account, limit)
        try:
            table.transact(
                _acceptance(joined, user_id, invitation, joining),
                organizations.joining_record(joined, user_id, Action.MEMBER_JOIN),
            )
        except LegFailed as failure:
            raise _acceptance_error(failure, invitation, joining) from None
        return joined

    return retry_on_conflict(accept, "the account")


def decline_invitation(invitation_id: InvitationId, profile: UserItem) -> str:
    """Declines the invitation. Returns the organization's name. Raises InvitationGone."""
    invitation, organization = _get_pending(invitation_id, profile.email)
    if not _remove(invitation):
        raise InvitationGone
    return organization.name


def decline_all(address: str) -> int:
    """Declines the invitations to the address of an account that is deleted, and returns their number."""
    declined = 0
    for found in list_for_address(address):
        with suppress(InvitationGone):  # concurrently canceled or expired
            invitation, _ = _get_pending(found.invitation.invitation_id, normalize_email(address))
            declined += _remove(invitation)
    return declined


def block_organization(invitation_id: InvitationId, profile: UserItem) -> str:
    """Declines the invitation and blocks its organization. Returns the organization's name. Raises InvitationGone."""
    invitation, organization = _get_pending(invitation_id, profile.email)
    block = BlockItem(
        organization_id=organization.organization_id, name=organization.name, created_at=clock.timestamp()
    )
    exists = users.exists_check(profile.user_id)
    if not _remove(invitation, {"account": exists, "block": Put(block.to_item(profile.user_id))}):
        raise InvitationGone
    return organization.name


def unblock_organization(user_id: str, organization_id: str) -> str:
    """Unblocks the organization's invitations. Returns its name. Raises NotBlocked."""
    block = known(table.delete(Delete(keys.block(user_id, organization_id)), Unrecorded.ACCOUNT), NotBlocked)
    return BlockItem.from_item(block).name


def list_blocked(user_id: str, limit: int, after: str | None) -> QueryPage[BlockItem]:
    """Returns one page of the organizations that the user has blocked, ordered by id."""
    return table.query(keys.blocks_pk(user_id), limit=limit, after=after, consistent=True).read(BlockItem.from_item)


def forget_address(email: str) -> None:
    """Removes everything stored about invitations to an address, after the pending ones were declined."""
    deleted: list[keys.Key] = []
    for item in table.query(keys.invitee_pk(normalize_email(email)), consistent=True).items:
        deleted.append(keys.Key(item["pk"], item["sk"]))
        if item["sk"].startswith(keys.INVITEE_PREFIX):
            deleted.append(InvitationLock.from_item(item).invitation_key)
    table.delete_all(deleted, Unrecorded.ERASURE)


def _soonest_first(received: list[Resolved]) -> list[Resolved]:
    return sorted(received, key=lambda found: found.invitation.expires_at)


def _resolve(user_id: str | None, locks: Iterable[Mapping[str, Any]]) -> list[Resolved]:
    return invitations.resolve_locks(user_id, [InvitationLock.from_item(lock) for lock in locks])


def _get_pending(invitation_id: InvitationId, address: str) -> tuple[InvitationItem, OrganizationItem]:
    """Returns a pending invitation to the address, and its organization. Raises InvitationGone."""
    found = _find_pending(invitation_id)
    if found is None or normalize_email(found[0].email) != address:
        raise InvitationGone
    return found


def _find_pending(invitation_id: InvitationId) -> tuple[InvitationItem, OrganizationItem] | None:
    item, organization = table.batch_get(
        [keys.invitation(*invitation_id.location), keys.organization(invitation_id.organization_id)]
    )
    if item is None or organization is None:
        return None
    invitation = InvitationItem.from_item(item)
    return (invitation, OrganizationItem.from_item(organization)) if invitation.is_pending else None


def _acceptance(joined: Membership, user_id: str, invitation: InvitationItem, joining: Joining) -> dict[str, Leg]:
    organization_id = joined.organization_id
    key, exists = keys.organization(organization_id), "attribute_exists(pk)"
    count_owner = Update(key, "SET #owners = #owners + :one", exists, {"one": 1})
    inviter_id, least = invitation.invited_by.id, least_inviter(joined.role)
    return {
        **_removal(invitation),
        "inviter": organizations.role_check(inviter_id, organization_id, least),
        "organization": count_owner if joined.role == "owner" else Check(key, exists),
        **joining.legs,
        "event": events.entry(organization_id, "member.joined", MemberId.of_user(organization_id, user_id)).leg,
    }


def _acceptance_error(failure: LegFailed, invitation: InvitationItem, joining: Joining) -> Exception:
    """Returns the error for a failed acceptance, WriteConflict for a retry. Removes the invitation of a member."""
    if {"invitation", "invitee"} & failure.items.keys():
        return InvitationGone()
    if "organization" in failure.items:
        return InvitationGone()  # it was deleted in the meantime
    if "inviter" in failure.items:
        return InvitationVoid()
    if {"roster", "membership"} & failure.items.keys():
        _remove(invitation)
        return AlreadyMember()
    if not joining.is_outdated_by(failure):
        return failure
    return OwnsTooMany() if joining.is_full else WriteConflict()


def _own_invitation_error(invitation: InvitationItem, account: Account) -> Exception:
    """Returns the error for an inviter who accepts. Removes the invitation of a member."""
    if all(held.organization_id != invitation.invitation_id.organization_id for held in account.memberships):
        return InvitationVoid()
    _remove(invitation)
    return AlreadyMember()


def _removal(invitation: InvitationItem) -> dict[str, Leg]:
    """Returns the legs that remove both items of a pending invitation. They fail if it has expired by then."""
    own = {"id": invitation.invitation_id}
    return {
        "invitation": Delete(invitation.key, "#expiresAt > :now", {"now": int(clock.now())}),
        "invitee": Delete(invitation.lock_key, "#invitationId = :id", own),
    }


def _remove(invitation: InvitationItem, extra_legs: Mapping[str, Leg] | None = None) -> bool:
    """Removes the invitation in one transaction with `extra_legs`. Returns False if the transaction fails."""
    try:
        legs = {**_removal(invitation), **(extra_legs or {})}
        table.transact(legs, invitation.recorded(Action.INVITATION_DECLINE))
    except LegFailed:
        return False
    return True
