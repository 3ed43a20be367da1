"""What `api_keys` takes and answers."""

from pydantic import Field

from controlplane.envelope import Wire
from controlplane.naming import Name


class KeyCreate(Wire):
    """A key to mint."""

    name: Name = Field(
        description="What people call the key. Space around it is removed.", examples=["Production deploys"]
    )


class KeyMeta(Wire):
    """Where the key comes from. Attribution, no authority."""

    created_by: str = Field(description="Who minted the key.", examples=["usr_5w1n8q2k7m3r9t4v"])
    created_from: str = Field(description="Through what: `api`, or `ops` for the operator.", examples=["api"])
    created_at: str = Field(
        description="When it was minted.",
        examples=["2026-03-04T05:06:07.000Z"],
        json_schema_extra={"format": "date-time"},
    )


class ApiKey(Wire):
    """A key as lists show it, without its secret."""

    key_id: str = Field(description="The key's id.", examples=["key_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v"])
    name: str = Field(description="What people call the key.", examples=["Production deploys"])
    start: str = Field(description="The first characters of the secret, to recognise it by.", examples=["assent_Ab3x"])
    created_at: str = Field(
        description="When it was minted.",
        examples=["2026-03-04T05:06:07.000Z"],
        json_schema_extra={"format": "date-time"},
    )
    last_used_at: str | None = Field(
        description="The last use, right to the hour; null for a key never used.",
        examples=["2026-03-04T06:00:00.000Z"],
        json_schema_extra={"format": "date-time"},
    )
    rate_limit: int = Field(ge=0, description="Requests per minute, set by the plan at minting.", examples=[1500])
    meta: KeyMeta


class CreatedKey(Wire):
    """A new key with its secret, which no other answer shows again."""

    key_id: str = Field(description="The key's id.", examples=["key_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v"])
    key: str = Field(
        description="The secret: send it as the bearer token. Keep it now, it is not stored and not shown again.",
        examples=["assent_…"],
    )
    name: str = Field(description="What people call the key.", examples=["Production deploys"])
    start: str = Field(description="The first characters of the secret, to recognise it by.", examples=["assent_Ab3x"])
    created_at: str = Field(
        description="When it was minted.",
        examples=["2026-03-04T05:06:07.000Z"],
        json_schema_extra={"format": "date-time"},
    )
    rate_limit: int = Field(ge=0, description="Requests per minute, set by the current plan.", examples=[1500])
    meta: KeyMeta


class RolledKey(CreatedKey):
    """The new key in the place of another."""

    replaced_key_id: str = Field(
        description="The key that stopped working.", examples=["key_3f8k2m9q7r1s5t6v01hz9y8x7w6v5t4s3r"]
    )


class DeletedKey(Wire):
    """That a key is revoked."""

    deleted: bool = Field(description="True: its secret does not work any more.", examples=[True])
