"""`assent-ops plan` and `assent-ops credits`: an organization's plan and its credit balance."""
# ruff: noqa: PLC0415 (see ops.command.command)

from typing import Annotated

import typer

from controlplane.core.plans import PLANS
from ops.arguments import Organization
from ops.command import command
from ops.errors import NotFound, Refused
from ops.output import Result

_MOST = 1_000_000_000

plan_app = typer.Typer(no_args_is_help=True, help="An organization's plan.")
credits_app = typer.Typer(no_args_is_help=True, help="An organization's credit balance.")


def _parse_plan(text: str) -> str:
    if text not in PLANS:
        raise typer.BadParameter(f"There is no plan {text!r}. There are: {', '.join(PLANS)}.")
    return text


Plan = Annotated[str, typer.Argument(parser=_parse_plan, metavar="PLAN", help=f"One of {', '.join(PLANS)}.")]
Amount = Annotated[int, typer.Argument(min=1, max=_MOST, help="How many.")]


@command(plan_app, "set")
def set_plan(organization: Organization, plan: Plan) -> Result:
    """Change the plan of an organization and its API keys.

    On a plan without API access, the organization's keys are rejected immediately. They aren't deleted, and work again
    after an upgrade. A key keeps the rate limit it was created with until it is rolled.
    """
    from controlplane.store import billing
    from controlplane.store.organizations import UnknownOrganization
    from ops.lookup import get_organization_id, organization_document

    organization_id = get_organization_id(organization)
    try:
        billing.change_plan(organization_id, plan)
    except UnknownOrganization:
        raise NotFound(f"There is no organization {organization}.") from None
    return Result(organization_document(organization_id))


@command(credits_app, "add")
def add_credits(organization: Organization, amount: Amount) -> Result:
    """Add credits. If the command times out, check the balance before you retry."""
    return _change(organization, amount)


@command(credits_app, "take")
def take_credits(organization: Organization, amount: Amount) -> Result:
    """Remove credits. Fails if the balance would drop below zero."""
    return _change(organization, -amount)


@command(credits_app, "show")
def show_credits(organization: Organization) -> Result:
    """Show the credit balance and the top-up settings."""
    from controlplane.store import billing
    from ops.lookup import get_organization_id

    organization_id = get_organization_id(organization)
    _, account = billing.get_billing(organization_id)
    return Result({"organizationId": organization_id, "credits": account.credits, "topUp": account.top_up._asdict()})


def _change(organization: str, amount: int) -> Result:
    from controlplane.store import billing
    from controlplane.store.organizations import UnknownOrganization
    from ops.lookup import get_organization_id

    organization_id = get_organization_id(organization)
    try:
        balance = billing.add_credits(organization_id, amount)
    except UnknownOrganization:
        raise NotFound(f"There is no organization {organization}.") from None
    except billing.NotEnoughCredits:
        _, account = billing.get_billing(organization_id)
        raise Refused(f"{organization} has {account.credits} credits, fewer than {-amount}.") from None
    return Result({"organizationId": organization_id, "credits": balance})
