"""Request and response models of a project's vendors."""

from typing import Literal, Self

from pydantic import Field

from controlplane.findings import privacy_table
from controlplane.findings.items import CodeUse
from controlplane.findings.vendors import ReviewState, VendorItem, VendorState
from controlplane.platform.http.envelope import Wire
from controlplane.platform.http.fields import OptionalTimestamp, ProjectId, Timestamp, VendorId

_MOST_PAGES = 5


class VendorDecisionCreate(Wire):
    """A decision about a vendor."""

    decision: Literal["approve", "ignore"] = Field(
        description="`approve`: the project may use the vendor after consent. `ignore`: don't raise findings about "
        "loading it.",
        examples=["approve"],
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
    """A summary of the evidence for a vendor on websites. The vendor's inbox item has all of it."""

    count: int = Field(description="The number of pieces of evidence. Only the newest 20 are kept.", ge=0, examples=[2])
    pages: list[str] = Field(
        description="The pages on which the vendor was seen, newest first. At most five.",
        examples=[["https://shop.example.com/checkout", "https://shop.example.com/"]],
    )
    before_consent: bool = Field(description="Whether the latest detection saw the vendor load before consent.")


class VendorPlace(Wire):
    """A file that loads a vendor, or a package manifest that names it."""

    path: str = Field(description="The path in the repository.", examples=["index.html"])
    url: str = Field(
        description="The file at the scanned commit.",
        json_schema_extra={"format": "uri"},
        examples=["https://github.com/acme/shop/blob/1f0c2b9/index.html"],
    )
    gated: bool | None = Field(
        description="Whether the vendor waits for consent there. Null if that is unknown, and for manifests.",
    )
    package: str | None = Field(description="The package that the manifest names.", examples=[None])


class VendorInCode(Wire):
    """A vendor in a repository, as the latest scan that could tell saw it."""

    repository_id: str = Field(description="The repository's ID.", examples=["rep_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"])
    repository_name: str = Field(description="The repository's name.", examples=["shop"])
    scan_id: str = Field(description="The scan's ID.", examples=["scn_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"])
    scanned_at: Timestamp = Field(description="The time of the scan.")
    found: bool = Field(description="Whether the scan found the vendor. If not, an earlier one did.")
    before_consent: bool = Field(description="Whether one of the places doesn't wait for consent.")
    places: list[VendorPlace] = Field(
        description="Some places, those without consent first. If the scan is locked or a preview: manifests and the "
        "files of readable findings."
    )

    @classmethod
    def of(cls, use: CodeUse) -> Self:
        places = [VendorPlace.showing(place, url=use.url_of(place)) for place in use.places]
        return cls.showing(use, found=bool(places), places=places)


class ProjectVendor(Wire):
    """A vendor that was seen on a project's websites or in its code, or decided on.

    Until the runtime or an audit detects it, it has no domain, no evidence, and no times.
    """

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
    first_seen_at: OptionalTimestamp = Field(description="The time of the earliest detection on a website.")
    last_seen_at: OptionalTimestamp = Field(description="The time of the latest detection on a website.")
    repositories: list[VendorInCode] = Field(
        description="The linked repositories in which scans found the vendor, the latest first. Those of pull requests "
        "don't count."
    )

    @classmethod
    def of(cls, vendor: VendorItem) -> Self:
        pages = [piece.url for piece in vendor.evidence if piece.url]
        evidence = VendorEvidence.showing(vendor, count=len(vendor.evidence), pages=pages[:_MOST_PAGES])
        return cls.showing(vendor, evidence=evidence, repositories=[VendorInCode.of(use) for use in vendor.code])


class PrivacyTableVendor(Wire):
    """A vendor of a privacy page. Unknown fields are null."""

    vendor_id: VendorId
    name: str = Field(description="The name.", examples=["Segment"])
    purpose: str | None = Field(description="The purpose.", examples=["Shows maps"])
    cookies: list[str] | None = Field(
        description="With default lifetimes. Empty if it documents that it sets none.",
        examples=[["_ga (2 years): Distinguishes visitors"]],
    )
    privacy_policy: str | None = Field(description="The address.", examples=["https://example.com/privacy"])
    before_consent: bool = Field(description="Whether it was seen to load before consent.", examples=[False])

    @classmethod
    def of(cls, vendor: privacy_table.ListedVendor) -> Self:
        return cls.showing(vendor, cookies=None if vendor.cookies is None else [*map(str, vendor.cookies)])


class PrivacyTable(Wire):
    """The vendors of a privacy page, and those that it leaves out."""

    vendors: list[PrivacyTableVendor] = Field(description="By name.")
    html: str = Field(description="A fragment.", examples=["<table>…</table>"])
    markdown: str = Field(description="A table.", examples=["| Vendor | …"])
    undecided: list[str] = Field(description="Found ones without a decision.", examples=[["Hotjar"]])
    ignored: list[str] = Field(description="Found, but ignored.", examples=[[]])
    unseen: list[str] = Field(description="Approved, but not found.", examples=[[]])

    @classmethod
    def of(cls, table: privacy_table.PrivacyTable) -> Self:
        listed = table.listed
        return cls.showing(
            table,
            vendors=[PrivacyTableVendor.of(vendor) for vendor in listed],
            html=privacy_table.to_html(listed),
            markdown=privacy_table.to_markdown(listed),
        )
