"""Request and response models of `api_keys`."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import Field

from controlplane.api_keys.items import ApiKeyItem
from controlplane.api_keys.rules import (
    LONGEST_DESCRIPTION,
    LONGEST_GRACE_SECONDS,
    MOST_NETWORKS,
    MOST_PROJECTS,
    read_expiry,
    read_network,
)
from controlplane.api_keys.store import MintedKey
from controlplane.platform.core.naming import Name
from controlplane.platform.core.scopes import API_KEY_SCOPES, KeyScope
from controlplane.platform.http.envelope import Changes, StrictWire, Wire
from controlplane.platform.http.fields import OptionalTimestamp, Time, Timestamp, WholeNumber
from controlplane.platform.http.validation import checked

KeyId = Annotated[str, Field(description="The key's ID.", examples=["key_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v"])]
KeyName = Annotated[str, Field(description="The key's display name.", examples=["Production deploys"])]
Start = Annotated[
    str, Field(description="The first characters of the secret, for identification.", examples=["assent_Ab3x"])
]
RateLimit = Annotated[int, Field(ge=0, examples=[1500])]
CreatedAt = Annotated[Timestamp, Field(description="The time the key was created.")]


def _require_future(text: str) -> str:
    read_expiry(datetime.fromisoformat(text).timestamp())
    return text


Description = Annotated[
    str, Field(max_length=LONGEST_DESCRIPTION, description="What the key is for.", examples=["Publishes releases."])
]
Scopes = Annotated[
    list[KeyScope],
    Field(
        min_length=1,
        max_length=len(API_KEY_SCOPES),
        description="The scopes that the key has. Without them, it has all that an API key can have.",
        examples=[["inbox.read", "projects.read"]],
    ),
]
ProjectIds = Annotated[
    list[str],
    Field(
        min_length=1,
        max_length=MOST_PROJECTS,
        description="The projects that the key is limited to. For the key, others don't exist, and operations that "
        "concern all projects are rejected with 403.",
        examples=[["prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"]],
    ),
]
AllowedIps = Annotated[
    list[Annotated[str, checked(read_network)]],
    Field(
        min_length=1,
        max_length=MOST_NETWORKS,
        description="The addresses and networks (CIDR) that the key accepts requests from. Others get 403.",
        examples=[["203.0.113.0/24", "2001:db8::/32"]],
    ),
]
ExpiresAt = Annotated[
    Time,
    checked(_require_future),
    Field(
        description="The time from which the key is rejected with 401. Fractions of a second are dropped.",
        examples=["2027-01-01T00:00:00Z"],
    ),
]


class KeyCreate(StrictWire):
    """An API key to create. Unknown fields are rejected: an ignored restriction would give more than was asked for."""

    name: Name = Field(description="The key's display name. Trimmed.", examples=["Production deploys"])
    description: Description | None = None
    scopes: Scopes | None = None
    project_ids: ProjectIds | None = None
    allowed_ips: AllowedIps | None = None
    expires_at: ExpiresAt | None = None


class KeyUpdate(StrictWire, Changes):
    """The fields to change. Omitted fields stay as they are. A restriction can be added or made stricter."""

    name: Name = Field(default_factory=str, description="The key's display name. Trimmed.", examples=["Deploys"])
    description: Description | None = None
    scopes: Scopes | None = Field(None, description="The scopes that the key keeps.")
    project_ids: ProjectIds | None = Field(None, description="The projects that the key stays limited to.")
    allowed_ips: AllowedIps | None = Field(None, description="The networks that the key still accepts.")
    expires_at: ExpiresAt | None = Field(None, description="An earlier time from which the key is rejected.")


class KeyRoll(StrictWire):
    """How to roll a key. Unknown fields are rejected."""

    grace_period_seconds: WholeNumber = Field(
        0,
        ge=0,
        le=LONGEST_GRACE_SECONDS,
        description="How long the old secret still works, in seconds. At most 7 days, and not beyond the expiry.",
        examples=[86_400],
    )


class KeyMeta(Wire):
    """The origin of a key, for attribution only. It grants no permissions."""

    created_by: str = Field(description="The user who created the key.", examples=["usr_5w1n8q2k7m3r9t4v"])
    created_from: str = Field(
        description="Where the key was created: `api`, `dashboard`, or `operator`.", examples=["api"]
    )
    created_at: CreatedAt


class PreviousSecret(Wire):
    """The secret of the key that was rolled, in its grace period."""

    key_id: KeyId = Field(description="The ID of the key that was rolled.")
    start: Start
    expires_at: Timestamp = Field(description="The end of the grace period, from which the secret is rejected.")
    last_used_at: OptionalTimestamp = Field(
        description="The last use of the old secret since the roll, accurate to the minute.", examples=[None]
    )

    @classmethod
    def of(cls, key: ApiKeyItem, last_used_at: str | None = None) -> Self | None:
        previous = key.working_previous
        if previous is None:
            return None
        return cls.showing(previous, expires_at=previous.until_text, last_used_at=last_used_at)


class _Key(Wire):
    """The fields that every response with a key has."""

    key_id: KeyId
    name: KeyName
    start: Start
    created_at: CreatedAt
    rate_limit: RateLimit = Field(description="Requests per minute, set by the plan at creation.")
    meta: KeyMeta
    description: str | None = Field(description="What the key is for.", examples=["Publishes releases."])
    scopes: list[str] = Field(description="The key's scopes, sorted.", examples=[["inbox.read", "projects.read"]])
    project_ids: list[str] | None = Field(
        description="The projects that the key is limited to. Null: all.",
        examples=[["prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"]],
    )
    allowed_ips: list[str] | None = Field(
        description="The networks (CIDR) that the key accepts requests from. Null: all.",
        examples=[["203.0.113.0/24", "2001:db8::/32"]],
    )
    expires_at: OptionalTimestamp = Field(
        description="The time from which the key is rejected. Null: it doesn't expire.",
        examples=["2027-01-01T00:00:00.000Z"],
    )


def _show[K: _Key](kind: type[K], item: ApiKeyItem, **more: Any) -> K:
    limits = item.restrictions
    return kind.showing(
        item,
        meta=item,
        scopes=limits.scopes or API_KEY_SCOPES,
        project_ids=limits.project_ids,
        allowed_ips=limits.allowed_ips,
        expires_at=limits.expires_at_text,
        **more,
    )


class ApiKey(_Key):
    """An API key, without its secret."""

    last_used_at: OptionalTimestamp = Field(
        description="The last use, accurate to the hour. Null if the key was never used.",
        examples=["2026-03-04T06:00:00.000Z"],
    )
    previous: PreviousSecret | None = Field(
        description="The secret of the key that was rolled, while it still works. Null: the key has no other."
    )

    @classmethod
    def of(cls, key: ApiKeyItem, previous_uses: Mapping[str, str]) -> Self:
        """previous_uses: of `key_usage.find_previous_uses`."""
        previous = PreviousSecret.of(key, previous_uses.get(key.key_id))
        return _show(cls, key, previous=previous)


class CreatedKey(_Key):
    """A new API key with its secret, which no other response includes."""

    key: str = Field(
        description="The secret. Send it as the bearer token. Save it now: it isn't stored and can't be shown again.",
        examples=["assent_…"],
    )

    @classmethod
    def of(cls, minted: MintedKey, **more: Any) -> Self:
        return _show(cls, minted.item, key=minted.secret, **more)


class RolledKey(CreatedKey):
    """A new API key that replaces another."""

    replaced_key_id: str = Field(
        description="The ID of the replaced key. Its secret works only in the grace period, if there is one.",
        examples=["key_3f8k2m9q7r1s5t6v01hz9y8x7w6v5t4s3r"],
    )
    previous: PreviousSecret | None = Field(
        description="The secret of the replaced key, if it still works. Null: it was revoked."
    )


class DeletedKey(Wire):
    """The result of revoking a key."""

    deleted: bool = Field(description="True: the secret no longer works.")
