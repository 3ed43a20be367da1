"""Organizations, user accounts, and the memberships that connect them.

A membership is two items that always change together: the roster's (by organization) and the user's (by user), which
authorizes. Both decide, so neither can be an index, which is only eventually consistent. An organization's slug and
name never change, so the user's side has a copy of them.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from controlplane.organizations import caps
from controlplane.organizations.items import BillingItem, OrganizationItem
from controlplane.people.users import UserItem
from controlplane.platform.core import clock, ids
from controlplane.platform.core.actions import Action
from controlplane.platform.core.errors import Conflict, InvalidToken, NotFound, known
from controlplane.platform.core.ids import MemberId
from controlplane.platform.core.roles import RANK, Role
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.stored import Derived, StoredItem, StoredMap
from controlplane.platform.table.table import Check, Leg, LegFailed, Put, Recorded, Unrecorded, Update, table

# The pages have a form at the address that an organization with this slug would have.
_RESERVED_SLUGS = {"new"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership(StoredMap):
    """An organization and a member's role in it: the user's side of a membership."""

    organization_id: str
    slug: str
    name: str
    role: Role

    def to_item(self, user_id: str) -> dict[str, Any]:
        return {**keys.membership(user_id, self.organization_id)._asdict(), **self.to_map()}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberItem(StoredItem):
    """An entry of an organization's roster, with the profile fields that the roster shows."""

    organization_id: Annotated[str, Derived(lambda item: keys.organization_of(item["pk"]))]
    user_id: str
    name: str
    email: str
    image: str | None
    role: Role
    joined_at: str

    @property
    def member_id(self) -> MemberId:
        return MemberId.of_user(self.organization_id, self.user_id)

    @property
    def key(self) -> Key:
        return keys.member(self.organization_id, self.user_id)

    @property
    def membership_key(self) -> Key:
        """The key of the user's side of the membership."""
        return keys.membership(self.user_id, self.organization_id)


class Account(NamedTuple):
    """A user's profile, or None if the account was deleted, and the user's memberships in no specific order."""

    profile: UserItem | None
    memberships: list[Membership]

    @property
    def active(self) -> Membership | None:
        """Returns the default organization: the saved one, or the only one, or None."""
        saved = self.profile.saved_organization_id if self.profile else None
        for membership in self.memberships:
            if membership.organization_id == saved:
                return membership
        return self.memberships[0] if len(self.memberships) == 1 else None


def role_check(user_id: str, organization_id: str, least: Role) -> Check:
    """Returns a leg that checks, at commit, that the user has at least the role `least` in the organization."""
    held = [role for role in RANK if RANK[role] >= RANK[least]]
    names = ", ".join(f":{role}" for role in held)
    return Check(keys.membership(user_id, organization_id), f"#role IN ({names})", {role: role for role in held})


def admin_check(caller_id: str | None, organization_id: str) -> dict[str, Check]:
    """Returns a leg that checks that the person is still an admin. API keys, the operator, and workers have none."""
    return {} if caller_id is None else {"caller": role_check(caller_id, organization_id, "admin")}


class UnknownOrganization(NotFound):
    """The organization doesn't exist or was deleted, possibly while the request ran."""


class NotMember(NotFound):
    """The user isn't a member of the organization, or no longer is."""

    message = "You aren't a member of this organization."


class SlugTaken(Conflict):
    """Also raised for a retry without an Idempotency-Key: the organization created first is in the caller's list."""

    message = "This slug isn't available. Choose a different one, such as one of details.suggestions."

    def __init__(self, slug: str, suggestions: list[str] | None = None) -> None:
        super().__init__(details={"field": "slug", "slug": slug, "suggestions": suggestions or []})


class OwnsTooMany(Conflict):
    message = "You already own the maximum number of organizations. Hand one over, or ask {operator}."

    def __init__(self, current: int, limit: int | None) -> None:
        super().__init__(details={"reason": "organization_limit", "limit": limit, "current": current})


class AccountGone(InvalidToken):
    """The account was deleted, so its tokens are invalid."""

    def __init__(self) -> None:
        super().__init__(reason="the account of this token is gone")


class Ownership(NamedTuple):
    """A leg that counts another ownership on the user's profile, and the capacity when it was built."""

    leg: Update
    capacity: caps.Capacity


class Joining(NamedTuple):
    """The legs of a new membership and of the default organization, and how many organizations the user may own.

    legs: `roster` and `membership` fail if the user already is a member; any other if the account has changed.
    capacity: None unless the user becomes an owner.
    """

    legs: dict[str, Leg]
    capacity: caps.Capacity | None

    @property
    def is_full(self) -> bool:
        return self.capacity is not None and self.capacity.is_full

    def is_outdated_by(self, failure: LegFailed) -> bool:
        """Returns True if the account has changed since it was read, so that the legs must be built again."""
        return not failure.items.keys().isdisjoint(self.legs.keys() - {"roster", "membership"})


def find_membership(user_id: str, organization_id: str) -> Membership | None:
    """Returns the membership, or None. The read is consistent because it authorizes."""
    return table.find(keys.membership(user_id, organization_id), Membership.from_item)


def get_with_membership(
    wanted: Sequence[Key], user_id: str, organization_id: str
) -> tuple[list[dict[str, Any] | None], Membership | None]:
    """Returns items of an organization and the user's membership there, in one round trip."""
    *items, membership = table.batch_get([*wanted, keys.membership(user_id, organization_id)])
    return items, Membership.from_item(membership) if membership else None


def get_with_membership_and_plan(
    wanted: Sequence[Key], user_id: str, organization_id: str
) -> tuple[list[dict[str, Any] | None], Membership | None, str]:
    """Returns items of an organization, the user's membership there, and its plan, in one round trip.

    Raises UnknownOrganization.
    """
    (*items, organization), membership = get_with_membership(
        [*wanted, keys.organization(organization_id)], user_id, organization_id
    )
    if organization is None:
        raise UnknownOrganization
    return items, membership, organization["plan"]


def get_account(user_id: str) -> Account:
    """Returns the user's account, read in one consistent query because it determines the active organization."""
    page = table.query(keys.user_pk(user_id), consistent=True)
    profile = None
    memberships = []
    for item in page.items:
        if item["sk"] == keys.PROFILE_SK:
            profile = UserItem.from_item(item)
        elif item["sk"].startswith(keys.MEMBERSHIP_PREFIX):
            memberships.append(Membership.from_item(item))
    return Account(profile, memberships)


def count_ownership(profile: UserItem, limit: int | None) -> Ownership:
    """Returns the leg that counts another organization for its owner, conditional on owning fewer than `limit`.

    Every transaction that makes a user an owner includes this leg. It also checks that the account still has the
    profile's address, which the roster will show. Read the profile before calling this.
    """
    user_id = profile.user_id

    def count_owned() -> int:
        return sum(held.role == "owner" for held in get_account(user_id).memberships)

    capacity = caps.read_capacity(profile.ownerships, limit, count_owned)
    leg = caps.count_creation(keys.user(user_id), "ownerships", capacity, email=profile.email)
    same = "#email = :email"
    return Ownership(Update(leg.key, leg.change, f"{same} AND {leg.when}" if leg.when else same, leg.values), capacity)


def find_organization(organization_id: str) -> OrganizationItem | None:
    return table.find(keys.organization(organization_id), OrganizationItem.from_item)


def get_organization(organization_id: str) -> OrganizationItem:
    """Returns the organization, with a consistent read. Raises UnknownOrganization."""
    return known(find_organization(organization_id), UnknownOrganization)


def membership_legs(membership: Membership, profile: UserItem) -> tuple[Put, Put]:
    """Returns both legs of a new membership, the roster's first; each fails if its item exists."""
    member = MemberItem(
        organization_id=membership.organization_id,
        user_id=profile.user_id,
        name=profile.name,
        email=profile.email,
        image=profile.image,
        role=membership.role,
        joined_at=clock.timestamp(),
    )
    absent = "attribute_not_exists(pk)"
    return Put(member.to_item(), absent), Put(membership.to_item(member.user_id), absent)


def join(joined: Membership, account: Account, limit: int | None = None) -> Joining:
    """Returns the legs that make the account's user a member. `limit` is how many organizations the user can own.

    The user's first organization is saved as the default, so that requests without `organizationId` act there after
    the user joins another one. If the user already has several and none is saved, nothing is chosen for the user.
    The legs fail if another organization is the default by then. Raises AccountGone.
    """
    profile, active = account.profile, account.active
    if profile is None:
        raise AccountGone
    user_id, saved = profile.user_id, profile.saved_organization_id
    decisive = [active] if active else account.memberships[:2]
    default = active or (None if account.memberships else joined)
    chosen = default.organization_id if default else None
    legs: dict[str, Leg] = dict(zip(("roster", "membership"), membership_legs(joined, profile), strict=True))
    for held in decisive:
        if held.organization_id != joined.organization_id:
            key = keys.membership(user_id, held.organization_id)
            legs[held.organization_id] = Check(key, "attribute_exists(pk)")
    if saved not in (None, chosen, joined.organization_id):
        # The saved organization was lost. A query isn't a snapshot, so its membership may also have been added since.
        legs["lost"] = Check(keys.membership(user_id, saved), "attribute_not_exists(pk)")
    ownership = count_ownership(profile, limit) if joined.role == "owner" else None
    legs["account"] = _profile_leg(profile, chosen, ownership)
    return Joining(legs, ownership.capacity if ownership else None)


def joining_record(joined: Membership, user_id: str, action: Action) -> Recorded:
    """Returns the entry of a new membership in the audit log."""
    member_id = MemberId.of_user(joined.organization_id, user_id)
    return Recorded(action, joined.organization_id, member_id, after={"role": joined.role})


def _profile_leg(profile: UserItem, chosen: str | None, ownership: Ownership | None) -> Update | Check:
    """Returns the leg that saves the default organization if it isn't saved, and counts the ownership."""
    saved = profile.saved_organization_id
    unchanged = "#savedOrganizationId = :saved"
    key, when = keys.user(profile.user_id), f"#email = :email AND {unchanged}"
    values = {"email": profile.email, "saved": saved}
    if ownership is None and chosen == saved:
        return Check(key, when, values)
    save = "#savedOrganizationId = :chosen"
    values["chosen"] = chosen
    if ownership is None:
        return Update(key, f"SET {save}", when, values)
    counting = ownership.leg
    return Update(key, f"{counting.change}, {save}", f"{counting.when} AND {unchanged}", {**counting.values, **values})


def create_organization(
    name: str,
    slug: str,
    owner_id: str,
    extra_legs: Mapping[str, Leg] | None = None,
    *,
    limit: int | None = None,
) -> Membership:
    """Creates an organization on the free plan, owned by the user. Returns the owner's membership.

    One transaction writes the slug, organization, billing, membership, a counter, and `extra_legs`. `limit` is how many
    organizations the user can own. Raises SlugTaken, OwnsTooMany, AccountGone; LegFailed for a leg in `extra_legs`.
    """
    created = Membership(organization_id=ids.new_root(ids.ORGANIZATION), slug=slug, name=name, role="owner")

    if slug in _RESERVED_SLUGS:
        raise SlugTaken(slug)
    after = {"name": name, "slug": slug, "plan": "free"}
    record = Recorded(Action.ORGANIZATION_CREATE, created.organization_id, created.organization_id, name, after=after)

    def create() -> Membership:
        joining = join(created, get_account(owner_id), limit)
        try:
            table.transact({**(extra_legs or {}), **_creation(created), **joining.legs}, record)
        except LegFailed as failure:
            holder = failure.items.get("slug")
            # The slug's holder is this organization if our own write succeeded but its response was lost.
            if holder is not None and holder["organizationId"] == created.organization_id:
                return created
            if failure.leg == "slug":
                raise SlugTaken(slug) from None
            if failure.leg not in joining.legs:
                raise
            if joining.capacity is not None and joining.is_full:
                raise OwnsTooMany(joining.capacity.current, limit) from None
            raise WriteConflict from None
        return created

    return retry_on_conflict(create, "the account")


def _creation(created: Membership) -> dict[str, Leg]:
    organization_id, absent = created.organization_id, "attribute_not_exists(pk)"
    organization = OrganizationItem(
        organization_id=organization_id,
        name=created.name,
        slug=created.slug,
        plan="free",
        owners=1,
        keys=0,
        key_version=0,
        projects=0,
        created_at=clock.timestamp(),
    )
    return {
        "slug": Put({**keys.organization_slug(created.slug)._asdict(), "organizationId": organization_id}, absent),
        "organization": Put(organization.to_item(), absent),
        "billing": Put(BillingItem(organization_id=organization_id).to_item(), absent),
        # So that the first invitation counts none.
        "invitations": Put({**keys.invitations_made(organization_id)._asdict(), "made": 0}, absent),
    }


def slugs_taken(slugs: list[str]) -> list[bool]:
    """Returns, for each slug, whether an organization has it."""
    return [item is not None for item in table.batch_get([keys.organization_slug(slug) for slug in slugs])]


def save_default(user_id: str, organization_id: str) -> None:
    """Saves the organization as the user's default. Raises NotMember."""
    legs: dict[str, Leg] = {
        "membership": Check(keys.membership(user_id, organization_id), "attribute_exists(pk)"),
        "profile": Update(
            keys.user(user_id), "SET #savedOrganizationId = :id", "attribute_exists(pk)", {"id": organization_id}
        ),
    }
    table.transact(legs, Unrecorded.ACCOUNT, {"membership": NotMember})


def forget_default(user_id: str, organization_id: str) -> None:
    """Clears the user's default organization if it is this one and the user is no longer a member."""
    legs: dict[str, Leg] = {
        "membership": Check(keys.membership(user_id, organization_id), "attribute_not_exists(pk)"),
        "profile": Update(
            keys.user(user_id),
            "SET #savedOrganizationId = :none",
            "#savedOrganizationId = :organization",
            {"none": None, "organization": organization_id},
        ),
    }
    with suppress(LegFailed):
        table.transact(legs, Unrecorded.ACCOUNT)
