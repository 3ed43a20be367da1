"""Plan and credits of an organization. Every balance change has a ledger entry; the balance is their sum."""

from controlplane.core import clock, ids
from controlplane.core.plans import PLANS
from controlplane.store import api_keys, keys
from controlplane.store.organization_items import BillingItem, OrganizationItem
from controlplane.store.organizations import UnknownOrganization, find_organization
from controlplane.store.retry import WriteConflict, retry_on_conflict
from controlplane.store.table import Leg, LegFailed, Put, StoreError, Update, table


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
    entry = keys.ledger_entry(organization_id, ids.new_local())
    try:
        legs: dict[str, Leg] = {
            "billing": Update(
                keys.billing(organization_id),
                "SET #credits = #credits + :amount",
                "attribute_exists(pk) AND #credits >= :least",
                {"amount": amount, "least": max(0, -amount)},
            ),
            "ledger": Put({**entry._asdict(), "credits": amount, "at": clock.timestamp()}, "attribute_not_exists(pk)"),
        }
        table.transact(legs)
    except LegFailed as failure:
        if failure.leg != "billing":
            raise
        raise (UnknownOrganization if failure.item is None else NotEnoughCredits) from None
    _, billing = get_billing(organization_id)
    return billing.credits
