"""Request and response models of a project's vendors."""

from typing import Literal, Self

from pydantic import Field

from controlplane.findings.vendors import ReviewState, VendorItem, VendorState
from controlplane.platform.http.envelope import Wire
from controlplane.platform.http.fields import OptionalTimestamp, ProjectId, VendorId

_MOST_PAGES = 5


class VendorDecisionCreate(Wire):
    """A decision about a vendor."""

    decision: Literal["approve", "ignore"] = Field(
        description="`approve` allows the vendor; `ignore` dismisses it.", examples=["approve"]
    )


class VendorDecision(Wire):
    """The result of a decision about a vendor."""

    inbox_item_id: str | None = Field(
        description="The runtime finding that the decision resolved, or null if there is no such finding.",
        examples=["inb_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"],
    )
    project_id: ProjectId
    review_state: ReviewState = Field(
        description="The decision in the terms of the vendor review.", examples=["accepted"]
    )
    state: VendorState = Field(description="The state of the vendor.", examples=["approved"])
    vendor_id: VendorId


class VendorEvidence(Wire):
    """A summary of the evidence for a vendor. The vendor's inbox item has all of it."""

    count: int = Field(description="The number of pieces of evidence. Only the newest 20 are kept.", ge=0, examples=[2])
    pages: list[str] = Field(
        description="The pages on which the vendor was seen, newest first. At most five.",
        examples=[["https://shop.example.com/checkout", "https://shop.example.com/"]],
    )
    before_consent: bool = Field(
        description="Whether the latest detection saw the vendor load before consent.", examples=[False]
    )


class ProjectVendor(Wire):
    """A vendor that was detected on a project or decided on. Until it is detected, it has only its decision."""

    vendor_id: VendorId
    project_id: ProjectId
    name: str | None = Field(description="The vendor's name.", examples=["Segment"])
    domain: str | None = Field(description="The domain that the vendor was loaded from.", examples=["segment.com"])
    category: str | None = Field(description="The vendor's purpose, if it is known.", examples=["analytics"])
    state: VendorState | None = Field(description="The decision. Null until there is one.", examples=["approved"])
    review_state: ReviewState = Field(description="The state of the vendor's review.", examples=["accepted"])
    decided_at: OptionalTimestamp = Field(description="The time of the decision.")
    decided_by: str | None = Field(description="The ID of the user who decided.", examples=["usr_9q7r1s5t6v3f8k2m"])
    inbox_item_id: str | None = Field(
        description="The vendor's runtime finding. A resolved finding is deleted after a while.",
        examples=["inb_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"],
    )
    evidence: VendorEvidence
    first_seen_at: OptionalTimestamp = Field(description="The time of the earliest detection.")
    last_seen_at: OptionalTimestamp = Field(description="The time of the latest detection.")

    @classmethod
    def of(cls, vendor: VendorItem) -> Self:
        pages = [piece.url for piece in vendor.evidence if piece.url]
        evidence = VendorEvidence.showing(vendor, count=len(vendor.evidence), pages=pages[:_MOST_PAGES])
        return cls.showing(vendor, evidence=evidence)
