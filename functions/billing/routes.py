"""Routes of `billing`: get."""

from typing import Annotated

from billing.schemas import Billing, Credits, PlanUsage, TopUp
from controlplane.access.access import Access, Requires
from controlplane.billing import store as billing
from controlplane.organizations.store import UnknownOrganization
from controlplane.platform.core import clock
from controlplane.platform.core.plans import PLANS
from controlplane.platform.core.settings import settings
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.route import refuses

router = ControlRouter(tags=["Billing"])

ReadsBilling = Annotated[Access[None], Requires("billing.read", organization="query", projects="untouched")]


@router.get("/v1/billing", summary="Get plan, credits, and limits")
@refuses(UnknownOrganization)
async def get_billing(access: ReadsBilling) -> Billing:
    """Returns the organization's plan with its limits and features, the credit balance, and the top-up settings.

    `overLimit` lists the limits that the organization exceeds after a change to a smaller plan.
    """
    organization, account = billing.get_billing(access.organization_id)
    plan = PLANS[organization.plan]
    return Billing.showing(
        organization,
        plan=plan,
        credits=Credits(balance=account.credits),
        top_up=TopUp.showing(account.top_up, used_this_month=account.top_up.used_in(clock.month())),
        limits=plan,
        features=plan,
        usage=PlanUsage(api_keys=organization.keys, projects=organization.projects),
        over_limit=billing.list_exceeded(organization),
        contact=settings.contact,
    )
