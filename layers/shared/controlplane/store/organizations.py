"""Organizations, user accounts, and the memberships that connect them.

A membership is two items that always change together: the roster's (by organization) and the user's (by user), which
authorizes. An organization's slug and name never change, so the user's side has a copy of them.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from controlplane.core import clock, ids
from controlplane.store import caps, keys
from controlplane.store.keys import Key
from controlplane.store.table import Check, ConditionFailed, Leg, LegFailed, Put, StoreError, Throttled, Update, table

Role = Literal["owner", "admin", "member"]
# From the least to the most powerful.
ROLES: tuple[Role, ...] = ("member", "admin", "owner")

_TRIES = 8

OPENING_BILLING: dict[str, Any] = {"credits": 0, "topUp": {"enabled": False, "threshold": None, "amount": None}}


class Membership(NamedTuple):
    """An organization and a member's role in it."""

    organization_id: str
    slug: str
    name: str
    role: Role


class Account(NamedTuple):
    """A user's profile, which has the organization saved in the dashboard, and memberships in no specific order."""

    profile: dict[str, Any]
    memberships: list[Membership]

    @property
    def active(self) -> Membership | None:
        """Returns the default organization: the saved one, otherwise the only one, otherwise None."""
        saved = self.profile.get("savedOrganizationId")
        for membership in self.memberships:
            if membership.organization_id == saved:
                return membership
        return self.memberships[0] if len(self.memberships) == 1 else None


def role_check(user_id: str, organization_id: str, least: Role) -> Check:
    """Returns a leg that checks, at commit, that the user has at least the role `least` in the organization."""
    held = [role for role in ROLES if ROLES.index(role) >= ROLES.index(least)]
    names = ", ".join(f":{role}" for role in held)
    return Check(keys.membership(user_id, organization_id), f"#role IN ({names})", {role: role for role in held})


class UnknownOrganization(StoreError):
    """The organization doesn't exist or was deleted."""


class NotMember(StoreError):
    """The user isn't a member of the organization, or no longer is."""


class SlugTaken(StoreError):
    """Another organization has the slug."""


class AccountGone(StoreError):
    """The account was deleted, or its address differs from the profile that was read."""


class OwnsTooMany(StoreError):
    """The user owns the maximum number of organizations: `current` of `limit`."""

    def __init__(self, room: caps.Room) -> None:
        super().__init__("owns too many organizations")
        self.current, self.limit = room.current, room.limit


class Ownership(NamedTuple):
    """A leg that counts another ownership on the user's profile, and the remaining capacity when it was built."""

    leg: Update
    room: caps.Room

    def refuse(self) -> None:
        """Raises OwnsTooMany if the limit made the leg fail. Otherwise the caller must re-read the profile."""
        if self.room.is_full:
            raise OwnsTooMany(self.room) from None


def _membership(item: dict[str, Any]) -> Membership:
    return Membership(item["organizationId"], item["slug"], item["name"], item["role"])


def find_membership(user_id: str, organization_id: str) -> Membership | None:
    """Returns the membership, or None. The read is consistent because it authorizes."""
    item = table.get(keys.membership(user_id, organization_id))
    return _membership(item) if item else None


def get_beside_membership(
    key: Key, user_id: str, organization_id: str
) -> tuple[dict[str, Any] | None, Membership | None]:
    """Returns an organization's item and the user's membership there, in one round trip."""
    item, membership = table.batch_get([key, keys.membership(user_id, organization_id)])
    return item, _membership(membership) if membership else None


def get_account(user_id: str) -> Account:
    """Returns the user's account, read in one consistent query because it determines the active organization."""
    page = table.query(keys.user_pk(user_id), consistent=True)
    profile: dict[str, Any] = {}
    memberships = []
    for item in page.items:
        if item["sk"] == keys.PROFILE_SK:
            profile = item
        elif item["sk"].startswith(keys.MEMBERSHIP_PREFIX):
            memberships.append(_membership(item))
    return Account(profile, memberships)


def count_ownership(profile: Mapping[str, Any], limit: int | None) -> Ownership:
    """Returns the leg that counts another organization for its owner, conditional on owning fewer than `limit`.

    Every transaction that makes a user an owner includes this leg. It also checks that the account still has the
    profile's address, which the roster will show. Read the profile before calling this.
    """
    user_id = profile["userId"]

    def count_owned() -> int:
        return sum(held.role == "owner" for held in get_account(user_id).memberships)

    room = caps.look(profile, "ownerships", limit, count_owned)
    leg = caps.make_one(keys.user(user_id), "ownerships", room, email=profile["email"])
    same = "#email = :email"
    return Ownership(Update(leg.key, leg.change, f"{same} AND {leg.when}" if leg.when else same, leg.values), room)


def find_organization(organization_id: str) -> dict[str, Any] | None:
    return table.get(keys.organization(organization_id))


def member_items(organization_id: str, slug: str, name: str, role: Role, profile: dict[str, Any]) -> tuple[Put, Put]:
    """Returns both legs of a new membership, the roster's first; each fails if its item exists."""
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
    name: str,
    slug: str,
    owner: dict[str, Any],
    extra_legs: Mapping[str, Leg] | None = None,
    *,
    limit: int | None = None,
) -> Membership:
    """Creates an organization on the free plan, owned by the profile's user. Returns the owner's membership.

    One transaction writes the slug, organization, billing, membership, and `extra_legs`. `limit` is how many
    organizations the user can own. Raises SlugTaken, OwnsTooMany, AccountGone; LegFailed for a leg in `extra_legs`.
    """
    organization_id = ids.new_root(ids.ORGANIZATION)
    made = Membership(organization_id, slug, name, "owner")
    for _ in range(_TRIES):
        ownership = count_ownership(owner, limit)
        try:
            table.transact({**(extra_legs or {}), **_creation(made, owner), "owner": ownership.leg})
        except LegFailed as refusal:
            holder = refusal.items.get("slug")
            # The slug's holder is this organization if our own write succeeded but its response was lost.
            if holder is not None and holder["organizationId"] == organization_id:
                return made
            if refusal.leg == "slug":
                raise SlugTaken from None
            if refusal.leg != "owner":
                raise
            ownership.refuse()
            if refusal.item is None:
                raise AccountGone from None
            owner = refusal.item
        else:
            return made
    raise Throttled("the account keeps changing")


def _creation(made: Membership, owner: dict[str, Any]) -> dict[str, Leg]:
    organization_id, slug, name, role = made
    roster, own = member_items(organization_id, slug, name, role, owner)
    absent = "attribute_not_exists(pk)"
    return {
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


def slugs_taken(slugs: list[str]) -> list[bool]:
    """Returns, for each slug, whether an organization has it."""
    return [item is not None for item in table.batch_get([keys.organization_slug(slug) for slug in slugs])]


def save_organization(user_id: str, organization_id: str) -> None:
    """Saves the organization as the user's default. Raises NotMember."""
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
    """Clears the user's default organization if it is this one."""
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
