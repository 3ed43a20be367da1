"""Rules of scans: starting them, reading their findings, and unlocking these."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from controlplane.core import clock
from controlplane.core.errors import ApiError, Conflict, NotFound, Remedy
from controlplane.core.ids import RepositoryId, ScanRequestId
from controlplane.core.settings import settings
from controlplane.queues import messages
from controlplane.queues.messages import PrepareScan, PublishScan, Queue
from controlplane.store import repositories, waiting
from controlplane.store.repositories import Link, RepositoryItem
from controlplane.store.scans import findings, reads, requests, unlocks
from controlplane.store.scans.findings import PublishedFinding
from controlplane.store.scans.inventories import ScanWithInventory
from controlplane.store.scans.items import RequestItem, ScanItem, Status
from controlplane.store.scans.reads import ScanPage
from controlplane.store.table import Leg

# How long clients should wait before they poll a scan or its request again.
RETRY_AFTER_SECONDS = 2
_POLL_SECONDS = 0.25
_LATER_POLL_SECONDS = 1.0


class RepositoryNotLinked(ApiError):
    code = "REPOSITORY_NOT_LINKED"
    message = "The repository isn't linked to that project, or to any project. Ask an admin to link it."


class ScanNotCompleted(ApiError):
    """The scan has no findings yet."""

    code = "SCAN_IN_PROGRESS"
    message = "The scan isn't completed yet. Poll the scan until it is, then list its findings."

    def __init__(self, scan: ScanItem) -> None:
        super().__init__(
            details={"scanId": scan.scan_id, "status": scan.status},
            headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
            remedy=Remedy("GET /v1/code-audit/scans/{scanId}", {"scanId": scan.scan_id}),
        )


class ScanWithoutResult(Conflict):
    """The scan failed or was canceled, so nothing is known about findings."""

    def __init__(self, scan: ScanItem) -> None:
        ending = "failed" if scan.status == "failed" else "was canceled"
        super().__init__(
            f"The scan {ending}, so it doesn't have a list of findings. Start another scan.",
            details={"scanId": scan.scan_id, "status": scan.status},
        )


class UnlockRequired(ApiError):
    code = "UNLOCK_REQUIRED"
    message = "The findings of this scan are locked. An owner of the organization can unlock them for credits."

    def __init__(self, scan: ScanItem) -> None:
        super().__init__(
            details={
                "scanId": scan.scan_id,
                "unlockCredits": scan.unlock_credits,
                "lockedCount": scan.locked_count,
            },
            remedy=Remedy("POST /v1/code-audit/scans/{scanId}/unlock", {"scanId": scan.scan_id}),
        )


# Starting


def get_repository(organization_id: str, repository_id: str) -> RepositoryItem:
    """Returns the repository. Raises NotFound, also if it belongs to another organization."""
    own_id = _parse_own(organization_id, repository_id)
    if own_id is None:
        raise NotFound
    return repositories.get_repository(own_id)


def _parse_own(organization_id: str, repository_id: str) -> RepositoryId | None:
    """Returns the id if it is one of the organization's repositories."""
    parsed = RepositoryId.parse(repository_id)
    return parsed if parsed is not None and parsed.organization_id == organization_id else None


def request_scan(
    repository: RepositoryItem, project_id: str | None, user_id: str, extra_legs: Mapping[str, Leg]
) -> RequestItem:
    """Requests a scan of the linked project, by default the first one that still exists.

    `extra_legs` precede those of the request in the transaction. Raises RepositoryNotLinked, ScanInProgress, and
    UnknownRepository.
    """
    request_id = requests.new_request_id(repository.organization_id)
    message = messages.entry(Queue.SCAN_PREPARATION, PrepareScan(request_id=request_id))
    for link in _candidates(repository, project_id):
        try:
            request = requests.create_request(
                repository, link, request_id, message=message, requested_by=user_id, extra_legs=extra_legs
            )
        except repositories.ProjectGone:
            continue
        messages.dispatch(message)
        return request
    raise RepositoryNotLinked


def _candidates(repository: RepositoryItem, project_id: str | None) -> list[Link]:
    return [link for link in repository.links if project_id in (None, link.project_id)]


class Outcome(NamedTuple):
    """The current state of a scan request, with its scan if that exists."""

    request: RequestItem
    scan: ScanItem | None


def find_outcome(request: RequestItem) -> Outcome:
    """Returns the request with its scan. Raises UnknownScan if the scan was deleted with its project."""
    return Outcome(request, reads.get_scan(request.scan_id) if request.scan_id else None)


async def wait_for_outcome(request_id: ScanRequestId) -> Outcome:
    """Waits up to SCAN_START_WAIT_SECONDS for the request to start its scan or fail, then returns its state.

    Doesn't wait if too many requests are already waiting (`store.waiting`). Raises UnknownRequest or UnknownScan if it
    was deleted with its project.
    """
    outcome, _ = await _wait(
        lambda: find_outcome(reads.get_request(request_id)),
        lambda outcome: outcome.request.status == "starting",
        settings.scan_start_wait_seconds,
    )
    return outcome


async def wait_for_result(request_id: ScanRequestId, seconds: float) -> tuple[Outcome, bool]:
    """Waits that long for the request's scan to end, or for the request to fail.

    Returns its state, and False if it couldn't wait. Raises as `wait_for_outcome`. Reads the table at most 12 times in
    the first 3 seconds, and once a second after that, two items at a time.
    """

    def is_open(outcome: Outcome) -> bool:
        return outcome.request.status == "starting" or (outcome.scan is not None and outcome.scan.is_open)

    return await _wait(lambda: find_outcome(reads.get_request(request_id)), is_open, seconds)


async def wait_for_end(found: ScanWithInventory, seconds: float) -> tuple[ScanWithInventory, bool]:
    """Waits that long for the scan to end. Returns it, and False if it couldn't wait. Reads as `wait_for_result`.

    Raises NotFound if it was deleted with its project.
    """

    def read() -> ScanWithInventory:
        current = reads.find_with_inventory(found.scan.scan_id)
        if current is None:
            raise NotFound
        return current

    return await _wait(read, lambda it: it.scan.is_open, seconds, found)


async def _wait[T](
    read: Callable[[], T], is_open: Callable[[T], bool], seconds: float, current: T | None = None
) -> tuple[T, bool]:
    """Reads until what was read isn't open anymore, for that long, with a slot of `store.waiting`.

    Returns the last state, and False if it is open and there was no slot. Without time, needs no slot.
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


# Reading


def list_scans(
    organization_id: str, limit: int, after: str | None, repository_id: str | None, status: Status | None
) -> ScanPage:
    """Returns one page, newest first. The page is empty if the repository belongs to another organization."""
    own_id = _parse_own(organization_id, repository_id) if repository_id is not None else None
    if repository_id is not None and own_id is None:
        return ScanPage([], None)
    return reads.list_scans(organization_id, limit, after, own_id, status)


def list_visible_issues(scan: ScanItem) -> list[PublishedFinding]:
    """Returns the readable findings with their inbox items, most urgent first. Empty if the findings have expired.

    Raises ScanNotCompleted, ScanWithoutResult, UnlockRequired.
    """
    require_readable(scan)
    return findings.list_readable(scan)


def require_readable(scan: ScanItem) -> None:
    """Raises ScanNotCompleted, ScanWithoutResult, or UnlockRequired if the scan has no findings that may be read."""
    if scan.is_open:
        raise ScanNotCompleted(scan)
    if scan.status != "completed":
        raise ScanWithoutResult(scan)
    if scan.access == "locked" and scan.locked_count and not scan.findings_expired:
        raise UnlockRequired(scan)


# Unlocking


def unlock_scan(scan: ScanItem, user_id: str) -> bool:
    """Unlocks the scan and charges for it. Returns False, without charging, if its report was unlocked before.

    Raises NothingToUnlock, InsufficientCredits, Forbidden, UnknownScan.
    """
    message = messages.entry(Queue.SCAN_EXECUTION, PublishScan(scan_id=scan.scan_id))
    outcome = unlocks.unlock_scan(scan, user_id, message)
    if outcome != "already":
        messages.dispatch(message)
    return outcome == "charged"
