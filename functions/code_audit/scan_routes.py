"""The route of `code_audit` that clients poll: a scan. It imports nothing that only other routes need."""

from typing import Annotated

from code_audit.fields import SCAN
from code_audit.preferences import APPLIED, Prefer, applied, read_wait
from code_audit.scan_schemas import ScanDetail
from controlplane.access.access import Access, Requires
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.envelope import Answer
from controlplane.platform.table import keys
from controlplane.scans import reads
from controlplane.scans.reads import ScanWithInventory

router = ControlRouter(tags=["Code audit"])

SCAN_WITH_INVENTORY = SCAN._replace(read=ScanWithInventory.from_items, companion=keys.scan_inventory)
ReadsScanWithInventory = Annotated[Access[ScanWithInventory], Requires("code-audit.read", resource=SCAN_WITH_INVENTORY)]


@router.get("/v1/code-audit/scans/{scanId}", summary="Get a scan", responses={200: APPLIED})
async def get_scan(access: ReadsScanWithInventory, prefer: Prefer = None) -> Answer[ScanDetail]:
    """Returns a scan. Poll it to follow its `progress` through the stages:

    1. `fetch` downloads the commit, lists its files, and unpacks those that later stages read.
    2. `inventory` reads the package manifests. From then on, `inventory` lists what the repository is made of.
    3. `analyze` searches the source files for findings. If it takes more than a few seconds, `analyzedFiles` counts up.
    4. `publish` stores the findings and publishes the readable ones to the inbox.

    A scan that is interrupted is retried from the first stage; `completedStages` doesn't decrease.

    With `Prefer: wait=20`, the call waits up to 20 seconds until the scan has ended.
    """
    found, wait_seconds, is_applied = access.resource, read_wait(prefer), False
    if wait_seconds is not None:
        found, is_applied = await reads.wait_for_end(found, wait_seconds)
    return Answer(ScanDetail.with_inventory(*found), headers=applied(wait_seconds, is_applied=is_applied))
