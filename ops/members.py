"""Operator actions on memberships: those of admins and owners, and adding a user without an invitation."""

from typing import Any

from controlplane.store import keys, members, organizations
from controlplane.store.organizations import Role
from controlplane.store.table import Check, Leg, LegFailed, StoreError, Throttled, Update, table

_TRIES = 8
_PAGE = 100


class AlreadyMember(StoreError):
    """The user is already a member of the organization."""


class UnknownMember(StoreError):
    """The user isn't a member of the organization, or no longer is."""


def list_members(organization_id: str) -> list[dict[str, Any]]:
    """Returns all members, sorted by user id."""
    items: list[dict[str, Any]] = []
    after = None
    while True:
        page = members.list_members(organization_id, _PAGE, after)
        items += page.items
        if page.next_sk is None:
            return items
        after = page.next_sk


def add_member(organization: dict[str, Any], profile: dict[str, Any], role: Role) -> None:
    """Adds the user to the organization. Raises AlreadyMember."""
    organization_id = organization["organizationId"]
    roster, own = organizations.member_items(organization_id, organization["slug"], organization["name"], role, profile)
    key, exists = keys.organization(organization_id), "attribute_exists(pk)"
    legs: dict[str, Leg] = {"roster": roster, "membership": own}
    if role == "owner":
        legs["organization"] = Update(key, "SET #owners = #owners + :one", exists, {"one": 1})
        legs["ownership"] = organizations.count_ownership(profile, None).leg
    else:
        legs["organization"] = Check(key, exists)
    try:
        table.transact(legs)
    except LegFailed as refusal:
        if refusal.leg != "roster":
            raise
        raise AlreadyMember from None


def change_role(organization_id: str, user_id: str, role: Role) -> None:
    """Changes the member's role. Raises UnknownMember, LastOwner, Throttled."""
    for _ in range(_TRIES):
        member = _get_member(organization_id, user_id)
        if member["role"] == role:
            return
        try:
            # The operator has no role: passing the member as caller skips the caller's role check.
            members.change_role(organization_id, member, role, user_id, role)
        except members.MembershipMoved:
            continue
        return
    raise Throttled("the membership keeps changing")


def remove_member(organization_id: str, user_id: str) -> None:
    """Removes the member. Raises UnknownMember, LastOwner, Throttled."""
    for _ in range(_TRIES):
        member = _get_member(organization_id, user_id)
        try:
            members.delete_member(organization_id, member, user_id, "member")
        except members.MembershipMoved:
            continue
        return
    raise Throttled("the membership keeps changing")


def _get_member(organization_id: str, user_id: str) -> dict[str, Any]:
    member = table.get(keys.member(organization_id, user_id))
    if member is None:
        raise UnknownMember
    return member
