"""Changes and revocations of API keys. Both items of a key, and a previous secret that still works, change together."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from controlplane.api_keys.items import ApiKeyItem, PreviousSecret, Restrictions
from controlplane.api_keys.store import UnknownKey, list_keys, unchanged, write
from controlplane.platform.core.actions import Action
from controlplane.platform.core.errors import known
from controlplane.platform.core.ids import KeyId
from controlplane.platform.core.plans import API_KEYS_PER_ORGANIZATION
from controlplane.platform.table import keys
from controlplane.platform.table.legs import set_expression
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.table import Delete, Leg, LegFailed, Recorded, Update, table

_EXISTS = "attribute_exists(pk)"
_NO_LEGS: Mapping[str, Leg] = {}
_NOTHING: Mapping[str, Any] = {}


def update_key(key_id: KeyId, change: Callable[[ApiKeyItem], ApiKeyItem], *, admin_id: str) -> ApiKeyItem:
    """Updates the key and returns it. Its new restrictions apply to every request after the commit.

    change: returns the changed key, or raises an error, which this function passes on. It is called again with the
    current key after a conflict. admin_id: see `api_keys.create_key`. Raises UnknownKey and RoleRequired.
    """

    def update() -> ApiKeyItem:
        before = _get(key_id)
        wanted = change(before)
        if wanted == before:
            return before
        after = replace(wanted, revision=before.revision + 1, previous=_shortened(wanted))
        legs: dict[str, Leg] = {"key": _change(before, after)}
        if after.restrictions != before.restrictions:
            legs["secret"] = _restrict(before.digest, after.restrictions)
            if (previous := after.working_previous) is not None:
                until = replace(after.restrictions, expires_at=previous.until)
                legs["previous"] = _restrict(previous.digest, until)
        record = Recorded(
            Action.API_KEY_UPDATE,
            key_id.organization_id,
            key_id,
            before.name,
            before=before.describe(),
            after=after.describe(),
        )
        try:
            write(record, admin_id, _NO_LEGS, legs)
        except LegFailed:
            raise WriteConflict from None  # changed, rolled, or deleted
        return after

    return retry_on_conflict(update, "the key")


def delete_key(key_id: KeyId, *, admin_id: str | None = None) -> KeyId | None:
    """Deletes the key: its secret is rejected after the commit, and so is one in a grace period.

    If the key was rolled and its secret is in a grace period, only that secret ends. Returns the key that replaced it,
    which goes on working, or None. `admin_id`: see `api_keys.create_key`. Raises UnknownKey, RoleRequired.
    """

    def delete() -> KeyId | None:
        item = table.get(keys.api_key(*key_id.location))
        if item is not None:
            key, successor = ApiKeyItem.from_item(item), None
            record = Recorded(Action.API_KEY_DELETE, key_id.organization_id, key_id, key.name, before=key.describe())
            legs = deletion_legs(key)
        else:
            key, previous = _successor_of(key_id)
            successor = key.key_id
            record = grace_record(key, previous)
            legs = end_of_grace_legs(key, previous)
        try:
            write(record, admin_id, _NO_LEGS, legs)
        except LegFailed:
            raise WriteConflict from None  # changed, rolled, or deleted
        return successor

    return retry_on_conflict(delete, "the key")


def deletion_legs(key: ApiKeyItem) -> dict[str, Leg]:
    """Returns the legs that delete the key with its secrets. The leg `key` fails if it doesn't exist."""
    secret, *previous = key.secret_keys
    ends: dict[str, Leg] = {"previous": Delete(previous[0])} if previous else {}
    count = "SET #keys = #keys - :one, #keyVersion = #keyVersion + :one"
    return {
        "key": Delete(key.key, _EXISTS),
        "secret": Delete(secret, _EXISTS),
        **ends,
        "organization": Update(keys.organization(key.key_id.organization_id), count, _EXISTS, {"one": 1}),
    }


def end_of_grace_legs(key: ApiKeyItem, previous: PreviousSecret) -> dict[str, Leg]:
    """Returns the legs that end the previous secret of the key. One fails if that has changed."""
    when, values = unchanged(key)
    values["revision"] = key.revision + 1
    ended, changed = "SET #revision = :revision REMOVE #previous", "SET #keyVersion = #keyVersion + :one"
    return {
        "key": Update(key.key, ended, when, values),
        "secret": Delete(keys.key_secret(previous.digest), _EXISTS),
        "organization": Update(keys.organization(key.key_id.organization_id), changed, _EXISTS, {"one": 1}),
    }


def grace_record(key: ApiKeyItem, previous: PreviousSecret, after: Mapping[str, Any] = _NOTHING) -> Recorded:
    """Returns the audit log's entry for the end of the key's previous secret."""
    action, before = Action.API_KEY_END_GRACE_PERIOD, {"worksUntil": previous.until_text}
    return Recorded(action, key.key_id.organization_id, key.key_id, key.name, before=before, after=after)


def _successor_of(rolled: KeyId) -> tuple[ApiKeyItem, PreviousSecret]:
    """Returns the key that replaced this one, with its secret, which still works. Consistent. Raises UnknownKey."""
    page = list_keys(rolled.organization_id, API_KEYS_PER_ORGANIZATION, None, consistent=True)
    for key in page.items:
        previous = key.working_previous
        if previous is not None and previous.key_id == rolled:
            return key, previous
    raise UnknownKey


def _get(key_id: KeyId) -> ApiKeyItem:
    return ApiKeyItem.from_item(known(table.get(keys.api_key(*key_id.location)), UnknownKey))


def _shortened(key: ApiKeyItem) -> PreviousSecret | None:
    """Returns the previous secret, which never works longer than the key."""
    previous, expires_at = key.previous, key.restrictions.expires_at
    if previous is None or expires_at is None:
        return previous
    return replace(previous, until=min(previous.until, expires_at))


def _change(before: ApiKeyItem, after: ApiKeyItem) -> Update:
    """Returns the leg that writes the changed attributes, and leaves the last use to concurrent requests."""
    old, new = before.to_item(), after.to_item()
    given = {name: value for name, value in new.items() if old.get(name) != value}
    removed = ", ".join(f"#{name}" for name in old if name not in new)
    change = set_expression(given) + (f" REMOVE {removed}" if removed else "")
    when, values = unchanged(before)
    return Update(before.key, change, when, {**given, **values})


def _restrict(digest: str, restrictions: Restrictions) -> Update:
    """Returns the leg that writes the restrictions. None of them is ever removed."""
    attributes = restrictions.to_map()
    return Update(keys.key_secret(digest), set_expression(attributes), _EXISTS, attributes)
