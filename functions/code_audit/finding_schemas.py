"""Response models of a scan's findings."""

from typing import Self

from pydantic import Field, JsonValue

from code_audit.fields import SCAN_ID, FindingsExpireAt
from controlplane.findings.items import InboxItem, Status
from controlplane.findings.responses import AppliedDecision, FindingConfidence, Fix
from controlplane.platform.core.priorities import Priority
from controlplane.platform.http.envelope import Wire
from controlplane.platform.http.fields import Timestamp
from controlplane.scans.findings import FindingItem
from controlplane.scans.items import ScanItem

_FINGERPRINT = "77abf0c21d9e4b6f8a35c1e8b2a6f013"

# The values that the analysis uses. A test keeps them in sync.
CATEGORIES: list[JsonValue] = ["trackers", "cookies", "banner", "personal-data", "outdated"]
SEVERITIES: list[JsonValue] = ["critical", "high", "medium", "low"]


class Location(Wire):
    """The location of a finding in the repository."""

    path: str = Field(
        description="The path of the file, relative to the repository's root.", examples=["apps/web/src/app.tsx"]
    )
    start_line: int = Field(ge=1, description="The first line, starting at 1.", examples=[12])
    end_line: int = Field(description="The last line.", ge=1, examples=[14])
    start_column: int = Field(ge=1, description="The first column, starting at 1.", examples=[5])
    end_column: int = Field(description="The column after the last character.", ge=1, examples=[7])
    snippet: str = Field(description="The code at this location.", examples=["gtag('config', 'G-123')"])
    permalink: str = Field(
        description="A link to the lines at the scanned commit.",
        json_schema_extra={"format": "uri"},
        examples=["https://github.com/acme/shop/blob/1f0c2b9e/apps/web/src/app.tsx#L12-L14"],
    )


class FindingVendor(Wire):
    """A vendor that code loads."""

    id: str = Field(description="The vendor's ID in the catalog of the analysis.", examples=["google-analytics"])
    name: str = Field(description="The vendor's name.", examples=["Google Analytics"])
    domain: str = Field(description="The vendor's main domain.", examples=["google-analytics.com"])


class Issue(Wire):
    """A finding of a scan."""

    id: str = Field(description="The finding's ID, unique to its scan.", examples=[f"{SCAN_ID}:{_FINGERPRINT[:16]}"])
    scan_id: str = Field(description="The scan's ID.", examples=[SCAN_ID])
    fingerprint: str = Field(
        description="Identifies the finding across scans of the repository, even if its lines move, its file is "
        "renamed, or an option of its code changes.",
        examples=[_FINGERPRINT],
    )
    rule_id: str = Field(description="The rule that reported the finding.", examples=["analytics-loaded"])
    title: str = Field(
        description="A short description of the finding.", examples=["Google Analytics is loaded before consent"]
    )
    description: str = Field(
        description="The meaning of the finding and why it matters.",
        examples=["Google Analytics starts with the page and recognizes the visitor from then on."],
    )
    category: str = Field(
        description="The kind of finding.", examples=["trackers"], json_schema_extra={"enum": CATEGORIES}
    )
    severity: str = Field(
        description="The severity that the rule assigns.", examples=["high"], json_schema_extra={"enum": SEVERITIES}
    )
    priority: Priority = Field(
        description="The priority. Follows from severity and confidence: P0 is the most urgent.", examples=["P1"]
    )
    confidence: FindingConfidence
    status: Status = Field(description="The status in the inbox.", examples=["open"])
    inbox_item_id: str | None = Field(
        description="The ID of the finding's inbox item, or null if it has none.",
        examples=["inb_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"],
    )
    location: Location
    remediation: str = Field(
        description="How to fix the finding.",
        examples=["Load Google Analytics only after the visitor has agreed to analytics."],
    )
    fix: Fix | None = Field(description="The finding's fix, or null if none fits.")
    references: list[str] = Field(
        description="Links to further reading.", examples=[["https://eur-lex.europa.eu/eli/dir/2002/58/oj"]]
    )
    first_seen_at: Timestamp = Field(description="The time a scan of the repository first found it.")
    vendor: FindingVendor | None = Field(description="The vendor that the finding is about, if it is a single one.")
    decisions: list[AppliedDecision] = Field(
        description="The decisions on the finding's vendors. If it is about loading them and all are ignored, it isn't "
        "raised as open."
    )

    @classmethod
    def of(cls, scan: ScanItem, finding: FindingItem, item: InboxItem | None) -> Self:
        return cls.showing(
            finding,
            id=f"{scan.scan_id}:{finding.fingerprint[:16]}",
            scan_id=scan.scan_id,
            status=item.status if item else "open",
            inbox_item_id=item.item_id if item else None,
            vendor=finding.vendors[0] if len(finding.vendors) == 1 else None,
            decisions=item.decisions if item else [],
        )


class ScanIssues(Wire):
    """The findings of a scan."""

    issues: list[Issue] = Field(description="The readable findings, most urgent first.")
    locked_count: int = Field(description="The number of locked findings.", ge=0, examples=[14])
    unlock_credits: int | None = Field(ge=0, description="The price of unlocking them, in credits.", examples=[50])
    expired_count: int = Field(ge=0, description="The number of expired findings. 0 until they expire.", examples=[0])
    findings_expire_at: FindingsExpireAt


class Comparison(Wire):
    """The findings of a scan compared with those of a base."""

    base_scan_id: str | None = Field(
        description="The scan that it is compared with, or null if it is the first one of its branch.",
        examples=[SCAN_ID],
    )
    new: list[Issue] = Field(description="The readable findings that the base doesn't have, most urgent first.")
    fixed: list[Issue] = Field(description="The readable findings that only the base has, most urgent first.")
    new_count: int = Field(ge=0, description="The number of new findings.", examples=[2])
    fixed_count: int = Field(ge=0, description="The number of fixed findings.", examples=[1])
    unchanged_count: int = Field(ge=0, description="The number of findings that both scans have.", examples=[14])
