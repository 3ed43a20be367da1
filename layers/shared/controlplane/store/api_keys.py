"""Organization API keys: at most 50 per organization, and each secret is valid in exactly one item.

A key has two items: one that authenticates (by the secret's hash) and one for lists. Both are written in the
transaction that updates the organization's counter, so the counter always equals the number of keys. The
authenticating item also holds the organization's plan. `keyVersion` increases with every change to the set of keys, so
a plan change that missed a key fails and is retried.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from controlplane.core import clock, ids, tokens
from controlplane.core.plans import API_KEYS_PER_ORGANIZATION, PLANS
from controlplane.core.settings import settings
from controlplane.store import keys
from controlplane.store.organizations import UnknownOrganization
from controlplane.store.table import Delete, Leg, LegFailed, Put, QueryPage, StoreError, Throttled, Update, table

_TRIES = 8
_NO_LEGS: Mapping[str, Leg] = {}


class KeyLimitReached(StoreError):
    """The organization has reached its limit of keys."""


class PlanHasNoKeys(StoreError):
    """The organization's plan has no API access."""


class UnknownKey(StoreError):
    """The key doesn't exist, or was deleted."""


class MintedKey(NamedTuple):
    """A key and its secret. The secret is not stored anywhere."""

    item: dict[str, Any]
    secret: str


def _mint(
    organization: dict[str, Any], name: str, secret: str | None, created_by: str, created_from: str
) -> tuple[MintedKey, Put, Put]:
    organization_id = organization["organizationId"]
    local = ids.new_local()
    key_id = ids.owned(ids.KEY, organization_id, local)
    secret = secret or tokens.mint(settings.service_brand)
    rate_limit = PLANS[organization["plan"]].requests_per_minute
    shown = {
        **keys.api_key(organization_id, local)._asdict(),
        "keyId": key_id,
        "name": name,
        "start": tokens.start_of(secret),
        "digest": tokens.digest(secret),
        "rateLimit": rate_limit,
        "createdAt": clock.timestamp(),
        "createdBy": created_by,
        "createdFrom": created_from,
        "lastUsedAt": None,
    }
    authenticating = {
        **keys.key_secret(shown["digest"])._asdict(),
        "keyId": key_id,
        "organizationId": organization_id,
        "slug": organization["slug"],
        "name": organization["name"],
        "plan": organization["plan"],
        "createdBy": created_by,
        "rateLimit": rate_limit,
        "win": 0,
        "hits": 0,
        "usedHour": 0,
    }
    absent = "attribute_not_exists(pk)"
    return MintedKey(shown, secret), Put(shown, absent), Put(authenticating, absent)


def _with_api_access(organization: dict[str, Any] | None) -> dict[str, Any]:
    if organization is None:
        raise UnknownOrganization
    if not PLANS[organization["plan"]].api_access:
        raise PlanHasNoKeys
    return organization


def create_key(
    organization_id: str,
    name: str,
    created_by: str,
    created_from: str,
    *,
    extra_legs: Mapping[str, Leg] = _NO_LEGS,
    secret: str | None = None,
) -> MintedKey:
    """Returns a new key with the rate limit of the current plan.

    `secret` is used instead of a random one. The legs in `extra_legs` go first in the transaction.
    If the response is lost, the key remains listed and counted, but its secret is unknown. It can be deleted or rolled.
    Raises UnknownOrganization, PlanHasNoKeys, KeyLimitReached, and LegFailed if one of the caller's legs fails.
    """
    for _ in range(_TRIES):
        organization = _with_api_access(table.get(keys.organization(organization_id)))
        minted, shown, authenticating = _mint(organization, name, secret, created_by, created_from)
        count = Update(
            keys.organization(organization_id),
            "SET #keys = #keys + :one, #keyVersion = #keyVersion + :one",
            # Enforces the cap, and that the plan is still the one copied to the key.
            "#keys < :cap AND #plan = :plan",
            {"one": 1, "cap": API_KEYS_PER_ORGANIZATION, "plan": organization["plan"]},
        )
        try:
            table.transact({**extra_legs, "organization": count, "key": shown, "secret": authenticating})
        except LegFailed as refusal:
            if refusal.leg in extra_legs:
                raise
            standing = refusal.items.get("organization")
            if standing is not None and standing["plan"] == organization["plan"]:
                raise KeyLimitReached from None
            continue  # the plan changed, or the random part of an id was taken: retry with a new key
        return minted
    raise Throttled("the plan keeps changing")


def roll_key(
    organization_id: str,
    key_id: str,
    rolled_by: str,
    created_from: str,
    *,
    extra_legs: Mapping[str, Leg] = _NO_LEGS,
    secret: str | None = None,
) -> MintedKey:
    """Returns a new key that replaces another, with the rate limit of the current plan.

    The old secret is revoked in the same transaction. The counter doesn't change, so keys can be rolled at the cap.
    `extra_legs` and `secret`: see create_key. Raises UnknownOrganization, UnknownKey, PlanHasNoKeys.
    """
    located = ids.locate(ids.KEY, key_id)
    if located is None or located.organization_id != organization_id:
        raise UnknownKey
    old_key = keys.api_key(*located)
    for _ in range(_TRIES):
        found, old = table.batch_get([keys.organization(organization_id), old_key])
        organization = _with_api_access(found)
        if old is None:
            raise UnknownKey
        minted, shown, authenticating = _mint(organization, old["name"], secret, rolled_by, created_from)
        same_plan = Update(
            keys.organization(organization_id),
            "SET #keyVersion = #keyVersion + :one",
            "#plan = :plan",
            {"one": 1, "plan": organization["plan"]},
        )
        exists = "attribute_exists(pk)"
        legs: dict[str, Leg] = {
            **extra_legs,
            "organization": same_plan,
            "old": Delete(old_key, exists),
            "oldSecret": Delete(keys.key_secret(old["digest"]), exists),
            "key": shown,
            "secret": authenticating,
        }
        try:
            table.transact(legs)
        except LegFailed as refusal:
            if refusal.leg in extra_legs:
                raise
            if "old" in refusal.items:
                raise UnknownKey from None
            continue  # as in create_key
        return minted
    raise Throttled("the plan keeps changing")


def delete_key(organization_id: str, key_id: str, extra_legs: Mapping[str, Leg] = _NO_LEGS) -> None:
    """Deletes the key: its secret is rejected after the commit. Raises UnknownKey. `extra_legs`: see create_key."""
    located = ids.locate(ids.KEY, key_id)
    if located is None or located.organization_id != organization_id:
        raise UnknownKey
    key = keys.api_key(*located)
    item = table.get(key)
    if item is None:
        raise UnknownKey
    exists = "attribute_exists(pk)"
    count = Update(
        keys.organization(organization_id),
        "SET #keys = #keys - :one, #keyVersion = #keyVersion + :one",
        exists,
        {"one": 1},
    )
    try:
        table.transact(
            {
                **extra_legs,
                "key": Delete(key, exists),
                "secret": Delete(keys.key_secret(item["digest"]), exists),
                "organization": count,
            }
        )
    except LegFailed as refusal:
        if refusal.leg != "key":
            raise
        raise UnknownKey from None


def list_keys(organization_id: str, limit: int, after: str | None) -> QueryPage:
    """Returns one page of the organization's keys, newest first."""
    return table.query(
        keys.organization_pk(organization_id), prefix=keys.KEY_PREFIX, newest_first=True, limit=limit, after=after
    )


def key_secrets(organization_id: str) -> Iterable[keys.Key]:
    """Returns the keys of all authenticating items (at most 50). Consistent: a plan change must not miss one."""
    page = table.query(keys.organization_pk(organization_id), prefix=keys.KEY_PREFIX, consistent=True)
    return [keys.key_secret(item["digest"]) for item in page.items]
