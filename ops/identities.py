"""Operator actions on identities: moving one, and recording those that earlier versions created."""

from typing import Any

from controlplane.store import identities, keys
from controlplane.store.identities import IdentityChanged, Subject
from controlplane.store.table import ConditionFailed, StoreError, Throttled, Update, table
from ops.table_scan import scan

_TRIES = 8
_IDENTITY, _USER = keys.identity("").pk, keys.user_pk("")
_OF_KIND = "begins_with(#pk, :kind)"


class UnknownIdentity(StoreError):
    """The account has no such identity, or several issuers gave it one."""


def move_identity(user_id: str, subject: str, issuer: str | None, *, to: str, is_user: bool) -> dict[str, Any]:
    """Replaces the identity's subject, or moves the identity to another account. Returns its item.

    to: the new subject, or, if `is_user`, the id of the other account.

    Does nothing if already done, so that an interrupted command can be repeated. Raises UnknownIdentity, IdentityTaken,
    AccountHasIdentity, Throttled.
    """
    for _ in range(_TRIES):
        item = _find(user_id, subject, issuer)
        if item is None:
            done = _find(to, subject, issuer) if is_user else _find(user_id, to, issuer)
            if done is None:
                raise UnknownIdentity
            return done
        try:
            if is_user:
                identities.move(item, to)
            else:
                identities.replace(item, to)
        except IdentityChanged:
            continue
    raise Throttled("the identity keeps changing")


def record_all() -> dict[str, int]:
    """Lists every identity under its account, and marks every account as complete. Returns how many it changed.

    Reads the whole table twice. Accounts are marked after all identities are listed. After an interruption, the next
    run skips what is already done.
    """
    listed = 0
    for item in scan(_OF_KIND, {"kind": _IDENTITY}):
        listed += identities.record_if_missing(item)
    marked = 0
    for item in scan(_OF_KIND, {"kind": _USER}):
        if item["sk"] == keys.PROFILE_SK and not item.get("identitiesRecorded"):
            marked += _mark(item["userId"])
    return {"identities": listed, "accounts": marked}


def _mark(user_id: str) -> int:
    try:
        table.update(
            Update(keys.user(user_id), "SET #identitiesRecorded = :yes", "attribute_exists(pk)", {"yes": True})
        )
    except ConditionFailed:
        return 0  # concurrently deleted
    return 1


def _find(user_id: str, subject: str, issuer: str | None) -> dict[str, Any] | None:
    """Returns the account's identity with that subject, or None. Raises UnknownIdentity if several issuers have it."""
    if issuer is not None:
        item = identities.find(Subject(issuer, subject))
        return item if item is not None and item["userId"] == user_id else None
    found = [item for item in identities.list_identities(user_id) if item["subject"] == subject]
    if len(found) > 1:
        raise UnknownIdentity
    return found[0] if found else None
