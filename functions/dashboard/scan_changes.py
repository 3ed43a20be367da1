"""Business rules of starting a scan, of unlocking its findings, and of downloading them.

Imported by the first request that needs it, because the rules of scans bring the messages to the queues.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from controlplane.billing import charges
from controlplane.organizations.items import BillingItem
from controlplane.organizations.store import Account, Membership
from controlplane.platform.core.errors import Forbidden, InvalidPayload, NotFound
from controlplane.platform.core.ids import ScanId
from controlplane.scans import csv as finding_csv
from controlplane.scans import reading, reads, sarif, starting, unlocks, waits
from controlplane.scans.items import ScanItem
from controlplane.scans.requests import ScanInProgress
from controlplane.scans.starting import RepositoryNotLinked
from controlplane.scans.unlocks import InsufficientCredits, NothingToUnlock
from dashboard.organizations import find_membership
from dashboard.scans import NoScan, ShownScan, get_scan

# A scan keeps at most 500.
_MOST_FINDINGS = 10_000


class NotChosen(InvalidPayload):
    message = "Choose a repository and a project."


class NotConnected(NotFound):
    message = "This repository isn't connected anymore. Choose another one."


class OnlyOwners(Forbidden):
    message = "Only owners of the organization can unlock findings. Ask one of them."


NOT_STARTED = (NotChosen, NotConnected, RepositoryNotLinked, ScanInProgress)
NOT_UNLOCKED = (InsufficientCredits, NothingToUnlock)


class Locked(NamedTuple):
    """A scan with findings to unlock, and the organization's credits."""

    organization: Membership
    scan: ScanItem
    balance: BillingItem

    @property
    def price(self) -> int:
        return self.scan.unlock_credits or 0

    @property
    def is_covered(self) -> bool:
        """Returns whether the credits suffice, together with the automatic top-up that the charge would need."""
        return charges.covers(self.balance, self.price)

    @property
    def needs_top_up(self) -> bool:
        return self.balance.credits < self.price and self.is_covered


async def start(organization: Membership, form: Mapping[str, str], user_id: str) -> str:
    """Starts the scan that the form chooses. Returns the id of the scan, or of the request until the scan exists.

    Raises NotChosen, NotConnected, RepositoryNotLinked, ScanInProgress.
    """
    repository_id, _, project_id = form.get("subject", "").partition(" ")
    if not project_id:
        raise NotChosen
    try:
        repository = starting.get_repository(organization.organization_id, repository_id)
    except NotFound:
        raise NotConnected from None
    request, current = starting.request_scan(repository, project_id, user_id, {})
    outcome = await waits.wait_for_outcome(request.request_id, current)
    return outcome.scan.scan_id if outcome.scan is not None else outcome.request.request_id


def get_locked(organization_slug: str, scan_id: str, account: Account) -> Locked:
    """Returns the scan and the credits, for an owner. Raises NoScan, OnlyOwners."""
    own_id, membership = ScanId.parse(scan_id), find_membership(organization_slug, account)
    if own_id is None or membership is None or membership.organization_id != own_id.organization_id:
        raise NoScan
    found = reads.find_with_billing(own_id)
    if found is None:
        raise NoScan
    if membership.role != "owner":
        raise OnlyOwners
    return Locked(membership, *found)


def get_sarif(organization_slug: str, scan_id: str, account: Account) -> tuple[str, dict[str, Any]]:
    """Returns the findings as SARIF, and a name for the file. Raises the errors of `_get_findings`."""
    shown = _get_findings(organization_slug, scan_id, account)
    return _name_of(shown.scan), sarif.to_sarif(shown.scan, shown.found)


def get_csv(organization_slug: str, scan_id: str, account: Account) -> tuple[str, str]:
    """Returns the findings as CSV, and a name for the file. Raises the errors of `_get_findings`."""
    shown = _get_findings(organization_slug, scan_id, account)
    return _name_of(shown.scan), finding_csv.to_csv(shown.scan, shown.found)


def _name_of(scan: ScanItem) -> str:
    return f"{scan.repository_name}-{scan.head_commit_sha[:12]}"


def _get_findings(organization_slug: str, scan_id: str, account: Account) -> ShownScan:
    """Returns the scan with all findings that may be read.

    Raises NoScan, ScanNotCompleted, ScanWithoutResult, UnlockRequired.
    """
    shown = get_scan(organization_slug, scan_id, account, at_most=_MOST_FINDINGS)
    reading.require_readable(shown.scan)
    return shown


def unlock(locked: Locked, user_id: str) -> bool:
    """Unlocks the findings. Returns False if that was done before. Raises InsufficientCredits, NothingToUnlock."""
    return unlocks.unlock_scan(locked.scan, user_id, locked.balance)
