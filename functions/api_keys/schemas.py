"""Request and response models of `api_keys`."""

from typing import Annotated, Any, Self

from pydantic import Field

from controlplane.core.naming import Name
from controlplane.http.envelope import StrictWire, Wire
from controlplane.http.fields import OptionalTimestamp, Timestamp
from controlplane.store.api_key_items import ApiKeyItem
from controlplane.store.api_keys import MintedKey

KeyId = Annotated[str, Field(description="The key's ID.", examples=["key_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v"])]
KeyName = Annotated[str, Field(description="The key's display name.", examples=["Production deploys"])]
Start = Annotated[
    str, Field(description="The first characters of the secret, for identification.", examples=["assent_Ab3x"])
]
RateLimit = Annotated[int, Field(ge=0, examples=[1500])]
CreatedAt = Annotated[Timestamp, Field(description="The time the key was created.")]


class KeyCreate(StrictWire):
    """An API key to create. Unknown fields are rejected: every key has the same permissions and no expiry."""

    name: Name = Field(description="The key's display name. Trimmed.", examples=["Production deploys"])


class KeyRoll(StrictWire):
    """The body of a roll, which has no fields yet. Unknown fields are rejected."""


class KeyMeta(Wire):
    """The origin of a key, for attribution only. It grants no permissions."""

    created_by: str = Field(description="The user who created the key.", examples=["usr_5w1n8q2k7m3r9t4v"])
    created_from: str = Field(
        description="How the key was created: `api`, or `ops` if by the operator.", examples=["api"]
    )
    created_at: CreatedAt

    @classmethod
    def of(cls, key: ApiKeyItem) -> Self:
        return cls(created_by=key.created_by, created_from=key.created_from, created_at=key.created_at)


class ApiKey(Wire):
    """An API key in a list, without its secret."""

    key_id: KeyId
    name: KeyName
    start: Start
    created_at: CreatedAt
    last_used_at: OptionalTimestamp = Field(
        description="The last use, accurate to the hour. Null if the key was never used.",
        examples=["2026-03-04T06:00:00.000Z"],
    )
    rate_limit: RateLimit = Field(description="Requests per minute, set by the plan at creation.")
    meta: KeyMeta

    @classmethod
    def of(cls, key: ApiKeyItem) -> Self:
        return cls(
            key_id=key.key_id,
            name=key.name,
            start=key.start,
            created_at=key.created_at,
            last_used_at=key.last_used_at,
            rate_limit=key.rate_limit,
            meta=KeyMeta.of(key),
        )


class CreatedKey(Wire):
    """A new API key with its secret, which no other response includes."""

    key_id: KeyId
    key: str = Field(
        description="The secret. Send it as the bearer token. Save it now: it isn't stored and can't be shown again.",
        examples=["assent_…"],
    )
    name: KeyName
    start: Start
    created_at: CreatedAt
    rate_limit: RateLimit = Field(description="Requests per minute, set by the current plan.")
    meta: KeyMeta

    @classmethod
    def of(cls, minted: MintedKey, **more: Any) -> Self:
        key = minted.item
        return cls(
            key_id=key.key_id,
            key=minted.secret,
            name=key.name,
            start=key.start,
            created_at=key.created_at,
            rate_limit=key.rate_limit,
            meta=KeyMeta.of(key),
            **more,
        )


class RolledKey(CreatedKey):
    """A new API key that replaces another."""

    replaced_key_id: str = Field(
        description="The ID of the replaced key, which no longer works.",
        examples=["key_3f8k2m9q7r1s5t6v01hz9y8x7w6v5t4s3r"],
    )


class DeletedKey(Wire):
    """The result of revoking a key."""

    deleted: bool = Field(description="True: the secret no longer works.", examples=[True])
