"""Demo data: who and what a fresh local stack holds, written through the functions that the operator's tool uses.

`.local/credentials.json` tells people and tests how to act as them.
"""

import json
from typing import Any, NamedTuple

from controlplane.scopes import SCOPES
from controlplane.store import api_keys, billing, organizations, users
from controlplane.store.organizations import Membership, Role
from controlplane.store.table import table
from local.checkout import CREDENTIALS, write_private

_TOKEN_LIFETIME_SECONDS = 10 * 365 * 24 * 3600


class DemoUser(NamedTuple):
    """A person, and the one organization they belong to."""

    email: str
    name: str
    organization: str
    role: Role


class DemoOrganization(NamedTuple):
    """An organization; its owner is the first of USERS who belongs to it."""

    slug: str
    name: str
    plan: str
    credits: int


ORGANIZATIONS = (
    DemoOrganization("acme", "Acme", "pro", 500),
    DemoOrganization("birch", "Birch", "free", 0),
)

USERS = (
    DemoUser("owner@acme.example", "Olivia Owner", "acme", "owner"),
    DemoUser("admin@acme.example", "Ada Admin", "acme", "admin"),
    DemoUser("member@acme.example", "Max Member", "acme", "member"),
    DemoUser("outsider@birch.example", "Otto Outsider", "birch", "owner"),
)

API_KEY_ORGANIZATION = "acme"


def seed() -> dict[str, Any]:
    """Writes the demo data into an empty table. Returns what credentials.json says of it, but for the base URL."""
    profiles = {user.email: users.create_user(user.email, user.name) for user in USERS}
    memberships = {}
    for organization in ORGANIZATIONS:
        owner = next(user for user in USERS if user.organization == organization.slug)
        membership = organizations.create_organization(organization.name, organization.slug, profiles[owner.email])
        memberships[organization.slug] = membership
        billing.change_plan(membership.organization_id, organization.plan)
        if organization.credits:
            billing.add_credits(membership.organization_id, organization.credits)
        for user in USERS:
            if user.organization == organization.slug and user is not owner:
                _add_member(membership, user.role, profiles[user.email])

    organization_id = memberships[API_KEY_ORGANIZATION].organization_id
    creator = next(user for user in USERS if user.organization == API_KEY_ORGANIZATION)
    minted = api_keys.create_key(organization_id, "Demo", profiles[creator.email]["userId"], "local")
    return {
        "organizations": [
            {"organizationId": memberships[it.slug].organization_id, "slug": it.slug, "plan": it.plan}
            for it in ORGANIZATIONS
        ],
        "users": [
            {
                "email": user.email,
                "userId": profiles[user.email]["userId"],
                "accessToken": users.create_token(
                    profiles[user.email]["userId"], list(SCOPES), _TOKEN_LIFETIME_SECONDS
                ),
                "role": user.role,
                "organizationId": memberships[user.organization].organization_id,
            }
            for user in USERS
        ],
        "apiKeys": [{"organizationId": organization_id, "key": minted.secret, "keyId": minted.item["keyId"]}],
    }


def _add_member(of: Membership, role: Role, profile: dict[str, Any]) -> None:
    roster, own = organizations.member_items(of.organization_id, of.slug, of.name, role, profile)
    table.transact({"roster": roster, "membership": own})


def write_credentials(base_url: str, seeded: dict[str, Any]) -> dict[str, Any]:
    """Writes and returns credentials.json."""
    credentials = {"baseUrl": base_url, **seeded}
    write_private(CREDENTIALS, json.dumps(credentials, indent=2) + "\n")
    return credentials
