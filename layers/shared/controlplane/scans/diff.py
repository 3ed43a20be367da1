"""Two scans of a repository compared by the fingerprints of their findings."""

from collections.abc import Sequence
from typing import NamedTuple

from controlplane.findings.items import InboxItem
from controlplane.platform.core.errors import Conflict, InvalidPayload, NotFound
from controlplane.platform.core.ids import ScanId
from controlplane.platform.table.parallel import read_both
from controlplane.scans import findings, reads
from controlplane.scans.findings import FindingItem, PublishedFinding
from controlplane.scans.items import ScanItem


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


class Ahead(NamedTuple):
    """The scan's findings, and the base that the request names with its own, as read at the same time as the scan.

    base: None if the request names none of the scan's organization.
    """

    found: list[FindingItem]
    base: tuple[ScanItem, list[FindingItem]] | None


def read_ahead(scan_id: ScanId, base_id: str | None) -> Ahead:
    """Reads the findings for `compare`, before it is known whether the scan exists."""
    return Ahead(*read_both(lambda: findings.read_ahead(scan_id), lambda: _find_base(scan_id, base_id)))


def _find_base(scan_id: ScanId, base_id: str | None) -> tuple[ScanItem, list[FindingItem]] | None:
    """Returns the base and its findings read ahead, or None if the scan's organization has no such scan."""
    own_id = ScanId.parse(base_id or "")
    if own_id is None or own_id.organization_id != scan_id.organization_id:
        return None
    base, found = read_both(lambda: reads.find_work(own_id), lambda: findings.read_ahead(own_id))
    return (base, found) if isinstance(base, ScanItem) else None


def compare(scan: ScanItem, base_id: str | None, ahead: Ahead) -> ScanDiff:
    """Compares the scan with the base, or with the one that it was compared with when it was completed.

    Raises NoBase, InvalidPayload for a scan of another repository, FindingsExpired, and the errors of
    `findings.require_readable` for either scan.
    """
    findings.require_readable(scan)
    found = [] if scan.findings_expired else findings.confirm(scan, ahead.found, scan.issue_count or 0)
    default_id = scan.comparison.base_scan_id if scan.comparison else None
    based, expected, items = ahead.base, set[str](), dict[str, InboxItem]()
    if base_id is None and default_id is not None:
        expected = _expect(scan, found)
        based, items = read_both(
            lambda: _find_base(scan.scan_id, default_id), lambda: findings.find_items(scan, [*expected])
        )
    if based is None and (base_id or default_id) is not None:
        raise NoBase
    base, base_ahead = based or (None, [])
    if base is not None:
        _require_comparable(scan, base)
    if scan.findings_expired or (base is not None and base.findings_expired):
        raise FindingsExpired
    former = findings.confirm(base, base_ahead, base.issue_count or 0) if base is not None else []
    before, now = ({finding.fingerprint for finding in listed} for listed in (former, found))
    new, fixed = _select(scan, found, before), _select(base or scan, former, now)
    fingerprints = [finding.fingerprint for finding in (*new, *fixed)]
    items |= findings.find_items(scan, [it for it in fingerprints if it not in expected])
    published = findings.publish(new, items), findings.publish(fixed, items)
    return ScanDiff(scan, base, *published, len(now - before), len(before - now), len(now & before))


def _expect(scan: ScanItem, found: Sequence[FindingItem]) -> set[str]:
    """Returns the fingerprints of findings that differ according to the comparison when the scan was completed.

    Their inbox items are read at the same time as the base. The findings of a pull request's scan are all new.
    """
    comparison = scan.comparison
    readable = found[: findings.readable_count(scan)]
    is_pull_request = scan.cause.pull_request_number is not None
    return {it.fingerprint for it in readable if it.is_new or is_pull_request} | {
        *(comparison.fixed if comparison else ())
    }


def _require_comparable(scan: ScanItem, base: ScanItem) -> None:
    """Raises InvalidPayload for a base of another repository, and the errors of `findings.require_readable`."""
    if base.repository_id != scan.repository_id:
        raise InvalidPayload.at(
            ["base"], "This is a scan of another repository. Send one of the same.", "other_repository"
        )
    findings.require_readable(base)


def _select(scan: ScanItem, found: Sequence[FindingItem], others: set[str]) -> list[FindingItem]:
    """Returns the readable findings that the other scan doesn't have."""
    return [it for it in found[: findings.readable_count(scan)] if it.fingerprint not in others]
