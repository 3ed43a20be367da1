"""Business rules of `members`: admins manage members and invitations; anything about owners needs an owner."""

from collections.abc import Callable, Mapping

from controlplane.core.errors import Forbidden, NotFound
from controlplane.core.roles import RANK
from controlplane.core.settings import settings
from controlplane.store import invitations, members
from controlplane.store.invitation_items import InvitationItem
from controlplane.store.organizations import MemberItem, Membership, Role
from controlplane.store.retry import WriteConflict, retry_on_conflict
from controlplane.store.table import Leg


class OwnerRequired(Forbidden):
    message = "Only an owner can grant the role owner, invite an owner, or change or remove one."

    def __init__(self) -> None:
        super().__init__(details={"reason": "owner_required"})


class OwnMembership(Forbidden):
    message = "You can't remove yourself. Ask another admin or owner of the organization."

    def __init__(self) -> None:
        super().__init__(details={"reason": "self"})


def update_member(caller_id: str, caller: Membership, member: MemberItem, role: Role) -> bool:
    """Changes the member's role. Returns False if the member already has it.

    Raises OwnerRequired, LastOwner, OwnsTooMany, and Forbidden or NotFound if the caller or the member changed
    concurrently.
    """

    def change(caller: Membership, current: MemberItem) -> bool:
        if current.role == role != member.role:
            return True  # written by our own attempt, whose response was lost, or by a concurrent request
        least = _least_role(caller, current.role, role)
        if current.role == role:
            return False
        members.change_role(current, role, caller_id, least, limit=settings.organizations_per_person)
        return True

    return _retry_on_changed_roles(caller_id, caller, member, change)


def delete_member(caller_id: str, caller: Membership, member: MemberItem) -> None:
    """Deletes the membership. Raises OwnMembership, OwnerRequired, LastOwner, Forbidden, NotFound."""
    if member.user_id == caller_id:
        raise OwnMembership

    def delete(caller: Membership, current: MemberItem) -> None:
        members.delete_member(current, caller_id, _least_role(caller, current.role))

    _retry_on_changed_roles(caller_id, caller, member, delete)


def create_invitation(
    caller_id: str, caller: Membership, email: str, role: Role, extra_legs: Mapping[str, Leg]
) -> InvitationItem:
    """Creates an invitation for the address.

    Raises OwnerRequired, Forbidden, AlreadyMember, AlreadyInvited, TooManyInvitations, AddressNotInvitable.
    """
    _least_role(caller, role)
    limits = invitations.Limits(settings.invitations_per_organization, settings.invitations_per_address)
    return invitations.create_invitation(
        caller.organization_id, email, role, inviter_id=caller_id, limits=limits, extra_legs=extra_legs
    )


def _least_role(caller: Membership, *concerned: Role) -> Role:
    """Returns the minimum role for an action on these roles. Raises OwnerRequired, Forbidden if the caller lacks it."""
    if "owner" in concerned:
        if caller.role != "owner":
            raise OwnerRequired
        return "owner"
    if RANK[caller.role] < RANK["admin"]:
        raise Forbidden
    return "admin"


def _retry_on_changed_roles[T](
    caller_id: str, caller: Membership, member: MemberItem, act: Callable[[Membership, MemberItem], T]
) -> T:
    """Runs `act`, re-reading both memberships and retrying if they changed concurrently."""

    def attempt() -> T:
        nonlocal caller, member
        try:
            return act(caller, member)
        except WriteConflict:
            found, own = members.find_member_and_caller(member.organization_id, member.user_id, caller_id)
            if found is None or own is None:
                raise NotFound from None
            member, caller = found, own
            raise

    return retry_on_conflict(attempt, "the membership")
