"""Business rules of the invitation pages: accepting and declining invitations, and blocking organizations.

Ids come from forms and URLs. A malformed one is treated like an unknown one.
"""

from controlplane.core import ids
from controlplane.core.ids import InvitationId
from controlplane.core.settings import settings
from controlplane.store import invitees, users
from controlplane.store.invitees import BlockPage, InvitationGone, NotBlocked
from controlplane.store.organizations import Membership
from controlplane.store.users import UserItem

BLOCKED_PER_PAGE = 50


def accept_invitation(invitation_id: str, user_id: str) -> Membership:
    """Makes the user a member and returns the membership.

    Raises InvitationGone, AlreadyMember, InvitationVoid, OwnsTooMany.
    """
    limit = settings.organizations_per_person
    return invitees.accept_invitation(_parse_id(invitation_id), user_id, limit)


def decline_invitation(invitation_id: str, user_id: str) -> str:
    """Declines the invitation. Returns the organization's name. Raises InvitationGone."""
    return invitees.decline_invitation(_parse_id(invitation_id), _get_profile(user_id))


def block_organization(invitation_id: str, user_id: str) -> str:
    """Declines the invitation and blocks its organization. Returns the organization's name. Raises InvitationGone."""
    return invitees.block_organization(_parse_id(invitation_id), _get_profile(user_id))


def unblock_organization(organization_id: str, user_id: str) -> str:
    """Unblocks the organization. Returns its name. Raises NotBlocked."""
    if not ids.is_root(ids.ORGANIZATION, organization_id):
        raise NotBlocked
    return invitees.unblock_organization(user_id, organization_id)


def list_blocked(user_id: str, after: str | None) -> BlockPage:
    """Returns a page of blocked organizations. `after` is the last ID of the previous page."""
    known = after is not None and ids.is_root(ids.ORGANIZATION, after)
    return invitees.list_blocked(user_id, BLOCKED_PER_PAGE, after if known else None)


def _parse_id(invitation_id: str) -> InvitationId:
    parsed = InvitationId.parse(invitation_id)
    if parsed is None:
        raise InvitationGone
    return parsed


def _get_profile(user_id: str) -> UserItem:
    profile = users.find_user(user_id)
    if profile is None:
        raise LookupError("the session's account doesn't exist")
    return profile
