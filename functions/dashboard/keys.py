"""Business rules of the pages of API keys: what an organization has, and what its plan and a person's role allow."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from controlplane.api_keys import changes as key_changes
from controlplane.api_keys import store as api_keys
from controlplane.api_keys import usage as key_usage
from controlplane.api_keys.items import ApiKeyItem
from controlplane.api_keys.rules import UNKNOWN_PROJECT, find_unknown, own_key
from controlplane.api_keys.store import FoundKey, KeyDraft, MintedKey
from controlplane.organizations import store as organizations
from controlplane.organizations.items import OrganizationItem
from controlplane.organizations.store import Account, Membership
from controlplane.platform.core.errors import Forbidden
from controlplane.platform.core.ids import KeyId, ProjectId
from controlplane.platform.core.plans import API_KEYS_PER_ORGANIZATION, PLANS, Plan
from controlplane.platform.table.parallel import read_both
from controlplane.platform.table.table import Leg
from controlplane.projects import store as projects
from dashboard.charts import Chart
from dashboard.forms import NotAcceptable
from dashboard.key_forms import ShownLimits, find_project_names, limits_of, project_field
from dashboard.organizations import get_organization, require_admin
from dashboard.trends import usage_chart

CREATED_FROM = "dashboard"
# A key can be limited to one of the newest projects. The API accepts any.
_OFFERED_PROJECTS = 50


class NotKeyAdmin(Forbidden):
    message = "Only admins and owners can create, roll, and revoke keys. Ask one of them."


class ShownKeys(NamedTuple):
    """The keys of an organization, newest first, with their limits, and its plan. They fit on a page.

    projects: the names of those that a new key can be limited to, by their fields of the form.
    """

    organization: Membership
    plan: Plan
    total: int
    keys: list[tuple[ApiKeyItem, ShownLimits]]
    projects: dict[str, str]


class ShownKey(NamedTuple):
    """A key with its limits, the plan of its organization, and the chart of the requests of the last days.

    previous_used_at: the last use of an old secret that works since the roll.
    """

    organization: Membership
    plan: Plan
    key: ApiKeyItem
    limits: ShownLimits
    chart: Chart | None
    previous_used_at: str | None


def get_keys(organization_slug: str, account: Account) -> ShownKeys:
    """Returns the keys of one of the account's organizations. Raises NotMember."""
    membership = get_organization(organization_slug, account)
    organization_id = membership.organization_id
    organization, (page, found) = read_both(
        lambda: organizations.get_organization(organization_id),
        lambda: read_both(
            lambda: api_keys.list_keys(organization_id, API_KEYS_PER_ORGANIZATION, None, consistent=True),
            lambda: projects.list_projects(organization_id, _OFFERED_PROJECTS, None),
        ),
    )
    shown = [(key, limits_of(key)) for key in page.keys]
    offered = {project_field(it.project_id): it.name for it in found.projects}
    return ShownKeys(membership, PLANS[organization.plan], organization.keys, shown, offered)


def get_key(organization_slug: str, key_id: str, account: Account) -> ShownKey:
    """Returns a key of one of the account's organizations. Raises NotMember, UnknownKey."""
    membership = get_organization(organization_slug, account)
    organization, key = api_keys.get_key(own_key(membership.organization_id, key_id))
    (found, used), names = read_both(
        lambda: read_both(lambda: key_usage.find_usage([key]), lambda: key_usage.find_previous_uses([key])),
        lambda: find_project_names(key),
    )
    usage = found.get(key.key_id)
    limits = limits_of(key, names)
    chart = usage_chart(usage) if usage else None
    return ShownKey(membership, PLANS[organization.plan], key, limits, chart, used.get(key.key_id))


class FoundOwner(NamedTuple):
    """The organization that gets a key, and those of the projects in the form that it doesn't have."""

    organization: OrganizationItem | None
    unknown: list[ProjectId]


def find_owner(organization: Membership, draft: KeyDraft) -> FoundOwner:
    """Reads the organization, and the projects that the draft names, for the creation of the key."""
    organization_id, wanted = organization.organization_id, draft.restrictions.project_ids or ()
    return FoundOwner(
        *read_both(
            lambda: organizations.find_organization(organization_id),
            lambda: find_unknown(organization_id, wanted),
        )
    )


def create_key(
    organization: Membership,
    draft: KeyDraft,
    user_id: str,
    legs: Mapping[str, Leg],
    secret: str,
    *,
    find: Callable[[], FoundOwner],
) -> MintedKey:
    """Creates a key. Raises NotKeyAdmin, NotAcceptable, PlanHasNoApiAccess, KeyLimitReached, Forbidden.

    find: returns what `find_owner` has read.
    """
    require_admin(organization, NotKeyAdmin)
    owner = find()
    if owner.unknown:
        raise NotAcceptable(UNKNOWN_PROJECT)
    return api_keys.create_key(
        organization.organization_id,
        draft,
        user_id,
        CREATED_FROM,
        admin_id=user_id,
        extra_legs=legs,
        secret=secret,
        known=owner.organization,
    )


def roll_key(
    organization: Membership,
    key_id: KeyId,
    user_id: str,
    legs: Mapping[str, Leg],
    secret: str,
    *,
    find: Callable[[], FoundKey],
    grace_seconds: int,
) -> MintedKey:
    """Replaces a key. Raises NotKeyAdmin, UnknownKey, PlanHasNoApiAccess, KeyExpired, TooManyInGrace, Forbidden.

    find: returns what `api_keys.find_key` has read.
    """
    require_admin(organization, NotKeyAdmin)
    return api_keys.roll_key(
        key_id,
        user_id,
        CREATED_FROM,
        grace_seconds=grace_seconds,
        admin_id=user_id,
        extra_legs=legs,
        secret=secret,
        known=find(),
    )


def revoke_key(organization: Membership, key_id: str, user_id: str) -> KeyId | None:
    """Revokes a key, or only an old secret: see `key_changes.delete_key`. Raises NotKeyAdmin, UnknownKey, Forbidden."""
    require_admin(organization, NotKeyAdmin)
    return key_changes.delete_key(own_key(organization.organization_id, key_id), admin_id=user_id)
