"""What `billing` answers."""

from pydantic import Field

from controlplane.envelope import Wire
from controlplane.plans import PLANS


class BillingPlan(Wire):
    """The plan that an organization is on."""

    id: str = Field(description="What a program decides by.", examples=["pro"], json_schema_extra={"enum": [*PLANS]})
    name: str = Field(description="The plan's name for people.", examples=["Pro"])


class Credits(Wire):
    """What scans are unlocked with."""

    balance: int = Field(ge=0, description="Credits left.", examples=[120])


class TopUp(Wire):
    """Whether credits are bought by themselves when few are left."""

    enabled: bool = Field(description="Whether they are.", examples=[True])
    threshold: int | None = Field(ge=0, description="The balance below which credits are bought.", examples=[20])
    amount: int | None = Field(ge=0, description="How many are bought then.", examples=[100])


class PlanLimits(Wire):
    """How much the plan allows."""

    requests_per_minute: int = Field(
        ge=0, description="Of a key minted now; 0 on a plan without API access.", examples=[1500]
    )
    api_keys: int = Field(ge=0, description="API keys that the organization may have.", examples=[50])
    projects: int = Field(ge=0, description="Projects that the organization may have.", examples=[200])


class PlanFeatures(Wire):
    """What the plan includes."""

    api_access: bool = Field(description="Whether API keys can be minted and used.", examples=[True])
    remove_branding: bool = Field(description="Whether a project may use the branding `none`.", examples=[True])


class Billing(Wire):
    """Plan, credits and limits of an organization."""

    organization_id: str = Field(description="The organization's id.", examples=["org_3f8k2m9q7r1s5t6v"])
    plan: BillingPlan
    credits: Credits
    top_up: TopUp
    limits: PlanLimits
    features: PlanFeatures
