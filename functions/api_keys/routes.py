"""Routes of `api_keys`: list (at two paths), create, roll, and delete."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Path

from api_keys import service
from api_keys.schemas import ApiKey, CreatedKey, DeletedKey, KeyCreate, KeyMeta, RolledKey
from controlplane.core.settings import settings
from controlplane.http.access import Access, Requires
from controlplane.http.app import ControlRouter
from controlplane.http.envelope import Answer, Page
from controlplane.http.idempotency import IdempotencyKey, idempotent_secret
from controlplane.http.pagination import Cursor, CursorCodec, Limit
from controlplane.http.responses import refuses
from controlplane.store.api_keys import MintedKey
from controlplane.store.table import Leg

router = ControlRouter(tags=["API keys"])

ReadsKeys = Annotated[Access[None], Requires("api-keys.read", organization="query")]
WritesKeys = Annotated[Access[None], Requires("api-keys.write", role="admin", organization="query", user_token=True)]
KeyId = Annotated[str, Path(alias="keyId")]

_SECRET_HEADERS = {"Cache-Control": "no-store"}
_SHOWN = {"prefix": settings.service_brand, "field": "key"}


def _meta(item: dict[str, Any]) -> KeyMeta:
    return KeyMeta(created_by=item["createdBy"], created_from=item["createdFrom"], created_at=item["createdAt"])


def _created(minted: MintedKey) -> dict[str, Any]:
    item = minted.item
    return {
        "key_id": item["keyId"],
        "key": minted.secret,
        "name": item["name"],
        "start": item["start"],
        "created_at": item["createdAt"],
        "rate_limit": item["rateLimit"],
        "meta": _meta(item),
    }


@router.get("/v1/api-keys", operation_id="listApiKeys", summary="List API keys")
@router.get("/v1/auth/keys", operation_id="listAuthKeys", summary="List API keys (deprecated path)", deprecated=True)
async def list_keys(access: ReadsKeys, limit: Limit = 50, cursor: Cursor = None) -> Page[ApiKey]:
    """Lists the organization's API keys, newest first, without their secrets.

    `/v1/api-keys` and the deprecated `/v1/auth/keys` return the same list.
    """
    codec = CursorCodec(cursor, "listApiKeys", access.organization_id)
    page = service.list_keys(access.organization_id, limit, codec.after)
    items = [
        ApiKey(
            key_id=item["keyId"],
            name=item["name"],
            start=item["start"],
            created_at=item["createdAt"],
            last_used_at=item["lastUsedAt"],
            rate_limit=item["rateLimit"],
            meta=_meta(item),
        )
        for item in page.items
    ]
    return Page(items, codec.cursor(page.next_sk))


@router.post("/v1/api-keys", operation_id="createApiKey", summary="Create an API key", status_code=201)
@refuses(service.PlanHasNoApiAccess, service.KeyLimitReached)
async def create_key(access: WritesKeys, body: KeyCreate, idempotency_key: IdempotencyKey = None) -> Answer[CreatedKey]:
    """Creates an API key for the organization. The secret is returned only in this response.

    The key belongs to the organization and keeps working after its creator leaves. Its rate limit is set by the plan
    at creation and doesn't change with the plan. An organization can have up to 50 keys.
    """

    def create(legs: Mapping[str, Leg], secret: str) -> Answer[CreatedKey]:
        minted = service.create_key(access.organization_id, body.name, access.user_id, legs, secret)
        return Answer(CreatedKey(**_created(minted)), headers=_SECRET_HEADERS)

    return idempotent_secret(access, "createApiKey", idempotency_key, body, create, **_SHOWN)


@router.post("/v1/api-keys/{keyId}/roll", operation_id="rollApiKey", summary="Roll an API key")
@refuses(service.UnknownKey, service.PlanHasNoApiAccess)
async def roll_key(access: WritesKeys, key_id: KeyId, idempotency_key: IdempotencyKey = None) -> Answer[RolledKey]:
    """Replaces a key with a new one that has the same name and the current plan's rate limit. Takes no body.

    The old secret stops working immediately. The new secret is returned only in this response. Rolling also works if
    the organization has reached its limit of 50 keys.
    """

    def roll(legs: Mapping[str, Leg], secret: str) -> Answer[RolledKey]:
        minted = service.roll_key(access.organization_id, key_id, access.user_id, legs, secret)
        return Answer(RolledKey(**_created(minted), replaced_key_id=key_id), headers=_SECRET_HEADERS)

    return idempotent_secret(access, "rollApiKey", idempotency_key, {"keyId": key_id}, roll, **_SHOWN)


@router.delete("/v1/api-keys/{keyId}", operation_id="deleteApiKey", summary="Revoke an API key")
@refuses(service.UnknownKey)
async def delete_key(access: WritesKeys, key_id: KeyId) -> DeletedKey:
    """Revokes an API key. Its secret stops working immediately."""
    service.delete_key(access.organization_id, key_id, access.user_id)
    return DeletedKey(deleted=True)
