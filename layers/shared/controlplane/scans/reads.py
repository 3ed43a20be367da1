"""Reads of scan requests and scans: by id, as a repository's active work, and in lists."""

from collections.abc import Mapping, Sequence
from typing import Any

from controlplane.organizations.items import BillingItem
from controlplane.platform.core.ids import RepositoryId, ScanId, ScanRequestId
from controlplane.platform.table import keys
from controlplane.platform.table.stored import read_map
from controlplane.platform.table.table import PRIMARY, QueryPage, table
from controlplane.scans.inventories import Inventory, ScanWithInventory
from controlplane.scans.items import RequestItem, ScanItem, Status, UnknownRequest, UnknownScan, Work, WorkId, work_key

_PAGE = 100


def get_request(request_id: ScanRequestId) -> RequestItem:
    """Returns the request, with a consistent read. Raises UnknownRequest."""
    item = table.get(work_key(request_id))
    if item is None:
        raise UnknownRequest
    return RequestItem.from_item(item)


def get_scan(scan_id: ScanId) -> ScanItem:
    """Returns the scan, with a consistent read. Raises UnknownScan."""
    item = table.get(work_key(scan_id))
    if item is None:
        raise UnknownScan
    return ScanItem.from_item(item)


def find_with_inventory(scan_id: ScanId) -> ScanWithInventory | None:
    """Returns the scan with its inventory in one round trip, or None if it doesn't exist. Consistent."""
    scan, inventory = table.batch_get([work_key(scan_id), keys.scan_inventory(scan_id)])
    return ScanWithInventory.from_items(scan, inventory) if scan else None


def list_inventories(scan_ids: Sequence[ScanId]) -> list[Inventory]:
    """Returns the inventories of up to 100 scans, in one round trip. A scan without one is omitted. Consistent."""
    items = table.batch_get([keys.scan_inventory(scan_id) for scan_id in scan_ids])
    return [read_map(Inventory, item) for item in items if item]


def find_with_billing(scan_id: ScanId) -> tuple[ScanItem, BillingItem] | None:
    """Returns the scan and its organization's credits in one round trip, or None if it doesn't exist. Consistent."""
    organization_id = scan_id.organization_id
    scan, billing = table.batch_get([work_key(scan_id), keys.billing(organization_id)])
    if scan is None or billing is None:
        return None
    return ScanItem.from_item(scan), BillingItem.from_item(billing)


def find_work(work_id: WorkId) -> Work | None:
    """Returns the scan or request, or None if it doesn't exist. Consistent."""
    item = table.get(work_key(work_id))
    if item is None:
        return None
    return ScanItem.from_item(item) if isinstance(work_id, ScanId) else RequestItem.from_item(item)


def get_active_work(repository: Mapping[str, Any]) -> Work:
    """Returns the active scan of the stored repository, or the request if there is no scan yet. Consistent."""
    scan_id = repository.get("activeScanId")
    work = find_work(ScanId.stored(scan_id) if scan_id else ScanRequestId.stored(repository["activeRequestId"]))
    if work is None:
        raise LookupError("a repository names a scan that does not exist")
    return work


def find_production_scan(repository_id: RepositoryId, project_id: str, *, completed: bool = False) -> ScanItem | None:
    """Returns the project's newest scan that isn't of a pull request, or the newest completed one.

    The index lags behind the latest writes.
    """
    index, pk = keys.SCANS_BY_REPOSITORY, str(repository_id)
    if completed:
        index, pk = keys.SCANS_BY_REPOSITORY_AND_STATUS, f"{repository_id}#completed"
    after: str | None = None
    while True:
        page = table.query(pk, prefix=keys.SCAN_PREFIX, newest_first=True, after=after, limit=_PAGE, index=index)
        for scan in map(ScanItem.from_item, page.items):
            if scan.project_id == project_id and scan.cause.pull_request_number is None:
                return scan
        after = page.next_sk
        if after is None:
            return None


def list_scans(
    organization_id: str,
    limit: int,
    after: str | None,
    repository_id: str | None = None,
    status: Status | None = None,
) -> QueryPage[ScanItem]:
    """Returns one page of the organization's scans, newest first, optionally filtered by repository and status.

    The page is empty if the repository isn't one of the organization.
    """
    own_id = RepositoryId.parse(repository_id or "")
    if repository_id is not None and (own_id is None or own_id.organization_id != organization_id):
        return QueryPage([], None)
    if repository_id is not None and status is not None:
        index, pk = keys.SCANS_BY_REPOSITORY_AND_STATUS, f"{repository_id}#{status}"
    elif repository_id is not None:
        index, pk = keys.SCANS_BY_REPOSITORY, repository_id
    elif status is not None:
        index, pk = keys.SCANS_BY_STATUS, f"{organization_id}#{status}"
    else:
        index, pk = PRIMARY, keys.organization_pk(organization_id)
    page = table.query(pk, prefix=keys.SCAN_PREFIX, newest_first=True, limit=limit, after=after, index=index)
    return page.read(ScanItem.from_item)
