"""Fields, example values, and resources that several modules share."""

from typing import Annotated, Any, Final

from pydantic import Field

from controlplane.access.access import Access, Requires, Resource
from controlplane.platform.core import clock
from controlplane.platform.core.ids import ScanId
from controlplane.platform.table import keys
from controlplane.scans.items import ScanItem

TIME: Final[dict[str, Any]] = {"json_schema_extra": {"format": "date-time"}}
REPOSITORY_ID = "rep_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"
PROJECT_ID = "prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"
SCAN_ID = "scn_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"

FindingsExpireAt = Annotated[
    str | None,
    Field(
        description="The time the findings expire. Null until a later scan of the same project is completed.",
        json_schema_extra={"format": "date-time"},
        examples=[None],
    ),
]
SCAN = Resource("scanId", ScanId, keys.scan, ScanItem.from_item)
# The endpoint authorizes the caller while it reads the findings (`enter_while`).
ReadsFindings = Annotated[Access[ScanItem], Requires("code-audit.read", resource=SCAN, late=True)]


def expiry_of(scan: ScanItem) -> str | None:
    """Returns the time the scan's findings expire as an ISO 8601 timestamp, or None."""
    return None if scan.findings_expire_at is None else clock.timestamp(scan.findings_expire_at)
