"""Scans of the demo's repository: one that has ended, as the workers would have run it, and one for the workers to run.

The first one found trackers that the repository doesn't have anymore. So the second one has something to compare with.
"""

from collections import Counter
from dataclasses import replace
from hashlib import sha256

from controlplane.code_host import repositories
from controlplane.code_host.items import RepositoryItem
from controlplane.findings import publications
from controlplane.platform.queues import outbox
from controlplane.platform.table.leases import Lease
from controlplane.scans import execution, findings, requests
from controlplane.scans.findings import FindingItem, Location
from controlplane.scans.history import HistoryItem, put_history
from controlplane.scans.items import Coverage, CoveredKind, ScanItem

_LEASE_SECONDS = 60
_COMMIT = "5e0d3a7c" * 5
_FILE = "src/legacy/pixels.js"


def create_scans(repository: RepositoryItem, described: list[dict[str, str]], requested_by: str) -> None:
    """Writes a past scan of the repository, and requests another. The findings go to the inbox.

    described: priority, severity, and vendor of each finding of the past scan.
    """
    scan, running = _start_past_scan(repository, requested_by)
    found = [_finding(scan, line, **it) for line, it in enumerate(described, 1)]
    put_history(running, [_history(scan, finding) for finding in found])
    findings.put_findings(scan.scan_id, running.attempt, found)
    counts = Counter(finding.priority for finding in found)
    scan = replace(scan, issue_count=len(found), priority_counts=counts)
    publications.publish_findings([findings.as_discovery(scan, it) for it in found[: scan.visible_count]])
    coverage = Coverage(9, 8, {}, (CoveredKind("JavaScript and TypeScript", 8, 0), CoveredKind("Markdown", 0, 1)))
    execution.complete_scan(scan, running, len(found), len(found), coverage)
    current = repositories.get_repository(repository.repository_id)
    requests.request_scan(current, repository.links[0].project_id, requested_by, {})


def _start_past_scan(repository: RepositoryItem, requested_by: str) -> tuple[ScanItem, Lease]:
    """Writes the same items as the workers, without messages."""
    (link,) = repository.links
    request, prepare = requests.create_request(repository, link, requested_by=requested_by)
    lease, request = requests.acquire_request(request.request_id, _LEASE_SECONDS)
    target = requests.Target(repository, link, repository.default_branch or "main", _COMMIT)
    scan, sent = requests.start_scan(request, lease, target, "free-preview")
    for message in (prepare, *sent):
        outbox.delete_entry(message)
    running, scan = execution.acquire_scan(scan.scan_id, _LEASE_SECONDS)
    return scan, running


def _finding(scan: ScanItem, line: int, priority: str, severity: str, vendor: str) -> FindingItem:
    return FindingItem(
        fingerprint=sha256(f"demo {vendor}".encode()).hexdigest(),
        rule_id="tracker-loaded",
        title=f"{vendor} is loaded before consent",
        description=f"{vendor} starts with the page, before the visitor has agreed.",
        category="trackers",
        severity=severity,
        priority=priority,
        location=Location(
            path=_FILE,
            start_line=line,
            end_line=line,
            start_column=1,
            end_column=19,
            snippet="loadScript(address)",
            permalink=f"{scan.repository_url}/blob/{scan.head_commit_sha}/{_FILE}#L{line}",
        ),
        remediation=f"Load {vendor} only after the visitor has agreed.",
        references=("https://eur-lex.europa.eu/eli/dir/2002/58/oj",),
        first_seen_at=scan.created_at,
    )


def _history(scan: ScanItem, finding: FindingItem) -> HistoryItem:
    return HistoryItem(
        repository_id=scan.repository_id,
        fingerprint=finding.fingerprint,
        first_seen_at=scan.created_at,
        rule_id=finding.rule_id,
        content=finding.fingerprint,
        shape="",
        path=_FILE,
        project_ids=(scan.project_id,),
    )
