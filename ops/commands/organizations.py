"""`assent-ops organization`: organizations and their owners."""
# ruff: noqa: PLC0415 (see ops.command.command)

from typing import Annotated

import typer

from ops.arguments import Name, Organization, Yes
from ops.command import command
from ops.errors import Conflict, Misused, NotFound
from ops.output import Result, confirm

app = typer.Typer(no_args_is_help=True, help="Organizations. New ones are on the free plan.")


@command(app, "create")
def create_organization(
    name: Name,
    owner: Annotated[str, typer.Option("--owner", metavar="USER", help="Email address or user id of its first owner.")],
    slug: Annotated[
        str | None, typer.Option("--slug", help="3 to 20 lowercase letters and digits. Default: derived from the name.")
    ] = None,
) -> Result:
    """Create an organization with its first owner. Exit code 4 if the slug is taken."""
    from pydantic import ValidationError

    from controlplane.rules.organizations import derive_slug, suggest_slugs
    from controlplane.store import organizations
    from ops.lookup import get_user, organization_document
    from organizations.schemas import OrganizationCreate

    try:
        body = OrganizationCreate(name=name, slug=slug)
    except ValidationError:
        raise Misused(
            f"{slug!r} isn't a valid slug: use 3 to 20 lowercase letters and digits, separated by single hyphens."
        ) from None
    owner_id = get_user(owner).user_id
    slug = body.slug or derive_slug(body.name)
    try:
        made = organizations.create_organization(body.name, slug, owner_id)
    except organizations.SlugTaken:
        free = ", ".join(suggest_slugs(slug))
        raise Conflict(f"Another organization has the slug {slug}. Available: {free}.") from None
    return Result(organization_document(made.organization_id))


@command(app, "show")
def show_organization(organization: Organization) -> Result:
    """Show an organization: plan, credits, and the number of owners, keys, and projects."""
    from ops.lookup import get_organization_id, organization_document

    return Result(organization_document(get_organization_id(organization)))


@command(app, "list")
def list_organizations(
    user: Annotated[str, typer.Option("--user", metavar="USER", help="Email address or user id.")],
) -> Result:
    """List the organizations that a user belongs to, sorted by slug."""
    from controlplane.store import organizations
    from ops.lookup import get_user, membership_document

    account = organizations.get_account(get_user(user).user_id)
    return Result([membership_document(it) for it in sorted(account.memberships, key=lambda it: it.slug)])


@command(app, "delete")
def delete_organization(organization: Organization, yes: Yes = False) -> Result:
    """Permanently delete an organization. Its API keys and its members lose access immediately.

    Its projects, scans, findings, inbox, repositories, invitations, and the feedback that its keys sent are deleted in
    the background, within 20 minutes unless the organization is very large. The billing ledger is kept for
    LedgerRetentionDays, and the slug stays reserved for 90 days.
    """
    from controlplane.store import deletions
    from controlplane.store.organizations import UnknownOrganization
    from ops.lookup import get_organization

    found = get_organization(organization)
    confirm(f"Delete {found.name} ({found.slug}) with everything in it, for good?", yes=yes)
    try:
        deletions.delete_organization(found.organization_id)
    except UnknownOrganization:
        raise NotFound(f"There is no organization {organization} any more.") from None
    return Result({"deleted": True, "organizationId": found.organization_id, "slug": found.slug})
