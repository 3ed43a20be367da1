"""`assent-ops organization`: organizations."""
# ruff: noqa: PLC0415 (see ops.command.command)

import typer

from ops.arguments import Organization, Yes
from ops.command import command
from ops.output import Result, confirm

app = typer.Typer(no_args_is_help=True, help="Organizations.")


@command(app, "show")
def show_organization(organization: Organization) -> Result:
    """Show an organization: plan, credits, and the number of owners, keys, and projects."""
    from ops.lookup import get_organization_id, organization_document

    return Result(organization_document(get_organization_id(organization)))


@command(app, "delete")
def delete_organization(organization: Organization, yes: Yes = False) -> Result:
    """Permanently delete an organization. Its API keys and its members lose access immediately.

    Its projects, scans, findings, inbox, repositories, invitations, and the feedback that its keys sent are deleted in
    the background, within 20 minutes unless the organization is very large. The billing ledger is kept for
    LEDGER_RETENTION_DAYS, and the slug stays reserved for 90 days.
    """
    from controlplane.erasure import deletions
    from ops.lookup import get_organization

    found = get_organization(organization)
    confirm(f"Delete {found.name} ({found.slug}) with everything in it, for good?", yes=yes)
    deletions.delete_organization(found.organization_id)
    return Result({"deleted": True, "organizationId": found.organization_id, "slug": found.slug})
