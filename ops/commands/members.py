"""`assent-ops member`: the members of an organization and their roles."""
# ruff: noqa: PLC0415 (see ops.command.command)

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ops.arguments import Organization, User
from ops.command import command
from ops.errors import Conflict, NotFound
from ops.output import Result

if TYPE_CHECKING:
    from controlplane.organizations.store import MemberItem

app = typer.Typer(no_args_is_help=True, help="An organization's members and their roles.")

# The values of controlplane.organizations.store.Role, which can't be imported before the table is known.
Role = Literal["owner", "admin", "member"]


@command(app, "add")
def add_member(
    organization: Organization,
    user: User,
    role: Annotated[Role, typer.Option("--role", help="The member's role.")] = "member",
) -> Result:
    """Add a user to an organization without an invitation. Exit code 4 if they are already a member."""
    from ops import members
    from ops.lookup import get_organization, get_user

    joined, user_id = get_organization(organization), get_user(user).user_id
    try:
        members.add_member(joined, user_id, role)
    except members.AlreadyMember:
        raise Conflict(f"{user} is already a member of {organization}. Use `member set-role`.") from None
    return _changed(joined.organization_id, user_id, role)


@command(app, "list")
def list_members(organization: Organization) -> Result:
    """List an organization's members."""
    from ops import members
    from ops.lookup import get_organization_id

    roster = members.list_members(get_organization_id(organization))
    return Result([_document(member) for member in roster])


@command(app, "set-role")
def set_role(
    organization: Organization, user: User, role: Annotated[Role, typer.Argument(help="The new role.")]
) -> Result:
    """Change a member's role. Fails for the last owner: make another member an owner first."""
    from ops import members
    from ops.lookup import get_organization_id, get_user

    organization_id, user_id = get_organization_id(organization), get_user(user).user_id
    try:
        members.change_role(organization_id, user_id, role)
    except members.UnknownMember:
        raise NotFound(f"{user} isn't a member of {organization}.") from None
    return _changed(organization_id, user_id, role)


def _document(member: "MemberItem") -> dict[str, Any]:
    return {
        "userId": member.user_id,
        "email": member.email,
        "name": member.name,
        "role": member.role,
        "joinedAt": member.joined_at,
    }


def _changed(organization_id: str, user_id: str, role: Role) -> Result:
    return Result({"organizationId": organization_id, "userId": user_id, "role": role})
