"""Compares a scan with earlier ones: which of their findings it can judge, and which it found again."""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

from controlplane.scans import findings, reads
from controlplane.scans.findings import MOST_ISSUES, FindingItem
from controlplane.scans.history import HistoryItem
from controlplane.scans.items import Comparison, ScanItem
from openassent_analysis import Finding
from openassent_analysis.identities import WHOLE_PROJECT, covers, dependency
from openassent_analysis.selection import EVERYTHING, Selection

_MOST_FIXED = 50


class Unread(NamedTuple):
    """Files of the scanned folder that weren't given to the analysis. is_complete: False if there may be others."""

    paths: Collection[str] = ()
    is_complete: bool = True


class Sight(NamedTuple):
    """A scan's field of view: the files below `root_directory`, except those in `uncertain`.

    linked: the projects that the repository is linked to.
    asks_for_consent: whether any file takes part in asking visitors for consent.
    read: the only files whose existence the scan knows about. None if it knows about all files.
    selection: the project's settings.
    silenced: the reasons, by fingerprint, of findings that these or a comment suppress.
    """

    project_id: str
    root_directory: str | None
    uncertain: Collection[str]
    linked: Collection[str]
    asks_for_consent: bool
    read: Collection[str] | None = None
    selection: Selection = EVERYTHING
    silenced: Mapping[str, str] = MappingProxyType({})

    def covers(self, path: str) -> bool:
        """Returns whether the scan knows all findings at the path, also because the file no longer exists."""
        if self.read is not None and path not in self.read:
            return path == WHOLE_PROJECT and self.asks_for_consent
        return covers(
            path,
            self.uncertain,
            self.root_directory,
            asks_for_consent=self.asks_for_consent,
            selection=self.selection,
        )

    def knows(self, path: str) -> bool:
        """Returns whether the scan knows what is in the file, also because it isn't in the scanned folder."""
        return path not in self.uncertain and (self.read is None or path in self.read)

    def misses(self, known: HistoryItem) -> bool:
        """Returns whether a finding that the scan didn't report is gone: no other linked project still has it."""
        elsewhere = set(known.project_ids) & set(self.linked) - {self.project_id}
        return not elsewhere and (known.fingerprint in self.silenced or self.covers(known.path))


def found_again(
    scan: ScanItem, finding: Finding, fingerprint: str, known: HistoryItem | None, linked: Collection[str]
) -> HistoryItem:
    """Returns the history of a finding that the scan found, at the place where it found it."""
    earlier = known.project_ids if known else ()
    return HistoryItem(
        repository_id=scan.repository_id,
        fingerprint=fingerprint,
        first_seen_at=known.first_seen_at if known else scan.created_at,
        rule_id=finding.rule_id,
        content=finding.content,
        ordinal=finding.ordinal,
        shape=finding.shape,
        path=dependency(finding.rule_id, finding.location.path),
        place=None if finding.fingerprint == fingerprint else finding.fingerprint,
        project_ids=tuple(sorted({*earlier} & {*linked} | {scan.project_id})),
    )


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
