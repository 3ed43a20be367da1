"""`assent-ops user`, the commands about signing in: moving an identity, and the email address."""
# ruff: noqa: PLC0415 (see ops.command.command)

from typing import Annotated

import typer

from ops.arguments import User, Yes
from ops.command import command
from ops.errors import Conflict, Misused, NotFound, Refused
from ops.output import Result, confirm

app = typer.Typer()


@command(app, "move-identity")
def move_identity(  # noqa: PLR0917 (Typer passes them by name)
    user: User,
    subject: Annotated[
        str, typer.Argument(metavar="SUBJECT", help="The user's id at the issuer, as listed by `user show`.")
    ],
    to_subject: Annotated[
        str | None, typer.Option("--to-subject", metavar="SUBJECT", help="The subject that replaces it.")
    ] = None,
    to_user: Annotated[
        str | None, typer.Option("--to-user", metavar="USER", help="The account it will sign in to.")
    ] = None,
    issuer: Annotated[
        str | None,
        typer.Option("--issuer", metavar="URL", help="Required if several issuers use this subject."),
    ] = None,
    yes: Yes = False,
) -> Result:
    """Replace the subject of an account's identity, or move the identity to another account.

    Use --to-subject if the issuer has given the user a new id. Use --to-user if the identity signs in to the wrong
    account; the other account must not have an identity from the same issuer. Then revokes every session, token, and
    device of USER. If it is interrupted, run the same command again.

    Exit code 3 if the account has no such identity; 4 if the subject is in use or the other account already has one.
    """
    from controlplane.people.identities import AccountHasIdentity, IdentityTaken
    from ops import accounts, identities
    from ops.lookup import get_user, identity_document

    if (to_subject is None) == (to_user is None):
        raise Misused("Pass either --to-subject or --to-user.")
    profile = get_user(user)
    to = get_user(to_user).user_id if to_user is not None else str(to_subject)
    if to in {profile.user_id, subject}:
        raise Misused("The account already has this identity.")
    confirm(f"Move the identity {subject} of {profile.email} to {to_user or to_subject}?", yes=yes)
    try:
        moved = identities.move_identity(profile.user_id, subject, issuer, to=to, is_user=to_user is not None)
    except identities.UnknownIdentity:
        raise NotFound(f"{user} has no single identity {subject}. See `user show`, and pass --issuer.") from None
    except IdentityTaken:
        raise Conflict(f"The subject {to_subject} already signs in to an account.") from None
    except AccountHasIdentity:
        raise Conflict(f"{to_user} has an identity from this issuer.") from None
    ended = accounts.revoke_credentials(profile.user_id)
    return Result({"userId": moved.user_id, **identity_document(moved), **ended.document()})


@command(app, "set-email")
def set_email(
    user: User,
    email: Annotated[str, typer.Argument(help="The new address. It is treated as verified.")],
    yes: Yes = False,
) -> Result:
    """Change an account's email address, for example to free the address of a person who left.

    The next sign-in changes it again, to the address that the issuer has verified, if no account has that one. Exit
    code 4 if another account has the new address.
    """
    from controlplane.access import sign_in
    from controlplane.people import users
    from controlplane.platform.core.naming import is_email, normalize_email
    from controlplane.platform.table.retry import WriteConflict
    from ops.lookup import get_user, user_document

    if not is_email(email):
        raise Misused(f"{email!r} is not an email address.")
    profile = get_user(user)
    confirm(f"Change the address of {profile.email} to {email}?", yes=yes)
    try:
        if profile.email != normalize_email(email):
            profile = users.change_address(profile, email)
        profile = sign_in.refresh(profile, None, None)
    except users.EmailTaken:
        raise Conflict(f"{email} already has an account.") from None
    except WriteConflict:
        raise Refused("The account has just changed. Check it, then try again.") from None
    return Result(user_document(profile))
