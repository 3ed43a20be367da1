"""Business rules of the overview and of the organizations' pages: choosing the default one, and deleting one."""

from typing import NamedTuple

from controlplane.core import ids
from controlplane.core.errors import Forbidden, InvalidPayload
from controlplane.core.roles import RANK
from controlplane.store import default_organizations, deletions, invitees, organizations
from controlplane.store.default_organizations import NotMember
from controlplane.store.deletions import NotOwner
from controlplane.store.invitees import Received
from controlplane.store.organizations import Account, Membership

# The overview shows only the number of invitations. The second limit keeps a page far below Lambda's 6 MB.
OVERVIEW_INVITATIONS, PAGE_INVITATIONS = 20, 50


class NotAdmin(Forbidden):
    message = "Only admins and owners can change the organization's repositories. Ask one of them."


class NotConfirmed(InvalidPayload):
    message = "That isn't the organization's name or slug. Nothing was deleted."

    def __init__(self) -> None:
        super().__init__(details=[])


class Overview(NamedTuple):
    """A user's account with its organizations, and the invitations that the user received."""

    account: Account
    received: Received


def get_overview(user_id: str, max_invitations: int) -> Overview:
    account = organizations.get_account(user_id)
    if account.profile is None:
        raise LookupError("the session's account doesn't exist")
    return Overview(account, invitees.list_received(account.profile, max_invitations))


def save_organization(organization_id: str, user_id: str) -> Membership:
    """Saves the user's default organization, used if a request doesn't name one. Raises NotMember."""
    is_id = ids.is_root(ids.ORGANIZATION, organization_id)
    membership = organizations.find_membership(user_id, organization_id) if is_id else None
    if membership is None:
        raise NotMember
    default_organizations.save(user_id, organization_id)
    return membership


def find_membership(slug: str, user_id: str) -> Membership | None:
    """Returns the user's membership in the organization with this slug, or None."""
    memberships = organizations.get_account(user_id).memberships
    return next((membership for membership in memberships if membership.slug == slug), None)


def get_organization(slug: str, user_id: str) -> Membership:
    """Returns the user's organization with this slug. Raises NotMember."""
    membership = find_membership(slug, user_id)
    if membership is None:
        raise NotMember
    return membership


def require_admin(membership: Membership | None) -> Membership:
    """Returns the membership if its role is admin or owner. Raises NotMember, NotAdmin."""
    if membership is None:
        raise NotMember
    if RANK[membership.role] < RANK["admin"]:
        raise NotAdmin
    return membership


def get_own_organization(slug: str, user_id: str) -> Membership:
    """Returns the organization with this slug if the user owns it. Raises NotMember, NotOwner."""
    membership = get_organization(slug, user_id)
    if membership.role != "owner":
        raise NotOwner
    return membership


def delete_organization(organization: Membership, confirmation: str, user_id: str) -> None:
    """Deletes the organization if the user typed its name or slug and still owns it.

    Raises NotConfirmed, NotOwner, NotMember.
    """
    if confirmation.strip() not in (organization.name.strip(), organization.slug):
        raise NotConfirmed
    try:
        deletions.delete_organization(organization.organization_id, user_id)
    except organizations.UnknownOrganization:
        raise NotMember from None
