"""Business rules of the invitation pages: accepting and declining invitations, and blocking organizations."""

from typing import Any

from controlplane.core import ids
from controlplane.core.errors import Conflict, NotFound
from controlplane.core.settings import settings
from controlplane.store import invitations, invitees, organizations, users
from controlplane.store.organizations import Membership
from controlplane.store.table import QueryPage

BLOCKED_PER_PAGE = 50


class InvitationGone(NotFound):
    message = "This invitation is no longer available. It was canceled or used, or it has expired."


class AlreadyThere(Conflict):
    message = "You are already a member of this organization. The invitation was removed."


class InviterGone(Conflict):
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


def accept_invitation(invitation_id: str, user_id: str) -> Membership:
    """Makes the user a member and returns the membership.

    Raises InvitationGone, AlreadyThere, InviterGone, OwnsTooMany.
    """
    try:
        return invitees.accept_invitation(invitation_id, _profile(user_id), settings.organizations_per_person)
    except invitations.UnknownInvitation:
        raise InvitationGone from None
    except invitations.AlreadyMember:
        raise AlreadyThere from None
    except invitees.InviterMayNot:
        raise InviterGone from None
    except organizations.OwnsTooMany:
        raise OwnsTooMany from None


def decline_invitation(invitation_id: str, user_id: str) -> str:
    """Declines the invitation. Returns the organization's name. Raises InvitationGone."""
    try:
        return invitees.decline_invitation(invitation_id, _profile(user_id))
    except invitations.UnknownInvitation:
        raise InvitationGone from None


def block_organization(invitation_id: str, user_id: str) -> str:
    """Declines the invitation and blocks its organization. Returns the organization's name. Raises InvitationGone."""
    try:
        return invitees.block_organization(invitation_id, _profile(user_id))
    except invitations.UnknownInvitation:
        raise InvitationGone from None


def unblock_organization(organization_id: str, user_id: str) -> str:
    """Unblocks the organization. Returns its name. Raises NotBlocked."""
    known = ids.is_root(ids.ORGANIZATION, organization_id)
    name = invitees.unblock_organization(user_id, organization_id) if known else None
    if name is None:
        raise NotBlocked
    return name


def list_blocked(user_id: str, after: str | None) -> QueryPage:
    """Returns a page of blocked organizations. `after` is the last ID of the previous page."""
    known = after is not None and ids.is_root(ids.ORGANIZATION, after)
    return invitees.list_blocked(user_id, BLOCKED_PER_PAGE, after if known else None)


def _profile(user_id: str) -> dict[str, Any]:
    profile = users.find_user(user_id)
    if profile is None:
        raise LookupError("a session's account is there")
    return profile
