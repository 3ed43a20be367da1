"""Revokes what a person's credential index lists: web sessions, devices with all their tokens, operator-made tokens.

Each credential ends together with its entry in one transaction. If a device redeems or refreshes at the same moment,
the tokens that it receives end as well.
"""

from controlplane.store import credential_index, device, keys, token_families
from controlplane.store.credential_index import Credential
from controlplane.store.table import Delete, table


def revoke_credential(credential: Credential, reason: str) -> None:
    """Ends the credential; the next request with it gets 401. Revoking one that has ended is not an error.

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
    # Normally gone by now. An entry whose credential expired or is missing goes here, since it names nothing else.
    table.delete(entry)


def revoke_others(user_id: str, current: str | None, most: int) -> tuple[int, bool]:
    """Ends up to `most` of the person's credentials except `current` (an own part). How many, and if there are more.

    The first one ends before the next is looked up in a later page. Raises Throttled.
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
