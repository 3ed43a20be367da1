"""Operator actions on identities: moving one, and recording those that earlier versions created."""

from typing import Any

from controlplane.store import identities, keys
from controlplane.store.identities import IdentityItem, Subject
from controlplane.store.retry import retry_on_conflict
from controlplane.store.table import ConditionFailed, StoreError, Unrecorded, Update, table
from controlplane.store.users import UserItem
from ops import backfill

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


def record_all(*, again: bool = False) -> dict[str, int]:
    """Lists every identity under its account, and marks every account as complete. Returns how many it changed.

    Accounts are marked after all identities are listed. An interrupted run resumes. again: starts over, even if it was
    completed.
    """
    listed = backfill.run(keys.identity_backfill(), _OF_KIND, {"kind": _IDENTITY}, _list, again=again)
    profiles = {"kind": _USER, "profile": keys.PROFILE_SK}
    marked = backfill.run(keys.account_backfill(), f"{_OF_KIND} AND #sk = :profile", profiles, _complete, again=again)
    return {"identities": listed.changed, "accounts": marked.changed}


def _list(item: dict[str, Any]) -> bool:
    return identities.record_if_missing(IdentityItem.from_item(item))


def _complete(item: dict[str, Any]) -> bool:
    user = UserItem.from_item(item)
    return not user.identities_recorded and _mark(user.user_id)


def _mark(user_id: str) -> bool:
    try:
        table.update(
            Update(keys.user(user_id), "SET #identitiesRecorded = :yes", "attribute_exists(pk)", {"yes": True}),
            Unrecorded.BACKFILL,
        )
    except ConditionFailed:
        return False  # concurrently deleted
    return True


def _find(user_id: str, subject: str, issuer: str | None) -> IdentityItem | None:
    """Returns the account's identity with that subject, or None. Raises UnknownIdentity if several issuers have it."""
    if issuer is not None:
        identity = identities.find_identity(Subject(issuer, subject))
        return identity if identity is not None and identity.user_id == user_id else None
    found = [identity for identity in identities.list_identities(user_id) if identity.subject == subject]
    if len(found) > 1:
        raise UnknownIdentity
    return found[0] if found else None
