"""Resources that routes of scans read before they run."""

from typing import Annotated

from controlplane.access.access import Access, Requires, Resource
from controlplane.platform.core.ids import ScanId
from controlplane.platform.table import keys
from controlplane.scans.items import ScanItem

SCAN = Resource("scanId", ScanId, keys.scan, ScanItem.from_item)
# The endpoint authorizes the caller while it reads the findings (`enter_while`).
ReadsFindings = Annotated[Access[ScanItem], Requires("code-audit.read", resource=SCAN, late=True)]
