"""CSV for spreadsheets, which don't execute anything in it, such as the findings of a scan."""

import csv
import io
from collections.abc import Iterable, Sequence

from controlplane.scans.findings import PublishedFinding
from controlplane.scans.items import ScanItem

# Spreadsheets evaluate a cell that begins with one of these. https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
# Without it, Excel reads UTF-8 as another encoding.
_BYTE_ORDER_MARK = "\ufeff"
_COLUMNS = (
    "Priority", "Severity", "Confidence", "Status", "New", "Rule", "Title", "File", "Line", "Description",
    "How to fix it", "Vendors", "First seen", "Link", "Fingerprint",
)  # fmt: skip


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table with these columns."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerow(columns)
    for cells in rows:
        writer.writerow(map(_as_text, cells))
    return _BYTE_ORDER_MARK + text.getvalue()


def _as_text(cell: str) -> str:
    """Returns the cell so that a spreadsheet takes it as text: a formula gets an apostrophe in front."""
    return f"'{cell}" if cell.lstrip(" ").startswith(_FORMULA) else cell


def findings_to_csv(scan: ScanItem, found: Sequence[PublishedFinding]) -> str:
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
    return to_csv(_COLUMNS, rows)
