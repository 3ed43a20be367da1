"""Plan and credits of an organization. Every balance change has a ledger entry; the balance is their sum.

`charges` has the legs that charge for a scan.
"""

from dataclasses import replace
from typing import Any, Literal, NamedTuple

from controlplane.api_keys import store as api_keys
from controlplane.organizations.items import BillingItem, LedgerItem, OrganizationItem, TopUpItem
from controlplane.organizations.store import UnknownOrganization, find_organization
from controlplane.platform.core import clock, ids
from controlplane.platform.core.actions import Action
from controlplane.platform.core.errors import known
from controlplane.platform.core.plans import PLANS
from controlplane.platform.table import keys
from controlplane.platform.table.parallel import read_each
from controlplane.platform.table.retry import retry_on_conflict
from controlplane.platform.table.table import Leg, LegFailed, Recorded, StoreError, Update, table

Limit = Literal["apiKeys", "projects"]
# For each of `keys.LEDGER_PREFIXES`, the sort key of the last entry that was shown.
type LedgerPosition = tuple[str | None, ...]
FIRST_PAGE: LedgerPosition = (None,) * len(keys.LEDGER_PREFIXES)


class Exceeded(NamedTuple):
    """A limit of the plan that the organization exceeds, after a change to a smaller plan."""

    limit: Limit
    current: int
    maximum: int


class LedgerPage(NamedTuple):
    """Entries of a ledger, the latest first, and the position of the next page (None on the last page)."""

    entries: list[LedgerItem]
    next_position: LedgerPosition | None


class NotEnoughCredits(StoreError):
    """The balance would fall below zero."""


def get_billing(organization_id: str) -> tuple[OrganizationItem, BillingItem]:
    """Returns the organization and its billing item, in one round trip. Raises UnknownOrganization."""
    organization, billing = table.batch_get([keys.organization(organization_id), keys.billing(organization_id)])
    if organization is None or billing is None:
        raise UnknownOrganization
    return OrganizationItem.from_item(organization), BillingItem.from_item(billing)


def list_exceeded(organization: OrganizationItem) -> list[Exceeded]:
    """Returns the exceeded limits. Items beyond a limit stay readable, but no more can be created."""
    plan = PLANS[organization.plan]
    limits = [
        Exceeded("apiKeys", organization.keys, plan.api_keys),
        Exceeded("projects", organization.projects, plan.projects),
    ]
    return [it for it in limits if it.current > it.maximum]


def change_plan(organization_id: str, plan: str) -> None:
    """Moves the organization and all of its keys to the plan in one transaction. Raises UnknownOrganization.

    If the plan has no API access, keys are rejected after the commit. They are not deleted, and work again after an
    upgrade. Each key keeps the rate limit it was created with.
    """
    if plan not in PLANS:
        raise ValueError(f"there is no plan {plan}")

    def change() -> None:
        organization = known(find_organization(organization_id), UnknownOrganization)
        legs = {
            "organization": Update(
                keys.organization(organization_id),
                "SET #plan = :plan",
                "#keyVersion = :seen AND #plan = :former",
                {"plan": plan, "seen": organization.key_version, "former": organization.plan},
            )
        }
        for number, secret in enumerate(api_keys.key_secrets(organization_id)):
            legs[f"key{number}"] = Update(secret, "SET #plan = :plan", "attribute_exists(pk)", {"plan": plan})
        record = Recorded(
            Action.ORGANIZATION_CHANGE_PLAN,
            organization_id,
            organization_id,
            organization.name,
            before={"plan": organization.plan},
            after={"plan": plan},
        )
        # Fails if the plan was changed, or a key was added or removed, concurrently.
        table.transact_or_retry(legs, record)

    retry_on_conflict(change, "the set of keys")


def add_credits(organization_id: str, amount: int) -> int:
    """Adds credits (removes them if negative) and returns the balance. Raises UnknownOrganization, NotEnoughCredits.

    Not idempotent: if the response is lost, read the balance before retrying.
    """
    key = keys.ledger_entry(organization_id, ids.new_local())
    entry = LedgerItem(key=key, kind="operator", credits=amount, at=clock.timestamp())
    try:
        legs: dict[str, Leg] = {
            "billing": Update(
                keys.billing(organization_id),
                "SET #credits = #credits + :amount",
                "#credits >= :least",
                {"amount": amount, "least": max(0, -amount)},
            ),
            "ledger": entry.leg,
        }
        table.transact(
            legs, Recorded(Action.BILLING_ADD_CREDITS, organization_id, organization_id, after={"added": amount})
        )
    except LegFailed as failure:
        if failure.leg != "billing":
            raise
        raise (UnknownOrganization if failure.item is None else NotEnoughCredits) from None
    _, billing = get_billing(organization_id)
    return billing.credits


def enable_top_up(organization_id: str, *, threshold: int, amount: int, monthly_limit: int) -> BillingItem:
    """Sets and enables the automatic top-up, and returns the billing item. Raises UnknownOrganization.

    The top-ups of the current month still count toward the new limit.
    """
    settings = {"enabled": True, "threshold": threshold, "amount": amount, "monthlyLimit": monthly_limit}
    return _change_top_up(organization_id, settings)


def disable_top_up(organization_id: str) -> BillingItem:
    """Disables the automatic top-up, keeping its settings, and returns the billing item. Raises UnknownOrganization."""
    return _change_top_up(organization_id, {"enabled": False})


def _change_top_up(organization_id: str, settings: dict[str, Any]) -> BillingItem:
    def change() -> BillingItem:
        _, billing = get_billing(organization_id)
        before = billing.top_up.to_map()
        after = {**before, **settings}
        if after == before:
            return billing
        update = Update(
            keys.billing(organization_id), "SET #topUp = :topUp", "#topUp = :seen", {"topUp": after, "seen": before}
        )
        record = Recorded(Action.BILLING_CHANGE_TOP_UP, organization_id, organization_id, before=before, after=after)
        table.transact_or_retry({"billing": update}, record)
        return replace(billing, top_up=TopUpItem.from_item(after))

    return retry_on_conflict(change, "the top-up")


def list_latest_ledger(organization_id: str, limit: int, after: LedgerPosition = FIRST_PAGE) -> LedgerPage:
    """Returns a page of the ledger, the latest entry first. Each entry is on one page.

    The kinds of entries are read at the same time, at most `limit` of each, and merged by time.
    """

    def read(kind: int) -> list[LedgerItem]:
        page = table.query(
            keys.organization_pk(organization_id),
            prefix=keys.LEDGER_PREFIXES[kind],
            newest_first=True,
            limit=limit + 1,
            after=after[kind],
            consistent=True,
        )
        return [LedgerItem.from_item(item) for item in page.items]

    streams = read_each(read, range(len(keys.LEDGER_PREFIXES)))
    taken, position = [0] * len(streams), list(after)
    entries: list[LedgerItem] = []
    while len(entries) < limit:
        left = [kind for kind, stream in enumerate(streams) if taken[kind] < len(stream)]
        if not left:
            break
        latest = max(left, key=lambda kind: streams[kind][taken[kind]].at)
        entry = streams[latest][taken[latest]]
        entries.append(entry)
        taken[latest] += 1
        position[latest] = entry.key.sk
    has_more = any(taken[kind] < len(stream) for kind, stream in enumerate(streams))
    return LedgerPage(entries, tuple(position) if has_more else None)


def list_ledger(organization_id: str) -> list[LedgerItem]:
    """Returns all entries of the organization's ledger, oldest first."""
    page = table.query(keys.organization_pk(organization_id), prefix=keys.LEDGER_PREFIX, consistent=True)
    return sorted(map(LedgerItem.from_item, page.items), key=lambda entry: entry.at)
