"""The two items of an API key: the one that lists show, and the one that authenticates."""

from collections.abc import Mapping
from typing import Any, Self

from controlplane.core.frozen import dataclass
from controlplane.core.ids import KeyId
from controlplane.store import keys
from controlplane.store.keys import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKeyItem:
    """A key as shown in lists. `digest` locates its authenticating item."""

    key_id: KeyId
    name: str
    start: str
    digest: str
    rate_limit: int
    created_at: str
    created_by: str
    created_from: str
    last_used_at: str | None = None

    def to_item(self) -> dict[str, Any]:
        return {
            **keys.api_key(*self.key_id.location)._asdict(),
            "keyId": self.key_id,
            "name": self.name,
            "start": self.start,
            "digest": self.digest,
            "rateLimit": self.rate_limit,
            "createdAt": self.created_at,
            "createdBy": self.created_by,
            "createdFrom": self.created_from,
            "lastUsedAt": self.last_used_at,
        }

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        return cls(
            key_id=KeyId.stored(item["keyId"]),
            name=item["name"],
            start=item["start"],
            digest=item["digest"],
            rate_limit=item["rateLimit"],
            created_at=item["createdAt"],
            created_by=item["createdBy"],
            created_from=item["createdFrom"],
            last_used_at=item["lastUsedAt"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySecretItem:
    """A key's authenticating item, with copies of the organization's slug, name, and plan.

    rate_limit, win, hits: the limit per minute, the minute that is being counted, and its requests so far.
    used_hour: the hour since the epoch in which the key was last used.
    refused_for: a note of the organization's rate limit (`store.credentials`).
    """

    digest: str
    key_id: KeyId
    organization_id: str
    slug: str
    name: str
    plan: str
    created_by: str
    rate_limit: int
    win: int = 0
    hits: int = 0
    used_hour: int = 0
    refused_for: str | None = None

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        return cls(
            digest=item["pk"].partition("#")[2],
            key_id=KeyId.stored(item["keyId"]),
            organization_id=item["organizationId"],
            slug=item["slug"],
            name=item["name"],
            plan=item["plan"],
            created_by=item["createdBy"],
            rate_limit=item["rateLimit"],
            win=item["win"],
            hits=item["hits"],
            used_hour=item["usedHour"],
            refused_for=item.get("refusedFor"),
        )

    def to_item(self) -> dict[str, Any]:
        item = {
            **self.key._asdict(),
            "keyId": self.key_id,
            "organizationId": self.organization_id,
            "slug": self.slug,
            "name": self.name,
            "plan": self.plan,
            "createdBy": self.created_by,
            "rateLimit": self.rate_limit,
            "win": self.win,
            "hits": self.hits,
            "usedHour": self.used_hour,
        }
        return item if self.refused_for is None else {**item, "refusedFor": self.refused_for}

    @property
    def key(self) -> Key:
        return keys.key_secret(self.digest)
