"""Members of an organization: the roster, role changes, removal. Only an owner can change an owner's membership.

Both sides of a membership and the organization's owner count change in one transaction, which also checks the caller's
role. So an organization always has an owner, even under concurrent changes.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar

from controlplane.organizations import store as organizations
from controlplane.organizations.store import MemberItem, Membership, Ownership
from controlplane.people import users
from controlplane.platform.core import ids
from controlplane.platform.core.actions import Action
from controlplane.platform.core.errors import Forbidden, NotFound, RoleRequired, known
from controlplane.platform.core.ids import MemberId
from controlplane.platform.core.roles import RANK, Role
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.table import Delete, Leg, LegFailed, QueryPage, Recorded, StoreError, Update, table


class OwnerRequired(RoleRequired):
    message = "Only an owner can grant the role owner, invite an owner, or change or remove one."

    def __init__(self, role: Role) -> None:
        super().__init__("owner", role, self.message, reason="owner_required")


class OwnMembership(Forbidden):
    message = "You can't remove yourself. Ask another admin or owner of the organization."
    fixed_details: ClassVar = {"reason": "self"}


class LastOwner(Forbidden):
    """The organization would be left without an owner."""

    message = "This is the organization's last owner. Make another member an owner first."
    fixed_details: ClassVar = {"reason": "last_owner"}


class UnknownMember(StoreError):
    """The user isn't a member of the organization, or no longer is."""


class OwnsTooMany(Forbidden):
    message = "This member already owns the maximum number of organizations. Choose another member."

    def __init__(self, limit: int | None) -> None:
        super().__init__(details={"reason": "owner_limit", "limit": limit})


def list_members(
    organization_id: str, limit: int, after: str | None, *, consistent: bool = False
) -> QueryPage[MemberItem]:
    """Returns one page of the roster, ordered by user id."""
    return table.query(
        keys.organization_pk(organization_id),
        prefix=keys.MEMBER_PREFIX,
        limit=limit,
        after=after,
        consistent=consistent,
    ).read(MemberItem.from_item)


def position_of(member_id: MemberId) -> str:
    """Returns the sort key of a member, after which a page of the roster can start."""
    return keys.member(member_id.organization_id, f"{ids.USER}_{member_id.local}").sk


def find_member_and_caller(
    organization_id: str, user_id: str, caller_id: str
) -> tuple[MemberItem | None, Membership | None]:
    """Returns a member's roster entry and the caller's own membership, in one consistent round trip."""
    key = keys.member(organization_id, user_id)
    (item,), caller = organizations.get_with_membership([key], caller_id, organization_id)
    return MemberItem.from_item(item) if item else None, caller


def find_names(organization_id: str, user_ids: Iterable[str]) -> dict[str, str]:
    """Returns the names of those users who are members of the organization, by user id. Consistent."""
    return {user_id: member.name for user_id, member in find_members(organization_id, user_ids).items()}


def find_members(organization_id: str, user_ids: Iterable[str]) -> dict[str, MemberItem]:
    """Returns those users who are members of the organization, by user id. Consistent."""
    distinct = [keys.member(organization_id, user_id) for user_id in dict.fromkeys(user_ids)]
    return {item["userId"]: MemberItem.from_item(item) for item in table.batch_get(distinct) if item}


def may_change(caller: Membership, *concerned: Role) -> bool:
    """Returns whether the caller may invite to, grant, change, or remove these roles."""
    try:
        least_role(caller, *concerned)
    except RoleRequired:
        return False
    return True


def least_role(caller: Membership, *concerned: Role) -> Role:
    """Returns the minimum role for an action on these roles. Raises OwnerRequired, RoleRequired."""
    if "owner" in concerned:
        if caller.role != "owner":
            raise OwnerRequired(caller.role)
        return "owner"
    if RANK[caller.role] < RANK["admin"]:
        raise RoleRequired("admin", caller.role)
    return "admin"


def update_member(caller_id: str, caller: Membership, member: MemberItem, role: Role) -> bool:
    """Changes the member's role. Returns False if the member already has it.

    Raises OwnerRequired, LastOwner, OwnsTooMany, and Forbidden or NotFound if the caller or the member changed
    concurrently.
    """

    def change(caller: Membership, current: MemberItem) -> bool:
        if current.role == role != member.role:
            return True  # written by our own attempt, whose response was lost, or by a concurrent request
        least = least_role(caller, current.role, role)
        if current.role == role:
            return False
        change_role(current, role, caller_id, least, limit=settings.organizations_per_person)
        return True

    return _retry_on_changed_roles(caller_id, caller, member, change)


def delete_member(caller_id: str, caller: Membership, member: MemberItem) -> None:
    """Deletes the membership. Raises OwnMembership, OwnerRequired, LastOwner, Forbidden, NotFound."""
    if member.user_id == caller_id:
        raise OwnMembership

    def delete(caller: Membership, current: MemberItem) -> None:
        end_membership(current, caller_id, least_role(caller, current.role))

    _retry_on_changed_roles(caller_id, caller, member, delete)


def _retry_on_changed_roles[T](
    caller_id: str, caller: Membership, member: MemberItem, act: Callable[[Membership, MemberItem], T]
) -> T:
    """Runs `act`, re-reading both memberships and retrying if they changed concurrently."""

    def attempt() -> T:
        nonlocal caller, member
        try:
            return act(caller, member)
        except WriteConflict:
            found, own = find_member_and_caller(member.organization_id, member.user_id, caller_id)
            if found is None or own is None:
                raise NotFound from None
            member, caller = found, own
            raise

    return retry_on_conflict(attempt, "the membership")


def change_role(member: MemberItem, role: Role, caller_id: str, least: Role, *, limit: int | None = None) -> None:
    """Changes the member's role, if the caller has at least the role `least`.

    `limit` is how many organizations one person can own. Raises LastOwner, OwnsTooMany; WriteConflict if the member's
    or the caller's role has changed.
    """
    change, unchanged, values = "SET #role = :role", "#role = :held", {"role": role, "held": member.role}
    ownership = None
    if role == "owner" != member.role:
        profile = known(users.find_user(member.user_id), WriteConflict)
        ownership = organizations.count_ownership(profile, limit)
    _transact(
        {
            # A transaction allows one operation per item: for a change of one's own role, these two legs check it.
            **_check_caller(member, caller_id, least),
            "member": Update(member.key, change, unchanged, values),
            "membership": Update(member.membership_key, change, unchanged, values),
            **({"ownership": ownership.leg} if ownership else {}),
            **_count_owners(member.organization_id, (role == "owner") - (member.role == "owner")),
        },
        _recorded(Action.MEMBER_CHANGE_ROLE, member, {"role": role}),
        ownership,
    )


def end_membership(member: MemberItem, caller_id: str, least: Role) -> None:
    """Deletes the membership, if the caller has at least the role `least`.

    Raises LastOwner; WriteConflict if the member's or the caller's role has changed.
    """
    legs = _ending(member.organization_id, member.user_id, member.role)
    _transact({**_check_caller(member, caller_id, least), **legs}, _recorded(Action.MEMBER_REMOVE, member, {}))
    organizations.forget_default(member.user_id, member.organization_id)


def get_member(organization_id: str, user_id: str) -> MemberItem:
    """Returns the member, with a consistent read. Raises UnknownMember."""
    return MemberItem.from_item(known(table.get(keys.member(organization_id, user_id)), UnknownMember))


def remove_member(organization_id: str, user_id: str) -> None:
    """Removes the member without a caller's role: for the operator, and for a deleted account.

    Raises UnknownMember, LastOwner, Throttled.
    """
    retry_on_conflict(lambda: end_membership(get_member(organization_id, user_id), user_id, "member"), "the membership")


def leaving(membership: Membership, user_id: str) -> tuple[dict[str, Leg], Recorded]:
    """Returns the legs that end a membership in the transaction that deletes the account, and their entry.

    The leg `owners <organization>` fails if the organization would be left without an owner, the others if the
    membership has changed.
    """
    organization_id, role = membership.organization_id, membership.role
    legs = _ending(organization_id, user_id, role)
    member_id = MemberId.of_user(organization_id, user_id)
    record = Recorded(Action.MEMBER_REMOVE, organization_id, member_id, before={"role": role})
    return {f"{name} {organization_id}": leg for name, leg in legs.items()}, record


def _ending(organization_id: str, user_id: str, role: Role) -> dict[str, Leg]:
    """Returns the legs that end a membership if it still has the role. The last leg decrements the number of owners."""
    unchanged, values = "#role = :held", {"held": role}
    return {
        "member": Delete(keys.member(organization_id, user_id), unchanged, values),
        "membership": Delete(keys.membership(user_id, organization_id), unchanged, values),
        **_count_owners(organization_id, -(role == "owner")),
    }


def _check_caller(member: MemberItem, caller_id: str, least: Role) -> dict[str, Leg]:
    if caller_id == member.user_id:
        return {}
    return {"caller": organizations.role_check(caller_id, member.organization_id, least)}


def _count_owners(organization_id: str, change: int) -> dict[str, Leg]:
    if change == 0:
        return {}
    least = 1 if change > 0 else 2
    count = Update(
        keys.organization(organization_id),
        "SET #owners = #owners + :change",
        "#owners >= :least",
        {"change": change, "least": least},
    )
    return {"owners": count}


def _recorded(action: Action, member: MemberItem, after: Mapping[str, Role]) -> Recorded:
    member_id = MemberId.of_user(member.organization_id, member.user_id)
    return Recorded(action, member.organization_id, member_id, before={"role": member.role}, after=after)


def _transact(legs: dict[str, Leg], record: Recorded, ownership: Ownership | None = None) -> None:
    try:
        table.transact(legs, record)
    except LegFailed as failure:
        if ownership is not None and failure.leg == "ownership" and ownership.capacity.is_full:
            raise OwnsTooMany(ownership.capacity.limit) from None
        # `owners` is the last leg, so it is the first failed one only if all other conditions held.
        raise (LastOwner if failure.leg == "owners" else WriteConflict) from None
