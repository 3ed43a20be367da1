"""Organization API keys: at most 50 per organization, and each secret is valid in exactly one item.

A key has two items: one that authenticates (by the secret's hash) and one for lists. Both are written in the
transaction that updates the organization's counter, so the counter always equals the number of keys. The
authenticating item also holds the organization's plan. `keyVersion` increases with every change to the set of secrets,
so a plan change that missed one fails and is retried.

A key that was rolled with a grace period isn't listed anymore, but its authenticating item is kept until then, and its
successor's item says where. `changes` changes and revokes keys.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

from controlplane.api_keys.items import ApiKeyItem, KeyDraft, KeySecretItem, PreviousSecret
from controlplane.organizations import store as organizations
from controlplane.organizations.items import OrganizationItem
from controlplane.organizations.store import UnknownOrganization
from controlplane.platform.core import clock, ids, tokens
from controlplane.platform.core.actions import Action
from controlplane.platform.core.errors import ApiError, Conflict, NotFound, PlanRequired, RoleRequired
from controlplane.platform.core.ids import KeyId
from controlplane.platform.core.plans import API_KEYS_PER_ORGANIZATION, KEYS_IN_GRACE_PER_ORGANIZATION, PLANS
from controlplane.platform.core.settings import settings
from controlplane.platform.queues import events
from controlplane.platform.table import keys
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.table import Delete, Leg, LegFailed, Put, QueryPage, Recorded, Update, table

_EXISTS = "attribute_exists(pk)"
_ABSENT = "attribute_not_exists(pk)"
_NO_LEGS: Mapping[str, Leg] = {}
# The table deletes the item of an old secret some time after its last second.
_KEPT_AFTER_GRACE_SECONDS = 86_400


class KeyLimitReached(ApiError):
    code = "KEY_LIMIT_REACHED"
    message = f"The organization has {API_KEYS_PER_ORGANIZATION} API keys. Delete one first, or roll one."
    fixed_details: ClassVar = {"limit": API_KEYS_PER_ORGANIZATION}


class PlanHasNoApiAccess(PlanRequired):
    message = (
        "The organization's plan doesn't include API access. Keys require the Starter plan or higher. "
        "Ask {operator} to change the plan."
    )


class TooManyInGrace(ApiError):
    code = "KEY_LIMIT_REACHED"
    message = (
        f"{KEYS_IN_GRACE_PER_ORGANIZATION} keys of the organization have been rolled and are in their grace periods. "
        "Revoke one of the replaced keys, wait until its grace period ends, or roll this key without one."
    )
    fixed_details: ClassVar = {"limit": KEYS_IN_GRACE_PER_ORGANIZATION}


class KeyExpired(Conflict):
    message = "The key has expired, and rolling keeps its expiry. Create a new key."


class UnknownKey(NotFound):
    message = "The organization has no such API key."


class MintedKey(NamedTuple):
    """A key and its secret. The secret is not stored anywhere."""

    item: ApiKeyItem
    secret: str


class FoundKey(NamedTuple):
    """A key and its organization, each None if it doesn't exist."""

    organization: OrganizationItem | None
    key: ApiKeyItem | None


def _mint(
    organization: OrganizationItem, draft: KeyDraft, secret: str | None, created_by: str, created_from: str
) -> MintedKey:
    """Returns a new key with the rate limit of the organization's plan, and its secret, by default a random one."""
    secret = secret or tokens.mint(settings.service_brand)
    item = ApiKeyItem(
        **draft._asdict(),
        key_id=KeyId.of(organization.organization_id, ids.new_local()),
        start=tokens.start_of(secret),
        digest=tokens.digest(secret),
        rate_limit=PLANS[organization.plan].requests_per_minute,
        created_at=clock.timestamp(),
        created_by=created_by,
        created_from=created_from,
    )
    return MintedKey(item, secret)


def _legs_of(organization: OrganizationItem, item: ApiKeyItem) -> dict[str, Leg]:
    """Returns the legs that store a new key."""
    authenticating = KeySecretItem(
        digest=item.digest,
        key_id=item.key_id,
        organization_id=organization.organization_id,
        slug=organization.slug,
        name=organization.name,
        plan=organization.plan,
        created_by=item.created_by,
        rate_limit=item.rate_limit,
        restrictions=item.restrictions,
    )
    return {
        "key": Put(item.to_item(), _ABSENT),
        "secret": Put(authenticating.to_item(), _ABSENT),
        "event": events.entry(organization.organization_id, "key.created", item.key_id).leg,
    }


def _with_api_access(organization: OrganizationItem | None) -> OrganizationItem:
    """Returns the organization. Raises UnknownOrganization, PlanHasNoApiAccess."""
    if organization is None:
        raise UnknownOrganization
    if not PLANS[organization.plan].api_access:
        raise PlanHasNoApiAccess
    return organization


def write(record: Recorded, admin_id: str | None, extra_legs: Mapping[str, Leg], legs: Mapping[str, Leg]) -> None:
    """Writes the extra legs, a check of the admin's role, and the legs. Raises RoleRequired, LegFailed."""
    if admin_id is not None:
        extra_legs = {**extra_legs, "caller": organizations.role_check(admin_id, record.organization_id, "admin")}
    # The role may be lost after the request was authorized.
    table.transact({**extra_legs, **legs}, record, {"caller": RoleRequired})


def _creation(key: ApiKeyItem) -> Recorded:
    return Recorded(Action.API_KEY_CREATE, key.key_id.organization_id, key.key_id, key.name, after=key.describe())


def create_key(
    organization_id: str,
    draft: str | KeyDraft,
    created_by: str,
    created_from: str,
    *,
    admin_id: str | None = None,
    extra_legs: Mapping[str, Leg] = _NO_LEGS,
    secret: str | None = None,
    known: OrganizationItem | None = None,
) -> MintedKey:
    """Returns a new key with the rate limit of the current plan.

    draft: what is decided about the key, or only its name.
    admin_id: the user who must be an admin at commit; None for the operator.
    extra_legs: go first in the transaction.
    secret: used instead of a random one.
    known: the organization as it was just read; None to read it.
    If the response is lost, the key remains listed and counted, but its secret is unknown. It can be deleted or rolled.
    Raises UnknownOrganization, PlanHasNoApiAccess, KeyLimitReached, RoleRequired, and LegFailed if an extra leg fails.
    """
    wanted = KeyDraft(draft) if isinstance(draft, str) else draft

    def create() -> MintedKey:
        nonlocal known
        organization = _with_api_access(known or organizations.find_organization(organization_id))
        known = None  # another attempt reads again
        minted = _mint(organization, wanted, secret, created_by, created_from)
        count = Update(
            keys.organization(organization_id),
            "SET #keys = #keys + :one, #keyVersion = #keyVersion + :one",
            # Enforces the cap, and that the plan is still the one copied to the key.
            "#keys < :cap AND #plan = :plan",
            {"one": 1, "cap": API_KEYS_PER_ORGANIZATION, "plan": organization.plan},
        )
        try:
            write(
                _creation(minted.item),
                admin_id,
                extra_legs,
                {"organization": count, **_legs_of(organization, minted.item)},
            )
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
    grace_seconds: int,
    admin_id: str | None = None,
    extra_legs: Mapping[str, Leg] = _NO_LEGS,
    secret: str | None = None,
    known: FoundKey | None = None,
) -> MintedKey:
    """Returns a new key that replaces another, with its restrictions and the rate limit of the current plan.

    grace_seconds: how long the old secret still works, but not beyond the key's expiry. 0: it is revoked in the same
    transaction. A secret that an earlier roll left working is revoked. The counter doesn't change, so keys can be
    rolled at the cap. known: what `find_key` has just returned. For the other parameters and errors, see create_key.
    Raises UnknownKey, KeyExpired, and TooManyInGrace.
    """
    organization_id = key_id.organization_id

    def roll() -> MintedKey:
        nonlocal known
        found, old = known or find_key(key_id)
        known = None  # another attempt reads again
        organization = _with_api_access(found)
        if old is None:
            raise UnknownKey
        if old.restrictions.has_expired:
            raise KeyExpired
        same, seen = "#plan = :plan", {"one": 1, "plan": organization.plan}
        if grace_seconds:
            _require_grace_left(key_id)
            same, seen = f"{same} AND #keyVersion = :seen", {**seen, "seen": organization.key_version}
        minted = _with_previous(_mint(organization, old.draft, secret, rolled_by, created_from), old, grace_seconds)
        change = Update(keys.organization(organization_id), "SET #keyVersion = #keyVersion + :one", same, seen)
        legs = {"organization": change, **_replacing(old, minted.item), **_legs_of(organization, minted.item)}
        after: dict[str, Any] = {"successor": minted.item.key_id}
        if (previous := minted.item.previous) is not None:
            after["worksUntil"] = previous.until_text
        record = Recorded(Action.API_KEY_ROLL, organization_id, key_id, old.name, before=old.describe(), after=after)
        try:
            write(record, admin_id, extra_legs, legs)
        except LegFailed as failure:
            if failure.leg in extra_legs:
                raise
            raise WriteConflict from None  # as in create_key, or the key was changed or deleted
        return minted

    return retry_on_conflict(roll, "the key or the plan")


def _require_grace_left(rolled: KeyId) -> None:
    """Raises TooManyInGrace if the limit of other keys in a grace period is reached. Consistent."""
    page = list_keys(rolled.organization_id, API_KEYS_PER_ORGANIZATION, None, consistent=True)
    others = sum(key.working_previous is not None and key.key_id != rolled for key in page.items)
    if others >= KEYS_IN_GRACE_PER_ORGANIZATION:
        raise TooManyInGrace


def _with_previous(minted: MintedKey, old: ApiKeyItem, grace_seconds: int) -> MintedKey:
    if not grace_seconds:
        return minted
    ends = [int(clock.now()) + grace_seconds, *filter(None, [old.restrictions.expires_at])]
    previous = PreviousSecret(key_id=old.key_id, start=old.start, digest=old.digest, until=min(ends))
    return minted._replace(item=replace(minted.item, previous=previous))


def _replacing(old: ApiKeyItem, new: ApiKeyItem) -> dict[str, Leg]:
    """Returns the legs that delete the old key, and let its secret work until the end of the grace period."""
    secret, *older = old.secret_keys
    legs: dict[str, Leg] = {"old": Delete(old.key, *unchanged(old))}
    if new.previous is None:
        legs["oldSecret"] = Delete(secret, _EXISTS)
    else:
        values: dict[str, Any] = {"until": new.previous.until, "successor": new.key_id}
        values["expires"] = new.previous.until + _KEPT_AFTER_GRACE_SECONDS
        change = "SET #validUntil = :until, #successor = :successor, #expiresAt = :expires"
        # The count until now. A later one is a use of the old secret (`key_usage`).
        change += ", #rolledWin = #win, #rolledHits = #hits"
        legs["oldSecret"] = Update(secret, change, _EXISTS, values)
    if older:
        legs["olderSecret"] = Delete(older[0])
    return legs


def unchanged(key: ApiKeyItem) -> tuple[str, dict[str, Any]]:
    """Returns the condition that the key exists and wasn't changed since it was read, and its values."""
    if not key.revision:
        return f"{_EXISTS} AND attribute_not_exists(#revision)", {}
    return "#revision = :seen", {"seen": key.revision}


def find_key(key_id: KeyId) -> FoundKey:
    """Returns the key with its organization. Consistent."""
    organization, item = table.batch_get([keys.organization(key_id.organization_id), keys.api_key(*key_id.location)])
    return FoundKey(
        OrganizationItem.from_item(organization) if organization else None, ApiKeyItem.from_item(item) if item else None
    )


def get_key(key_id: KeyId) -> tuple[OrganizationItem, ApiKeyItem]:
    """Returns the key with its organization. Raises UnknownKey."""
    organization, key = find_key(key_id)
    if organization is None or key is None:
        raise UnknownKey
    return organization, key


def list_keys(
    organization_id: str, limit: int, after: str | None, *, consistent: bool = False
) -> QueryPage[ApiKeyItem]:
    """Returns one page, newest first. Works on every plan, so that keys can be listed and deleted after a downgrade."""
    return table.query(
        keys.organization_pk(organization_id),
        prefix=keys.KEY_PREFIX,
        newest_first=True,
        limit=limit,
        after=after,
        consistent=consistent,
    ).read(ApiKeyItem.from_item)


def key_secrets(organization_id: str) -> Iterable[keys.Key]:
    """Returns the keys of all authenticating items (at most 70). Consistent: a plan change must not miss one."""
    page = list_keys(organization_id, API_KEYS_PER_ORGANIZATION, None, consistent=True)
    return [secret for key in page.items for secret in key.working_secret_keys]
