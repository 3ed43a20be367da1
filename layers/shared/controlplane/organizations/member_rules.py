"""Rules of members and invitations: admins manage them; anything about owners needs an owner."""

from collections.abc import Callable, Mapping
from typing import ClassVar

from controlplane.organizations import invitations, members, resends
from controlplane.organizations.items import InvitationItem
from controlplane.organizations.resends import ResendLimits
from controlplane.organizations.store import MemberItem, Membership
from controlplane.platform.core.errors import Forbidden, NotFound
from controlplane.platform.core.ids import InvitationId
from controlplane.platform.core.roles import RANK, Role
from controlplane.platform.core.settings import settings
from controlplane.platform.queues import outbox
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.table import Leg

# How often an invitation can be sent again on one day.
RESENDS_PER_INVITATION = 3


class OwnerRequired(Forbidden):
    message = "Only an owner can grant the role owner, invite an owner, or change or remove one."
    fixed_details: ClassVar = {"reason": "owner_required"}


class OwnMembership(Forbidden):
    message = "You can't remove yourself. Ask another admin or owner of the organization."
    fixed_details: ClassVar = {"reason": "self"}


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
        caller.organization_id,
        email,
        role,
        inviter_id=caller_id,
        limits=limits,
        extra_legs=extra_legs,
        announce=_announce,
    )


def resend_invitation(caller_id: str, caller: Membership, invitation_id: InvitationId) -> InvitationItem:
    """Renews the invitation, and sends its email again if this deployment sends emails.

    Raises OwnerRequired, Forbidden, UnknownInvitation, ResentTooOften.
    """
    _least_role(caller)
    limits = ResendLimits(RESENDS_PER_INVITATION, settings.invitation_resends_per_day)
    try:
        return resends.resend(invitation_id, caller_id, limits=limits, announce=_announce)
    except invitations.RoleLost:
        # An admin lacks the role only for an owner's invitation, unless it was just lost.
        raise (OwnerRequired if caller.role == "admin" else Forbidden) from None


def _announce(invitation: InvitationItem) -> Mapping[str, Leg]:
    """Returns the leg that leaves the invitation's email to the sweep, or nothing if no emails are sent.

    The sweep sends the message to `emails` within a minute, so the request makes no further calls. The message
    contains no address: the worker reads it when it sends the email.
    """
    if settings.email_sender is None:
        return {}
    message = {
        "version": 1,
        "kind": "send-invitation",
        "invitationId": invitation.invitation_id,
        "number": invitation.resends.total,
    }
    return {"email": outbox.new_entry("emails", message, after_seconds=0).leg}


def may_change(caller: Membership, *concerned: Role) -> bool:
    """Returns whether the caller may invite to, grant, change, or remove these roles."""
    try:
        _least_role(caller, *concerned)
    except Forbidden:
        return False
    return True


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
