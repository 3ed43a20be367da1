"""Business rules of `billing`: an organization's plan, limits, and credits."""

from typing import Any, NamedTuple

from controlplane.core.errors import NotFound
from controlplane.core.plans import PLANS, Plan
from controlplane.store import billing
from controlplane.store.organizations import UnknownOrganization


class OrganizationGone(NotFound):
    """The organization was deleted after this request was authorized."""


class OrganizationBilling(NamedTuple):
    """A plan and the stored billing item, which has the credits and the top-up settings."""

    plan: Plan
    item: dict[str, Any]


def get_billing(organization_id: str) -> OrganizationBilling:
    """Returns the organization's plan and billing item. Raises OrganizationGone."""
    try:
        organization, item = billing.get_billing(organization_id)
    except UnknownOrganization:
        raise OrganizationGone from None
    return OrganizationBilling(PLANS[organization["plan"]], item)
