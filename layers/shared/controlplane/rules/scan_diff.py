"""Two scans of a repository compared by the fingerprints of their findings."""

from collections.abc import Sequence
from typing import NamedTuple

from controlplane.core.errors import Conflict, InvalidPayload, NotFound
from controlplane.core.ids import ScanId
from controlplane.rules.scans import reading
from controlplane.store.parallel import read_both
from controlplane.store.scans import findings, reads
from controlplane.store.scans.findings import FindingItem, PublishedFinding
from controlplane.store.scans.items import ScanItem, UnknownScan


class NoBase(NotFound):
    message = "There is no such scan to compare with."


class FindingsExpired(Conflict):
    message = "The findings of one of the scans have expired, so they can't be compared. Start another scan."


class ScanDiff(NamedTuple):
    """The findings of a scan compared with those of a base.

    base: None if the scan is the first one of its branch; all of its findings are new then. new, fixed: those that the
    scans' access makes readable, most urgent first. new_count, fixed_count, unchanged_count: of all findings.
    """

    scan: ScanItem
    base: ScanItem | None
    new: list[PublishedFinding]
    fixed: list[PublishedFinding]
    new_count: int
    fixed_count: int
    unchanged_count: int


def compare(scan: ScanItem, base_id: str | None) -> ScanDiff:
    """Compares the scan with the base, or with the one that it was compared with when it was completed.

    Raises NoBase, InvalidPayload for a scan of another repository, FindingsExpired, and the errors of
    `reading.require_readable` for either scan.
    """
    reading.require_readable(scan)
    base, found = read_both(lambda: _find_base(scan, base_id), lambda: _list_all(scan))
    if base is not None:
        reading.require_readable(base)
    if scan.findings_expired or (base is not None and base.findings_expired):
        raise FindingsExpired
    former = _list_all(base) if base is not None else []
    before, now = ({finding.fingerprint for finding in listed} for listed in (former, found))
    new, fixed = read_both(lambda: _publish(scan, found, before), lambda: _publish(base or scan, former, now))
    return ScanDiff(scan, base, new, fixed, len(now - before), len(before - now), len(now & before))


def _find_base(scan: ScanItem, base_id: str | None) -> ScanItem | None:
    chosen = base_id or (scan.comparison.base_scan_id if scan.comparison else None)
    if chosen is None:
        return None
    own_id = ScanId.parse(chosen)
    if own_id is None or own_id.organization_id != scan.organization_id:
        raise NoBase
    try:
        base = reads.get_scan(own_id)
    except UnknownScan:
        raise NoBase from None
    if base.repository_id != scan.repository_id:
        raise InvalidPayload.at(["base"], "This is a scan of another repository.", "other_repository")
    return base


def _list_all(scan: ScanItem) -> list[FindingItem]:
    """Returns all of the scan's findings, including those that its access doesn't make readable."""
    return findings.list_findings(scan.scan_id, scan.findings_attempt, scan.issue_count or 0)


def _publish(scan: ScanItem, found: Sequence[FindingItem], others: set[str]) -> list[PublishedFinding]:
    """Returns the readable findings that the other scan doesn't have, with their inbox items."""
    shown = [it for it in found[: findings.readable_count(scan)] if it.fingerprint not in others]
    items = findings.find_items(scan, [finding.fingerprint for finding in shown])
    return [PublishedFinding(finding, items.get(finding.fingerprint)) for finding in shown]
