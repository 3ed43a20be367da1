"""The last stage of a pull request's scan: keeps the findings that the production branch doesn't have.

Nothing is published, and the history of the repository's findings isn't changed, because a pull request may never be
merged. Every step can be repeated.
"""

from dataclasses import replace

from controlplane.platform.table.leases import Lease
from controlplane.scans import findings
from controlplane.scans.findings import MOST_ISSUES, FindingItem
from controlplane.scans.history import list_history
from controlplane.scans.items import ScanItem
from openassent_analysis import Analysis
from openassent_analysis.fixes import Project
from openassent_analysis.identities import identify
from scan_execution import identities, publication
from scan_execution.baseline import read_baseline
from scan_execution.identities import Unread


def compare(scan: ScanItem, lease: Lease, result: Analysis, unread: Unread, project: Project) -> ScanItem:
    """Stores the new findings. Returns the scan with their number, their places, and how the others compare.

    Without a scan of the production branch, all findings are kept. Those that decisions on vendors settle never are.
    """
    sight = publication.sight_of(scan, result, unread)
    history = list_history(scan.repository_id)
    found = [*{finding.fingerprint: finding for finding in result.findings}.values()]
    fingerprints = identify(found, history, sight.misses)
    baseline = read_baseline(scan)
    # A scan stores its most urgent findings only. The history has more.
    known = {finding.fingerprint for finding in baseline.findings}
    if baseline.scan is not None:
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
    added = {issue.fingerprint for issue in new}
    kept = new[:MOST_ISSUES]
    findings.put_findings(scan.scan_id, lease.attempt, kept)
    findings.delete_attempts_before(scan.scan_id, lease.attempt)
    return replace(
        scan,
        finding_count=sum(fingerprints[finding.fingerprint] in added for finding in result.findings),
        issue_count=len(kept),
        comparison=baseline.compare(set(fingerprints.values()), sight),
    )
