"""Lookup and display of users and organizations."""

from contextlib import suppress
from typing import Any

from controlplane.billing import store as billing
from controlplane.organizations import store as organizations
from controlplane.organizations.items import OrganizationItem
from controlplane.people import users
from controlplane.people.identities import IdentityItem
from controlplane.people.users import UserItem
from controlplane.platform.core import clock, ids
from controlplane.platform.core.errors import known
from controlplane.platform.core.ids import OwnedId, ProjectId
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from controlplane.projects import store as projects
from controlplane.projects.items import ProjectItem
from ops.output import NotFound, fields


def find_user(reference: str) -> UserItem | None:
    """Returns the profile of the user with this email address or id, or None."""
    if "@" in reference:
        return users.find_user_by_email(reference)
    return users.find_user(reference) if ids.is_root(ids.USER, reference) else None


def get_user(reference: str) -> UserItem:
    """Returns the user's profile. Raises NotFound."""
    return known(find_user(reference), NotFound(f"There is no user {reference}."))


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
    return known(find_organization(reference), NotFound(f"There is no organization {reference}."))


def get_organization_id(reference: str) -> str:
    return get_organization(reference).organization_id


def get_project(reference: str) -> ProjectItem:
    """Returns the project with this id. Raises NotFound."""
    with suppress(projects.UnknownProject):
        return projects.get_project(parse_id(ProjectId, reference, "project"))
    raise NotFound(f"There is no project {reference}.")


def parse_id[Id: OwnedId](kind: type[Id], text: str, noun: str) -> Id:
    """Returns the id. Raises NotFound if the text is malformed."""
    return known(kind.parse(text), NotFound(f"There is no {noun} {text}."))


def user_document(profile: UserItem) -> dict[str, Any]:
    """Returns the displayed fields of a user, without organizations."""
    return fields(profile, "user_id", "email", "name", "image", "saved_organization_id", "created_at")


def identity_document(identity: IdentityItem) -> dict[str, Any]:
    return fields(identity, "issuer", "subject", "created_at")


def organization_document(organization_id: str) -> dict[str, Any]:
    """Returns the displayed fields of an organization. Raises UnknownOrganization."""
    organization, account = billing.get_billing(organization_id)
    top_up = account.top_up
    used = {"usedThisMonth": top_up.used_in(clock.month())}
    return {
        "organizationId": organization_id,
        **fields(organization, "slug", "name", "plan"),
        "credits": account.credits,
        "topUp": fields(top_up, "enabled", "threshold", "amount", "monthly_limit") | used,
        "owners": organization.owners,
        "apiKeys": organization.keys,
        **fields(organization, "projects", "created_at"),
    }
