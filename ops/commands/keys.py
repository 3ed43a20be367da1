"""`assent-ops key`: an organization's API keys."""
# ruff: noqa: PLC0415 (see ops.command.command)

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ops.arguments import Organization, Yes
from ops.command import command
from ops.output import Result, confirm

if TYPE_CHECKING:
    from controlplane.api_keys.items import ApiKeyItem

app = typer.Typer(no_args_is_help=True, help="An organization's API keys.")

_PAGE = 100


@command(app, "list")
def list_keys(organization: Organization) -> Result:
    """List an organization's keys, newest first."""
    from controlplane.api_keys import store as api_keys
    from ops.lookup import get_organization_id

    page = api_keys.list_keys(get_organization_id(organization), _PAGE, None)  # 50 keys at most: one page has them all
    return Result([_document(key) for key in page.keys])


@command(app, "delete")
def delete_key(key_id: Annotated[str, typer.Argument(metavar="KEY_ID", help="key_…")], yes: Yes = False) -> Result:
    """Permanently revoke a key, or with the ID of a rolled key its old secret alone. It is rejected immediately."""
    from controlplane.api_keys import changes as key_changes
    from controlplane.platform.core.ids import KeyId
    from ops.lookup import parse_id

    parsed = parse_id(KeyId, key_id, "key")
    confirm(f"Revoke {key_id} for good?", yes=yes)
    key_changes.delete_key(parsed)
    return Result({"deleted": True, "keyId": key_id})


def _document(key: "ApiKeyItem") -> dict[str, Any]:
    return {
        "keyId": key.key_id,
        "name": key.name,
        "start": key.start,
        "rateLimit": key.rate_limit,
        "createdAt": key.created_at,
        "createdBy": key.created_by,
        "createdFrom": key.created_from,
        "lastUsedAt": key.last_used_at,
        **key.restrictions.describe(),
    }
