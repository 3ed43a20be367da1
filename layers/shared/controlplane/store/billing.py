"""Plan and credits of an organization. Every balance change has a ledger entry; the balance is their sum.

`charges` has the legs that charge for a scan.
"""

from typing import Any

from controlplane.core import clock, ids
from controlplane.core.plans import PLANS
from controlplane.store import api_keys, keys
from controlplane.store.organization_items import BillingItem, LedgerItem, OrganizationItem
from controlplane.store.organizations import UnknownOrganization, find_organization
from controlplane.store.retry import WriteConflict, retry_on_conflict
from controlplane.store.table import ConditionFailed, Leg, LegFailed, StoreError, Update, table


class NotEnoughCredits(StoreError):
    """The balance would fall below zero."""


def get_billing(organization_id: str) -> tuple[OrganizationItem, BillingItem]:
    """Returns the organization and its billing item, in one round trip. Raises UnknownOrganization."""
    organization, billing = table.batch_get([keys.organization(organization_id), keys.billing(organization_id)])
    if organization is None or billing is None:
        raise UnknownOrganization
    return OrganizationItem.from_item(organization), BillingItem.from_item(organization_id, billing)


def change_plan(organization_id: str, plan: str) -> None:
    """Moves the organization and all of its keys to the plan in one transaction. Raises UnknownOrganization.

    If the plan has no API access, keys are rejected after the commit. They are not deleted, and work again after an
    upgrade. Each key keeps the rate limit it was created with.
    """
    if plan not in PLANS:
        raise ValueError(f"there is no plan {plan}")

    def change() -> None:
        organization = find_organization(organization_id)
        if organization is None:
            raise UnknownOrganization
        legs = {
            "organization": Update(
                keys.organization(organization_id),
                "SET #plan = :plan",
                "#keyVersion = :seen",
                {"plan": plan, "seen": organization.key_version},
            )
        }
        for number, secret in enumerate(api_keys.key_secrets(organization_id)):
            legs[f"key{number}"] = Update(secret, "SET #plan = :plan", "attribute_exists(pk)", {"plan": plan})
        try:
            table.transact(legs)
        except LegFailed:
            raise WriteConflict from None  # a key was added or removed concurrently

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
                "attribute_exists(pk) AND #credits >= :least",
                {"amount": amount, "least": max(0, -amount)},
            ),
            "ledger": entry.leg,
        }
        table.transact(legs)
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
    change = "SET " + ", ".join(f"#topUp.#{name} = :{name}" for name in settings)
    try:
        item = table.update(Update(keys.billing(organization_id), change, "attribute_exists(pk)", settings))
    except ConditionFailed:
        raise UnknownOrganization from None
    return BillingItem.from_item(organization_id, item)


def list_ledger(organization_id: str) -> list[LedgerItem]:
    """Returns all entries of the organization's ledger, oldest first."""
    page = table.query(keys.organization_pk(organization_id), prefix=keys.LEDGER_PREFIX, consistent=True)
    return sorted(map(LedgerItem.from_item, page.items), key=lambda entry: entry.at)
