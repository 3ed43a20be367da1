"""Request and response models of `api_keys`."""

from pydantic import Field

from controlplane.core.naming import Name
from controlplane.http.envelope import Wire


class KeyCreate(Wire):
    """An API key to create."""

    name: Name = Field(description="The key's display name. Trimmed.", examples=["Production deploys"])


class KeyMeta(Wire):
    """The origin of a key, for attribution only. It grants no permissions."""

    created_by: str = Field(description="The user who created the key.", examples=["usr_5w1n8q2k7m3r9t4v"])
    created_from: str = Field(
        description="How the key was created: `api`, or `ops` if by the operator.", examples=["api"]
    )
    created_at: str = Field(
        description="The time the key was created.",
        examples=["2026-03-04T05:06:07.000Z"],
        json_schema_extra={"format": "date-time"},
    )


class ApiKey(Wire):
    """An API key in a list, without its secret."""

    key_id: str = Field(description="The key's ID.", examples=["key_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v"])
    name: str = Field(description="The key's display name.", examples=["Production deploys"])
    start: str = Field(description="The first characters of the secret, for identification.", examples=["assent_Ab3x"])
    created_at: str = Field(
        description="The time the key was created.",
        examples=["2026-03-04T05:06:07.000Z"],
        json_schema_extra={"format": "date-time"},
    )
    last_used_at: str | None = Field(
        description="The last use, accurate to the hour. Null if the key was never used.",
        examples=["2026-03-04T06:00:00.000Z"],
        json_schema_extra={"format": "date-time"},
    )
    rate_limit: int = Field(ge=0, description="Requests per minute, set by the plan at creation.", examples=[1500])
    meta: KeyMeta


class CreatedKey(Wire):
    """A new API key with its secret, which no other response includes."""

    key_id: str = Field(description="The key's ID.", examples=["key_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v"])
    key: str = Field(
        description="The secret. Send it as the bearer token. Save it now: it isn't stored and can't be shown again.",
        examples=["assent_…"],
    )
    name: str = Field(description="The key's display name.", examples=["Production deploys"])
    start: str = Field(description="The first characters of the secret, for identification.", examples=["assent_Ab3x"])
    created_at: str = Field(
        description="The time the key was created.",
        examples=["2026-03-04T05:06:07.000Z"],
        json_schema_extra={"format": "date-time"},
    )
    rate_limit: int = Field(ge=0, description="Requests per minute, set by the current plan.", examples=[1500])
    meta: KeyMeta


class RolledKey(CreatedKey):
    """A new API key that replaces another."""

    replaced_key_id: str = Field(
        description="The ID of the replaced key, which no longer works.",
        examples=["key_3f8k2m9q7r1s5t6v01hz9y8x7w6v5t4s3r"],
    )


class DeletedKey(Wire):
    """The result of revoking a key."""

    deleted: bool = Field(description="True: the secret no longer works.", examples=[True])
