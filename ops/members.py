"""Operator actions on memberships: those of admins and owners, and adding a user without an invitation."""

from controlplane.organizations import members
from controlplane.organizations import store as organizations
from controlplane.organizations.items import OrganizationItem
from controlplane.organizations.members import UnknownMember, get_member
from controlplane.organizations.store import MemberItem, Membership
from controlplane.platform.core.actions import Action
from controlplane.platform.core.ids import MemberId
from controlplane.platform.core.roles import Role
from controlplane.platform.queues import events
from controlplane.platform.table import keys
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.table import Check, LegFailed, StoreError, Update, table

__all__ = ["UnknownMember", "add_member", "change_role", "list_members"]

_PAGE = 100


class AlreadyMember(StoreError):
    """The user is already a member of the organization."""


def list_members(organization_id: str) -> list[MemberItem]:
    """Returns all members, sorted by user id."""
    roster: list[MemberItem] = []
    after = None
    while True:
        page = members.list_members(organization_id, _PAGE, after)
        roster += page.members
        if page.next_sk is None:
            return roster
        after = page.next_sk


def add_member(organization: OrganizationItem, user_id: str, role: Role) -> None:
    """Adds the user to the organization. Raises AlreadyMember, AccountGone, Throttled."""
    membership = Membership(
        organization_id=organization.organization_id, slug=organization.slug, name=organization.name, role=role
    )
    organization_id = organization.organization_id
    key, exists = keys.organization(organization_id), "attribute_exists(pk)"
    count_owner = Update(key, "SET #owners = #owners + :one", exists, {"one": 1})

    def add() -> None:
        joining = organizations.join(membership, organizations.get_account(user_id))
        try:
            legs = {
                **joining.legs,
                "organization": count_owner if role == "owner" else Check(key, exists),
                "event": events.entry(organization_id, "member.joined", MemberId.of_user(organization_id, user_id)).leg,
            }
            table.transact(legs, organizations.joining_record(membership, user_id, Action.MEMBER_ADD))
        except LegFailed as failure:
            if failure.leg == "roster":
                raise AlreadyMember from None
            raise (WriteConflict if joining.is_outdated_by(failure) else failure) from None

    retry_on_conflict(add, "the account")


def change_role(organization_id: str, user_id: str, role: Role) -> None:
    """Changes the member's role. Raises UnknownMember, LastOwner, Throttled."""

    def change() -> None:
        member = get_member(organization_id, user_id)
        if member.role != role:
            # The operator has no role: passing the member as caller skips the caller's role check.
            members.change_role(member, role, user_id, role)

    retry_on_conflict(change, "the membership")
