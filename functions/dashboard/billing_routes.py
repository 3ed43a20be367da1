"""The page of an organization's plan and credits."""

from fastapi import Response

from controlplane.platform.core import clock
from controlplane.platform.core.plans import PLANS, SCAN_UNLOCK_CREDITS
from controlplane.platform.http.app import ControlRouter
from dashboard.billing import get_billing
from dashboard.page_parameters import OrganizationSlug, SignedIn, Text
from dashboard.pages import page

router = ControlRouter(tags=["Pages"], include_in_schema=False)


@router.get("/organizations/{organizationSlug}/billing", operation_id="showBilling")
async def show_billing(session: SignedIn, organization_slug: OrganizationSlug, after: Text = None) -> Response:
    """Shows the plan with what it includes, the usage against its limits, and the credits with their ledger."""
    shown = get_billing(organization_slug, session.account, after)
    return page(
        "billing",
        session,
        organization=shown.membership,
        shown=shown,
        plans=[*PLANS.values()],
        price=SCAN_UNLOCK_CREDITS,
        topped_up=shown.balance.top_up.used_in(clock.month()),
    )
