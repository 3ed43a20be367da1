"""The findings of a scan as CSV."""

from collections.abc import Sequence

from controlplane.scans import spreadsheet
from controlplane.scans.findings import PublishedFinding
from controlplane.scans.items import ScanItem

_COLUMNS = (
    "Priority", "Severity", "Confidence", "Status", "New", "Rule", "Title", "File", "Line", "Description",
    "How to fix it", "Vendors", "First seen", "Link", "Fingerprint",
)  # fmt: skip


def to_csv(scan: ScanItem, found: Sequence[PublishedFinding]) -> str:
    """Returns a table with one line for each of the findings, which must be readable for the caller."""
    is_compared = scan.comparison is not None and scan.comparison.new_count is not None
    rows: list[tuple[str, ...]] = []
    for finding, item in found:
        place = finding.location
        cells = (
            finding.priority,
            finding.severity,
            finding.confidence,
            item.status if item else "open",
            ("yes" if finding.is_new else "no") if is_compared else "",
            finding.rule_id,
            finding.title,
            place.path,
            str(place.start_line),
            finding.description,
            finding.remediation,
            ", ".join(vendor.name for vendor in finding.vendors),
            finding.first_seen_at,
            place.permalink,
            finding.fingerprint,
        )
        rows.append(cells)
    return spreadsheet.to_csv(_COLUMNS, rows)
