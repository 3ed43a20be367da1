"""Converts the bodies of `api_keys`. `controlplane.api_keys.rules` has the rules."""

from collections.abc import Callable, Iterable
from dataclasses import fields
from datetime import datetime
from functools import partial
from typing import Any

from api_keys.schemas import KeyCreate, KeyUpdate
from controlplane.api_keys import changes as key_changes
from controlplane.api_keys import rules
from controlplane.api_keys.items import ApiKeyItem, Restrictions
from controlplane.api_keys.store import KeyDraft
from controlplane.platform.core.errors import InvalidPayload
from controlplane.platform.core.ids import KeyId

_RESTRICTIONS = {it.name for it in fields(Restrictions)}


def read_draft(organization_id: str, body: KeyCreate) -> KeyDraft:
    """Converts the body to the new key. Raises InvalidPayload."""
    given = KeyCreate.model_fields
    return KeyDraft(**_read_texts(body, given), restrictions=Restrictions(**_read_limits(organization_id, body, given)))


def payload_of(body: KeyCreate) -> dict[str, Any]:
    """Returns the fields that a retry must repeat: those that were given."""
    return body.model_dump(mode="json", by_alias=True, exclude_unset=True)


def update_key(key_id: KeyId, body: KeyUpdate, admin_id: str) -> ApiKeyItem:
    """Applies the change and returns the key. Raises InvalidPayload, UnknownKey, Forbidden."""
    given = body.model_fields_set
    if not given:
        raise InvalidPayload.at([], "Name at least one thing to change.", "empty")
    texts, limits = _read_texts(body, given), _read_limits(key_id.organization_id, body, given)
    return key_changes.update_key(key_id, lambda key: rules.narrowed(key, texts, limits), admin_id=admin_id)


def _read_texts(body: KeyCreate | KeyUpdate, given: Iterable[str]) -> dict[str, Any]:
    """Returns the given fields that aren't restrictions, with None for an empty text."""
    return {name: getattr(body, name) or None for name in given if name not in _RESTRICTIONS}


def _read_limits(organization_id: str, body: KeyCreate | KeyUpdate, given: Iterable[str]) -> dict[str, Any]:
    """Returns the restrictions among the given fields. Raises InvalidPayload."""
    read: dict[str, Callable[[Any], Any]] = {
        "scopes": rules.read_scopes,
        "allowed_ips": rules.read_allowed_ips,
        "expires_at": lambda text: rules.read_expiry(datetime.fromisoformat(text).timestamp()),
        "project_ids": partial(rules.read_projects, organization_id),
    }
    return {
        name: None if (value := getattr(body, name)) is None else read[name](value) for name in read if name in given
    }
