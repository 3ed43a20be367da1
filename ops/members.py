"""`assent-ops member`: the members of an organization and their roles.

An operator adds a user without an invitation, and has no role that limits which roles they can give.
"""

from typing import Annotated

import typer

from controlplane.organizations import members
from controlplane.organizations import store as organizations
from controlplane.organizations.items import OrganizationItem
from controlplane.organizations.store import Membership
from controlplane.platform.core.actions import Action
from controlplane.platform.core.ids import MemberId
from controlplane.platform.core.roles import Role
from controlplane.platform.queues import events
from controlplane.platform.table import keys
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.table import Check, LegFailed, Update, table
from ops.arguments import Organization, User, new_group
from ops.lookup import get_organization, get_organization_id, get_user
from ops.output import Conflict, NotFound, Result, fields

app = new_group("An organization's members and their roles.")

_PAGE = 100


@app.command("add")
def add(
    organization: Organization,
    user: User,
    role: Annotated[Role, typer.Option("--role", help="The member's role.")] = "member",
) -> Result:
    """Add a user to an organization without an invitation. Exit code 4 if they are already a member."""
    joined, user_id = get_organization(organization), get_user(user).user_id
    add_member(joined, user_id, role)
    return _changed(joined.organization_id, user_id, role)


@app.command("list")
def list_members(organization: Organization) -> Result:
    """List an organization's members, sorted by user id."""
    organization_id = get_organization_id(organization)
    page = members.list_members(organization_id, _PAGE, None)
    roster = [*page.items]
    while page.next_sk is not None:
        page = members.list_members(organization_id, _PAGE, page.next_sk)
        roster += page.items
    return Result([fields(member, "user_id", "email", "name", "role", "joined_at") for member in roster])


@app.command("set-role")
def set_role(
    organization: Organization, user: User, role: Annotated[Role, typer.Argument(help="The new role.")]
) -> Result:
    """Change a member's role. Fails for the last owner: make another member an owner first."""
    organization_id, user_id = get_organization_id(organization), get_user(user).user_id
    try:
        change_role(organization_id, user_id, role)
    except members.UnknownMember:
        raise NotFound(f"{user} isn't a member of {organization}.") from None
    return _changed(organization_id, user_id, role)


def _changed(organization_id: str, user_id: str, role: Role) -> Result:
    return Result({"organizationId": organization_id, "userId": user_id, "role": role})


def add_member(organization: OrganizationItem, user_id: str, role: Role) -> None:
    """Adds the user to the organization. Raises Conflict, AccountGone, Throttled."""
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
                raise Conflict("The user is already a member of the organization. Use `member set-role`.") from None
            raise (WriteConflict if joining.is_outdated_by(failure) else failure) from None

    retry_on_conflict(add, "the account")


def change_role(organization_id: str, user_id: str, role: Role) -> None:
    """Changes the member's role. Raises UnknownMember, LastOwner, Throttled."""

    def change() -> None:
        member = members.get_member(organization_id, user_id)
        if member.role != role:
            # The operator has no role: passing the member as caller skips the caller's role check.
            members.change_role(member, role, user_id, role)

    retry_on_conflict(change, "the membership")
