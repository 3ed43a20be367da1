"""Revocation of the credentials in a user's index: web sessions, devices with all their tokens, operator-made tokens.

Each credential is revoked with its entry in one transaction. If a device concurrently redeems or refreshes, the tokens
that it receives are revoked as well. The credentials of a deleted account are erased: nothing about them is kept.
"""

from collections.abc import Iterable
from typing import NamedTuple

from controlplane.people import credential_index, device_approvals, token_families
from controlplane.people.credential_index import CredentialItem
from controlplane.people.device import DeviceRequestItem
from controlplane.people.token_families import TokenFamilyItem
from controlplane.platform.core.errors import NotFound, known
from controlplane.platform.table import keys
from controlplane.platform.table.parallel import read_each
from controlplane.platform.table.retry import retry_on_conflict
from controlplane.platform.table.table import Delete, Leg, Unrecorded, table

# Stored in revoked token families.
_BY_USER = "revoked by the person"


class UnknownSession(NotFound):
    """The user has no such credential, or it has expired. Also raised for another user's."""

    message = "You have no such session."


def revoke_credential(credential: CredentialItem, reason: str) -> None:
    """Revokes the credential; the next request with it gets 401. Does nothing if it has already ended.

    Raises Throttled if the credential's token family keeps changing.
    """
    entry = Delete(credential.key)
    if credential.digest is not None:
        table.transact({"token": Delete(keys.user_token(credential.digest)), "listed": entry}, Unrecorded.CREDENTIAL)
        return
    family_id = credential.family_id
    if family_id is None and credential.request_digest is not None:
        family_id = device_approvals.withdraw(credential.request_digest, credential.user_id)
    if family_id is not None:
        token_families.revoke(family_id, reason)
    # Usually already deleted. This deletes the entry of a credential that has expired or is missing.
    table.delete(entry, Unrecorded.CREDENTIAL)


def revoke_session(user_id: str, session_id: str) -> str:
    """Revokes the user's credential with that session id. Returns its local id. Raises UnknownSession, Throttled."""
    credential = known(credential_index.find_credential(user_id, session_id), UnknownSession)
    revoke_credential(credential, _BY_USER)
    return credential.local


def revoke_others(user_id: str, current: str | None, most: int) -> tuple[int, bool]:
    """Revokes up to `most` of the user's credentials except `current` (a local id).

    Returns how many were revoked, and whether more remain. Revokes page by page, eight at a time. Raises Throttled.
    """
    ended, after = 0, None
    while True:
        page = credential_index.list_credentials(user_id, 25, after)
        others = [credential for credential in page.items if credential.local != current]
        revoked = read_each(lambda it: revoke_credential(it, _BY_USER), others[: most - ended])
        ended += len(revoked)
        if len(revoked) < len(others):
            return ended, True
        if page.next_sk is None:
            return ended, False
        after = page.next_sk


class StoredCredential(NamedTuple):
    """An entry of the index, with the token family and the request of a device."""

    entry: CredentialItem
    family: TokenFamilyItem | None
    request: DeviceRequestItem | None


def find_stored(entries: Iterable[CredentialItem]) -> list[StoredCredential]:
    """Returns the credentials of the entries, in one round trip. Consistent."""
    entries = list(entries)
    families = {it.family_id: keys.token_family(it.family_id) for it in entries if it.family_id}
    requests = {it.request_digest: keys.device_request(it.request_digest) for it in entries if it.request_digest}
    wanted = [*families.values(), *requests.values()]
    found = {key: item for key, item in zip(wanted, table.batch_get(wanted), strict=True) if item is not None}

    def find(entry: CredentialItem) -> StoredCredential:
        family = found.get(families[entry.family_id]) if entry.family_id else None
        request = found.get(requests[entry.request_digest]) if entry.request_digest else None
        return StoredCredential(
            entry,
            TokenFamilyItem.from_item(family) if family else None,
            DeviceRequestItem.from_item(request) if request else None,
        )

    return [find(entry) for entry in entries]


def erase_all(entries: Iterable[CredentialItem]) -> None:
    """Erases the credentials of the entries, eight at a time. Raises Throttled."""
    read_each(erase, find_stored(entries))


def erase(stored: StoredCredential) -> None:
    """Deletes everything about the credential in one transaction; the next request with it gets 401.

    Tokens that a device receives concurrently are deleted as well. Raises Throttled.
    """
    known: StoredCredential | None = stored

    def attempt() -> None:
        nonlocal known
        current, known = known or _read_again(stored.entry), None
        # Fails if the device has redeemed its code, or refreshed its token, since it was read.
        table.transact_or_retry(_erasure(current), Unrecorded.CREDENTIAL)

    retry_on_conflict(attempt, "the credential")


def _read_again(entry: CredentialItem) -> StoredCredential:
    (stored,) = find_stored([table.find(entry.key, CredentialItem.from_item) or entry])
    return stored


def _erasure(stored: StoredCredential) -> dict[str, Leg]:
    entry, family, request = stored
    legs: dict[str, Leg] = {"listed": Delete(entry.key)}
    if entry.digest is not None:
        legs["token"] = Delete(keys.user_token(entry.digest))
    if request is not None:
        legs["request"] = Delete(request.key, "#status = :status", {"status": request.status})
        if family is None and request.family_id is not None:
            family = token_families.find_family(request.family_id)
    return {**legs, **token_families.erasure(family)} if family is not None else legs
