"""`assent-ops user`: people's accounts."""
# ruff: noqa: PLC0415 (see ops.command.command)

from typing import Annotated

import typer

from ops.arguments import Name, Organization, User
from ops.command import command
from ops.errors import Conflict, Misused, Refused
from ops.output import Shown

app = typer.Typer(no_args_is_help=True, help="People's accounts. Those of one organization: `member list`.")


@command(app, "create")
def create_user(
    email: Annotated[str, typer.Argument(help="Their address, taken as verified.")],
    name: Name,
    image: Annotated[str | None, typer.Option("--image", metavar="URL", help="Their picture.")] = None,
) -> Shown:
    """Create an account. Whoever signs in with the address gets it. Exit code 4 where the address has one."""
    from pydantic import Field, TypeAdapter, ValidationError

    from controlplane.store import users
    from members.schemas import Email
    from ops.lookup import user_document

    try:
        # What an invitation takes, so that whoever has an account can also be invited.
        TypeAdapter(Annotated[Email, Field(max_length=255)]).validate_python(email)
    except ValidationError:
        raise Misused(f"{email!r} is not an email address.") from None
    try:
        profile = users.create_user(email, name, image)
    except users.EmailTaken:
        raise Conflict(f"{email} has an account already.") from None
    return Shown(user_document(profile))


@command(app, "show")
def show_user(user: User) -> Shown:
    """Show an account and the organizations it belongs to."""
    from controlplane.store import organizations
    from ops.lookup import get_user, membership_document, user_document

    account = organizations.get_account(get_user(user)["userId"])
    memberships = [membership_document(membership) for membership in account.memberships]
    return Shown({**user_document(account.profile), "organizations": memberships})


@command(app, "set-organization")
def set_organization(user: User, organization: Organization) -> Shown:
    """Set the organization used where a request of the user names none. They must belong to it."""
    from controlplane.store import organizations
    from ops.lookup import get_organization_id, get_user, user_document

    user_id, organization_id = get_user(user)["userId"], get_organization_id(organization)
    if organizations.find_membership(user_id, organization_id) is None:
        raise Refused(f"{user} is no member of {organization}. Use `member add` first.")
    organizations.save_organization(user_id, organization_id)
    return Shown(user_document(get_user(user_id)))
