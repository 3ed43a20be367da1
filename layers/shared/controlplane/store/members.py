"""Members of an organization: the roster, role changes, removal.

Both sides of a membership and the organization's owner count change in one transaction, which also checks the caller's
role. So an organization always has an owner, even under concurrent changes.
"""

from typing import Any

from controlplane.store import keys, organizations
from controlplane.store.organizations import Membership, Ownership, Role
from controlplane.store.table import Delete, Leg, LegFailed, QueryPage, StoreError, Update, table


class LastOwner(StoreError):
    """The organization would be left without an owner."""


class MembershipMoved(StoreError):
    """The member's or the caller's role changed concurrently: re-read both and retry."""


def list_members(organization_id: str, limit: int, after: str | None) -> QueryPage:
    """Returns one page of the roster, ordered by user id."""
    return table.query(keys.organization_pk(organization_id), prefix=keys.MEMBER_PREFIX, limit=limit, after=after)


def find_member_beside_caller(
    organization_id: str, user_id: str, caller_id: str
) -> tuple[dict[str, Any] | None, Membership | None]:
    """Returns a member's roster item and the caller's own membership, in one consistent round trip."""
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
    """Changes the role of the roster item's member, if the caller has at least the role `least`.

    `limit` is how many organizations one person can own. Raises LastOwner, OwnsTooMany, MembershipMoved.
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
            # A transaction allows one operation per item: for a change of one's own role, these two legs check it.
            **_caller(organization_id, user_id, caller_id, least),
            "member": Update(keys.member(organization_id, user_id), change, unmoved, values),
            "membership": Update(keys.membership(user_id, organization_id), change, unmoved, values),
            **({"ownership": ownership.leg} if ownership else {}),
            **_owners(organization_id, (role == "owner") - (held == "owner")),
        },
        ownership,
    )


def delete_member(organization_id: str, member: dict[str, Any], caller_id: str, least: Role) -> None:
    """Deletes the roster item's membership, if the caller has at least the role `least`.

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
        # `owners` is the last leg, so it is the first failed one only if all other conditions held.
        raise (LastOwner if refusal.leg == "owners" else MembershipMoved) from None
