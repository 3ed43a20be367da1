"""The last stage of a pull request's scan: keeps the findings that the production branch doesn't have.

Nothing is published, and the history of the repository's findings isn't changed, because a pull request may never be
merged. Every step can be repeated.
"""

from controlplane.store.leases import Lease
from controlplane.store.scans import findings, reads
from controlplane.store.scans.causes import Comparison
from controlplane.store.scans.findings import FindingItem
from controlplane.store.scans.history import list_history
from controlplane.store.scans.items import ScanItem
from scan_execution import identities, publication
from scan_execution.analysis import Analysis
from scan_execution.fixes import Project

_MOST_FIXED = 50


def compare(
    scan: ScanItem, lease: Lease, result: Analysis, unread: frozenset[str], project: Project
) -> tuple[int, Comparison]:
    """Stores the new findings. Returns how many there are, and how the others compare.

    Without a scan of the production branch, all findings are kept. Those that decisions on vendors settle never are.
    """
    sight = publication.sight_of(scan, result, unread)
    history = list_history(scan.repository_id)
    found = [*{finding.fingerprint: finding for finding in result.findings}.values()]
    fingerprints = identities.identify(found, history, sight.misses)
    base = reads.find_production_scan(scan.repository_id, scan.project_id, completed=True)
    before = findings.list_findings(base.scan_id, base.findings_attempt, base.issue_count or 0) if base else []
    # A scan stores its most urgent findings only. The history has more.
    known = {finding.fingerprint for finding in before}
    if base is not None:
        known |= {it.fingerprint for it in history.values() if it.gone is None and scan.project_id in it.project_ids}
    decided = publication.decisions_of(scan)
    new: list[FindingItem] = []
    for finding in found:
        fingerprint = fingerprints[finding.fingerprint]
        if fingerprint in known:
            continue
        seen = identities.found_again(scan, finding, fingerprint, history.get(fingerprint), sight.linked)
        issue = publication.to_issue(scan, finding, seen, project)
        if not publication.discovery_of(scan, issue, decided).settled:
            new.append(issue)
    kept = new[: publication.MOST_ISSUES]
    findings.put_findings(scan.scan_id, lease.attempt, kept)
    findings.delete_attempts_before(scan.scan_id, lease.attempt)
    reported = set(fingerprints.values())
    fixed = [
        finding.fingerprint
        for finding in before
        if finding.fingerprint not in reported
        and sight.covers(identities.dependency(finding.rule_id, finding.location.path))
    ]
    comparison = Comparison(base.scan_id if base else None, len(fixed), tuple(fixed[:_MOST_FIXED]))
    return len(kept), comparison
