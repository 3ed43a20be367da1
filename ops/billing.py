"""`assent-ops plan`, `credits`, and `top-up`: an organization's plan, credit balance, and automatic top-up."""

import re
from typing import Annotated

import typer

from controlplane.billing import store as billing
from controlplane.platform.core.plans import PLANS
from ops.arguments import Organization, new_group, one_of
from ops.lookup import get_organization_id, organization_document
from ops.output import Refused, Result, fields

_MOST = 1_000_000_000
_MONTH = re.compile(r"\d{4}-(0[1-9]|1[0-2])")
_KINDS = ("unlock", "top-up", "operator")

plans = new_group("An organization's plan.")
balances = new_group("An organization's credit balance.")
top_ups = new_group("An organization's automatic top-up, which you invoice.")


def _parse_month(text: str) -> str:
    if text and not _MONTH.fullmatch(text):
        raise typer.BadParameter("Write a month as 2026-03.")
    return text


Plan = Annotated[str, typer.Argument(parser=one_of(PLANS), metavar="PLAN", help=f"One of {', '.join(PLANS)}.")]
Amount = Annotated[int, typer.Argument(min=1, max=_MOST, help="How many.")]


@plans.command("set")
def set_plan(organization: Organization, plan: Plan) -> Result:
    """Change the plan of an organization and its API keys.

    On a plan without API access, the organization's keys are rejected immediately. They aren't deleted, and work again
    after an upgrade. A key keeps the rate limit it was created with until it is rolled. Items beyond the plan's limits
    are kept. Projects with the branding none are served with the service's own branding until the plan includes it.
    """
    organization_id = get_organization_id(organization)
    billing.change_plan(organization_id, plan)
    return Result(organization_document(organization_id))


@balances.command("add")
def add_credits(organization: Organization, amount: Amount) -> Result:
    """Add credits. If the command times out, check the balance before you retry."""
    return _change(organization, amount)


@balances.command("take")
def take_credits(organization: Organization, amount: Amount) -> Result:
    """Remove credits. Fails if the balance would drop below zero."""
    return _change(organization, -amount)


@balances.command("list")
def list_credits(
    organization: Organization,
    month: Annotated[
        str, typer.Option("--month", parser=_parse_month, help="Only changes in this month, in UTC: 2026-03.")
    ] = "",
    kind: Annotated[
        str, typer.Option("--kind", parser=one_of(("", *_KINDS)), help=f"Only this kind: {', '.join(_KINDS)}.")
    ] = "",
) -> Result:
    """List the changes of the balance, oldest first. Invoice those of the kind top-up."""
    entries = billing.list_ledger(get_organization_id(organization))
    wanted = [entry for entry in entries if entry.at.startswith(month) and kind in ("", entry.kind)]
    return Result([fields(entry, "at", "kind", "credits", "scan_id", "by") for entry in wanted])


@top_ups.command("enable")
def enable_top_up(
    organization: Organization,
    threshold: Annotated[int, typer.Option(min=0, max=_MOST, help="Add credits if unlocking a scan leaves fewer.")],
    amount: Annotated[int, typer.Option(min=1, max=_MOST, help="How many credits to add.")],
    monthly_limit: Annotated[
        int, typer.Option(min=1, max=1000, help="How many times at most in a calendar month, in UTC.")
    ],
) -> Result:
    """Set and enable the automatic top-up.

    No payment is made: each top-up is an entry in the ledger, and you invoice it (`credits list --kind top-up`). When
    the month's top-ups are used up, scans can be unlocked only with the credits that are left.
    """
    organization_id = get_organization_id(organization)
    billing.enable_top_up(organization_id, threshold=threshold, amount=amount, monthly_limit=monthly_limit)
    return Result(organization_document(organization_id))


@top_ups.command("disable")
def disable_top_up(organization: Organization) -> Result:
    """Disable the automatic top-up. Its settings and the month's count are kept."""
    organization_id = get_organization_id(organization)
    billing.disable_top_up(organization_id)
    return Result(organization_document(organization_id))


def _change(organization: str, amount: int) -> Result:
    organization_id = get_organization_id(organization)
    try:
        balance = billing.add_credits(organization_id, amount)
    except billing.NotEnoughCredits:
        _, account = billing.get_billing(organization_id)
        raise Refused(f"{organization} has {account.credits} credits, fewer than {-amount}.") from None
    return Result({"organizationId": organization_id, "credits": balance})
