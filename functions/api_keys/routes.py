"""Routes of `api_keys`: list (at two paths), create, get, change, roll, delete, and receive reports of leaks."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from datetime import datetime
from functools import partial
from typing import Annotated, Any

from fastapi import Path, Response

from api_keys import leaks
from api_keys.schemas import ApiKey, CreatedKey, DeletedKey, KeyCreate, KeyRoll, KeyUpdate, PreviousSecret, RolledKey
from controlplane.access.access import Access, Requires, Resource
from controlplane.access.idempotency import IdempotencyKey, idempotent_secret
from controlplane.api_keys import changes as key_changes
from controlplane.api_keys import rules as key_rules
from controlplane.api_keys import store as api_keys
from controlplane.api_keys import usage as key_usage
from controlplane.api_keys.items import ApiKeyItem, KeyDraft, Restrictions
from controlplane.api_keys.store import KeyExpired, KeyLimitReached, PlanHasNoApiAccess, TooManyInGrace, UnknownKey
from controlplane.code_host.signed_requests import LeakReport, SignedBySecretScanning
from controlplane.platform.core.ids import KeyId
from controlplane.platform.core.settings import settings
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.envelope import Answer, Page
from controlplane.platform.http.pagination import Cursor, CursorCodec, Limit
from controlplane.platform.http.route import refuses
from controlplane.platform.table import keys
from controlplane.platform.table.table import Leg

router = ControlRouter(tags=["API keys"])

_KEY = Resource("keyId", KeyId, keys.api_key, ApiKeyItem.from_item)
ReadsKeys = Annotated[Access[None], Requires("api-keys.read", organization="query")]
WritesKeys = Annotated[Access[None], Requires("api-keys.write", role="admin", organization="query", user_token=True)]
ReadsKey = Annotated[Access[ApiKeyItem], Requires("api-keys.read", resource=_KEY)]
ChangesKey = Annotated[Access[ApiKeyItem], Requires("api-keys.write", role="admin", resource=_KEY, user_token=True)]
PathKeyId = Annotated[str, Path(alias="keyId")]

_SECRET_HEADERS = {"Cache-Control": "no-store"}
_SECRET = {"prefix": settings.service_brand, "field": "key"}
_CREATED_FROM = "api"
_RESTRICTIONS = {it.name for it in fields(Restrictions)}


@router.get("/v1/api-keys", summary="List API keys")
async def list_api_keys(access: ReadsKeys, limit: Limit = 50, cursor: Cursor = None) -> Page[ApiKey]:
    """Lists the organization's API keys, newest first, without their secrets."""
    return _list_keys("listApiKeys", access.organization_id, limit, cursor)


@router.get("/v1/auth/keys", summary="List API keys (deprecated path)")
async def list_auth_keys(access: ReadsKeys, limit: Limit = 50, cursor: Cursor = None) -> Page[ApiKey]:
    """Returns the same list as `GET /v1/api-keys`, with its own cursors."""
    return _list_keys("listAuthKeys", access.organization_id, limit, cursor)


def _list_keys(operation: str, organization_id: str, limit: int, cursor: str | None) -> Page[ApiKey]:
    codec = CursorCodec(cursor, operation, organization_id)
    page = api_keys.list_keys(organization_id, limit, codec.after)
    return Page(_with_uses(page.items), codec.cursor(page.next_sk))


def _with_uses(listed: list[ApiKeyItem]) -> list[ApiKey]:
    uses = key_usage.find_previous_uses(listed)
    return [ApiKey.of(key, uses) for key in listed]


@router.post("/v1/api-keys", summary="Create an API key", status_code=201)
@refuses(PlanHasNoApiAccess, KeyLimitReached)
async def create_api_key(
    access: WritesKeys, body: KeyCreate, idempotency_key: IdempotencyKey = None
) -> Answer[CreatedKey]:
    """Creates an API key for the organization. The secret is returned only in this response.

    The key belongs to the organization and keeps working after its creator leaves. Its rate limit is set by the plan
    at creation and doesn't change with the plan. An organization can have up to 50 keys.

    `scopes`, `projectIds`, `allowedIps`, and `expiresAt` limit what the key can do, to which projects, from where, and
    until when. A key without them has every scope that keys can have, in all projects, from everywhere, and doesn't
    expire. Limits can be made stricter later, but not wider.
    """
    draft = _read_draft(access.organization_id, body)

    def create(legs: Mapping[str, Leg], secret: str) -> Answer[CreatedKey]:
        minted = api_keys.create_key(
            access.organization_id,
            draft,
            access.user_id,
            _CREATED_FROM,
            admin_id=access.user_id,
            extra_legs=legs,
            secret=secret,
        )
        return Answer(CreatedKey.of(minted), headers=_SECRET_HEADERS)

    # A retry must repeat the fields that were given.
    payload = body.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return idempotent_secret(access, "createApiKey", idempotency_key, payload, create, **_SECRET)


def _read_draft(organization_id: str, body: KeyCreate) -> KeyDraft:
    """Converts the body to the new key. Raises InvalidPayload."""
    given = KeyCreate.model_fields
    return KeyDraft(**_read_texts(body, given), restrictions=Restrictions(**_read_limits(organization_id, body, given)))


def _read_texts(body: KeyCreate | KeyUpdate, given: Iterable[str]) -> dict[str, Any]:
    """Returns the given fields that aren't restrictions, with None for an empty text."""
    return {name: getattr(body, name) or None for name in given if name not in _RESTRICTIONS}


def _read_limits(organization_id: str, body: KeyCreate | KeyUpdate, given: Iterable[str]) -> dict[str, Any]:
    """Returns the restrictions among the given fields. Raises InvalidPayload."""
    read: dict[str, Callable[[Any], Any]] = {
        "scopes": key_rules.read_scopes,
        "allowed_ips": lambda networks: tuple(dict.fromkeys(networks)),
        "expires_at": lambda text: int(datetime.fromisoformat(text).timestamp()),
        "project_ids": partial(key_rules.read_projects, organization_id),
    }
    return {
        name: None if (value := getattr(body, name)) is None else read[name](value) for name in read if name in given
    }


@router.post("/v1/api-keys/{keyId}/roll", summary="Roll an API key")
@refuses(UnknownKey, PlanHasNoApiAccess, KeyExpired, TooManyInGrace)
async def roll_api_key(
    access: WritesKeys,
    key_id: PathKeyId,
    body: KeyRoll | None = None,
    idempotency_key: IdempotencyKey = None,
) -> Answer[RolledKey]:
    """Replaces a key with a new one that has the same name, limits, and the current plan's rate limit. Needs no body.

    The old secret stops working immediately, or with `gracePeriodSeconds` at the end of that time. Until then,
    responses to it have the headers `X-Key-Expires-At` and `X-Key-Replaced-By`, and `previous` shows when it was last
    used. Changing the new key, revoking it, or rolling it again applies to the old secret, too. To end the old secret
    alone, revoke the replaced key. The new secret is returned only in this response. Rolling also works if the
    organization has reached its limit of 50 keys. At most 20 keys can be in a grace period.
    """
    grace_seconds = body.grace_period_seconds if body is not None else 0

    def roll(legs: Mapping[str, Leg], secret: str) -> Answer[RolledKey]:
        minted = api_keys.roll_key(
            KeyId.parse_own(access.organization_id, key_id, UnknownKey),
            access.user_id,
            _CREATED_FROM,
            grace_seconds=grace_seconds,
            admin_id=access.user_id,
            extra_legs=legs,
            secret=secret,
        )
        rolled = RolledKey.of(minted, replaced_key_id=key_id, previous=PreviousSecret.of(minted.item))
        return Answer(rolled, headers=_SECRET_HEADERS)

    # Requests without a grace period are stored as they were before there was one.
    payload = {"keyId": key_id} | ({"gracePeriodSeconds": grace_seconds} if grace_seconds else {})
    return idempotent_secret(access, "rollApiKey", idempotency_key, payload, roll, **_SECRET)


@router.get("/v1/api-keys/{keyId}", summary="Get an API key")
async def get_api_key(access: ReadsKey) -> ApiKey:
    """Returns an API key, without its secret."""
    return _with_uses([access.resource])[0]


@router.patch("/v1/api-keys/{keyId}", summary="Change an API key")
@refuses(UnknownKey)
async def update_api_key(access: ChangesKey, body: KeyUpdate) -> ApiKey:
    """Changes the name or the description, or makes the key's limits stricter. It applies to the next request.

    Scopes, projects, and networks can be removed, and the expiry can be brought forward. A limit that the key doesn't
    have can be added. A change that would give the key more is rejected with 400: `details` lists the fields with the
    code `widens`. Create another key for that.
    """
    given, key_id = body.model_fields_set, access.resource.key_id
    texts, limits = _read_texts(body, given), _read_limits(key_id.organization_id, body, given)
    changed = key_changes.update_key(
        key_id, lambda key: key_rules.narrowed(key, texts, limits), admin_id=access.user_id
    )
    return _with_uses([changed])[0]


@router.delete("/v1/api-keys/{keyId}", summary="Revoke an API key")
@refuses(UnknownKey)
async def delete_api_key(access: WritesKeys, key_id: PathKeyId) -> DeletedKey:
    """Revokes an API key. Its secret stops working immediately, and so does one in a grace period.

    To end a grace period early, send the ID of the replaced key (`replacedKeyId`, `previous.keyId`). Its secret stops
    working immediately, and the key that replaced it isn't affected.
    """
    key_changes.delete_key(KeyId.parse_own(access.organization_id, key_id, UnknownKey), admin_id=access.user_id)
    return DeletedKey(deleted=True)


@router.post("/v1/github/leaked-keys", include_in_schema=False)
async def receive_leak_report(report: Annotated[LeakReport, SignedBySecretScanning()]) -> Response:
    """Revokes the keys and tokens of a report, and says which of the secrets were some. The format is GitHub's."""
    return Response(json.dumps(leaks.revoke_reported(report.body)), media_type="application/json")
