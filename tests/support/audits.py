"""Creates scan requests and scans for tests, in place of the workers."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any

from pydantic import TypeAdapter

from controlplane.code_host import repositories
from controlplane.code_host.items import HostedRepository, RepositoryItem
from controlplane.platform.core.ids import ScanRequestId
from controlplane.platform.queues.messages import PrepareScan, Queue
from controlplane.platform.queues.worker import create_worker
from controlplane.platform.table.leases import Lease
from controlplane.platform.table.table import table
from controlplane.scans import execution, failures, findings, reads, requests, unlocks
from controlplane.scans.findings import FindingItem, Location
from controlplane.scans.history import HistoryItem
from controlplane.scans.items import Access, Coverage, CoveredKind, Failure, ScanItem
from scan_execution.app import ACCEPTED, ScanMessage
from scan_execution.service import execute_scan, publish_scan
from scan_preparation.service import prepare_scan
from tests.support.code_host import SHA, FakeHost
from tests.support.sqs import Handler

RULES_VERSION = "5f0c2b9e7d3a4a55"


def make_request(repository: RepositoryItem) -> ScanRequestId:
    """Creates a scan request without sending its message. Returns its id."""
    return requests.create_request(repository, repository.links[0], requested_by="usr_0000000000000000")[0].request_id


def make_scan(
    repository: RepositoryItem,
    *,
    status: str = "completed",
    again: Access | None = None,
    access: Access | None = None,
    issues: Sequence[FindingItem] = (),
    commit: str = SHA,
    rules_version: str | None = RULES_VERSION,
    request_id: ScanRequestId | None = None,
) -> ScanItem:
    """Creates a scan in that status, as the workers do. A scan that has ended frees the repository.

    again: makes it a later scan than the first, with this access. access: its access, by default as on the free plan.
    request_id: the request that it is for, by default a new one.
    """
    if again is not None:
        make_scan(repository)
    repository = repositories.get_repository(repository.repository_id)
    lease, request = requests.acquire_request(request_id or make_request(repository), 30)
    link = repository.links[0]
    target = requests.Target(repository, link, link.production_branch or "main", commit)
    scan, _ = requests.start_scan(request, lease, target, again or access or "free-preview")
    scan_id = scan.scan_id
    if status == "queued":
        return scan
    running, scan = execution.acquire_scan(scan_id, 420)
    if status == "completed":
        findings.put_findings(scan_id, running.attempt, issues)
        scan = unlocks.with_paid_access(replace(scan, rules_version=rules_version))
        return execution.complete_scan(
            scan,
            running,
            len(issues),
            len(issues),
            Coverage(10, 9, {"minified": 1}, (CoveredKind("ERB", 9, 1),)),
        )[0]
    if status == "failed":
        failures.fail_attempted(scan_id, Failure("REPOSITORY_TOO_LARGE", "Too large."), running)
    return reads.get_scan(scan_id)


def history_of(scan: ScanItem, issue: FindingItem) -> HistoryItem:
    """Returns the history of an issue that the scan is the first to find."""
    return HistoryItem(
        repository_id=scan.repository_id,
        fingerprint=issue.fingerprint,
        first_seen_at=scan.created_at,
        rule_id=issue.rule_id,
        content=issue.fingerprint,
        shape="",
        path=issue.location.path,
        project_ids=(scan.project_id,),
    )


def lease_of(scan: ScanItem) -> Lease:
    """Returns the lease of the worker that runs the scan."""
    lease = reads.get_scan(scan.scan_id).lease
    assert lease.claim is not None
    return Lease(scan.key, lease.claim, lease.attempts)


def end_scan(scan: ScanItem) -> None:
    """Completes the scan in place of its worker, without findings."""
    execution.complete_scan(scan, lease_of(scan), 0, 0, Coverage(1, 1, {}))


def make_issue(number: int = 1, priority: str = "P1", path: str = "src/app.tsx") -> FindingItem:
    """Creates a finding. The number determines its fingerprint."""
    location = Location(
        path=path,
        start_line=number,
        end_line=number + 1,
        start_column=1,
        end_column=9,
        snippet="<script>",
        permalink=f"https://github.com/acme/shop/blob/{SHA}/{path}#L{number}",
    )
    return FindingItem(
        fingerprint=f"{number:064x}",
        rule_id="tracker-before-consent",
        title="Google Analytics loads before consent",
        description="A script of googletagmanager.com is loaded before anybody agreed.",
        category="trackers",
        severity="high",
        priority=priority,
        location=location,
        remediation="Load it in the consent callback.",
        references=("https://gdpr-info.eu/art-7-gdpr/",),
        first_seen_at="2026-03-04T05:06:07.000Z",
    )


def preparation_worker(host: FakeHost) -> Handler:
    return create_worker(
        Queue.SCAN_PREPARATION, TypeAdapter(PrepareScan), lambda message: prepare_scan(message, host.connect)
    )


def scan_worker(host: FakeHost) -> Handler:
    """Returns the worker that runs scans and publishes their findings."""

    def take(message: ScanMessage) -> None:
        if message.kind == "execute-scan":
            execute_scan(message, host.connect)
        else:
            publish_scan(message)

    return create_worker(Queue.SCAN_EXECUTION, ACCEPTED, take)


def serving(repository: RepositoryItem, archive: bytes = b"", branch: str = "main") -> FakeHost:
    """Returns a code host that has the repository."""
    return FakeHost({(repository.owner, repository.name, branch): SHA}, {SHA: archive})


def stored_repository(repository: RepositoryItem) -> dict[str, Any]:
    item = table.get(repository.key)
    assert item is not None
    return item


def describe(repository: RepositoryItem, **changes: object) -> None:
    """Describes the repository as it was read, with these changes, as an event of the code host does."""
    described = {it.name: getattr(repository, it.name) for it in fields(HostedRepository)}
    with suppress(repositories.UnknownRepository):
        repositories.describe(repository.repository_id, HostedRepository(**{**described, **changes}))
