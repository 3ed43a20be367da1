"""Organizations, the accounts of people, and the memberships that tie them.

A membership is two items that always change together: the roster's (by organization) and the person's (by user), which
is what authorizes. Slug and name of an organization never change, so the person's side holds a copy of them.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from controlplane import clock, ids
from controlplane.store import keys
from controlplane.store.keys import Key
from controlplane.store.table import Check, ConditionFailed, Leg, LegFailed, Put, StoreError, Update, table

Role = Literal["owner", "admin", "member"]
# From the least to the most powerful.
ROLES: tuple[Role, ...] = ("member", "admin", "owner")

OPENING_BILLING: dict[str, Any] = {"credits": 0, "topUp": {"enabled": False, "threshold": None, "amount": None}}


class Membership(NamedTuple):
    """An organization as one of its members sees it."""

    organization_id: str
    slug: str
    name: str
    role: Role


class Account(NamedTuple):
    """A person: profile, memberships in no promised order, and the organization saved in the dashboard."""

    profile: dict[str, Any]
    memberships: list[Membership]

    @property
    def active(self) -> Membership | None:
        """The organization used where none is named: the saved one, else the only one, else None."""
        saved = self.profile.get("savedOrganizationId")
        for membership in self.memberships:
            if membership.organization_id == saved:
                return membership
        return self.memberships[0] if len(self.memberships) == 1 else None


def role_check(user_id: str, organization_id: str, least: Role) -> Check:
    """A leg that holds while the person has at least that role there, for what the role must still allow at commit."""
    held = [role for role in ROLES if ROLES.index(role) >= ROLES.index(least)]
    names = ", ".join(f":{role}" for role in held)
    return Check(keys.membership(user_id, organization_id), f"#role IN ({names})", {role: role for role in held})


class UnknownOrganization(StoreError):
    """There is no such organization, or no longer."""


class NotMember(StoreError):
    """The person does not belong to the organization (any more)."""


class SlugTaken(StoreError):
    """Another organization has the slug."""


def _membership(item: dict[str, Any]) -> Membership:
    return Membership(item["organizationId"], item["slug"], item["name"], item["role"])


def find_membership(user_id: str, organization_id: str) -> Membership | None:
    """Consistent, since it authorizes."""
    item = table.get(keys.membership(user_id, organization_id))
    return _membership(item) if item else None


def get_beside_membership(
    key: Key, user_id: str, organization_id: str
) -> tuple[dict[str, Any] | None, Membership | None]:
    """An item of an organization, and the person's membership there, in one round trip."""
    item, membership = table.batch_get([key, keys.membership(user_id, organization_id)])
    return item, _membership(membership) if membership else None


def get_account(user_id: str) -> Account:
    """The person's whole partition in one consistent query, since the organization acted in is chosen from it."""
    page = table.query(keys.user_pk(user_id), consistent=True)
    profile: dict[str, Any] = {}
    memberships = []
    for item in page.items:
        if item["sk"] == keys.PROFILE_SK:
            profile = item
        elif item["sk"].startswith(keys.MEMBERSHIP_PREFIX):
            memberships.append(_membership(item))
    return Account(profile, memberships)


def find_organization(organization_id: str) -> dict[str, Any] | None:
    return table.get(keys.organization(organization_id))


def member_items(organization_id: str, slug: str, name: str, role: Role, profile: dict[str, Any]) -> tuple[Put, Put]:
    """Both sides of a new membership, each refused where it exists: the roster's first."""
    shown = {field: profile[field] for field in ("userId", "name", "email", "image")}
    user_id = profile["userId"]
    roster = {
        **keys.member(organization_id, user_id)._asdict(),
        **shown,
        "role": role,
        "joinedAt": clock.timestamp(),
    }
    own = {
        **keys.membership(user_id, organization_id)._asdict(),
        "organizationId": organization_id,
        "slug": slug,
        "name": name,
        "role": role,
    }
    absent = "attribute_not_exists(pk)"
    return Put(roster, absent), Put(own, absent)


def create_organization(
    name: str, slug: str, owner: dict[str, Any], beside: Mapping[str, Leg] | None = None
) -> Membership:
    """A new organization on the free plan, owned by the person of that profile. Raises SlugTaken.

    All of slug, organization, billing and membership, with the legs `beside` them, or nothing. LegFailed for one of
    those.
    """
    organization_id = ids.new_root(ids.ORGANIZATION)
    roster, own = member_items(organization_id, slug, name, "owner", owner)
    absent = "attribute_not_exists(pk)"
    legs: dict[str, Leg] = {
        **(beside or {}),
        "slug": Put({**keys.organization_slug(slug)._asdict(), "organizationId": organization_id}, absent),
        "organization": Put(
            {
                **keys.organization(organization_id)._asdict(),
                "organizationId": organization_id,
                "name": name,
                "slug": slug,
                "plan": "free",
                "owners": 1,
                "keys": 0,
                "keyVersion": 0,
                "projects": 0,
                "createdAt": clock.timestamp(),
            },
            absent,
        ),
        "billing": Put({**keys.billing(organization_id)._asdict(), **OPENING_BILLING}, absent),
        "roster": roster,
        "membership": own,
    }
    try:
        table.transact(legs)
    except LegFailed as refusal:
        holder = refusal.items.get("slug")
        # Our own write, whose answer was lost before it was sent again, is no other organization.
        if holder is None or holder["organizationId"] != organization_id:
            if refusal.leg != "slug":
                raise
            raise SlugTaken from None
    return Membership(organization_id, slug, name, "owner")


def slugs_taken(slugs: list[str]) -> list[bool]:
    """For each of the slugs, whether an organization has it."""
    return [item is not None for item in table.batch_get([keys.organization_slug(slug) for slug in slugs])]


def save_organization(user_id: str, organization_id: str) -> None:
    """Makes it the one used if the person names none. Raises NotMember."""
    legs: dict[str, Leg] = {
        "membership": Check(keys.membership(user_id, organization_id), "attribute_exists(pk)"),
        "profile": Update(
            keys.user(user_id), "SET #savedOrganizationId = :id", "attribute_exists(pk)", {"id": organization_id}
        ),
    }
    try:
        table.transact(legs)
    except LegFailed as refusal:
        if refusal.leg != "membership":
            raise
        raise NotMember from None


def forget_default(user_id: str, organization_id: str) -> None:
    """Takes the organization away as the person's default, if it is."""
    values = {"none": None, "organization": organization_id}
    with suppress(ConditionFailed):
        table.update(
            Update(
                keys.user(user_id),
                "SET #savedOrganizationId = :none",
                "#savedOrganizationId = :organization",
                values,
            )
        )
