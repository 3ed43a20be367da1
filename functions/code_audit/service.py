"""Business rules of `code_audit`: starting scans, reading findings, and unlocking them."""

from collections.abc import Mapping
from typing import NamedTuple

from controlplane.core import clock, ids
from controlplane.core.errors import ApiError, Conflict, Forbidden, NotFound
from controlplane.core.settings import settings
from controlplane.queues import messages
from controlplane.queues.messages import PrepareScan, PublishScan, Queue
from controlplane.store import findings, inbox, repositories, scan_requests, scans, unlocks, waiting
from controlplane.store.findings import Finding
from controlplane.store.inbox import InboxItem
from controlplane.store.repositories import Link, RepositoryItem
from controlplane.store.scan_requests import RequestItem
from controlplane.store.scans import ScanItem
from controlplane.store.table import Leg

_POLL_SECONDS = 0.25


class RepositoryNotLinked(ApiError):
    code = "REPOSITORY_NOT_LINKED"
    message = "The repository isn't linked to that project, or to any project. Ask the operator to link it."


class ScanInProgress(ApiError):
    code = "SCAN_IN_PROGRESS"
    message = "A scan of this repository is in progress. Wait until it ends."

    def __init__(self, request_id: str, scan_id: str | None) -> None:
        super().__init__(details={"scanId": scan_id} if scan_id else {"preparationId": request_id})


class UnlockRequired(ApiError):
    code = "UNLOCK_REQUIRED"
    message = "The findings of this scan are locked. An owner of the organization can unlock them for credits."

    def __init__(self, scan: ScanItem) -> None:
        super().__init__(
            details={
                "scanId": scan.scan_id,
                "unlockCredits": scan.unlock_credits,
                "lockedCount": scan.locked_count,
            }
        )


class InsufficientCredits(ApiError):
    code = "INSUFFICIENT_CREDITS"
    message = "The organization doesn't have enough credits."

    def __init__(self, remaining: int, required: int) -> None:
        super().__init__(details={"remainingCredits": remaining, "requiredCredits": required})


class NothingToUnlock(Conflict):
    message = "Only the findings of a completed scan can be unlocked, and only until they expire."

    def __init__(self, scan: ScanItem, reason: str = "not_completed") -> None:
        super().__init__(details={"reason": reason, "status": scan.status})


# Starting


def get_repository(organization_id: str, repository_id: str) -> RepositoryItem:
    """Returns the repository. Raises NotFound, also if it belongs to another organization."""
    located = ids.locate(ids.REPOSITORY, repository_id)
    if located is None or located.organization_id != organization_id:
        raise NotFound
    try:
        return repositories.get_repository(repository_id)
    except repositories.UnknownRepository:
        raise NotFound from None


def request_scan(
    repository: RepositoryItem, project_id: str | None, user_id: str, extra_legs: Mapping[str, Leg]
) -> RequestItem:
    """Requests a scan of the linked project, by default the first one that still exists.

    `extra_legs` precede those of the request in the transaction. Raises RepositoryNotLinked, ScanInProgress, NotFound.
    """
    request_id = scan_requests.new_request_id(repository.organization_id)
    message = messages.entry(Queue.SCAN_PREPARATION, PrepareScan(request_id=request_id))
    for link in _candidates(repository, project_id):
        try:
            request = scan_requests.create_request(
                repository, link, request_id, message=message, requested_by=user_id, extra_legs=extra_legs
            )
        except repositories.ProjectGone:
            continue
        except repositories.UnknownRepository:
            raise NotFound from None
        except scan_requests.ScanInProgress as refusal:
            raise ScanInProgress(refusal.request_id, refusal.scan_id) from None
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
    """Returns the request with its scan. Raises NotFound if the scan was deleted with its project."""
    try:
        return Outcome(request, scans.get_scan(request.scan_id) if request.scan_id else None)
    except scans.UnknownScan:
        raise NotFound from None


async def wait_for_outcome(request_id: str) -> Outcome:
    """Waits up to SCAN_START_WAIT_SECONDS for the request to start its scan or fail, then returns its state.

    Doesn't wait if too many requests are already waiting (`store.waiting`). Raises NotFound if the request or the scan
    was deleted with its project.
    """
    request = _get_request(request_id)
    if request.status == "starting":
        with waiting.slot(settings.scan_start_wait_seconds) as may_wait:
            for _ in range(int(settings.scan_start_wait_seconds / _POLL_SECONDS) if may_wait else 0):
                await clock.pause(_POLL_SECONDS)
                request = _get_request(request_id)
                if request.status != "starting":
                    break
    return find_outcome(request)


def _get_request(request_id: str) -> RequestItem:
    try:
        return scan_requests.get_request(request_id)
    except scan_requests.UnknownRequest:
        raise NotFound from None


# Reading


def list_scans(
    organization_id: str, limit: int, after: str | None, repository_id: str | None, status: str | None
) -> scans.ScanPage:
    """Returns one page, newest first. The page is empty if the repository belongs to another organization."""
    if repository_id is not None:
        located = ids.locate(ids.REPOSITORY, repository_id)
        if located is None or located.organization_id != organization_id:
            return scans.ScanPage([], None)
    return scans.list_scans(organization_id, limit, after, repository_id, status)


def list_visible_issues(scan: ScanItem) -> list[tuple[Finding, InboxItem | None]]:
    """Returns the readable findings with their inbox items, most urgent first. Empty if the findings have expired.

    Raises UnlockRequired.
    """
    if scan.findings_expired:
        return []
    if scan.access == "locked" and (scan.locked_count or scan.status != "completed"):
        raise UnlockRequired(scan)
    found = findings.list_findings(scan.scan_id, scan.findings_attempt, scan.visible_count)
    item_ids = [findings.as_discovery(scan, finding).item_id for finding in found]
    items = inbox.find_items(item_ids)
    return [(finding, items.get(item_id)) for finding, item_id in zip(found, item_ids, strict=True)]


# Unlocking


def unlock_scan(scan: ScanItem, user_id: str) -> bool:
    """Unlocks the scan and charges for it. Returns False, without charging, if it was unlocked before.

    Raises NothingToUnlock, InsufficientCredits, Forbidden, NotFound.
    """
    message = messages.entry(Queue.SCAN_EXECUTION, PublishScan(scan_id=scan.scan_id))
    try:
        unlocks.unlock_scan(scan, user_id, message)
    except unlocks.AlreadyUnlocked:
        return False
    except scans.UnknownScan:
        raise NotFound from None
    except unlocks.NotCompleted:
        raise NothingToUnlock(scan) from None
    except unlocks.FindingsExpired:
        raise NothingToUnlock(scan, "findings_expired") from None
    except unlocks.NoLongerOwner:
        raise Forbidden from None
    except unlocks.InsufficientCredits as refusal:
        raise InsufficientCredits(refusal.remaining, refusal.required) from None
    messages.dispatch(message)
    return True
