"""`assent-ops user`: user accounts."""
# ruff: noqa: PLC0415 (see ops.command.command)

from typing import Annotated

import typer

from ops.arguments import User, Yes
from ops.command import command
from ops.errors import NotFound, Refused
from ops.output import Result, confirm

app = typer.Typer(no_args_is_help=True, help="User accounts. To list an organization's users, use `member list`.")


@command(app, "show")
def show_user(user: User) -> Result:
    """Show an account, its organizations, and the identities (issuer and subject) that can sign in to it."""
    from controlplane.organizations import store as organizations
    from controlplane.people import identities
    from ops.lookup import get_user, identity_document, user_document

    profile = get_user(user)
    memberships = organizations.get_account(profile.user_id).memberships
    documents = [
        {"organizationId": it.organization_id, "slug": it.slug, "name": it.name, "role": it.role} for it in memberships
    ]
    signs_in = [identity_document(it) for it in identities.list_identities(profile.user_id)]
    return Result({**user_document(profile), "organizations": documents, "identities": signs_in})


@command(app, "revoke")
def revoke_credentials(user: User, yes: Yes = False) -> Result:
    """Revoke every session, token, and device of a user immediately. The user can sign in again.

    API keys belong to organizations and aren't revoked: roll those whose secret the user knows.
    """
    from ops import accounts
    from ops.lookup import get_user

    profile = get_user(user)
    confirm(f"Revoke every session, token, and device of {profile.email}?", yes=yes)
    ended = accounts.revoke_credentials(profile.user_id)
    return Result({"userId": profile.user_id, "email": profile.email, **ended.document()})


@command(app, "export")
def export_user(user: User) -> Result:
    """Show everything that is stored about a user, without secrets. Use --json to save it to a file.

    Reads the whole table. You can also pass the id of a deleted account, to see the records that still contain the id.
    """
    from controlplane.erasure.personal_data import Subject
    from controlplane.platform.core import ids
    from ops import personal_data
    from ops.lookup import find_user

    profile = find_user(user)
    if profile is None and not ids.is_root(ids.USER, user):
        raise NotFound(f"There is no user {user}.")
    subject = Subject(profile.user_id if profile else user, profile.email if profile else None)
    return Result(personal_data.export(subject))


@command(app, "delete")
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
    from ops import accounts
    from ops.lookup import find_user

    profile = find_user(user)
    user_id = profile.user_id if profile else user
    if profile is None and not accounts.is_left_over(user_id):
        raise NotFound(f"There is no user {user}.")
    also = " with every organization that only they own" if with_organizations else ""
    confirm(f"Delete {profile.email if profile else user_id}{also} for good?", yes=yes)
    try:
        ended = accounts.delete_account(user_id, profile, with_organizations=with_organizations)
    except accounts.LastOwnerOf as failure:
        raise Refused(
            f"{user_id} is the last owner of {', '.join(failure.slugs)}. Make another member an owner there first "
            "(`member set-role`, or `member add` with --role owner), or delete these too with --with-organizations."
        ) from None
    return Result({"deleted": True, "userId": user_id, **ended})
