"""The two items of an API key: the one that lists show, and the one that authenticates."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from controlplane.api_keys.restrictions import UNRESTRICTED, Restrictions
from controlplane.platform.core import clock
from controlplane.platform.core.ids import KeyId
from controlplane.platform.table import keys
from controlplane.platform.table.codec import present
from controlplane.platform.table.keys import Key


class PreviousSecret(NamedTuple):
    """The secret of the key that was rolled. It works until the grace period ends, in Unix seconds.

    key_id, start: of the key that was rolled. digest: locates the authenticating item, which is deleted later.
    """

    key_id: KeyId
    start: str
    digest: str
    until: int

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        return cls(KeyId.stored(item["keyId"]), item["start"], item["digest"], item["until"])

    def to_item(self) -> dict[str, Any]:
        return {"keyId": self.key_id, "start": self.start, "digest": self.digest, "until": self.until}

    @property
    def works(self) -> bool:
        return self.until > clock.now()

    @property
    def until_text(self) -> str:
        return clock.timestamp(self.until)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKeyItem:
    """A key as shown in lists. `digest` locates its authenticating item.

    revision: the number of changes since the key was created.
    previous: the secret of the key that this one replaced, if it was rolled with a grace period.
    """

    key_id: KeyId
    name: str
    start: str
    digest: str
    rate_limit: int
    created_at: str
    created_by: str
    created_from: str
    last_used_at: str | None = None
    description: str | None = None
    restrictions: Restrictions = UNRESTRICTED
    revision: int = 0
    previous: PreviousSecret | None = None

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
            **self.restrictions.to_item(),
            **present(
                description=self.description,
                revision=self.revision or None,
                previous=None if self.previous is None else self.previous.to_item(),
            ),
        }

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        key_id, previous = KeyId.stored(item["keyId"]), item.get("previous")
        return cls(
            key_id=key_id,
            name=item["name"],
            start=item["start"],
            digest=item["digest"],
            rate_limit=item["rateLimit"],
            created_at=item["createdAt"],
            created_by=item["createdBy"],
            created_from=item["createdFrom"],
            last_used_at=item["lastUsedAt"],
            description=item.get("description"),
            restrictions=Restrictions.from_item(item, key_id.organization_id),
            revision=item.get("revision", 0),
            previous=None if previous is None else PreviousSecret.from_item(previous),
        )

    @property
    def secret_keys(self) -> list[Key]:
        """The keys of the authenticating items, of which the second may not exist anymore."""
        return [keys.key_secret(it) for it in (self.digest, self.previous and self.previous.digest) if it]

    @property
    def working_secret_keys(self) -> list[Key]:
        """The keys of the authenticating items, without one whose grace period has ended."""
        return self.secret_keys[: 2 if self.working_previous else 1]

    @property
    def working_previous(self) -> PreviousSecret | None:
        """The previous secret, if its grace period hasn't ended."""
        return self.previous if self.previous is not None and self.previous.works else None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySecretItem:
    """A key's authenticating item, with copies of the organization's slug, name, and plan.

    rate_limit, win, hits: the limit per minute, the minute that is being counted, and its requests so far.
    used_hour: the hour since the epoch in which the key was last used.
    refused_for: a note of the organization's rate limit (`access.authentication`).
    restrictions: those of the key. The expiry is the end of the grace period if that is earlier.
    successor: the key that replaced this one, whose secret works until the end of a grace period.
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
    restrictions: Restrictions = UNRESTRICTED
    successor: KeyId | None = None

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
            restrictions=Restrictions.from_item(item, item["organizationId"]),
            successor=KeyId.stored(successor) if (successor := item.get("successor")) else None,
        )

    def to_item(self) -> dict[str, Any]:
        return {
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
            **self.restrictions.to_item(),
            **present(refusedFor=self.refused_for, successor=self.successor),
        }

    @property
    def key(self) -> Key:
        return keys.key_secret(self.digest)
