"""`assent-ops key`: an organization's API keys."""
# ruff: noqa: PLC0415 (see ops.command.command)

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ops.arguments import Name, Organization, Yes
from ops.command import command
from ops.errors import Conflict, NotFound, Refused
from ops.output import Result, confirm

if TYPE_CHECKING:
    from controlplane.store.api_key_items import ApiKeyItem

app = typer.Typer(no_args_is_help=True, help="An organization's API keys.")

_CREATED_FROM = "operator"
_PAGE = 100


@command(app, "create")
def create_key(
    organization: Organization,
    name: Name,
    created_by: Annotated[
        str,
        typer.Option(
            "--created-by", metavar="USER", help="The member it is attributed to: an email address or user id."
        ),
    ],
) -> Result:
    """Create a key and print it once: only its hash is stored. Exit code 4 if there are already 50 keys."""
    from controlplane.store import api_keys, organizations
    from ops.lookup import get_organization_id, get_user

    organization_id, user_id = get_organization_id(organization), get_user(created_by).user_id
    if organizations.find_membership(user_id, organization_id) is None:
        raise Refused(f"{created_by} is not a member of {organization}. Attribute the key to a member.")
    try:
        minted = api_keys.create_key(organization_id, name, user_id, _CREATED_FROM)
    except api_keys.PlanHasNoApiAccess:
        raise Refused(f"{organization} is on a plan without API access. Change it with `plan set`.") from None
    except api_keys.KeyLimitReached:
        raise Conflict(f"{organization} has reached its limit of API keys. Delete one first.") from None
    document = {"key": minted.secret, "organizationId": organization_id, **_document(minted.item)}
    return Result(document, "Save the key now. It can't be shown again.")


@command(app, "list")
def list_keys(organization: Organization) -> Result:
    """List an organization's keys, newest first."""
    from controlplane.store import api_keys
    from ops.lookup import get_organization_id

    page = api_keys.list_keys(get_organization_id(organization), _PAGE, None)  # 50 keys at most: one page has them all
    return Result([_document(key) for key in page.keys])


@command(app, "delete")
def delete_key(key_id: Annotated[str, typer.Argument(metavar="KEY_ID", help="key_…")], yes: Yes = False) -> Result:
    """Permanently revoke a key, or with the ID of a rolled key its old secret alone. It is rejected immediately."""
    from controlplane.core.ids import KeyId
    from controlplane.store import api_keys, key_changes

    parsed = KeyId.parse(key_id)
    if parsed is None:
        raise NotFound(f"There is no key {key_id}.")
    confirm(f"Revoke {key_id} for good?", yes=yes)
    try:
        key_changes.delete_key(parsed)
    except api_keys.UnknownKey:
        raise NotFound(f"There is no key {key_id}.") from None
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
