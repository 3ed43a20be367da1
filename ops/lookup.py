"""Lookup and display of users and organizations."""

from typing import Any

from controlplane.core import ids
from controlplane.store import billing, keys, organizations, users
from controlplane.store.organization_items import OrganizationItem
from controlplane.store.table import table
from controlplane.store.users import UserItem
from ops.errors import NotFound


def find_user(reference: str) -> UserItem | None:
    """Returns the profile of the user with this email address or id, or None."""
    if "@" in reference:
        return users.find_user_by_email(reference)
    return users.find_user(reference) if ids.is_root(ids.USER, reference) else None


def get_user(reference: str) -> UserItem:
    """Returns the user's profile. Raises NotFound."""
    profile = find_user(reference)
    if profile is None:
        raise NotFound(f"There is no user {reference}.")
    return profile


def find_organization(reference: str) -> OrganizationItem | None:
    """Returns the organization with this slug or id, or None."""
    organization_id = reference
    if not ids.is_root(ids.ORGANIZATION, reference):
        pointer = table.get(keys.organization_slug(reference))
        if pointer is None:
            return None
        organization_id = pointer["organizationId"]
    return organizations.find_organization(organization_id)


def get_organization(reference: str) -> OrganizationItem:
    """Returns the organization. Raises NotFound."""
    organization = find_organization(reference)
    if organization is None:
        raise NotFound(f"There is no organization {reference}.")
    return organization


def get_organization_id(reference: str) -> str:
    return get_organization(reference).organization_id


def user_document(profile: UserItem) -> dict[str, Any]:
    """Returns the displayed fields of a user, without organizations."""
    return {
        "userId": profile.user_id,
        "email": profile.email,
        "name": profile.name,
        "image": profile.image,
        "savedOrganizationId": profile.saved_organization_id,
        "createdAt": profile.created_at,
    }


def membership_document(membership: organizations.Membership) -> dict[str, Any]:
    return {
        "organizationId": membership.organization_id,
        "slug": membership.slug,
        "name": membership.name,
        "role": membership.role,
    }


def organization_document(organization_id: str) -> dict[str, Any]:
    """Returns the displayed fields of an organization. Raises NotFound."""
    try:
        organization, account = billing.get_billing(organization_id)
    except organizations.UnknownOrganization:
        raise NotFound(f"There is no organization {organization_id}.") from None
    return {
        "organizationId": organization_id,
        "slug": organization.slug,
        "name": organization.name,
        "plan": organization.plan,
        "credits": account.credits,
        "owners": organization.owners,
        "apiKeys": organization.keys,
        "projects": organization.projects,
        "createdAt": organization.created_at,
    }
