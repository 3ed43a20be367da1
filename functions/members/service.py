"""Business rules of `members`: admins manage members and invitations; anything about owners needs an owner."""

from collections.abc import Callable, Mapping
from typing import Any

from controlplane.core import clock
from controlplane.core.errors import Conflict, Forbidden, NotFound
from controlplane.core.roles import RANK
from controlplane.core.settings import settings
from controlplane.store import invitations, members, organizations
from controlplane.store.organizations import Membership, Role
from controlplane.store.table import Leg, QueryPage, Throttled

_TRIES = 8


class OwnerRequired(Forbidden):
    message = "Only an owner can grant the role owner, invite an owner, or change or remove one."

    def __init__(self) -> None:
        super().__init__(details={"reason": "owner_required"})


class OwnMembership(Forbidden):
    message = "You can't remove yourself. Ask another admin or owner of the organization."

    def __init__(self) -> None:
        super().__init__(details={"reason": "self"})


class LastOwner(Forbidden):
    message = "This is the organization's last owner. Make another member an owner first."

    def __init__(self) -> None:
        super().__init__(details={"reason": "last_owner"})


class OwnsTooMany(Forbidden):
    message = "This member already owns the maximum number of organizations. Choose another member."

    def __init__(self, limit: int | None) -> None:
        super().__init__(details={"reason": "owner_limit", "limit": limit})


class AlreadyMember(Conflict):
    message = "This address belongs to a member of the organization."

    def __init__(self) -> None:
        super().__init__(details={"field": "email", "reason": "already_member"})


class TooManyInvitations(Conflict):
    message = "The organization has reached its limit of pending invitations. Cancel some, or wait until they expire."

    def __init__(self, current: int, limit: int | None) -> None:
        super().__init__(details={"reason": "invitation_limit", "limit": limit, "current": current})


class AddressNotInvitable(Conflict):
    """The address has too many pending invitations. The message hides this, as they belong to other organizations."""

    message = "This address can't be invited at the moment. Try again in a few days."

    def __init__(self) -> None:
        super().__init__(details={"field": "email", "reason": "not_invitable"})


class AlreadyInvited(Conflict):
    message = "This address already has a pending invitation. Cancel it before you send another."

    def __init__(self, invitation_id: str, expires_at: str) -> None:
        super().__init__(
            details={
                "field": "email",
                "reason": "already_invited",
                "invitationId": invitation_id,
                "expiresAt": expires_at,
            }
        )


def list_members(organization_id: str, limit: int, after: str | None) -> QueryPage:
    return members.list_members(organization_id, limit, after)


def update_member(caller_id: str, caller: Membership, member: dict[str, Any], role: Role) -> bool:
    """Changes the member's role. Returns False if the member already has it.

    Raises OwnerRequired, LastOwner, OwnsTooMany, and Forbidden or NotFound if the caller or the member changed
    concurrently.
    """

    def change(caller: Membership, now: dict[str, Any]) -> bool:
        if now["role"] == role != member["role"]:
            return True  # written by our own attempt, whose response was lost, or by a concurrent request
        least = _least_role(caller, now["role"], role)
        if now["role"] == role:
            return False
        limit = settings.organizations_per_person
        members.change_role(caller.organization_id, now, role, caller_id, least, limit=limit)
        return True

    return _decide(caller_id, caller, member, change)


def delete_member(caller_id: str, caller: Membership, member: dict[str, Any]) -> None:
    """Deletes the membership. Raises OwnMembership, OwnerRequired, LastOwner, Forbidden, NotFound."""
    if member["userId"] == caller_id:
        raise OwnMembership

    def remove(caller: Membership, member: dict[str, Any]) -> None:
        members.delete_member(caller.organization_id, member, caller_id, _least_role(caller, member["role"]))

    _decide(caller_id, caller, member, remove)


def list_invitations(organization_id: str, limit: int, after: str | None) -> QueryPage:
    return invitations.list_invitations(organization_id, limit, after)


def create_invitation(
    caller_id: str, caller: Membership, email: str, role: Role, extra_legs: Mapping[str, Leg]
) -> dict[str, Any]:
    """Creates an invitation for the address.

    Raises OwnerRequired, Forbidden, AlreadyMember, AlreadyInvited, TooManyInvitations, AddressNotInvitable.
    """
    _least_role(caller, role)
    limits = invitations.Limits(settings.invitations_per_organization, settings.invitations_per_address)
    try:
        return invitations.create_invitation(
            caller.organization_id, email, role, inviter_id=caller_id, limits=limits, extra_legs=extra_legs
        )
    except invitations.CallerMayNot:
        raise Forbidden from None
    except invitations.AlreadyMember:
        raise AlreadyMember from None
    except invitations.AlreadyInvited as pending:
        raise AlreadyInvited(pending.invitation_id, clock.timestamp(pending.expires_at)) from None
    except invitations.OrganizationFull as refusal:
        raise TooManyInvitations(refusal.room.current, refusal.room.limit) from None
    except invitations.AddressFull:
        raise AddressNotInvitable from None


def delete_invitation(caller_id: str, organization_id: str, invitation: dict[str, Any]) -> None:
    """Cancels the invitation. Raises NotFound if it has expired or was deleted, and Forbidden."""
    if not invitations.is_pending(invitation):
        raise NotFound
    try:
        invitations.delete_invitation(organization_id, invitation, caller_id, "admin")
    except invitations.UnknownInvitation:
        raise NotFound from None
    except invitations.CallerMayNot:
        raise Forbidden from None


def _least_role(caller: Membership, *concerned: Role) -> Role:
    """Returns the minimum role for an action on these roles. Raises OwnerRequired, Forbidden if the caller lacks it."""
    if "owner" in concerned:
        if caller.role != "owner":
            raise OwnerRequired
        return "owner"
    if RANK[caller.role] < RANK["admin"]:
        raise Forbidden
    return "admin"


def _decide[T](
    caller_id: str, caller: Membership, member: dict[str, Any], act: Callable[[Membership, dict[str, Any]], T]
) -> T:
    """Runs `act`, re-reading both memberships and retrying if they changed concurrently."""
    for _ in range(_TRIES):
        try:
            return act(caller, member)
        except members.LastOwner:
            raise LastOwner from None
        except organizations.OwnsTooMany as refusal:
            raise OwnsTooMany(refusal.limit) from None
        except members.MembershipMoved:
            found, own = members.find_member_beside_caller(caller.organization_id, member["userId"], caller_id)
        if found is None or own is None:
            raise NotFound
        member, caller = found, own
    raise Throttled("the membership keeps changing")
