"""API keys whose secrets were found in public: they are revoked, and a record is kept for the notifications.

A secret in a report is reason enough, so no admin's role is checked. The audit log names the service.
"""

from typing import Any, NamedTuple, Self

from controlplane.api_keys.changes import deletion_legs, end_of_grace_legs, grace_record
from controlplane.api_keys.items import ApiKeyItem, KeySecretItem
from controlplane.api_keys.store import recorded
from controlplane.platform.core import clock
from controlplane.platform.core.actions import Action
from controlplane.platform.core.clock import expiry
from controlplane.platform.core.ids import KeyId
from controlplane.platform.queues import events
from controlplane.platform.table import keys
from controlplane.platform.table.codec import present
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.table import LegFailed, Put, Recorded, table

_KEPT_DAYS = 90


class Leak(NamedTuple):
    """Where a secret was found: a kind of place, such as `commit`, and its public address, if they are known."""

    source: str
    url: str | None


class LeakedKey(NamedTuple):
    """A key that was revoked because its secret was found in public."""

    key_id: KeyId
    name: str
    start: str
    revoked_at: str
    leak: Leak

    @classmethod
    def from_item(cls, item: dict[str, Any]) -> Self:
        leak = Leak(item["source"], item.get("url"))
        return cls(KeyId.stored(item["keyId"]), item["name"], item["start"], item["revokedAt"], leak)

    def to_item(self) -> dict[str, Any]:
        return {
            **keys.leaked_key(*self.key_id.location)._asdict(),
            "keyId": self.key_id,
            "name": self.name,
            "start": self.start,
            "revokedAt": self.revoked_at,
            "source": self.leak.source,
            **present(url=self.leak.url),
            **expiry(_KEPT_DAYS),
        }


def find_leaked_key(key_id: KeyId) -> LeakedKey | None:
    """Returns the record of a leaked key that was revoked in the last 90 days. Consistent."""
    item = table.get(keys.leaked_key(*key_id.location))
    return LeakedKey.from_item(item) if item else None


def revoke(digest: str, leak: Leak) -> bool:
    """Revokes the secret with that digest, and returns whether it was one.

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
        key, found = ApiKeyItem.from_item(holder), {"source": leak.source, **present(url=leak.url)}
        if secret.successor is None:
            start, legs, record = key.start, deletion_legs(key), _record(key, found)
        elif key.previous is None:
            raise WriteConflict  # it was ended in between
        else:
            start, legs = key.previous.start, end_of_grace_legs(key, key.previous)
            record = grace_record(key, key.previous, found)
        known = LeakedKey(secret.key_id, key.name, start, clock.timestamp(), leak)
        organization_id = secret.organization_id
        legs |= {
            "leak": Put(known.to_item()),
            "event": events.entry(organization_id, "key.leaked", secret.key_id).leg,
        }
        try:
            table.transact(legs, record)
        except LegFailed:
            raise WriteConflict from None
        return True

    return retry_on_conflict(attempt, "the key")


def _record(key: ApiKeyItem, found: dict[str, Any]) -> Recorded:
    organization_id = key.key_id.organization_id
    return Recorded(
        Action.API_KEY_REVOKE_LEAKED, organization_id, key.key_id, key.name, before=recorded(key), after=found
    )
