"""Changes and revocations of API keys. Both items of a key, and a previous secret that still works, change together."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from controlplane.core.actions import Action
from controlplane.core.ids import KeyId
from controlplane.store import keys
from controlplane.store.api_key_items import ApiKeyItem, PreviousSecret
from controlplane.store.api_keys import UnknownKey, recorded, unchanged, write
from controlplane.store.key_restrictions import Restrictions
from controlplane.store.legs import set_expression
from controlplane.store.retry import WriteConflict, retry_on_conflict
from controlplane.store.table import Delete, Leg, LegFailed, Recorded, Update, table

_EXISTS = "attribute_exists(pk)"
_NO_LEGS: Mapping[str, Leg] = {}


def update_key(key_id: KeyId, change: Callable[[ApiKeyItem], ApiKeyItem], *, admin_id: str) -> ApiKeyItem:
    """Returns the changed key. It authenticates with the new restrictions after the commit.

    change: returns the changed key, and raises the errors of the caller. It gets the key again if another change came
    first. admin_id: see `api_keys.create_key`. Raises UnknownKey, Forbidden, and the errors of `change`.
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
            before=recorded(before),
            after=recorded(after),
        )
        try:
            write(record, admin_id, _NO_LEGS, legs)
        except LegFailed:
            raise WriteConflict from None  # changed, rolled, or deleted
        return after

    return retry_on_conflict(update, "the key")


def delete_key(key_id: KeyId, *, admin_id: str | None = None) -> None:
    """Deletes the key: its secret is rejected after the commit, and so is one in a grace period.

    `admin_id`: see `api_keys.create_key`. Raises UnknownKey, Forbidden.
    """
    key = _get(key_id)
    record = Recorded(Action.API_KEY_DELETE, key_id.organization_id, key_id, key.name, before=recorded(key))
    try:
        write(record, admin_id, _NO_LEGS, deletion_legs(key))
    except LegFailed as failure:
        if failure.leg != "key":
            raise
        raise UnknownKey from None


def deletion_legs(key: ApiKeyItem) -> dict[str, Leg]:
    """Returns the legs that delete the key with its secrets. The leg `key` fails if it doesn't exist."""
    secret, *previous = key.secret_keys
    ends: dict[str, Leg] = {"previous": Delete(previous[0])} if previous else {}
    count = "SET #keys = #keys - :one, #keyVersion = #keyVersion + :one"
    return {
        "key": Delete(keys.api_key(*key.key_id.location), _EXISTS),
        "secret": Delete(secret, _EXISTS),
        **ends,
        "organization": Update(keys.organization(key.key_id.organization_id), count, _EXISTS, {"one": 1}),
    }


def _get(key_id: KeyId) -> ApiKeyItem:
    item = table.get(keys.api_key(*key_id.location))
    if item is None:
        raise UnknownKey
    return ApiKeyItem.from_item(item)


def _shortened(key: ApiKeyItem) -> PreviousSecret | None:
    """Returns the previous secret, which never works longer than the key."""
    previous, expires_at = key.previous, key.restrictions.expires_at
    if previous is None or expires_at is None:
        return previous
    return previous._replace(until=min(previous.until, expires_at))


def _change(before: ApiKeyItem, after: ApiKeyItem) -> Update:
    """Returns the leg that writes what differs, and leaves the last use to concurrent requests."""
    old, new = before.to_item(), after.to_item()
    given = {name: value for name, value in new.items() if old.get(name) != value}
    removed = ", ".join(f"#{name}" for name in old if name not in new)
    change = set_expression(given) + (f" REMOVE {removed}" if removed else "")
    when, values = unchanged(before)
    return Update(keys.api_key(*before.key_id.location), change, when, {**given, **values})


def _restrict(digest: str, restrictions: Restrictions) -> Update:
    """Returns the leg that writes the restrictions. None of them is ever removed."""
    attributes = restrictions.to_item()
    return Update(keys.key_secret(digest), set_expression(attributes), _EXISTS, attributes)
