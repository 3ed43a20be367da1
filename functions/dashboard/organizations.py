"""Business rules of the overview and of the organizations' pages: choosing the default one, and deleting one."""

from collections.abc import Mapping

from controlplane.erasure import deletions
from controlplane.erasure.deletions import NotOwner
from controlplane.organizations import defaults as default_organizations
from controlplane.organizations import rules
from controlplane.organizations import store as organizations
from controlplane.organizations.defaults import NotMember
from controlplane.organizations.store import Account, Membership
from controlplane.people.users import UserItem
from controlplane.platform.core import ids
from controlplane.platform.core.errors import Forbidden, InvalidPayload
from controlplane.platform.core.naming import clean_name
from controlplane.platform.core.roles import RANK


class NotAdmin(Forbidden):
    message = "Only admins and owners can change the organization's repositories. Ask one of them."


class NotNamed(InvalidPayload):
    message = "Enter a name of at most 100 characters."


class NotSlug(InvalidPayload):
    message = "A slug has 3 to 20 lowercase letters, digits, and single hyphens between them."


class NotConfirmed(InvalidPayload):
    message = "That isn't the organization's name or slug. Nothing was deleted."


def get_profile(account: Account) -> UserItem:
    """Returns the profile of the session's account, which must exist."""
    if account.profile is None:
        raise LookupError("the session's account doesn't exist")
    return account.profile


def create_organization(form: Mapping[str, str], user_id: str) -> Membership:
    """Creates the organization that the form describes. An empty slug is derived from the name.

    Raises NotNamed, NotSlug, SlugTaken, OwnsTooMany.
    """
    name, slug = clean_name(form.get("name", "")), form.get("slug", "").strip()
    if name is None:
        raise NotNamed
    if slug and not rules.is_slug(slug):
        raise NotSlug
    return rules.create_organization(user_id, name, slug or None)


def save_organization(organization_id: str, user_id: str) -> None:
    """Saves the user's default organization, used if a request doesn't name one. Raises NotMember."""
    is_id = ids.is_root(ids.ORGANIZATION, organization_id)
    membership = organizations.find_membership(user_id, organization_id) if is_id else None
    if membership is None:
        raise NotMember
    default_organizations.save(user_id, organization_id)


def find_membership(slug: str, account: Account) -> Membership | None:
    """Returns the account's membership in the organization with this slug, or None."""
    return next((membership for membership in account.memberships if membership.slug == slug), None)


def get_organization(slug: str, account: Account) -> Membership:
    """Returns the account's organization with this slug. Raises NotMember."""
    membership = find_membership(slug, account)
    if membership is None:
        raise NotMember
    return membership


def require_admin(membership: Membership | None, refusal: type[Forbidden] = NotAdmin) -> Membership:
    """Returns the membership if its role is admin or owner. Raises NotMember, or the refusal."""
    if membership is None:
        raise NotMember
    if not is_admin(membership):
        raise refusal
    return membership


def is_admin(membership: Membership) -> bool:
    """Returns True for admins and owners."""
    return RANK[membership.role] >= RANK["admin"]


def get_own_organization(slug: str, account: Account) -> Membership:
    """Returns the organization with this slug if the user owns it. Raises NotMember, NotOwner."""
    membership = get_organization(slug, account)
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
