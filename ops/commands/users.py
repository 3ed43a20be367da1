"""`assent-ops user`: people's accounts."""
# ruff: noqa: PLC0415 (see ops.command.command)

from typing import Annotated

import typer

from ops.arguments import Name, User, parse_email
from ops.command import command
from ops.errors import Conflict
from ops.output import Shown

app = typer.Typer(no_args_is_help=True, help="People's accounts. Those of one organization: `member list`.")


@command(app, "create")
def create_user(
    email: Annotated[str, typer.Argument(help="Their address, taken as verified.", parser=parse_email)],
    name: Name,
    image: Annotated[str | None, typer.Option("--image", metavar="URL", help="Their picture.")] = None,
) -> Shown:
    """Create an account. Whoever signs in with the address gets it. Exit code 4 where the address has one."""
    from controlplane.store import users
    from ops.lookup import user_document

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
