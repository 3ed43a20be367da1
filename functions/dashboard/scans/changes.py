"""Starting and canceling a scan, unlocking its findings, and writing them as files.

Imported by the first request that needs it, because the rules of scans bring the messages to the queues.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from controlplane.billing import charges
from controlplane.organizations.items import BillingItem
from controlplane.platform.core.errors import NotFound, known
from controlplane.platform.core.ids import ScanId
from controlplane.scans import failures, findings, reads, requests, sarif, spreadsheet, unlocks
from controlplane.scans.failures import NotCancelable
from controlplane.scans.findings import PublishedFinding
from controlplane.scans.items import ScanItem, UnknownScan
from controlplane.scans.requests import RepositoryNotLinked, ScanInProgress
from controlplane.scans.unlocks import InsufficientCredits, NothingToUnlock
from dashboard.forms import NotAcceptable


class NotConnected(NotFound):
    message = "This repository isn't connected anymore. Choose another one."


NOT_STARTED = (NotAcceptable, NotConnected, RepositoryNotLinked, ScanInProgress)
NOT_CANCELED = (NotCancelable,)
NOT_UNLOCKED = (InsufficientCredits, NothingToUnlock)


async def start(organization_id: str, form: Mapping[str, str], user_id: str) -> str:
    """Starts the scan that the form chooses. Returns the id of the scan, or of the request until the scan exists.

    Raises NotAcceptable, NotConnected, RepositoryNotLinked, ScanInProgress.
    """
    repository_id, _, project_id = form.get("subject", "").partition(" ")
    if not project_id:
        raise NotAcceptable("Choose a repository and a project.")
    repository = requests.find_repository(repository_id)
    if repository is None or repository.organization_id != organization_id:
        raise NotConnected
    request, current = requests.request_scan(repository, project_id, user_id, {})
    outcome, _ = await reads.wait_for_request(request.request_id, current=current)
    return outcome.scan.scan_id if outcome.scan is not None else outcome.request.request_id


def cancel(scan_id: ScanId) -> None:
    """Cancels the scan. Raises UnknownScan, NotCancelable."""
    failures.cancel_scan(reads.get_scan(scan_id))


def get_price(scan_id: ScanId) -> dict[str, Any]:
    """Returns the price of unlocking, and whether the credits suffice together with the automatic top-up.

    Raises UnknownScan.
    """
    scan, balance = _get_locked(scan_id)
    price = scan.unlock_credits or 0
    is_covered = charges.covers(balance, price)
    needs_top_up = balance.credits < price and is_covered
    return {"scan": scan, "balance": balance, "price": price, "is_covered": is_covered, "needs_top_up": needs_top_up}


def unlock(scan_id: ScanId, user_id: str) -> bool:
    """Unlocks the findings. Returns False if that was done before.

    Raises UnknownScan, InsufficientCredits, NothingToUnlock.
    """
    scan, balance = _get_locked(scan_id)
    return unlocks.unlock_scan(scan, user_id, balance)


def _get_locked(scan_id: ScanId) -> tuple[ScanItem, BillingItem]:
    return known(reads.find_with_billing(scan_id), UnknownScan)


def to_sarif(scan: ScanItem, found: Sequence[PublishedFinding]) -> dict[str, Any]:
    """Returns the findings as SARIF. Raises ScanNotCompleted, ScanWithoutResult, UnlockRequired."""
    findings.require_readable(scan)
    return sarif.to_sarif(scan, found)


def to_csv(scan: ScanItem, found: Sequence[PublishedFinding]) -> str:
    """Returns the findings as CSV. Raises ScanNotCompleted, ScanWithoutResult, UnlockRequired."""
    findings.require_readable(scan)
    return spreadsheet.findings_to_csv(scan, found)
