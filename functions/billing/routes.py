"""Routes of `billing`: get."""

from typing import Annotated

from billing.schemas import Billing, BillingPlan, Credits, OverLimit, PlanFeatures, PlanLimits, PlanUsage, TopUp
from controlplane.access.access import Access, Requires
from controlplane.billing import rules
from controlplane.billing import store as billing
from controlplane.organizations.store import UnknownOrganization
from controlplane.platform.core.plans import PLANS
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.route import refuses

router = ControlRouter(tags=["Billing"])

ReadsBilling = Annotated[Access[None], Requires("billing.read", organization="query", projects="untouched")]


@router.get("/v1/billing", operation_id="getBilling", summary="Get plan, credits, and limits")
@refuses(UnknownOrganization)
async def get_billing(access: ReadsBilling) -> Billing:
    """Returns the organization's plan with its limits and features, the credit balance, and the top-up settings.

    `overLimit` lists the limits that the organization exceeds after a change to a smaller plan.
    """
    organization, account = billing.get_billing(access.organization_id)
    plan = PLANS[organization.plan]
    return Billing(
        organization_id=access.organization_id,
        plan=BillingPlan(id=plan.id, name=plan.name),
        credits=Credits(balance=account.credits),
        top_up=TopUp.of(account.top_up),
        limits=PlanLimits(requests_per_minute=plan.requests_per_minute, api_keys=plan.api_keys, projects=plan.projects),
        features=PlanFeatures(api_access=plan.api_access, remove_branding=plan.remove_branding),
        usage=PlanUsage(api_keys=organization.keys, projects=organization.projects),
        over_limit=[OverLimit(**it._asdict()) for it in rules.list_exceeded(organization)],
    )
