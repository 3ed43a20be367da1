"""Operator actions on identities: moving one."""

from controlplane.people import identities
from controlplane.people.identities import IdentityItem, Subject
from controlplane.platform.table.retry import retry_on_conflict
from controlplane.platform.table.table import StoreError


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


def _find(user_id: str, subject: str, issuer: str | None) -> IdentityItem | None:
    """Returns the account's identity with that subject, or None. Raises UnknownIdentity if several issuers have it."""
    if issuer is not None:
        identity = identities.find_identity(Subject(issuer, subject))
        return identity if identity is not None and identity.user_id == user_id else None
    found = [identity for identity in identities.list_identities(user_id) if identity.subject == subject]
    if len(found) > 1:
        raise UnknownIdentity
    return found[0] if found else None
