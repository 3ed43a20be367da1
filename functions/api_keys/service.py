"""Converts the bodies of `api_keys`. `controlplane.api_keys.rules` has the rules."""

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from typing import Any, cast

from api_keys.schemas import KeyCreate, KeyUpdate
from controlplane.api_keys import changes as key_changes
from controlplane.api_keys import rules
from controlplane.api_keys.items import ApiKeyItem, Restrictions
from controlplane.api_keys.rules import Limits, Texts
from controlplane.api_keys.store import KeyDraft
from controlplane.platform.core.errors import InvalidPayload
from controlplane.platform.core.ids import KeyId


def read_draft(organization_id: str, body: KeyCreate) -> KeyDraft:
    """Converts the body to the new key. Raises InvalidPayload."""
    return KeyDraft(
        body.name, body.description or None, Restrictions(**_read_limits(organization_id, body, KeyCreate.model_fields))
    )


def payload_of(body: KeyCreate) -> dict[str, Any]:
    """Returns the fields that a retry must repeat: those that were given."""
    return body.model_dump(mode="json", by_alias=True, exclude_unset=True)


def update_key(key_id: KeyId, body: KeyUpdate, admin_id: str) -> ApiKeyItem:
    """Applies the change and returns the key. Raises InvalidPayload, UnknownKey, Forbidden."""
    given = body.model_fields_set
    if not given:
        raise InvalidPayload.at([], "Name at least one thing to change.", "empty")
    texts, limits = Texts(), _read_limits(key_id.organization_id, body, given)
    if "name" in given:
        texts["name"] = body.name
    if "description" in given:
        texts["description"] = body.description or None
    return key_changes.update_key(key_id, lambda key: rules.narrowed(key, texts, limits), admin_id=admin_id)


def _read_limits(organization_id: str, body: KeyCreate | KeyUpdate, given: Iterable[str]) -> Limits:
    """Returns the restrictions among the given fields. Raises InvalidPayload."""
    read: dict[str, Callable[[Any], Any]] = {
        "scopes": rules.read_scopes,
        "allowed_ips": rules.read_allowed_ips,
        "expires_at": lambda text: rules.read_expiry(datetime.fromisoformat(text).timestamp()),
        "project_ids": partial(rules.read_projects, organization_id),
    }
    found: Any = {
        name: None if (value := getattr(body, name)) is None else read[name](value) for name in read if name in given
    }
    return cast("Limits", found)
