"""API keys and people's tokens that were found in public: they are revoked, and a record is kept for the notifications.

A secret in a report is reason enough, so no admin's role is checked. The audit log names the service. It has no entry
for a token of a person, as for every other end of a sign-in: the person is told by email.
"""

from dataclasses import dataclass
from typing import Annotated

from controlplane.api_keys.changes import deletion_legs, end_of_grace_legs, grace_record
from controlplane.api_keys.items import ApiKeyItem, KeySecretItem
from controlplane.people import credential_index, token_families
from controlplane.people import tokens as user_tokens
from controlplane.people.token_families import TokenFamilyItem
from controlplane.platform.core import clock, ids, tokens
from controlplane.platform.core.actions import Action
from controlplane.platform.core.clock import expiry
from controlplane.platform.core.ids import KeyId
from controlplane.platform.queues import events, outbox
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.stored import FLAT, SPARSE, StoredItem, StoredMap
from controlplane.platform.table.table import Leg, LegFailed, Put, Recorded, Unrecorded, table

# The kind of the message to `notifications` about a token.
KIND = "send-leak-notice"
_KEPT_DAYS = 90
# Stored in revoked token families.
_REASON = "found in public"


@dataclass(frozen=True, slots=True)
class Leak(StoredMap):
    """Where a secret was found: a kind of place, such as `commit`, and its public address, if they are known."""

    source: str
    url: Annotated[str | None, SPARSE] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakedKey(StoredItem):
    """A key that was revoked because its secret was found in public."""

    key_id: KeyId
    name: str
    start: str
    revoked_at: str
    leak: Annotated[Leak, FLAT]

    @property
    def key(self) -> Key:
        return keys.leaked_key(*self.key_id.location)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakedToken(StoredMap):
    """A sign-in that was revoked. client: the OAuth client of a device, or the index's name for another credential."""

    client: str
    leak: Annotated[Leak, FLAT]


def find_leaked_key(key_id: KeyId) -> LeakedKey | None:
    """Returns the record of a leaked key that was revoked in the last 90 days. Consistent."""
    return table.find(keys.leaked_key(*key_id.location), LeakedKey.from_item)


def revoke_key(digest: str, leak: Leak) -> bool:
    """Revokes the API key with that digest of its secret. Returns whether there was one.

    It ends its key, with a secret in a grace period. If it is itself one in a grace period, only that ends: the key
    has another one by now.
    """

    def attempt() -> bool:
        stored = table.get(keys.key_secret(digest))
        if stored is None:
            return False
        secret = KeySecretItem.from_item(stored)
        holder = table.get(keys.api_key(*(secret.successor or secret.key_id).location))
        if holder is None:
            raise WriteConflict  # it was deleted or rolled in between
        key, found = ApiKeyItem.from_item(holder), leak.to_map()
        if secret.successor is None:
            start, legs = key.start, deletion_legs(key)
            action, organization_id = Action.API_KEY_REVOKE_LEAKED, key.key_id.organization_id
            record = Recorded(action, organization_id, key.key_id, key.name, before=key.describe(), after=found)
        elif key.previous is None:
            raise WriteConflict  # it was ended in between
        else:
            start, legs = key.previous.start, end_of_grace_legs(key, key.previous)
            record = grace_record(key, key.previous, found)
        leaked = LeakedKey(key_id=secret.key_id, name=key.name, start=start, revoked_at=clock.timestamp(), leak=leak)
        legs |= {
            "leak": Put({**leaked.to_item(), **expiry(_KEPT_DAYS)}),
            "event": events.entry(secret.organization_id, "key.leaked", secret.key_id).leg,
        }
        table.transact_or_retry(legs, record)
        return True

    return retry_on_conflict(attempt, "the key")


def find_leaked_token(user_id: str, local: str) -> LeakedToken | None:
    """Returns the record of a leaked token that was revoked in the last 90 days. Consistent."""
    return table.find(keys.leaked_token(user_id, local), LeakedToken.from_item)


def revoke_token(secret: str, leak: Leak) -> bool:
    """Revokes an access token with its device, or a session. Returns whether it worked. Raises Throttled."""
    token = user_tokens.find_token(secret)
    if token is None or token.expires_at <= clock.now():
        return False
    if token.family_id is not None:
        return _revoke_family(token.family_id, leak)
    client = credential_index.PAGES if token.kind == "session" else credential_index.OPERATOR
    try:
        notice = _notice(token.user_id, client, leak)
        table.transact({**user_tokens.revocation(token), **notice}, Unrecorded.CREDENTIAL)
    except LegFailed:
        return False  # it was revoked in between
    return True


def revoke_refresh_token(secret: str, leak: Leak) -> bool:
    """Revokes the device of a refresh token, used or not. Returns whether the device had access. Raises Throttled."""
    family_id = tokens.family_of(secret)
    return family_id is not None and _revoke_family(family_id, leak)


def _revoke_family(family_id: str, leak: Leak) -> bool:
    def notice(family: TokenFamilyItem) -> dict[str, Leg]:
        return _notice(family.user_id, family.client_id, leak)

    return token_families.revoke(family_id, _REASON, notice)


def _notice(user_id: str, client: str, leak: Leak) -> dict[str, Leg]:
    """Returns the legs of the record for the person's email, and of the message, which has only IDs."""
    local = ids.new_local()
    leaked = LeakedToken(client=client, leak=leak).to_map()
    message = {"kind": KIND, "version": 1, "userId": user_id, "leak": local}
    return {
        "leak": Put({**keys.leaked_token(user_id, local)._asdict(), **leaked, **expiry(_KEPT_DAYS)}),
        "message": outbox.new_entry(events.QUEUE, message, after_seconds=0).leg,
    }
