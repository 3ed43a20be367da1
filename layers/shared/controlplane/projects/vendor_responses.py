"""The response model of a vendor decision that was applied to a finding."""

from typing import Literal

from pydantic import Field

from controlplane.platform.http.envelope import Wire
from controlplane.platform.http.fields import Timestamp


class AppliedDecision(Wire):
    """A project's decision on a vendor, applied to a finding about that vendor."""

    vendor_id: str = Field(description="The project's ID of the vendor.", examples=["segment"])
    state: Literal["approved", "ignored"] = Field(description="The decision.", examples=["approved"])
    decided_at: Timestamp = Field(description="The time of the decision.")
