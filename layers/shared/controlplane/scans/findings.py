"""Findings of each scan, and their inbox items: who may read them, and when they expire.

A completed scan supersedes the earlier scans of its repository and project. From the expiry date on, their findings are
no longer shown, and TTL removes them.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple, cast

from controlplane.findings import inbox
from controlplane.findings.discoveries import Discovery, finding_item_id
from controlplane.findings.fixes import Fix
from controlplane.findings.items import Confidence, Evidence, InboxItem
from controlplane.platform.core.clock import expiry
from controlplane.platform.core.errors import ApiError, Conflict
from controlplane.platform.core.ids import InboxItemId, RepositoryId, ScanId
from controlplane.platform.core.priorities import Priority
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.stored import SPARSE, StoredMap
from controlplane.platform.table.table import ConditionFailed, Unrecorded, Update, table
from controlplane.scans.items import ScanItem, UnknownScan
from controlplane.scans.reads import RETRY_AFTER_SECONDS, get_scan

_PAGE = 100
# A scan whose first attempt failed stores its findings under another number.
_FIRST_ATTEMPT = 1
# Only the most urgent findings of a scan are kept: projects with more should fix these first.
MOST_ISSUES = 500
# Of the suppressed ones, which only a file of results shows.
MOST_SUPPRESSED = 100


class ScanNotCompleted(ApiError):
    """The scan has no findings yet."""

    code = "SCAN_IN_PROGRESS"
    message = "The scan isn't completed yet. Poll the scan until it is, then list its findings."

    def __init__(self, scan: ScanItem) -> None:
        super().__init__(
            details={"scanId": scan.scan_id, "status": scan.status},
            headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
        )


class ScanWithoutResult(Conflict):
    """The scan failed or was canceled, so nothing is known about findings."""

    def __init__(self, scan: ScanItem) -> None:
        ending = "failed" if scan.status == "failed" else "was canceled"
        super().__init__(
            f"The scan {ending}, so it doesn't have a list of findings. Start another scan.",
            details={"scanId": scan.scan_id, "status": scan.status},
        )


class UnlockRequired(ApiError):
    code = "UNLOCK_REQUIRED"
    message = "The findings of this scan are locked. An owner of the organization can unlock them for credits."

    def __init__(self, scan: ScanItem) -> None:
        super().__init__(
            details={
                "scanId": scan.scan_id,
                "unlockCredits": scan.unlock_credits,
                "lockedCount": scan.locked_count,
            },
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Location(StoredMap):
    """A place in the repository. Lines and columns count from 1."""

    path: str
    start_line: int
    end_line: int
    start_column: int
    end_column: int
    snippet: str
    permalink: str
    # The code from five lines before the place to five after it, for the inbox.
    around: Annotated[tuple[str, ...], SPARSE] = ()


class FindingVendor(NamedTuple):
    """A vendor of the catalogue that a finding is about."""

    id: str
    name: str
    domain: str


class Suppression(NamedTuple):
    """The reason why a finding is suppressed. kind: a comment, a rule that is off, or an accepted vendor."""

    kind: Literal["comment", "rule", "vendor"]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingItem(StoredMap):
    """One issue found by a scan. Its fingerprint is the same in every scan of the repository that finds it.

    suppression: set for those that the repository suppresses. They are stored after the issues, and aren't counted.
    """

    fingerprint: str
    rule_id: str
    title: str
    description: str
    category: str
    severity: str
    priority: str
    location: Location
    remediation: str
    references: tuple[str, ...]
    first_seen_at: str
    vendors: Annotated[tuple[FindingVendor, ...], SPARSE] = ()
    confidence: Annotated[str, SPARSE] = "high"
    fix: Annotated[Fix | None, SPARSE] = None
    # The scan that its scan is compared with didn't have it. Always False in a pull request's scan.
    is_new: Annotated[bool, SPARSE] = False
    suppression: Annotated[Suppression | None, SPARSE] = None


def item_id_of(repository_id: RepositoryId, fingerprint: str) -> InboxItemId:
    """Returns the id of the finding's inbox item."""
    return finding_item_id(repository_id.organization_id, "code-audit", repository_id, fingerprint)


def as_discovery(scan: ScanItem, finding: FindingItem) -> Discovery:
    """Returns the finding as an inbox discovery. All scans of the repository that find it yield the same inbox item."""
    location = finding.location
    evidence = Evidence(
        description=f"{location.path}, line {location.start_line}",
        url=location.permalink,
        path=location.path,
        start_line=location.start_line,
        end_line=location.end_line,
        snippet=location.snippet,
        around=location.around,
    )
    return Discovery(
        organization_id=scan.organization_id,
        source="code-audit",
        identity=(scan.repository_id, finding.fingerprint),
        title=finding.title,
        observed_at=scan.created_at,
        summary=finding.description,
        priority=cast("Priority", finding.priority),
        project_id=scan.project_id,
        repository_id=scan.repository_id,
        repository_name=scan.repository_name,
        rule_id=finding.rule_id,
        description=finding.description,
        remediation=finding.remediation,
        references=finding.references,
        evidence=(evidence,),
        confidence=cast("Confidence", finding.confidence),
        fix=finding.fix,
        vendor_ids=tuple(vendor.id for vendor in finding.vendors),
    )


def put_findings(scan_id: ScanId, attempt: int, findings: Sequence[FindingItem]) -> None:
    """Stores the findings of an attempt at the scan, in this order. Overwrites those it stored before."""
    table.put_all(
        (
            {**keys.finding(scan_id, attempt, rank)._asdict(), **finding.to_map()}
            for rank, finding in enumerate(findings)
        ),
        Unrecorded.PUBLICATION,
    )


def list_findings(scan_id: ScanId, attempt: int, count: int, skip: int = 0) -> list[FindingItem]:
    """Returns the attempt's findings after the first `skip`, as they were stored, at most `count`.

    Consistent: access depends on it.
    """
    if count <= 0:
        return []
    after = keys.finding(scan_id, attempt, skip - 1).sk if skip else None
    prefix = keys.finding_prefix(attempt)
    page = table.query(keys.scan_pk(scan_id), prefix=prefix, after=after, limit=count, consistent=True)
    return [FindingItem.from_item(item) for item in page.items]


def read_ahead(scan_id: ScanId, skip: int = 0, at_most: int = MOST_ISSUES) -> list[FindingItem]:
    """Returns findings to pass to `confirm`, at the same time as the scan is read."""
    return list_findings(scan_id, _FIRST_ATTEMPT, at_most, skip)


def confirm(scan: ScanItem, ahead: Sequence[FindingItem], count: int, skip: int = 0) -> list[FindingItem]:
    """Returns the findings of `read_ahead` if they are those of the scan, or reads them again.

    Reads again if another attempt stored the findings, or if the scan was completed after `ahead` was read. Findings of
    an attempt don't change after its scan is completed.
    """
    if scan.findings_attempt == _FIRST_ATTEMPT and len(ahead) >= count:
        return list(ahead[:count])
    return list_findings(scan.scan_id, scan.findings_attempt, count, skip)


def list_suppressed(scan: ScanItem) -> list[FindingItem]:
    """Returns the findings that the repository suppresses, at most 100, if the scan's access makes all readable."""
    if scan.findings_expired or scan.locked_count or not (scan.coverage and scan.coverage.suppressed):
        return []
    return list_findings(scan.scan_id, scan.findings_attempt, MOST_SUPPRESSED, scan.issue_count or 0)


class PublishedFinding(NamedTuple):
    """A finding with its inbox item, or None if it has none."""

    finding: FindingItem
    item: InboxItem | None


def publish(found: Sequence[FindingItem], items: Mapping[str, InboxItem]) -> list[PublishedFinding]:
    """Returns the findings with their inbox items, given by fingerprint, most urgent first.

    They are stored in this order, except those that a free preview shows: they come first.
    """
    return [PublishedFinding(it, items.get(it.fingerprint)) for it in sorted(found, key=lambda it: it.priority)]


def readable_count(scan: ScanItem, skip: int = 0, at_most: int | None = None) -> int:
    """Returns how many findings after the first `skip` the scan's access makes readable: 0 if they have expired."""
    count = 0 if scan.findings_expired else max(0, scan.visible_count - skip)
    return count if at_most is None else min(count, at_most)


def find_items(scan: ScanItem, fingerprints: Sequence[str]) -> dict[str, InboxItem]:
    """Returns the inbox items of these findings of the scan's repository, by fingerprint. Consistent."""
    item_ids = {item_id_of(scan.repository_id, fingerprint): fingerprint for fingerprint in fingerprints}
    return {item_ids[InboxItemId.stored(item_id)]: item for item_id, item in inbox.find_items(item_ids).items()}


def delete_attempts_before(scan_id: ScanId, attempt: int) -> None:
    """Removes the findings of earlier, failed attempts at the scan."""
    while True:
        page = table.query(keys.scan_pk(scan_id), prefix=keys.FINDING_PREFIX, limit=_PAGE, consistent=True)
        left = [item for item in page.items if item["sk"] < keys.finding_prefix(attempt)]
        table.delete_all((Key(item["pk"], item["sk"]) for item in left), Unrecorded.CLEANUP)
        if len(left) < len(page.items) or page.next_sk is None:
            return


def expire_superseded(scan_id: ScanId) -> None:
    """Sets the expiry of the findings of the scans that this one supersedes. Skips those that already have one."""
    expires = expiry(settings.finding_retention_days)
    try:
        scan = get_scan(scan_id)
    except UnknownScan:
        return
    if not expires:
        return
    for earlier in _list_superseded(scan):
        found = table.query(keys.scan_pk(earlier.scan_id), prefix=keys.FINDING_PREFIX).items
        # Findings are immutable, so they can be rewritten as read.
        table.put_all(({**item, **expires} for item in found), Unrecorded.CLEANUP)
        change = Update(
            earlier.key, "SET #findingsExpireAt = :at", "attribute_exists(pk)", {"at": expires["expiresAt"]}
        )
        with suppress(ConditionFailed):
            table.update(change, Unrecorded.CLEANUP)


def _list_superseded(scan: ScanItem) -> list[ScanItem]:
    """Returns the superseded scans whose findings have no expiry yet.

    Oldest first, so a caller that is interrupted while setting expiries in this order finds the rest on retry.
    """
    found: list[ScanItem] = []
    after: str | None = scan.key.sk
    while after is not None:
        page = table.query(
            f"{scan.repository_id}#completed",
            prefix=keys.SCAN_PREFIX,
            newest_first=True,
            after=after,
            limit=_PAGE,
            index=keys.SCANS_BY_REPOSITORY_AND_STATUS,
        )
        for item in page.items:
            earlier = ScanItem.from_item(item)
            if earlier.project_id != scan.project_id:
                continue
            if earlier.findings_expire_at is not None:
                return found[::-1]
            found.append(earlier)
        after = page.next_sk
    return found[::-1]


def list_visible_issues(scan: ScanItem, ahead: Sequence[FindingItem]) -> list[PublishedFinding]:
    """Returns the readable findings with their inbox items, most urgent first. Empty if the findings have expired.

    ahead: the result of `read_ahead` for the scan.
    Raises ScanNotCompleted, ScanWithoutResult, UnlockRequired.
    """
    require_readable(scan)
    found = confirm(scan, ahead, readable_count(scan))
    return publish(found, find_items(scan, [finding.fingerprint for finding in found]))


def require_readable(scan: ScanItem) -> None:
    """Raises ScanNotCompleted, ScanWithoutResult, or UnlockRequired if the scan has no findings that may be read."""
    if scan.is_open:
        raise ScanNotCompleted(scan)
    if scan.status != "completed":
        raise ScanWithoutResult(scan)
    if scan.access == "locked" and scan.locked_count and not scan.findings_expired:
        raise UnlockRequired(scan)
