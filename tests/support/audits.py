"""Creates scan requests and scans for tests, in place of the workers."""

from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter

from controlplane.queues import messages
from controlplane.queues.messages import PrepareScan, Queue
from controlplane.queues.worker import create_worker
from controlplane.store import findings, keys, repositories, scan_requests, scans
from controlplane.store.findings import Finding, Location
from controlplane.store.leases import Lease
from controlplane.store.repositories import RepositoryItem
from controlplane.store.scans import Access, Coverage, Failure, ScanItem
from controlplane.store.table import table
from scan_preparation.service import prepare_scan
from tests.support.code_host import SHA, FakeHost
from tests.support.mailbox import Handler


def make_request(repository: RepositoryItem, user_id: str = "usr_0000000000000000") -> str:
    """Creates a scan request without sending its message. Returns its id."""
    request_id = scan_requests.new_request_id(repository.organization_id)
    message = messages.entry(Queue.SCAN_PREPARATION, PrepareScan(request_id=request_id))
    scan_requests.create_request(repository, repository.links[0], request_id, message=message, requested_by=user_id)
    return request_id


def make_scan(
    repository: RepositoryItem,
    *,
    status: str = "completed",
    again: Access | None = None,
    issues: Sequence[Finding] = (),
) -> ScanItem:
    """Creates a scan in that status, as the workers do. A scan that has ended frees the repository.

    again: makes it a later scan than the first, with this access.
    """
    if again is not None:
        make_scan(repository)
    repository = repositories.get_repository(repository.repository_id)
    request_id = make_request(repository)
    lease, request = scan_requests.acquire_request(request_id, 30)
    scan_id = scan_requests.new_scan_id(repository.organization_id)
    link = repository.links[0]
    target = scan_requests.Target(repository, link, link.production_branch or "main", SHA)
    message = messages.entry(Queue.SCAN_EXECUTION, messages.ExecuteScan(scan_id=scan_id))
    chosen = again or ("locked" if repository.preview_used else "free-preview")
    scan = scan_requests.start_scan(request, lease, scan_id, target, access=chosen, message=message)
    if status == "queued":
        return scan
    running, scan = scans.acquire_scan(scan_id, 420)
    if status == "completed":
        findings.put_findings(scan_id, running.attempt, issues)
        return scans.complete_scan(scan, running, len(issues), len(issues), Coverage(10, 9, {"minified": 1}))
    if status == "failed":
        scans.fail_scan(scan_id, Failure("REPOSITORY_TOO_LARGE", "Too large."), running)
    return scans.get_scan(scan_id)


def lease_of(scan: ScanItem) -> Lease:
    """Returns the lease of the worker that runs the scan."""
    key = scans.scan_key(scan.scan_id)
    item = table.get(key)
    assert item is not None
    return Lease(key, item["claim"], item["attempts"])


def end_scan(scan: ScanItem) -> None:
    """Completes the scan in place of its worker, without findings."""
    scans.complete_scan(scan, lease_of(scan), 0, 0, Coverage(1, 1, {}))


def make_issue(number: int = 1, priority: str = "P1", path: str = "src/app.tsx") -> Finding:
    """Creates a finding. The number determines its fingerprint."""
    return Finding(
        f"{number:064x}",
        "tracker-before-consent",
        "Google Analytics loads before consent",
        "A script of googletagmanager.com is loaded before anybody agreed.",
        "trackers",
        "high",
        priority,
        Location(
            path, number, number + 1, 1, 9, "<script>", f"https://github.com/acme/shop/blob/{SHA}/{path}#L{number}"
        ),
        "Load it in the consent callback.",
        ("https://gdpr-info.eu/art-7-gdpr/",),
        "2026-03-04T05:06:07.000Z",
    )


def preparation_worker(host: FakeHost) -> Handler:
    return create_worker(
        Queue.SCAN_PREPARATION, TypeAdapter(PrepareScan), lambda message: prepare_scan(message, host.connect)
    )


def serving(repository: RepositoryItem, archive: bytes = b"", branch: str = "main", sha: str = SHA) -> FakeHost:
    """Returns a code host that has the repository."""
    return FakeHost({(repository.owner, repository.name, branch): sha}, {sha: archive})


def stored_repository(repository: RepositoryItem) -> dict[str, Any]:
    item = table.get(keys.repository(*repository.location))
    assert item is not None
    return item
