"""Business rules of the invitation pages: accepting and declining invitations, and blocking organizations.

Ids come from forms and URLs. A malformed one is treated like an unknown one.
"""

from controlplane.organizations import invitees
from controlplane.organizations.invitees import BlockPage, InvitationGone, NotBlocked, Received, ReceivedInvitation
from controlplane.organizations.store import Account, Membership
from controlplane.people.users import UserItem
from controlplane.platform.core import ids
from controlplane.platform.core.ids import InvitationId
from controlplane.platform.core.settings import settings
from dashboard.organizations import get_profile

BLOCKED_PER_PAGE = 50
# The overview shows only the number of invitations. The second limit keeps a page far below Lambda's 6 MB.
ON_OVERVIEW, ON_PAGE = 20, 50


def list_received(account: Account, most: int) -> Received:
    """Returns the invitations to the account's address, at most that many of each kind."""
    return invitees.list_received(get_profile(account), most)


def accept_invitation(invitation_id: str, user_id: str) -> Membership:
    """Makes the user a member and returns the membership.

    Raises InvitationGone, AlreadyMember, InvitationVoid, OwnsTooMany.
    """
    limit = settings.organizations_per_person
    return invitees.accept_invitation(_parse_id(invitation_id), user_id, limit)


def find_invitation(invitation_id: str, account: Account) -> tuple[UserItem, ReceivedInvitation | None]:
    """Returns the account's profile, and the invitation if the person can accept it."""
    profile, parsed = get_profile(account), InvitationId.parse(invitation_id)
    return profile, invitees.find_received(parsed, profile) if parsed else None


def decline_invitation(invitation_id: str, account: Account) -> None:
    """Declines the invitation. Raises InvitationGone."""
    invitees.decline_invitation(_parse_id(invitation_id), get_profile(account))


def block_organization(invitation_id: str, account: Account) -> None:
    """Declines the invitation and blocks its organization. Raises InvitationGone."""
    invitees.block_organization(_parse_id(invitation_id), get_profile(account))


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
