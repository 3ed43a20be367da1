"""Revocation of the credentials in a user's index: web sessions, devices with all their tokens, operator-made tokens.

Each credential is revoked with its entry in one transaction. If a device concurrently redeems or refreshes, the tokens
that it receives are revoked as well.
"""

from controlplane.core.errors import NotFound
from controlplane.store import credential_index, device_approvals, keys, token_families
from controlplane.store.credential_index import CredentialItem
from controlplane.store.table import Delete, Unrecorded, table

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
    credential = credential_index.find_credential(user_id, session_id)
    if credential is None:
        raise UnknownSession
    revoke_credential(credential, _BY_USER)
    return credential.local


def revoke_others(user_id: str, current: str | None, most: int) -> tuple[int, bool]:
    """Revokes up to `most` of the user's credentials except `current` (a local id).

    Returns how many were revoked, and whether more remain. Revokes page by page. Raises Throttled.
    """
    ended, after = 0, None
    while True:
        page = credential_index.list_credentials(user_id, 25, after)
        for credential in page.credentials:
            if credential.local == current:
                continue
            if ended == most:
                return ended, True
            revoke_credential(credential, _BY_USER)
            ended += 1
        if page.next_sk is None:
            return ended, False
        after = page.next_sk
