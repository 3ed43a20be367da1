"""The organization's side of invitations: at most one pending per email address, in any letter case.

An invitation has two items: the one that the organization lists, in order of creation, and the one by address, which
is the lock. Both expire seven days after the invitation was created or sent again (`resends`). Conditions compare the
time; TTL, which can be days late, only cleans up. An invitation is void if the inviter lost the role that is required
to send it. The invited person's side is in `invitees`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from controlplane.organizations import caps
from controlplane.organizations import store as organizations
from controlplane.organizations.caps import Capacity
from controlplane.organizations.items import InvitationItem, InvitationLock, Inviter, OrganizationItem
from controlplane.organizations.store import MemberItem
from controlplane.platform.core import clock, ids
from controlplane.platform.core.actions import Action
from controlplane.platform.core.errors import Conflict, NotFound, RoleRequired
from controlplane.platform.core.ids import InvitationId
from controlplane.platform.core.naming import normalize_email
from controlplane.platform.core.roles import RANK, Role
from controlplane.platform.table import keys
from controlplane.platform.table.parallel import read_both
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.table import Check, Delete, Leg, LegFailed, Put, QueryPage, table

LIFE_SECONDS = 7 * 24 * 3600
# Sending an invitation again extends it up to this age, so that a list need not look for older ones.
LONGEST_LIFE_SECONDS = 28 * 24 * 3600
# A counter that has expired starts again at the number of existing invitations.
_COUNT_LIFE_SECONDS = LIFE_SECONDS + 24 * 3600


class AlreadyInvited(Conflict):
    message = "This address already has a pending invitation. Cancel it before you send another."

    def __init__(self, invitation_id: str, expires_at: int) -> None:
        super().__init__(
            details={
                "field": "email",
                "reason": "already_invited",
                "invitationId": invitation_id,
                "expiresAt": clock.timestamp(expires_at),
            }
        )


class AlreadyMember(Conflict):
    message = "This address belongs to a member of the organization."
    fixed_details: ClassVar = {"field": "email", "reason": "already_member"}


class TooManyInvitations(Conflict):
    message = "The organization has reached its limit of pending invitations. Cancel some, or wait until they expire."

    def __init__(self, current: int, limit: int | None) -> None:
        super().__init__(details={"reason": "invitation_limit", "limit": limit, "current": current})


class AddressNotInvitable(Conflict):
    """The address has too many pending invitations. The message hides this, as they belong to other organizations."""

    message = "This address can't be invited at the moment. Try again in a few days."
    fixed_details: ClassVar = {"field": "email", "reason": "not_invitable"}


class RoleLost(RoleRequired):
    """The caller no longer has the required role."""


class UnknownInvitation(NotFound):
    """The invitation doesn't exist, or has ended."""


class Limits(NamedTuple):
    """The maximum number of pending invitations in one organization, and for one address."""

    organization: int
    address: int


class Resolved(NamedTuple):
    """An invitation with its organization, and whether it is valid: not void."""

    invitation: InvitationItem
    organization: OrganizationItem
    is_valid: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """The stored state that a new invitation depends on.

    account_id: the user with the invited address, if there is one.
    replaced: the address's expired or void invitation, which the new one replaces.
    pending: the address's valid invitation, which rules out another one.
    """

    inviter: MemberItem
    account_id: str | None
    replaced: InvitationLock | None
    pending: InvitationLock | None
    sent: Capacity
    received: Capacity


def least_inviter(role: Role) -> Role:
    """Returns the lowest role that can invite to that role. Checked when the invitation is sent and when accepted."""
    return "owner" if role == "owner" else "admin"


def list_invitations(
    organization_id: str, limit: int, after: str | None, *, consistent: bool = False
) -> QueryPage[InvitationItem]:
    """Returns one page of pending invitations, newest first, without void ones."""
    valid: list[InvitationItem] = []
    while True:
        page = _query_unexpired(organization_id, limit - len(valid), after, consistent=consistent)
        valid += keep_valid(_pending(page.items))
        if page.next_sk is None or len(valid) == limit:
            return QueryPage(valid, page.next_sk)
        after = page.next_sk


def find_invitation(invitation_id: InvitationId) -> InvitationItem | None:
    """Returns the invitation, even if it is void or has expired, or None."""
    return table.find(keys.invitation(*invitation_id.location), InvitationItem.from_item)


def keep_valid(invitations: Iterable[InvitationItem]) -> list[InvitationItem]:
    """Returns the invitations that are not void. One consistent read of the inviters."""
    invitations = list(invitations)
    inviters = list(dict.fromkeys(invitation.inviter_key for invitation in invitations))
    found = dict(zip(inviters, table.batch_get(inviters), strict=True))
    return [invitation for invitation in invitations if _may_invite(found[invitation.inviter_key], invitation)]


def _may_invite(inviter: Mapping[str, Any] | None, invitation: InvitationItem) -> bool:
    """Returns whether the inviter's membership, if it still exists, has the role that the invitation depends on."""
    return inviter is not None and RANK[inviter["role"]] >= RANK[least_inviter(invitation.role)]


def create_invitation(
    organization_id: str,
    email: str,
    role: Role,
    *,
    inviter_id: str,
    limits: Limits,
    extra_legs: Mapping[str, Leg],
    announce: Callable[[InvitationItem], Mapping[str, Leg]] = lambda _: {},
) -> InvitationItem:
    """Creates an invitation if the inviter has the required role and the limits allow it.

    The legs in `extra_legs` go first in the transaction, and those that `announce` returns go last. Raises
    AlreadyInvited, AlreadyMember, RoleLost, TooManyInvitations, AddressNotInvitable, and LegFailed if a leg of
    `extra_legs` fails.
    """
    address = normalize_email(email)
    sent, received = keys.invitations_made(organization_id), keys.invitations_received(address)

    def create() -> InvitationItem:
        state = _read_state(organization_id, address, inviter_id, limits)
        invitation = _new_invitation(organization_id, email, role, state.inviter)
        until = int(clock.now()) + _COUNT_LIFE_SECONDS
        legs: dict[str, Leg] = {
            **extra_legs,
            "inviter": organizations.role_check(inviter_id, organization_id, least_inviter(role)),
            **_check_not_member(organization_id, state.account_id),
            **({"replaced": Delete(state.replaced.invitation_key)} if state.replaced else {}),
            "invitee": _put_lock(invitation, state.replaced),
            "organization": caps.count_creation(sent, "made", state.sent),
            "address": caps.count_creation(received, "made", state.received, ", #expiresAt = :until", until=until),
            "invitation": Put(invitation.to_item(), "attribute_not_exists(pk)"),
            **announce(invitation),
        }
        try:
            table.transact(legs, invitation.recorded(Action.INVITATION_CREATE))
        except LegFailed as failure:
            lock = failure.items.get("invitee")
            if lock is None or lock["invitationId"] != invitation.invitation_id:
                raise _cause_of(failure, state) from None
            # Our own write: its response was lost and it was retried.
        return invitation

    return retry_on_conflict(create, "the address's set of invitations")


def delete_invitation(invitation: InvitationItem, caller_id: str, least: Role) -> None:
    """Cancels the invitation if it is pending and the caller has at least the role `least`.

    Raises UnknownInvitation, RoleLost.
    """
    if not invitation.is_pending:
        raise UnknownInvitation
    own = {"id": invitation.invitation_id}
    legs: dict[str, Leg] = {
        "caller": organizations.role_check(caller_id, invitation.invitation_id.organization_id, least),
        "invitation": Delete(invitation.key),
        "invitee": Delete(invitation.lock_key, "#invitationId = :id", own),
    }
    record = invitation.recorded(Action.INVITATION_CANCEL)
    table.transact(legs, record, {"caller": RoleLost(least)}, UnknownInvitation)


def resolve_locks(user_id: str | None, locks: Sequence[InvitationLock]) -> list[Resolved]:
    """Returns the invitations for the locks of one address. Includes void ones.

    Omits expired invitations and those of organizations that the user has blocked. Consistent.
    """
    pending = [lock for lock in locks if lock.is_pending]
    wanted: list[keys.Key] = []
    for lock in pending:
        organization_id = lock.invitation_id.organization_id
        # Without an account there are no blocks: no item is stored under an empty id.
        wanted += [
            lock.invitation_key,
            keys.organization(organization_id),
            keys.block(user_id or "", organization_id),
            keys.membership(lock.inviter_id, organization_id),
        ]
    found, kept = table.batch_get(wanted), list[Resolved]()
    for item, organization, block, inviter in zip(*(found[start::4] for start in range(4)), strict=True):
        if item is not None and organization is not None and block is None:
            invitation = InvitationItem.from_item(item)
            kept.append(
                Resolved(invitation, OrganizationItem.from_item(organization), _may_invite(inviter, invitation))
            )
    return kept


def _read_state(organization_id: str, address: str, inviter_id: str, limits: Limits) -> _State:
    """Reads the state that a new invitation depends on. Raises RoleLost if the inviter isn't a member."""
    (inviter, account, sent), received = read_both(
        lambda: table.batch_get(
            [
                keys.member(organization_id, inviter_id),
                keys.user_email(address),
                keys.invitations_made(organization_id),
            ]
        ),
        # The counter comes first, before the locks. `caps` requires that it isn't read after the items that it counts.
        lambda: table.query(keys.invitee_pk(address), consistent=True).items,
    )
    of_address = {item["sk"]: item for item in received}
    counted = of_address.get(keys.invitations_received(address).sk)
    lock_item = of_address.get(keys.invitee(address, organization_id).sk)
    if inviter is None:
        raise RoleLost
    account_id = account["userId"] if account else None
    lock = InvitationLock.from_item(lock_item) if lock_item else None
    is_valid = lock is not None and _is_valid(lock)
    return _State(
        inviter=MemberItem.from_item(inviter),
        account_id=account_id,
        replaced=None if is_valid else lock,
        pending=lock if is_valid else None,
        sent=caps.read_capacity(
            sent.get("made") if sent else None,
            limits.organization,
            lambda: _count_sent(organization_id, limits.organization),
        ),
        received=caps.read_capacity(
            counted.get("made") if counted else None,
            limits.address,
            lambda: _count_received(received, account_id, limits.address),
        ),
    )


def _count_sent(organization_id: str, limit: int) -> int:
    """Returns the number of pending invitations of the organization. Void ones are excluded only at the limit."""
    pending = _pending(_query_unexpired(organization_id, None, None, consistent=True).items)
    return len(pending) if len(pending) < limit else len(keep_valid(pending))


def _count_received(items: Iterable[Mapping[str, Any]], account_id: str | None, limit: int) -> int:
    """Returns the number of pending invitations among the items of an address.

    At the limit, counts only those that the person sees as pending, because they can answer only these.
    """
    locks = [InvitationLock.from_item(item) for item in items if item["sk"].startswith(keys.INVITEE_PREFIX)]
    pending = [lock for lock in locks if lock.is_pending]
    if len(pending) < limit:
        return len(pending)
    return sum(found.is_valid for found in resolve_locks(account_id, pending))


def _is_valid(lock: InvitationLock) -> bool:
    """Returns True if the lock's invitation is neither expired nor void."""
    if not lock.is_pending:
        return False
    item = table.get(lock.invitation_key)
    return item is not None and bool(keep_valid([InvitationItem.from_item(item)]))


def _query_unexpired(
    organization_id: str, limit: int | None, after: str | None, *, consistent: bool
) -> QueryPage[dict[str, Any]]:
    """Returns a page of the organization's invitations that may not have expired, newest first.

    The range ends at the first that was created too long ago, even if it was sent again since.
    """
    oldest = ids.local_at(int(clock.now() - LONGEST_LIFE_SECONDS) + 1)
    return table.query(
        keys.organization_pk(organization_id),
        prefix=keys.INVITATION_PREFIX,
        lowest=keys.invitation(organization_id, oldest).sk,
        newest_first=True,
        limit=limit,
        after=after,
        consistent=consistent,
    )


def _pending(items: Iterable[Mapping[str, Any]]) -> list[InvitationItem]:
    return [invitation for invitation in map(InvitationItem.from_item, items) if invitation.is_pending]


def _new_invitation(organization_id: str, email: str, role: Role, inviter: MemberItem) -> InvitationItem:
    return InvitationItem(
        invitation_id=InvitationId.of(organization_id, ids.new_local()),
        email=email,
        role=role,
        created_at=clock.timestamp(),
        expires_at=int(clock.now()) + LIFE_SECONDS,
        invited_by=Inviter(id=inviter.user_id, name=inviter.name, email=inviter.email),
    )


def _check_not_member(organization_id: str, account_id: str | None) -> dict[str, Leg]:
    """Returns the leg that fails if the address's account is a member. Empty if the address has no account."""
    if account_id is None:
        return {}
    return {"member": Check(keys.member(organization_id, account_id), "attribute_not_exists(pk)")}


def _put_lock(invitation: InvitationItem, replaced: InvitationLock | None) -> Put:
    lock = InvitationLock(
        invitation_id=invitation.invitation_id, expires_at=invitation.expires_at, inviter_id=invitation.invited_by.id
    )
    item = {**invitation.lock_key._asdict(), **lock.to_map()}
    if replaced is None:
        return Put(item, "attribute_not_exists(pk)")
    # The lock must still be that of the invitation whose listed item this transaction removes.
    return Put(item, "#invitationId = :seen", {"seen": replaced.invitation_id})


def _cause_of(failure: LegFailed, state: _State) -> Exception:
    """Returns the error for a failed creation: WriteConflict if the state has changed since it was read."""
    if failure.leg not in {"inviter", "member", "invitee", "organization", "address", "invitation"}:
        return failure
    if "inviter" in failure.items:
        return RoleLost()
    if "member" in failure.items:
        return AlreadyMember()
    lock = failure.items.get("invitee")
    if lock is not None and (held := InvitationLock.from_item(lock)) == state.pending:
        return AlreadyInvited(held.invitation_id, held.expires_at)
    if "invitee" in failure.items:
        return WriteConflict()
    if state.sent.is_full:
        return TooManyInvitations(state.sent.current, state.sent.limit)
    if state.received.is_full:
        return AddressNotInvitable()
    return WriteConflict()
