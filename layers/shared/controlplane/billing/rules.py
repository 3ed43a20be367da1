"""Rules of billing: which limits of its plan an organization exceeds."""

from typing import Literal, NamedTuple

from controlplane.organizations.items import OrganizationItem
from controlplane.platform.core.plans import PLANS

Limit = Literal["apiKeys", "projects"]


class Exceeded(NamedTuple):
    """A limit of the plan that the organization exceeds, after a change to a smaller plan."""

    limit: Limit
    current: int
    maximum: int


def list_exceeded(organization: OrganizationItem) -> list[Exceeded]:
    """Returns the exceeded limits. Items beyond a limit stay readable, but no more can be created."""
    plan = PLANS[organization.plan]
    limits = [
        Exceeded("apiKeys", organization.keys, plan.api_keys),
        Exceeded("projects", organization.projects, plan.projects),
    ]
    return [it for it in limits if it.current > it.maximum]
