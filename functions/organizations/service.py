"""Business rules of `organizations`: which ones a credential can list or save."""

from controlplane.access.authentication import Principal, key_organization
from controlplane.organizations import defaults as default_organizations
from controlplane.organizations import store as organizations
from controlplane.organizations.store import Membership
from controlplane.platform.core import ids
from controlplane.platform.core.errors import Forbidden


class NotOwnOrganization(Forbidden):
    message = "You aren't a member of this organization. Choose one from GET /v1/organizations."


def list_organizations(principal: Principal) -> list[Membership]:
    """Returns the organizations the credential can access, sorted by slug."""
    if principal.user_id is None:
        return [key_organization(principal)]
    memberships = organizations.get_account(principal.user_id).memberships
    return sorted(memberships, key=lambda membership: membership.slug)


def save_active_organization(user_id: str, organization_id: str) -> None:
    """Saves the user's default organization. Raises NotOwnOrganization if the user isn't a member."""
    if not ids.is_root(ids.ORGANIZATION, organization_id):
        raise NotOwnOrganization
    try:
        default_organizations.save(user_id, organization_id)
    except default_organizations.NotMember:
        raise NotOwnOrganization from None
