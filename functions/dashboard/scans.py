"""Business rules of the scans' pages: which scan a URL identifies, and what its organization can read of it."""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from controlplane.core.errors import NotFound
from controlplane.core.ids import ProjectId, RepositoryId, ScanId
from controlplane.store import keys, organizations, projects
from controlplane.store.organizations import Membership
from controlplane.store.parallel import read_both, read_each
from controlplane.store.project_items import ProjectItem
from controlplane.store.scans import findings, reads
from controlplane.store.scans.findings import PublishedFinding
from controlplane.store.scans.inventories import Inventory, ScanWithInventory
from controlplane.store.scans.items import ScanItem

FINDINGS_PER_PAGE = 50
LATEST = 5
# A repository can be scanned for several projects, of which a project's page lists one.
_READ_FOR_LATEST = 25


class NoScan(NotFound):
    message = "This scan doesn't exist, or you aren't a member of its organization."


class ShownScan(NamedTuple):
    """A scan with what its access makes readable: its inventory, and one page of its findings.

    project: None if it was deleted. first: the position of the first finding on the page, starting at 1.
    """

    organization: Membership
    scan: ScanItem
    inventory: Inventory | None
    project: ProjectItem | None
    found: list[PublishedFinding]
    first: int

    @property
    def next_after(self) -> int | None:
        """Returns how many findings precede the next page, or None on the last page."""
        last = self.first - 1 + len(self.found)
        return last if self.found and last < self.scan.visible_count else None


def get_scan(organization_slug: str, scan_id: str, user_id: str, after: int) -> ShownScan:
    """Returns a scan of one of the user's organizations with its findings after the first `after`. Raises NoScan."""
    own_id = ScanId.parse(scan_id)
    if own_id is None:
        raise NoScan
    wanted = [keys.scan(*own_id.location), keys.scan_inventory(own_id)]
    (item, stock), membership = organizations.get_with_membership(wanted, user_id, own_id.organization_id)
    if item is None or membership is None or membership.slug != organization_slug:
        raise NoScan
    scan, inventory = ScanWithInventory.from_items(item, stock)
    found, project = read_both(
        lambda: findings.list_readable(scan, after, FINDINGS_PER_PAGE), lambda: _find_project(scan.project_id)
    )
    return ShownScan(membership, scan, inventory and inventory.readable(scan), project, found, after + 1)


def _find_project(project_id: ProjectId) -> ProjectItem | None:
    try:
        return projects.get_project(project_id)
    except projects.UnknownProject:
        return None


def list_latest(project_id: ProjectId, repository_ids: Sequence[RepositoryId]) -> list[ScanItem]:
    """Returns the project's latest scans among the latest of its repositories, newest first."""

    def list_scans(repository_id: RepositoryId) -> list[ScanItem]:
        return reads.list_scans(repository_id.organization_id, _READ_FOR_LATEST, None, repository_id).scans

    listed = chain.from_iterable(read_each(list_scans, repository_ids))
    own = (scan for scan in listed if scan.project_id == project_id)
    return sorted(own, key=lambda scan: scan.created_at, reverse=True)[:LATEST]
