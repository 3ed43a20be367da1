"""`assent-ops organization` and `key`: organizations and their API keys."""

from typing import Annotated

import typer

from controlplane.api_keys import changes as key_changes
from controlplane.api_keys import store as api_keys
from controlplane.erasure import deletions
from controlplane.platform.core.ids import KeyId
from ops.arguments import Organization, Yes, new_group
from ops.lookup import get_organization, get_organization_id, organization_document, parse_id
from ops.output import Result, confirm, fields

_PAGE = 100

app = new_group("Organizations.")
keys = new_group("An organization's API keys.")


@app.command("show")
def show_organization(organization: Organization) -> Result:
    """Show an organization: plan, credits, and the number of owners, keys, and projects."""
    return Result(organization_document(get_organization_id(organization)))


@app.command("delete")
def delete_organization(organization: Organization, yes: Yes = False) -> Result:
    """Permanently delete an organization. Its API keys and its members lose access immediately.

    Its projects, scans, findings, inbox, repositories, invitations, and the feedback that its keys sent are deleted in
    the background, within 20 minutes unless the organization is very large. The billing ledger is kept for
    LEDGER_RETENTION_DAYS, and the slug stays reserved for 90 days.
    """
    found = get_organization(organization)
    confirm(f"Delete {found.name} ({found.slug}) with everything in it, for good?", yes=yes)
    deletions.delete_organization(found.organization_id)
    return Result({"deleted": True, "organizationId": found.organization_id, "slug": found.slug})


@keys.command("list")
def list_keys(organization: Organization) -> Result:
    """List an organization's keys, newest first."""
    page = api_keys.list_keys(get_organization_id(organization), _PAGE, None)  # 50 keys at most: one page has them all
    shown = ("key_id", "name", "start", "rate_limit", "created_at", "created_by", "created_from", "last_used_at")
    return Result([fields(key, *shown) | key.restrictions.describe() for key in page.items])


@keys.command("delete")
def delete_key(key_id: Annotated[str, typer.Argument(metavar="KEY_ID", help="key_…")], yes: Yes = False) -> Result:
    """Permanently revoke a key, or with the ID of a rolled key its old secret alone. It is rejected immediately."""
    parsed = parse_id(KeyId, key_id, "key")
    confirm(f"Revoke {key_id} for good?", yes=yes)
    key_changes.delete_key(parsed)
    return Result({"deleted": True, "keyId": key_id})
