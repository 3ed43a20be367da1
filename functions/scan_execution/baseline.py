"""The findings that a scan is compared with: those of the last completed scan of the production branch before it."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from controlplane.scans import findings, reads
from controlplane.scans.findings import MOST_ISSUES, FindingItem
from controlplane.scans.history import HistoryItem
from controlplane.scans.items import Comparison, ScanItem
from openassent_analysis.identities import dependency
from scan_execution.identities import Sight

_MOST_FIXED = 50


class Baseline(NamedTuple):
    """The scan to compare with, or None if it is the first one, and its findings."""

    scan: ScanItem | None
    findings: list[FindingItem]

    def known(self, scan: ScanItem, history: Mapping[str, HistoryItem]) -> set[str]:
        """Returns the fingerprints of the project's findings before the scan, also of those that the baseline left out.

        history: it may contain what an interrupted attempt at the scan has recorded.
        """
        known = {finding.fingerprint for finding in self.findings}
        if len(known) >= MOST_ISSUES:
            known |= {
                it.fingerprint
                for it in history.values()
                if it.gone is None and scan.project_id in it.project_ids and it.first_seen_at < scan.created_at
            }
        return known

    def compare(self, reported: Collection[str], sight: Sight, new_count: int | None = None) -> Comparison:
        """Returns the comparison with a scan that reported these fingerprints."""
        fixed = [
            finding.fingerprint
            for finding in self.findings
            if finding.fingerprint not in reported and sight.covers(dependency(finding.rule_id, finding.location.path))
        ]
        base_id = self.scan.scan_id if self.scan else None
        return Comparison(base_id, len(fixed), tuple(fixed[:_MOST_FIXED]), new_count)


def read_baseline(scan: ScanItem) -> Baseline:
    """Returns the findings that the scan is compared with."""
    base = reads.find_production_scan(scan.repository_id, scan.project_id, completed=True)
    if base is None:
        return Baseline(None, [])
    return Baseline(base, findings.list_findings(base.scan_id, base.findings_attempt, base.issue_count or 0))
