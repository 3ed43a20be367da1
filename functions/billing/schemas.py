"""Response models of `billing`."""

from pydantic import Field

from controlplane.billing.store import Limit
from controlplane.platform.core.plans import PLANS
from controlplane.platform.http.envelope import Wire


class BillingPlan(Wire):
    """The organization's plan."""

    id: str = Field(
        description="The plan's identifier, for use in programs.",
        examples=["pro"],
        json_schema_extra={"enum": [*PLANS]},
    )
    name: str = Field(description="The plan's display name.", examples=["Pro"])


class Credits(Wire):
    """The credits with which scans are unlocked."""

    balance: int = Field(ge=0, description="The number of credits left.", examples=[120])


class TopUp(Wire):
    """The settings of the automatic top-up, which only the operator can change."""

    enabled: bool = Field(description="Whether credits are added automatically.")
    threshold: int | None = Field(
        ge=0, description="Credits are added when unlocking a scan would leave fewer than this.", examples=[20]
    )
    amount: int | None = Field(ge=0, description="The number of credits that a top-up adds.", examples=[100])
    monthly_limit: int | None = Field(
        ge=0, description="The maximum number of top-ups in a calendar month (UTC).", examples=[3]
    )
    used_this_month: int = Field(ge=0, description="The number of top-ups in this month so far.", examples=[1])


class PlanLimits(Wire):
    """The limits of the plan."""

    requests_per_minute: int = Field(
        ge=0, description="The rate limit of a key created now. 0 on a plan without API access.", examples=[1500]
    )
    api_keys: int = Field(ge=0, description="The maximum number of API keys.", examples=[50])
    projects: int = Field(ge=0, description="The maximum number of projects.", examples=[200])


class PlanFeatures(Wire):
    """The features of the plan."""

    api_access: bool = Field(description="Whether API keys can be created and used.")
    remove_branding: bool = Field(description="Whether a project can use the branding `none`.")


class PlanUsage(Wire):
    """The number of things that the organization has and the plan limits."""

    api_keys: int = Field(ge=0, description="The number of API keys.", examples=[2])
    projects: int = Field(ge=0, description="The number of projects.", examples=[14])


class OverLimit(Wire):
    """A limit of the plan that the organization exceeds, after a change to a smaller plan."""

    limit: Limit = Field(description="The name of the limit.", examples=["projects"])
    current: int = Field(ge=1, description="The number that the organization has.", examples=[14])
    maximum: int = Field(
        ge=0, description="The number that the plan allows: no API keys on a plan without API access.", examples=[10]
    )


class Billing(Wire):
    """The plan, credits, and limits of an organization."""

    organization_id: str = Field(description="The organization's ID.", examples=["org_3f8k2m9q7r1s5t6v"])
    plan: BillingPlan
    credits: Credits
    top_up: TopUp
    limits: PlanLimits
    features: PlanFeatures
    usage: PlanUsage
    over_limit: list[OverLimit] = Field(
        description="The exceeded limits. Items beyond a limit can still be read and deleted, but no more can be "
        "created, and API keys are rejected until an upgrade."
    )
    contact: str | None = Field(
        description="The email address or the page of the operator, who changes plans and adds credits. Null: unknown.",
        examples=["billing@assent.example"],
    )
