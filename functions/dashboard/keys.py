"""Business rules of the pages of API keys: what an organization has, and what its plan and a person's role allow."""

from collections.abc import Mapping
from typing import NamedTuple

from controlplane.core.errors import Forbidden
from controlplane.core.plans import API_KEYS_PER_ORGANIZATION, PLANS, Plan
from controlplane.rules.api_keys import own_key
from controlplane.store import api_keys, key_usage, organizations
from controlplane.store.api_key_items import ApiKeyItem
from controlplane.store.api_keys import MintedKey
from controlplane.store.organizations import Account, Membership
from controlplane.store.parallel import read_both
from controlplane.store.table import Leg
from dashboard.charts import Chart
from dashboard.organizations import get_organization, require_admin
from dashboard.trends import usage_chart

CREATED_FROM = "dashboard"


class NotKeyAdmin(Forbidden):
    message = "Only admins and owners can create, roll, and revoke keys. Ask one of them."


class ShownKeys(NamedTuple):
    """The keys of an organization, newest first, and its plan. It has at most as many as fit on a page."""

    organization: Membership
    plan: Plan
    total: int
    keys: list[ApiKeyItem]


class ShownKey(NamedTuple):
    """A key, the plan of its organization, and the chart of the requests of the last days."""

    organization: Membership
    plan: Plan
    key: ApiKeyItem
    chart: Chart | None


def get_keys(organization_slug: str, account: Account) -> ShownKeys:
    """Returns the keys of one of the account's organizations. Raises NotMember."""
    membership = get_organization(organization_slug, account)
    organization_id = membership.organization_id
    organization, page = read_both(
        lambda: organizations.get_organization(organization_id),
        lambda: api_keys.list_keys(organization_id, API_KEYS_PER_ORGANIZATION, None, consistent=True),
    )
    return ShownKeys(membership, PLANS[organization.plan], organization.keys, page.keys)


def get_key(organization_slug: str, key_id: str, account: Account) -> ShownKey:
    """Returns a key of one of the account's organizations. Raises NotMember, UnknownKey."""
    membership = get_organization(organization_slug, account)
    organization, key = api_keys.get_key(own_key(membership.organization_id, key_id))
    usage = key_usage.find_usage([key]).get(key.key_id)
    return ShownKey(membership, PLANS[organization.plan], key, usage_chart(usage) if usage else None)


def create_key(organization: Membership, name: str, user_id: str, legs: Mapping[str, Leg], secret: str) -> MintedKey:
    """Creates a key. Raises NotKeyAdmin, PlanHasNoApiAccess, KeyLimitReached, Forbidden."""
    require_admin(organization, NotKeyAdmin)
    return api_keys.create_key(
        organization.organization_id,
        name,
        user_id,
        CREATED_FROM,
        admin_id=user_id,
        extra_legs=legs,
        secret=secret,
    )


def roll_key(organization: Membership, key_id: str, user_id: str, legs: Mapping[str, Leg], secret: str) -> MintedKey:
    """Replaces a key. Raises NotKeyAdmin, UnknownKey, PlanHasNoApiAccess, Forbidden."""
    require_admin(organization, NotKeyAdmin)
    return api_keys.roll_key(
        own_key(organization.organization_id, key_id),
        user_id,
        CREATED_FROM,
        admin_id=user_id,
        extra_legs=legs,
        secret=secret,
    )


def revoke_key(organization: Membership, key_id: str, user_id: str) -> None:
    """Revokes a key. Raises NotKeyAdmin, UnknownKey, Forbidden."""
    require_admin(organization, NotKeyAdmin)
    api_keys.delete_key(own_key(organization.organization_id, key_id), admin_id=user_id)
