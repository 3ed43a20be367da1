"""Revocation of the credentials in a user's index: web sessions, devices with all their tokens, operator-made tokens.

Each credential is revoked with its entry in one transaction. If a device concurrently redeems or refreshes, the tokens
that it receives are revoked as well.
"""

from controlplane.store import credential_index, device, keys, token_families
from controlplane.store.credential_index import Credential
from controlplane.store.table import Delete, table


def revoke_credential(credential: Credential, reason: str) -> None:
    """Revokes the credential; the next request with it gets 401. Does nothing if it has already ended.

    Raises Throttled if the credential's token family keeps changing.
    """
    entry = Delete(keys.credential(credential.user_id, credential.local))
    if credential.digest is not None:
        table.transact({"token": Delete(keys.user_token(credential.digest)), "listed": entry})
        return
    family_id = credential.family_id
    if family_id is None and credential.request_digest is not None:
        family_id = device.withdraw(credential.request_digest, credential.user_id)
    if family_id is not None:
        token_families.revoke(family_id, reason)
    # Usually already deleted. This deletes the entry of a credential that has expired or is missing.
    table.delete(entry)


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
            revoke_credential(credential, "revoked by the person")
            ended += 1
        if page.next_sk is None:
            return ended, False
        after = page.next_sk
