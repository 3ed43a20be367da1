"""`assent-ops user` and `token`: user accounts, and bearer tokens that act for a user."""

from typing import Annotated

import typer

from controlplane.access import sign_in
from controlplane.erasure.deletions import LastOwnerOf
from controlplane.erasure.personal_data import Subject
from controlplane.organizations import store as organizations
from controlplane.people import identities, users
from controlplane.people import tokens as user_tokens
from controlplane.people.identities import AccountHasIdentity, IdentityItem, IdentityTaken
from controlplane.platform.core import clock, ids
from controlplane.platform.core.naming import is_email, normalize_email
from controlplane.platform.core.scopes import SCOPES
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.table import StoreError
from ops import accounts, personal_data
from ops.arguments import User, Yes, new_group, one_of, parse_life
from ops.lookup import find_user, get_user, identity_document, user_document
from ops.output import Conflict, Misused, NotFound, Refused, Result, confirm

_ALL = "all"

app = new_group("User accounts. To list an organization's users, use `member list`.")
tokens = new_group("Bearer tokens that act for a user.")


@app.command("show")
def show_user(user: User) -> Result:
    """Show an account, its organizations, and the identities (issuer and subject) that can sign in to it."""
    profile = get_user(user)
    memberships = organizations.get_account(profile.user_id).memberships
    documents = [
        {"organizationId": it.organization_id, "slug": it.slug, "name": it.name, "role": it.role} for it in memberships
    ]
    signs_in = [identity_document(it) for it in identities.list_identities(profile.user_id)]
    return Result({**user_document(profile), "organizations": documents, "identities": signs_in})


@app.command("revoke")
def revoke_credentials(user: User, yes: Yes = False) -> Result:
    """Revoke every session, token, and device of a user immediately. The user can sign in again.

    API keys belong to organizations and aren't revoked: roll those whose secret the user knows.
    """
    profile = get_user(user)
    confirm(f"Revoke every session, token, and device of {profile.email}?", yes=yes)
    ended = accounts.revoke_credentials(profile.user_id)
    return Result({"userId": profile.user_id, "email": profile.email, **ended})


@app.command("export")
def export_user(user: User) -> Result:
    """Show everything that is stored about a user, without secrets. Use --json to save it to a file.

    Reads the whole table. You can also pass the id of a deleted account, to see the records that still contain the id.
    """
    profile = find_user(user)
    if profile is None and not ids.is_root(ids.USER, user):
        raise NotFound(f"There is no user {user}.")
    subject = Subject(profile.user_id if profile else user, profile.email if profile else None)
    return Result(personal_data.export(subject))


@app.command("delete")
def delete_user(
    user: User,
    yes: Yes = False,
    with_organizations: Annotated[
        bool, typer.Option("--with-organizations", help="Also delete the organizations without another owner.")
    ] = False,
) -> Result:
    """Permanently delete a user's account. Fails if the user is the only owner of an organization.

    Deletes sessions, tokens, devices, identities, invitations from and to the user, memberships, name and address,
    feedback, and the reasons they gave in the inbox. Keeps the id (usr_…) in records of past actions. A later sign-in
    with the address creates a new account: remove the user at the issuer first. Reads the whole table twice, because
    feedback and other records that name the user aren't indexed.

    If the deletion is interrupted, run the same command again with the id.
    """
    profile = find_user(user)
    user_id = profile.user_id if profile else user
    if profile is None and not accounts.is_left_over(user_id):
        raise NotFound(f"There is no user {user}.")
    also = " with every organization that only they own" if with_organizations else ""
    confirm(f"Delete {profile.email if profile else user_id}{also} for good?", yes=yes)
    try:
        ended = accounts.delete_account(user_id, profile, with_organizations=with_organizations)
    except LastOwnerOf as failure:
        raise Refused(
            f"{user_id} is the last owner of {', '.join(failure.slugs)}. Make another member an owner there first "
            "(`member set-role`, or `member add` with --role owner), or delete these too with --with-organizations."
        ) from None
    return Result({"deleted": True, "userId": user_id, **ended})


@app.command("move-identity")
def move(  # noqa: PLR0917 (Typer passes them by name)
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
    if (to_subject is None) == (to_user is None):
        raise Misused("Pass either --to-subject or --to-user.")
    profile = get_user(user)
    to = get_user(to_user).user_id if to_user is not None else str(to_subject)
    if to in {profile.user_id, subject}:
        raise Misused("The account already has this identity.")
    confirm(f"Move the identity {subject} of {profile.email} to {to_user or to_subject}?", yes=yes)
    try:
        moved = move_identity(profile.user_id, subject, issuer, to=to, is_user=to_user is not None)
    except UnknownIdentity:
        raise NotFound(f"{user} has no single identity {subject}. See `user show`, and pass --issuer.") from None
    except IdentityTaken:
        raise Conflict(f"The subject {to_subject} already signs in to an account.") from None
    except AccountHasIdentity:
        raise Conflict(f"{to_user} has an identity from this issuer.") from None
    ended = accounts.revoke_credentials(profile.user_id)
    return Result({"userId": moved.user_id, **identity_document(moved), **ended})


@app.command("set-email")
def set_email(
    user: User,
    email: Annotated[str, typer.Argument(help="The new address. It is treated as verified.")],
    yes: Yes = False,
) -> Result:
    """Change an account's email address, for example to free the address of a person who left.

    The next sign-in changes it again, to the address that the issuer has verified, if no account has that one. Exit
    code 4 if another account has the new address.
    """
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


@tokens.command("create")
def create_token(
    user: Annotated[str, typer.Option("--user", metavar="USER", help="Email address or user id.")],
    scope: Annotated[
        list[str],
        typer.Option(
            "--scope",
            parser=one_of((*SCOPES, _ALL)),
            help=f"A scope; repeatable. `{_ALL}` grants every scope.",
        ),
    ],
    life: Annotated[
        int,
        typer.Option(
            "--life", parser=parse_life, metavar="TIME", help="The lifetime, for example 90s, 30m, 1h, or 7d."
        ),
    ] = "1h",  # type: ignore[assignment]  # Typer parses the default as well
) -> Result:
    """Create a token and print it once: only its hash is stored, so it can't be shown again."""
    profile = get_user(user)
    scopes = sorted(SCOPES if _ALL in scope else set(scope))
    expires_at = clock.timestamp(int(clock.now()) + life)
    secret = user_tokens.create_token(profile.user_id, scopes, life)
    document = {
        "accessToken": secret,
        "userId": profile.user_id,
        "email": profile.email,
        "scopes": scopes,
        "expiresAt": expires_at,
    }
    return Result(document, "Save the token now. It can't be shown again.")


class UnknownIdentity(StoreError):
    """The account has no such identity, or several issuers gave it one."""


def move_identity(user_id: str, subject: str, issuer: str | None, *, to: str, is_user: bool) -> IdentityItem:
    """Replaces the identity's subject, or moves the identity to another account. Returns the identity.

    to: the new subject, or, if `is_user`, the id of the other account.

    Does nothing if already done, so that an interrupted command can be repeated. Raises UnknownIdentity, IdentityTaken,
    AccountHasIdentity, Throttled.
    """

    def attempt() -> IdentityItem:
        identity = _find_identity(user_id, subject, issuer)
        if identity is not None:
            (identities.move if is_user else identities.replace)(identity, to)
        moved = _find_identity(to, subject, issuer) if is_user else _find_identity(user_id, to, issuer)
        if moved is None:
            raise UnknownIdentity
        return moved

    return retry_on_conflict(attempt, "the identity")


def _find_identity(user_id: str, subject: str, issuer: str | None) -> IdentityItem | None:
    """Returns the account's identity with that subject, or None. Raises UnknownIdentity if several issuers have it."""
    if issuer is not None:
        identity = identities.find_identity(identities.Subject(issuer, subject))
        return identity if identity is not None and identity.user_id == user_id else None
    found = [identity for identity in identities.list_identities(user_id) if identity.subject == subject]
    if len(found) > 1:
        raise UnknownIdentity
    return found[0] if found else None
