"""Reads of scan requests, scans, and inventories: by id, as a repository's active work, in lists, and until they end.

An inventory has the languages, packages, and vendors of a scanned repository. Each is an item of its own: in the scan's
item, it would multiply the price of lists and of each progress report. Unless the scan's access is `full`, only vendors
that manifests name are shown, because others would reveal a locked finding.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from controlplane.findings.items import VendorPlace
from controlplane.organizations.items import BillingItem
from controlplane.platform.core import clock
from controlplane.platform.core.errors import NotFound, known
from controlplane.platform.core.ids import ProjectId, RepositoryId, ScanId, ScanRequestId
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys, waiting
from controlplane.platform.table.keys import Key
from controlplane.platform.table.stored import read_map, to_map
from controlplane.platform.table.table import PRIMARY, Put, QueryPage, table
from controlplane.scans.items import RequestItem, ScanItem, Status, UnknownRequest, UnknownScan, Work, WorkId, work_key

_PAGE = 100
# How long clients should wait before they poll a scan or its request again.
RETRY_AFTER_SECONDS = 2
_POLL_SECONDS = 0.25
_LATER_POLL_SECONDS = 1.0


class Language(NamedTuple):
    """A language, with the number and total size of its files."""

    name: str
    files: int
    bytes: int


class Technology(NamedTuple):
    """A framework or a package manager: its version as a manifest names it, if one does, and the file that shows it."""

    id: str
    name: str
    version: str | None
    path: str


class VendorPackage(NamedTuple):
    """A package of a vendor in a manifest, with its version as written, if there is one.

    newest: the version that the lock file names, or the newest that the manifest allows, such as `1.x`. Only for npm.
    """

    name: str
    version: str | None
    path: str
    newest: str | None = None


class UsedVendor(NamedTuple):
    """A vendor that manifests name or that the code loads.

    hosts, places: some of the hosts that it is loaded from, and of the files that load it. loading_files: None until
    the code has been analyzed, or if the analysis doesn't look for vendors of its category. ungated_files: those of
    them that load it without consent.
    """

    id: str
    name: str
    category: str
    packages: tuple[VendorPackage, ...] = ()
    hosts: tuple[str, ...] = ()
    loading_files: int | None = None
    ungated_files: int | None = None
    places: tuple[VendorPlace, ...] = ()


class Inventory(NamedTuple):
    """The contents of a repository. `truncated` if it has more manifests or vendors than are listed."""

    files: int
    languages: tuple[Language, ...] = ()
    frameworks: tuple[Technology, ...] = ()
    package_managers: tuple[Technology, ...] = ()
    vendors: tuple[UsedVendor, ...] = ()
    truncated: bool = False

    def readable(self, scan: ScanItem) -> Self:
        """Returns the readable part. Unless the access is full, vendors that the analysis found would reveal findings.

        That is: vendors that only the code loads, and from which hosts and in which files vendors are loaded.
        """
        if scan.access == "full":
            return self
        named = tuple(
            it._replace(hosts=(), loading_files=None, ungated_files=None, places=())
            for it in self.vendors
            if it.packages
        )
        return self._replace(vendors=named)


class ScanWithInventory(NamedTuple):
    """A scan and, once its stage `inventory` is completed, its inventory."""

    scan: ScanItem
    inventory: Inventory | None

    @classmethod
    def from_items(cls, scan: Mapping[str, Any], inventory: Mapping[str, Any] | None) -> Self:
        return cls(ScanItem.from_item(scan), read_map(Inventory, inventory) if inventory else None)


def get_request(request_id: ScanRequestId) -> RequestItem:
    """Returns the request, with a consistent read. Raises UnknownRequest."""
    return RequestItem.from_item(known(table.get(work_key(request_id)), UnknownRequest))


def get_scan(scan_id: ScanId) -> ScanItem:
    """Returns the scan, with a consistent read. Raises UnknownScan."""
    return ScanItem.from_item(known(table.get(work_key(scan_id)), UnknownScan))


def find_with_inventory(scan_id: ScanId) -> ScanWithInventory | None:
    """Returns the scan with its inventory in one round trip, or None if it doesn't exist. Consistent."""
    scan, inventory = table.batch_get([work_key(scan_id), keys.scan_inventory(scan_id)])
    return ScanWithInventory.from_items(scan, inventory) if scan else None


def find_inventory(scan_id: ScanId) -> Inventory | None:
    """Returns the scan's inventory, or None if it has none or was deleted with its project. Consistent."""
    item = table.get(keys.scan_inventory(scan_id))
    return read_map(Inventory, item) if item else None


def list_readable_inventories(scans: Sequence[ScanItem]) -> list[Inventory]:
    """Returns the readable parts of the inventories of up to 100 scans, in one round trip. Consistent.

    A scan without one is omitted.
    """
    items = table.batch_get([keys.scan_inventory(scan.scan_id) for scan in scans])
    return [read_map(Inventory, item).readable(scan) for scan, item in zip(scans, items, strict=True) if item]


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


def find_active_work(repository: Key) -> Work | None:
    """Returns the repository's active scan, or its request, or None if it has none or is gone. Consistent."""
    stored = table.get(repository)
    return get_active_work(stored) if stored is not None and stored.get("activeRequestId") else None


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


def find_latest_scans(project_id: ProjectId, repository_ids: Sequence[RepositoryId]) -> dict[RepositoryId, ScanItem]:
    """Returns the project's last completed scan of each repository's production branch, without repositories that have
    none. Consistent, two round trips.
    """
    entries = table.batch_get([keys.latest_scan(repository_id, project_id.local) for repository_id in repository_ids])
    scans = table.batch_get([work_key(ScanId.stored(entry["scanId"])) for entry in entries if entry])
    return {scan.repository_id: scan for scan in (ScanItem.from_item(item) for item in scans if item)}


def list_scans(
    organization_id: str,
    limit: int,
    after: str | None,
    repository_id: str | None = None,
    status: Status | None = None,
) -> QueryPage[ScanItem]:
    """Returns one page of the organization's scans, newest first, optionally filtered by repository and status.

    The page is empty if the repository belongs to another organization.
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


def stored_leg(scan_id: ScanId, inventory: Any) -> Put:
    """Returns the leg that stores the inventory, which has the fields of `Inventory`."""
    return Put({**keys.scan_inventory(scan_id)._asdict(), **to_map(inventory)})


class Outcome(NamedTuple):
    """The current state of a scan request, with its scan if that exists."""

    request: RequestItem
    scan: ScanItem | None


def find_outcome(request: RequestItem) -> Outcome:
    """Returns the request with its scan. Raises UnknownScan if the scan was deleted with its project."""
    return Outcome(request, get_scan(request.scan_id) if request.scan_id else None)


async def wait_for_request(
    request_id: ScanRequestId, seconds: float | None = None, current: Outcome | None = None
) -> tuple[Outcome, bool]:
    """Waits that long for the request's scan to end, or for the request to fail.

    Without `seconds`, waits up to SCAN_START_WAIT_SECONDS for the scan to exist. current: its state as just read.
    Returns the state, and False if it couldn't wait because too many requests are waiting (`table.waiting`). Raises
    UnknownRequest or UnknownScan if it was deleted with its project. Reads the table at most 12 times in the first 3
    seconds, and once a second after that, two items at a time.
    """

    def is_open(outcome: Outcome) -> bool:
        is_running = seconds is not None and outcome.scan is not None and outcome.scan.is_open
        return outcome.request.status == "starting" or is_running

    longest = settings.scan_start_wait_seconds if seconds is None else seconds
    return await _wait(lambda: find_outcome(get_request(request_id)), is_open, longest, current)


async def wait_for_end(found: ScanWithInventory, seconds: float) -> tuple[ScanWithInventory, bool]:
    """Waits that long for the scan to end. Returns it, and False if it couldn't wait. Reads as `wait_for_request`.

    Raises NotFound if it was deleted with its project.
    """

    def read() -> ScanWithInventory:
        return known(find_with_inventory(found.scan.scan_id), NotFound)

    return await _wait(read, lambda it: it.scan.is_open, seconds, found)


async def _wait[T](
    read: Callable[[], T], is_open: Callable[[T], bool], seconds: float, current: T | None = None
) -> tuple[T, bool]:
    """Polls until the state isn't open anymore, at most `seconds`, with a slot of `table.waiting`.

    Returns the last state, and False if it is open and there was no slot. Needs no slot if `seconds` is 0.
    """
    state = read() if current is None else current
    if not is_open(state) or not seconds:
        return state, True
    with waiting.slot(seconds) as may_wait:
        left, waited = seconds if may_wait else 0.0, 0.0
        while left > 0 and is_open(state):
            pause = min(left, _POLL_SECONDS if waited < settings.scan_start_wait_seconds else _LATER_POLL_SECONDS)
            await clock.pause(pause)
            left, waited = left - pause, waited + pause
            state = read()
    return state, may_wait
