"""Business rules of the scans' pages: which scan a URL identifies, and what its organization can read of it."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from controlplane.code_host import repositories
from controlplane.code_host.items import RepositoryItem
from controlplane.findings.items import InboxItem
from controlplane.organizations.store import Account, Membership
from controlplane.platform.core import keyring
from controlplane.platform.core.errors import NotFound
from controlplane.platform.core.ids import ProjectId, RepositoryId, ScanId, ScanRequestId
from controlplane.platform.table.parallel import read_both, read_each
from controlplane.projects import store as projects
from controlplane.projects.items import ProjectItem
from controlplane.scans import findings, reads
from controlplane.scans.findings import PublishedFinding
from controlplane.scans.inventories import Inventory
from controlplane.scans.items import STATUSES, RequestItem, ScanItem
from dashboard.organizations import find_membership
from dashboard.repositories import list_choices
from dashboard.trends import TREND_SCANS, Trend, trend_of

FINDINGS_PER_PAGE = 50
SCANS_PER_PAGE = 25
LATEST = 5
# A repository can be scanned for several projects, of which a project's page lists one.
_READ_FOR_LATEST = 25
# A project's page looks at the scans of each linked repository, but of more than this at the organization's last scans.
_MOST_REPOSITORIES, _READ_OF_ORGANIZATION = 8, 100
_PROJECTS = 100


class NoScan(NotFound):
    message = "This scan doesn't exist, or you aren't a member of its organization."


class ShownScan(NamedTuple):
    """A scan with its readable parts: its inventory, and one page of its findings.

    project: None if it was deleted. first: the position of the first finding on the page, starting at 1.
    fixed: inbox items of findings that the previous scan had, on the first page.
    """

    organization: Membership
    scan: ScanItem
    inventory: Inventory | None
    project: ProjectItem | None
    found: list[PublishedFinding]
    first: int
    fixed: list[InboxItem]

    @property
    def next_after(self) -> int | None:
        """Returns how many findings precede the next page, or None on the last page."""
        last = self.first - 1 + len(self.found)
        return last if self.found and last < self.scan.visible_count else None


class ShownRequest(NamedTuple):
    """A request for a scan, with its scan if that exists."""

    organization: Membership
    request: RequestItem
    scan: ScanItem | None


class Choice(NamedTuple):
    """A repository and the linked project that it can be scanned for."""

    repository: RepositoryItem
    project: ProjectItem
    branch: str | None

    @property
    def value(self) -> str:
        return f"{self.repository.repository_id} {self.project.project_id}"


class ShownScans(NamedTuple):
    """One page of an organization's scans, newest first, with the projects by id and what can be scanned.

    trend: how the findings of the last scanned repository develop, on the first page.
    """

    organization: Membership
    scans: list[ScanItem]
    next_cursor: str | None
    projects: dict[str, ProjectItem]
    repositories: list[RepositoryItem]
    choices: list[Choice]
    trend: Trend | None


class Filters(NamedTuple):
    """The filters of the list. An unknown repository or status is ignored."""

    repository_id: RepositoryId | None = None
    status: str | None = None

    @classmethod
    def of(cls, organization_id: str, repository: str | None, status: str | None) -> "Filters":
        parsed = RepositoryId.parse(repository or "")
        own = parsed if parsed is not None and parsed.organization_id == organization_id else None
        return cls(own, status if status in STATUSES else None)

    def binding(self, organization_id: str) -> tuple[str, ...]:
        return "showScans", organization_id, self.repository_id or "", self.status or ""


def get_scans(organization: Membership, filters: Filters, cursor: str | None) -> ShownScans:
    """Returns a page of the organization's scans. Raises InvalidPayload for a cursor of another list."""
    organization_id = organization.organization_id
    binding = filters.binding(organization_id)
    after = keyring.open_cursor(binding, cursor) if cursor else None

    def list_scans() -> reads.ScanPage:
        status = next((it for it in STATUSES if it == filters.status), None)
        return reads.list_scans(organization_id, SCANS_PER_PAGE, after, filters.repository_id, status)

    def list_completed() -> list[ScanItem]:
        if after is not None:
            return []
        return reads.list_scans(organization_id, TREND_SCANS, None, filters.repository_id, "completed").scans

    (page, completed), (connected, listed) = read_both(
        lambda: read_both(list_scans, list_completed),
        lambda: read_both(
            lambda: list_choices(organization_id),
            lambda: projects.list_projects(organization_id, _PROJECTS, None),
        ),
    )
    named: dict[str, ProjectItem] = {project.project_id: project for project in listed.projects}
    if listed.next_sk is not None:
        named |= repositories.find_linked_projects(connected)
    choices = [
        Choice(repository, named[link.project_id], link.production_branch or repository.default_branch)
        for repository in connected
        for link in repository.links
        if link.project_id in named
    ]
    next_cursor = keyring.seal_cursor(binding, page.next_sk) if page.next_sk else None
    return ShownScans(organization, page.scans, next_cursor, named, connected, choices, trend_of(completed))


def get_scan(
    organization_slug: str, scan_id: str, account: Account, after: int = 0, at_most: int = FINDINGS_PER_PAGE
) -> ShownScan:
    """Returns a scan of one of the account's organizations with its findings after the first `after`. Raises NoScan.

    Takes two round trips: the findings are read together with the scan, as if its first attempt had stored them.
    """
    own_id, membership = ScanId.parse(scan_id), find_membership(organization_slug, account)
    if own_id is None or membership is None or membership.organization_id != own_id.organization_id:
        raise NoScan
    ahead, stocked = read_both(
        lambda: findings.read_ahead(own_id, after, at_most),
        lambda: reads.find_with_inventory(own_id),
    )
    if stocked is None:
        raise NoScan
    scan, inventory = stocked
    found = findings.confirm(scan, ahead, findings.readable_count(scan, after, at_most), after)
    fixed = scan.comparison.fixed if scan.comparison is not None and after == 0 else ()
    fingerprints = [finding.fingerprint for finding in found]
    stored, project = read_both(
        lambda: findings.find_items(scan, [*fingerprints, *fixed]), lambda: projects.find_project(scan.project_id)
    )
    return ShownScan(
        membership,
        scan,
        inventory and inventory.readable(scan),
        project,
        findings.publish(found, stored),
        after + 1,
        [stored[fingerprint] for fingerprint in fixed if fingerprint in stored],
    )


def get_request(organization_slug: str, request_id: ScanRequestId, account: Account) -> ShownRequest:
    """Returns a request for a scan in one of the account's organizations. Raises NoScan."""
    membership = find_membership(organization_slug, account)
    if membership is None or membership.organization_id != request_id.organization_id:
        raise NoScan
    request = reads.find_work(request_id)
    if not isinstance(request, RequestItem):
        raise NoScan
    scan = reads.find_work(request.scan_id) if request.scan_id is not None else None
    if request.scan_id is not None and scan is None:
        raise NoScan
    return ShownRequest(membership, request, scan if isinstance(scan, ScanItem) else None)


def list_latest(project_id: ProjectId, repository_ids: Sequence[RepositoryId]) -> list[ScanItem]:
    """Returns the project's scans among the latest of its repositories, newest first, in one round trip."""
    organization_id = project_id.organization_id

    def list_scans(repository_id: RepositoryId) -> list[ScanItem]:
        return reads.list_scans(organization_id, _READ_FOR_LATEST, None, repository_id).scans

    listed: Iterable[ScanItem]
    if len(repository_ids) <= _MOST_REPOSITORIES:
        listed = chain.from_iterable(read_each(list_scans, repository_ids))
    else:
        listed = reads.list_scans(organization_id, _READ_OF_ORGANIZATION, None).scans
    own = (scan for scan in listed if scan.project_id == project_id)
    return sorted(own, key=lambda scan: scan.created_at, reverse=True)
