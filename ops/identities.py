"""Operator actions on identities: moving one, and recording those that earlier versions created."""

from controlplane.store import identities, keys
from controlplane.store.identities import IdentityItem, Subject
from controlplane.store.retry import retry_on_conflict
from controlplane.store.table import ConditionFailed, StoreError, Unrecorded, Update, table
from controlplane.store.users import UserItem
from ops.table_scan import scan

_IDENTITY, _USER = keys.identity("").pk, keys.user_pk("")
_OF_KIND = "begins_with(#pk, :kind)"


class UnknownIdentity(StoreError):
    """The account has no such identity, or several issuers gave it one."""


def move_identity(user_id: str, subject: str, issuer: str | None, *, to: str, is_user: bool) -> IdentityItem:
    """Replaces the identity's subject, or moves the identity to another account. Returns the identity.

    to: the new subject, or, if `is_user`, the id of the other account.

    Does nothing if already done, so that an interrupted command can be repeated. Raises UnknownIdentity, IdentityTaken,
    AccountHasIdentity, Throttled.
    """

    def attempt() -> IdentityItem:
        identity = _find(user_id, subject, issuer)
        if identity is not None:
            (identities.move if is_user else identities.replace)(identity, to)
        moved = _find(to, subject, issuer) if is_user else _find(user_id, to, issuer)
        if moved is None:
            raise UnknownIdentity
        return moved

    return retry_on_conflict(attempt, "the identity")


def record_all() -> dict[str, int]:
    """Lists every identity under its account, and marks every account as complete. Returns how many it changed.

    Reads the whole table twice. Accounts are marked after all identities are listed. After an interruption, the next
    run skips what is already done.
    """
    listed = 0
    for item in scan(_OF_KIND, {"kind": _IDENTITY}):
        listed += identities.record_if_missing(IdentityItem.from_item(item))
    marked = 0
    for item in scan(_OF_KIND, {"kind": _USER}):
        if item["sk"] == keys.PROFILE_SK and not (user := UserItem.from_item(item)).identities_recorded:
            marked += _mark(user.user_id)
    return {"identities": listed, "accounts": marked}


def _mark(user_id: str) -> int:
    try:
        table.update(
            Update(keys.user(user_id), "SET #identitiesRecorded = :yes", "attribute_exists(pk)", {"yes": True}),
            Unrecorded.BACKFILL,
        )
    except ConditionFailed:
        return 0  # concurrently deleted
    return 1


def _find(user_id: str, subject: str, issuer: str | None) -> IdentityItem | None:
    """Returns the account's identity with that subject, or None. Raises UnknownIdentity if several issuers have it."""
    if issuer is not None:
        identity = identities.find_identity(Subject(issuer, subject))
        return identity if identity is not None and identity.user_id == user_id else None
    found = [identity for identity in identities.list_identities(user_id) if identity.subject == subject]
    if len(found) > 1:
        raise UnknownIdentity
    return found[0] if found else None
