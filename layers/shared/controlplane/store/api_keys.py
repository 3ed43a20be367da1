"""Organization API keys: at most 50 per organization, and each secret is valid in exactly one item.

A key has two items: one that authenticates (by the secret's hash) and one for lists. Both are written in the
transaction that updates the organization's counter, so the counter always equals the number of keys. The
authenticating item also holds the organization's plan. `keyVersion` increases with every change to the set of keys, so
a plan change that missed a key fails and is retried.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from controlplane.core import clock, ids, tokens
from controlplane.core.actions import Action
from controlplane.core.errors import ApiError, Forbidden, NotFound, PlanRequired, Remedy
from controlplane.core.ids import KeyId
from controlplane.core.plans import API_KEYS_PER_ORGANIZATION, PLANS
from controlplane.core.settings import settings
from controlplane.store import events, keys, organizations
from controlplane.store.api_key_items import ApiKeyItem, KeySecretItem
from controlplane.store.organization_items import OrganizationItem
from controlplane.store.organizations import UnknownOrganization
from controlplane.store.retry import WriteConflict, retry_on_conflict
from controlplane.store.table import Delete, Leg, LegFailed, Put, Recorded, Update, table

_EXISTS = "attribute_exists(pk)"
_ABSENT = "attribute_not_exists(pk)"
_NO_LEGS: Mapping[str, Leg] = {}


class KeyLimitReached(ApiError):
    code = "KEY_LIMIT_REACHED"
    message = f"The organization has {API_KEYS_PER_ORGANIZATION} API keys. Delete one first, or roll one."

    def __init__(self) -> None:
        super().__init__(details={"limit": API_KEYS_PER_ORGANIZATION}, remedy=Remedy("GET /v1/api-keys"))


class PlanHasNoApiAccess(PlanRequired):
    message = "The organization's plan doesn't include API access. Keys require the Starter plan or higher."


class UnknownKey(NotFound):
    message = "The organization has no such API key."


class KeyPage(NamedTuple):
    """Keys, newest first, and the sort key after which the next page starts (None on the last page)."""

    keys: list[ApiKeyItem]
    next_sk: str | None


class MintedKey(NamedTuple):
    """A key and its secret. The secret is not stored anywhere."""

    item: ApiKeyItem
    secret: str


def _mint(
    organization: OrganizationItem, name: str, secret: str | None, created_by: str, created_from: str
) -> tuple[MintedKey, dict[str, Leg]]:
    """Returns a new key, with the legs that store it."""
    organization_id = organization.organization_id
    secret = secret or tokens.mint(settings.service_brand)
    item = ApiKeyItem(
        key_id=KeyId.of(organization_id, ids.new_local()),
        name=name,
        start=tokens.start_of(secret),
        digest=tokens.digest(secret),
        rate_limit=PLANS[organization.plan].requests_per_minute,
        created_at=clock.timestamp(),
        created_by=created_by,
        created_from=created_from,
    )
    authenticating = KeySecretItem(
        digest=item.digest,
        key_id=item.key_id,
        organization_id=organization_id,
        slug=organization.slug,
        name=organization.name,
        plan=organization.plan,
        created_by=created_by,
        rate_limit=item.rate_limit,
    )
    legs: dict[str, Leg] = {
        "key": Put(item.to_item(), _ABSENT),
        "secret": Put(authenticating.to_item(), _ABSENT),
        "event": events.entry(organization_id, "key.created", item.key_id).leg,
    }
    return MintedKey(item, secret), legs


def _with_api_access(item: Mapping[str, Any] | None) -> OrganizationItem:
    """Returns the organization of the stored item. Raises UnknownOrganization, PlanHasNoApiAccess."""
    if item is None:
        raise UnknownOrganization
    organization = OrganizationItem.from_item(item)
    if not PLANS[organization.plan].api_access:
        raise PlanHasNoApiAccess
    return organization


def _write(record: Recorded, admin_id: str | None, extra_legs: Mapping[str, Leg], legs: Mapping[str, Leg]) -> None:
    """Writes the extra legs, a check of the admin's role, and the legs. Raises Forbidden, LegFailed."""
    if admin_id is not None:
        extra_legs = {**extra_legs, "caller": organizations.role_check(admin_id, record.organization_id, "admin")}
    try:
        table.transact({**extra_legs, **legs}, record)
    except LegFailed as failure:
        if failure.leg == "caller":
            raise Forbidden from None  # the role was lost after the request was authorized
        raise


def _creation(key: ApiKeyItem) -> Recorded:
    return Recorded(Action.API_KEY_CREATE, key.key_id.organization_id, key.key_id, key.name, after=_recorded(key))


def _recorded(key: ApiKeyItem) -> dict[str, Any]:
    return {"name": key.name, "rateLimit": key.rate_limit}


def create_key(
    organization_id: str,
    name: str,
    created_by: str,
    created_from: str,
    *,
    admin_id: str | None = None,
    extra_legs: Mapping[str, Leg] = _NO_LEGS,
    secret: str | None = None,
) -> MintedKey:
    """Returns a new key with the rate limit of the current plan.

    admin_id: the user who must be an admin at commit; None for the operator.
    extra_legs: go first in the transaction.
    secret: used instead of a random one.
    If the response is lost, the key remains listed and counted, but its secret is unknown. It can be deleted or rolled.
    Raises UnknownOrganization, PlanHasNoApiAccess, KeyLimitReached, Forbidden, and LegFailed if an extra leg fails.
    """

    def create() -> MintedKey:
        organization = _with_api_access(table.get(keys.organization(organization_id)))
        minted, key_legs = _mint(organization, name, secret, created_by, created_from)
        count = Update(
            keys.organization(organization_id),
            "SET #keys = #keys + :one, #keyVersion = #keyVersion + :one",
            # Enforces the cap, and that the plan is still the one copied to the key.
            "#keys < :cap AND #plan = :plan",
            {"one": 1, "cap": API_KEYS_PER_ORGANIZATION, "plan": organization.plan},
        )
        try:
            _write(_creation(minted.item), admin_id, extra_legs, {"organization": count, **key_legs})
        except LegFailed as failure:
            if failure.leg in extra_legs:
                raise
            existing = failure.items.get("organization")
            if existing is not None and existing["plan"] == organization.plan:
                raise KeyLimitReached from None
            # The plan changed, or the random part of an id was taken: retry with a new key.
            raise WriteConflict from None
        return minted

    return retry_on_conflict(create, "the plan")


def roll_key(
    key_id: KeyId,
    rolled_by: str,
    created_from: str,
    *,
    admin_id: str | None = None,
    extra_legs: Mapping[str, Leg] = _NO_LEGS,
    secret: str | None = None,
) -> MintedKey:
    """Returns a new key that replaces another, with the rate limit of the current plan.

    The old secret is revoked in the same transaction. The counter doesn't change, so keys can be rolled at the cap.
    For the parameters and other errors, see create_key. Raises UnknownKey.
    """
    organization_id, old_key = key_id.organization_id, keys.api_key(*key_id.location)

    def roll() -> MintedKey:
        found, old_item = table.batch_get([keys.organization(organization_id), old_key])
        organization = _with_api_access(found)
        if old_item is None:
            raise UnknownKey
        old = ApiKeyItem.from_item(old_item)
        minted, key_legs = _mint(organization, old.name, secret, rolled_by, created_from)
        legs: dict[str, Leg] = {
            "organization": Update(
                keys.organization(organization_id),
                "SET #keyVersion = #keyVersion + :one",
                "#plan = :plan",
                {"one": 1, "plan": organization.plan},
            ),
            "old": Delete(old_key, _EXISTS),
            "oldSecret": Delete(keys.key_secret(old.digest), _EXISTS),
            **key_legs,
        }
        successor = {"successor": minted.item.key_id}
        record = Recorded(
            Action.API_KEY_ROLL, organization_id, key_id, old.name, before=_recorded(old), after=successor
        )
        try:
            _write(record, admin_id, extra_legs, legs)
        except LegFailed as failure:
            if failure.leg in extra_legs:
                raise
            if "old" in failure.items:
                raise UnknownKey from None
            raise WriteConflict from None  # as in create_key
        return minted

    return retry_on_conflict(roll, "the plan")


def delete_key(key_id: KeyId, *, admin_id: str | None = None) -> None:
    """Deletes the key: its secret is rejected after the commit. `admin_id`: see create_key.

    Raises UnknownKey, Forbidden.
    """
    key = keys.api_key(*key_id.location)
    item = table.get(key)
    if item is None:
        raise UnknownKey
    stored = ApiKeyItem.from_item(item)
    legs: dict[str, Leg] = {
        "key": Delete(key, _EXISTS),
        "secret": Delete(keys.key_secret(stored.digest), _EXISTS),
        "organization": Update(
            keys.organization(key_id.organization_id),
            "SET #keys = #keys - :one, #keyVersion = #keyVersion + :one",
            _EXISTS,
            {"one": 1},
        ),
    }
    before = _recorded(stored)
    record = Recorded(Action.API_KEY_DELETE, key_id.organization_id, key_id, stored.name, before=before)
    try:
        _write(record, admin_id, _NO_LEGS, legs)
    except LegFailed as failure:
        if failure.leg != "key":
            raise
        raise UnknownKey from None


def get_key(key_id: KeyId) -> tuple[OrganizationItem, ApiKeyItem]:
    """Returns the key with its organization. Raises UnknownKey."""
    organization, item = table.batch_get([keys.organization(key_id.organization_id), keys.api_key(*key_id.location)])
    if organization is None or item is None:
        raise UnknownKey
    return OrganizationItem.from_item(organization), ApiKeyItem.from_item(item)


def list_keys(organization_id: str, limit: int, after: str | None, *, consistent: bool = False) -> KeyPage:
    """Returns one page, newest first. Works on every plan, so that keys can be listed and deleted after a downgrade."""
    page = table.query(
        keys.organization_pk(organization_id),
        prefix=keys.KEY_PREFIX,
        newest_first=True,
        limit=limit,
        after=after,
        consistent=consistent,
    )
    return KeyPage([ApiKeyItem.from_item(item) for item in page.items], page.next_sk)


def key_secrets(organization_id: str) -> Iterable[keys.Key]:
    """Returns the keys of all authenticating items (at most 50). Consistent: a plan change must not miss one."""
    page = table.query(keys.organization_pk(organization_id), prefix=keys.KEY_PREFIX, consistent=True)
    return [keys.key_secret(item["digest"]) for item in page.items]
