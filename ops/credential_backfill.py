"""Backfill of the credential index, for credentials created before it existed.

A single pass over the table lists every live token, token family, approved device request, and identity that isn't
listed yet. It also removes names and addresses from decided device requests, as deciding them does now. Once it has
finished, revoking a person's access and deleting an account need the index only. Until then they also scan the table.
"""

from contextlib import suppress
from typing import Any

from controlplane.core import clock
from controlplane.store import device_approvals, identities, keys, user_tokens
from controlplane.store.device import DeviceRequestItem
from controlplane.store.identities import IdentityItem
from controlplane.store.table import Check, ConditionFailed, LegFailed, Unrecorded, Update, table
from controlplane.store.token_families import TokenFamilyItem
from controlplane.store.user_tokens import UserTokenItem
from ops import backfill

TOKEN, FAMILY, DEVICE, IDENTITY = (
    builder("").pk for builder in (keys.user_token, keys.token_family, keys.device_request, keys.identity)
)


def run(*, again: bool = False) -> dict[str, Any]:
    """Lists the missing credentials. Returns the numbers of items read and listed, and the time of completion.

    again: starts over, for example after a rollback to a release that doesn't maintain the index.
    """
    kinds = {"token": TOKEN, "family": FAMILY, "device": DEVICE, "identity": IDENTITY}
    condition = " OR ".join(f"begins_with(#pk, :{name})" for name in kinds)
    outcome = backfill.run(keys.credential_backfill(), condition, kinds, _list, again=again)
    return {"completedAt": outcome.completed_at, "read": outcome.read, "listed": outcome.changed}


def _list(item: dict[str, Any]) -> bool:
    """Lists the credential or identity, unless it is already listed or has expired. Returns True if it listed it."""
    if item["pk"].startswith(IDENTITY):
        return identities.record_if_missing(IdentityItem.from_item(item))
    if item["pk"].startswith(DEVICE) and item["status"] in {"denied", "redeemed"}:
        key = keys.Key(item["pk"], item["sk"])
        with suppress(ConditionFailed):  # concurrently removed
            table.update(Update(key, "REMOVE #deviceName, #address", "attribute_exists(pk)"), Unrecorded.BACKFILL)
        return False
    if item.get("validUntil", item["expiresAt"]) <= clock.now():
        return False
    try:
        return _list_credential(item)
    except LegFailed:
        return False  # concurrently revoked, or changed and thereby listed


def _list_credential(item: dict[str, Any]) -> bool:
    if item["pk"].startswith(FAMILY) and item["state"] == "live" and "listedAs" not in item:
        # A concurrent refresh lists the family itself.
        family = TokenFamilyItem.from_item(item)
        same = Check(family.key, "#state = :live AND #current = :current", {"live": "live", "current": family.current})
        entry = family.entry(family.expires_at, clock.timestamp(family.rotated_at))
        table.transact({"family": same, "listed": entry.upsert()}, Unrecorded.BACKFILL)
    elif item["pk"].startswith(TOKEN) and "listedAs" not in item and "familyId" not in item:
        user_tokens.list_older_token(UserTokenItem.from_item(item))
    elif item["pk"].startswith(DEVICE) and item["status"] == "approved" and "listedAs" not in item:
        device_approvals.list_older_approval(DeviceRequestItem.from_item(item))
    else:
        return False
    return True
