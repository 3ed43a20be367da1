"""Decides which earlier findings of a repository a scan can judge, and records those that it found again."""

from collections.abc import Collection
from typing import NamedTuple

from controlplane.scans.history import HistoryItem
from controlplane.scans.items import ScanItem
from openassent_analysis import Finding
from openassent_analysis.identities import WHOLE_PROJECT, covers, dependency


class Unread(NamedTuple):
    """Files of the scanned folder that weren't given to the analysis. is_complete: False if there may be others."""

    paths: Collection[str] = ()
    is_complete: bool = True


class Sight(NamedTuple):
    """A scan's field of view: the files below `root_directory`, except those in `uncertain`.

    linked: the projects that the repository is linked to. asks_for_consent: whether any file takes part in that.
    read: the only files that the scan knows to exist or not, or None if it knows that of all.
    """

    project_id: str
    root_directory: str | None
    uncertain: Collection[str]
    linked: Collection[str]
    asks_for_consent: bool
    read: Collection[str] | None = None

    def covers(self, path: str) -> bool:
        """Returns whether the scan knows all findings at the path, also because the file no longer exists."""
        if self.read is not None and path not in self.read:
            return path == WHOLE_PROJECT and self.asks_for_consent
        return covers(path, self.uncertain, self.root_directory, asks_for_consent=self.asks_for_consent)

    def misses(self, known: HistoryItem) -> bool:
        """Returns whether a finding that the scan didn't report is gone: no other linked project still has it."""
        elsewhere = set(known.project_ids) & set(self.linked) - {self.project_id}
        return not elsewhere and self.covers(known.path)


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
