"""Members of an organization: the roster, changes of role, removal.

Both sides of a membership and the organization's count of owners change in one transaction, which also holds the
caller to the role that allowed it. So at every moment there is an owner, whatever runs at the same time.
"""

from typing import Any

from controlplane.store import keys, organizations
from controlplane.store.organizations import Membership, Ownership, Role
from controlplane.store.table import Delete, Leg, LegFailed, QueryPage, StoreError, Update, table


class LastOwner(StoreError):
    """The organization would be left without an owner."""


class MembershipMoved(StoreError):
    """The member's role or the caller's is not what the decision rested on: read both again and decide anew."""


def list_members(organization_id: str, limit: int, after: str | None) -> QueryPage:
    """One page of the roster, in the order of user ids."""
    return table.query(keys.organization_pk(organization_id), prefix=keys.MEMBER_PREFIX, limit=limit, after=after)


def find_member_beside_caller(
    organization_id: str, user_id: str, caller_id: str
) -> tuple[dict[str, Any] | None, Membership | None]:
    """A member's roster item, and the caller's own membership, in one round trip; consistent."""
    return organizations.get_beside_membership(keys.member(organization_id, user_id), caller_id, organization_id)


def change_role(
    organization_id: str,
    member: dict[str, Any],
    role: Role,
    caller_id: str,
    least: Role,
    *,
    limit: int | None = None,
) -> None:
    """Gives the member of that roster item another role, while the caller has at least the role `least`.

    `limit` is how many organizations one person may own. Raises LastOwner, OwnsTooMany, MembershipMoved.
    """
    user_id, held = member["userId"], member["role"]
    change, unmoved, values = "SET #role = :role", "#role = :held", {"role": role, "held": held}
    ownership = None
    if role == "owner" != held:
        profile = table.get(keys.user(user_id))
        if profile is None:
            raise MembershipMoved
        ownership = organizations.count_ownership(profile, limit)
    _transact(
        {
            # A transaction takes one operation per item: who changes their own role is held to it by these two.
            **_caller(organization_id, user_id, caller_id, least),
            "member": Update(keys.member(organization_id, user_id), change, unmoved, values),
            "membership": Update(keys.membership(user_id, organization_id), change, unmoved, values),
            **({"ownership": ownership.leg} if ownership else {}),
            **_owners(organization_id, (role == "owner") - (held == "owner")),
        },
        ownership,
    )


def delete_member(organization_id: str, member: dict[str, Any], caller_id: str, least: Role) -> None:
    """Ends the membership of that roster item, while the caller has at least the role `least`.

    Raises LastOwner, MembershipMoved.
    """
    user_id, held = member["userId"], member["role"]
    unmoved, values = "#role = :held", {"held": held}
    _transact(
        {
            **_caller(organization_id, user_id, caller_id, least),
            "member": Delete(keys.member(organization_id, user_id), unmoved, values),
            "membership": Delete(keys.membership(user_id, organization_id), unmoved, values),
            **_owners(organization_id, -(held == "owner")),
        }
    )
    organizations.forget_default(user_id, organization_id)


def _caller(organization_id: str, user_id: str, caller_id: str, least: Role) -> dict[str, Leg]:
    if caller_id == user_id:
        return {}
    return {"caller": organizations.role_check(caller_id, organization_id, least)}


def _owners(organization_id: str, change: int) -> dict[str, Leg]:
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


def _transact(legs: dict[str, Leg], ownership: Ownership | None = None) -> None:
    try:
        table.transact(legs)
    except LegFailed as refusal:
        if ownership is not None and refusal.leg == "ownership":
            ownership.refuse()
        # The last leg is the first refused one only where all that the decision rested on still holds.
        raise (LastOwner if refusal.leg == "owners" else MembershipMoved) from None
