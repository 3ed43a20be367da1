"""Routes of `api_keys`: list (at two paths), create, roll, and delete."""

from collections.abc import Mapping
from typing import Annotated

from fastapi import Path

from api_keys.schemas import ApiKey, CreatedKey, DeletedKey, KeyCreate, KeyRoll, RolledKey
from controlplane.core.settings import settings
from controlplane.http.access import Access, Requires
from controlplane.http.app import ControlRouter
from controlplane.http.envelope import Answer, Page
from controlplane.http.idempotency import IdempotencyKey, idempotent_secret
from controlplane.http.pagination import Cursor, CursorCodec, Limit
from controlplane.http.responses import refuses
from controlplane.rules.api_keys import own_key
from controlplane.store import api_keys
from controlplane.store.api_keys import KeyLimitReached, PlanHasNoApiAccess, UnknownKey
from controlplane.store.table import Leg

router = ControlRouter(tags=["API keys"])

ReadsKeys = Annotated[Access[None], Requires("api-keys.read", organization="query")]
WritesKeys = Annotated[Access[None], Requires("api-keys.write", role="admin", organization="query", user_token=True)]
PathKeyId = Annotated[str, Path(alias="keyId")]

_SECRET_HEADERS = {"Cache-Control": "no-store"}
_SECRET = {"prefix": settings.service_brand, "field": "key"}
_CREATED_FROM = "api"


@router.get("/v1/api-keys", operation_id="listApiKeys", summary="List API keys")
async def list_keys(access: ReadsKeys, limit: Limit = 50, cursor: Cursor = None) -> Page[ApiKey]:
    """Lists the organization's API keys, newest first, without their secrets."""
    return _list_keys("listApiKeys", access.organization_id, limit, cursor)


@router.get("/v1/auth/keys", operation_id="listAuthKeys", summary="List API keys (deprecated path)")
async def list_auth_keys(access: ReadsKeys, limit: Limit = 50, cursor: Cursor = None) -> Page[ApiKey]:
    """Returns the same list as `GET /v1/api-keys`, with its own cursors."""
    return _list_keys("listAuthKeys", access.organization_id, limit, cursor)


def _list_keys(operation: str, organization_id: str, limit: int, cursor: str | None) -> Page[ApiKey]:
    codec = CursorCodec(cursor, operation, organization_id)
    page = api_keys.list_keys(organization_id, limit, codec.after)
    return Page([ApiKey.of(key) for key in page.keys], codec.cursor(page.next_sk))


@router.post("/v1/api-keys", operation_id="createApiKey", summary="Create an API key", status_code=201)
@refuses(PlanHasNoApiAccess, KeyLimitReached)
async def create_key(access: WritesKeys, body: KeyCreate, idempotency_key: IdempotencyKey = None) -> Answer[CreatedKey]:
    """Creates an API key for the organization. The secret is returned only in this response.

    The key belongs to the organization and keeps working after its creator leaves. Its rate limit is set by the plan
    at creation and doesn't change with the plan. An organization can have up to 50 keys.
    """

    def create(legs: Mapping[str, Leg], secret: str) -> Answer[CreatedKey]:
        minted = api_keys.create_key(
            access.organization_id,
            body.name,
            access.user_id,
            _CREATED_FROM,
            admin_id=access.user_id,
            extra_legs=legs,
            secret=secret,
        )
        return Answer(CreatedKey.of(minted), headers=_SECRET_HEADERS)

    return idempotent_secret(access, "createApiKey", idempotency_key, body, create, **_SECRET)


@router.post("/v1/api-keys/{keyId}/roll", operation_id="rollApiKey", summary="Roll an API key")
@refuses(UnknownKey, PlanHasNoApiAccess)
async def roll_key(
    access: WritesKeys,
    key_id: PathKeyId,
    _body: KeyRoll | None = None,
    idempotency_key: IdempotencyKey = None,
) -> Answer[RolledKey]:
    """Replaces a key with a new one that has the same name and the current plan's rate limit. Needs no body.

    The old secret stops working immediately. The new secret is returned only in this response. Rolling also works if
    the organization has reached its limit of 50 keys.
    """

    def roll(legs: Mapping[str, Leg], secret: str) -> Answer[RolledKey]:
        minted = api_keys.roll_key(
            own_key(access.organization_id, key_id),
            access.user_id,
            _CREATED_FROM,
            admin_id=access.user_id,
            extra_legs=legs,
            secret=secret,
        )
        return Answer(RolledKey.of(minted, replaced_key_id=key_id), headers=_SECRET_HEADERS)

    return idempotent_secret(access, "rollApiKey", idempotency_key, {"keyId": key_id}, roll, **_SECRET)


@router.delete("/v1/api-keys/{keyId}", operation_id="deleteApiKey", summary="Revoke an API key")
@refuses(UnknownKey)
async def delete_key(access: WritesKeys, key_id: PathKeyId) -> DeletedKey:
    """Revokes an API key. Its secret stops working immediately."""
    api_keys.delete_key(own_key(access.organization_id, key_id), admin_id=access.user_id)
    return DeletedKey(deleted=True)
