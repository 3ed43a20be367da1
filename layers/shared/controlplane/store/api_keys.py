"""Organization API keys: at most 50 an organization, each secret live in exactly one item.

A key is two items: the one that authenticates (by the secret's hash) and the one lists show. Both are written in the
transaction that moves the organization's counter, so the counter is the number of keys under any interleaving. The
organization's plan stands on the authenticating item too; `keyVersion` moves with every change of the set of keys, so
that a change of plan which missed one is refused and looks again.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from controlplane import clock, ids, tokens
from controlplane.plans import API_KEYS_PER_ORGANIZATION, PLANS
from controlplane.settings import settings
from controlplane.store import keys
from controlplane.store.organizations import UnknownOrganization
from controlplane.store.table import Delete, Leg, LegFailed, Put, QueryPage, StoreError, Throttled, Update, table

_TRIES = 8
_NO_LEGS: Mapping[str, Leg] = {}


class KeyLimitReached(StoreError):
    """The organization has as many keys as it may."""


class PlanHasNoKeys(StoreError):
    """The organization's plan has no API access."""


class UnknownKey(StoreError):
    """No such key, or no longer."""


class MintedKey(NamedTuple):
    """A key and its secret, which is nowhere else from here on."""

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
    beside: Mapping[str, Leg] = _NO_LEGS,
    secret: str | None = None,
) -> MintedKey:
    """A new key with the rate limit of the current plan. Raises PlanHasNoKeys, KeyLimitReached.

    `secret` is what it is to be, where not a random one.
    `beside` are the caller's own conditions, first in the transaction: where one fails, LegFailed with its name.
    When the answer is lost on its way, a listed key remains whose secret nobody knows: it counts, and can be deleted
    or rolled.
    """
    for _ in range(_TRIES):
        organization = _with_api_access(table.get(keys.organization(organization_id)))
        minted, shown, authenticating = _mint(organization, name, secret, created_by, created_from)
        count = Update(
            keys.organization(organization_id),
            "SET #keys = #keys + :one, #keyVersion = #keyVersion + :one",
            # The cap decides here, and the plan must still be the one the key copies.
            "#keys < :cap AND #plan = :plan",
            {"one": 1, "cap": API_KEYS_PER_ORGANIZATION, "plan": organization["plan"]},
        )
        try:
            table.transact({**beside, "organization": count, "key": shown, "secret": authenticating})
        except LegFailed as refusal:
            if refusal.leg in beside:
                raise
            standing = refusal.items.get("organization")
            if standing is not None and standing["plan"] == organization["plan"]:
                raise KeyLimitReached from None
            continue  # the plan moved, or the random part of an id was taken: mint anew
        return minted
    raise Throttled("the plan keeps changing")


def roll_key(
    organization_id: str,
    key_id: str,
    rolled_by: str,
    created_from: str,
    *,
    beside: Mapping[str, Leg] = _NO_LEGS,
    secret: str | None = None,
) -> MintedKey:
    """A new key in the place of another, at the rate of the current plan. Raises UnknownKey, PlanHasNoKeys.

    The old secret dies in the same transaction. The counter stays, so rolling works at the cap. `beside` and `secret`
    as above.
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
            **beside,
            "organization": same_plan,
            "old": Delete(old_key, exists),
            "oldSecret": Delete(keys.key_secret(old["digest"]), exists),
            "key": shown,
            "secret": authenticating,
        }
        try:
            table.transact(legs)
        except LegFailed as refusal:
            if refusal.leg in beside:
                raise
            if "old" in refusal.items:
                raise UnknownKey from None
            continue  # as in create_key
        return minted
    raise Throttled("the plan keeps changing")


def delete_key(organization_id: str, key_id: str, beside: Mapping[str, Leg] = _NO_LEGS) -> None:
    """Revokes the key: its secret is refused from the commit on. Raises UnknownKey. `beside` as above."""
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
                **beside,
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
    """One page of the organization's keys, newest first."""
    return table.query(
        keys.organization_pk(organization_id), prefix=keys.KEY_PREFIX, newest_first=True, limit=limit, after=after
    )


def key_secrets(organization_id: str) -> Iterable[keys.Key]:
    """The authenticating items of all keys (50 at most); consistent, since a change of plan must miss none."""
    page = table.query(keys.organization_pk(organization_id), prefix=keys.KEY_PREFIX, consistent=True)
    return [keys.key_secret(item["digest"]) for item in page.items]
