"""The rules of `billing`: which plan an organization is on, and what follows from it."""

from typing import Any, NamedTuple

from controlplane.errors import NotFound
from controlplane.plans import PLANS, Plan
from controlplane.store import billing
from controlplane.store.organizations import UnknownOrganization


class OrganizationGone(NotFound):
    """It was deleted after this request was admitted."""


class OrganizationBilling(NamedTuple):
    """The plan, and the stored item with credits and top-up."""

    plan: Plan
    item: dict[str, Any]


def get_billing(organization_id: str) -> OrganizationBilling:
    """Raises OrganizationGone."""
    try:
        organization, item = billing.get_billing(organization_id)
    except UnknownOrganization:
        raise OrganizationGone from None
    return OrganizationBilling(PLANS[organization["plan"]], item)
