"""Rules of reading the findings of a scan."""

from collections.abc import Sequence

from controlplane.platform.core.errors import ApiError, Conflict
from controlplane.scans import findings
from controlplane.scans.findings import FindingItem, PublishedFinding
from controlplane.scans.items import ScanItem
from controlplane.scans.waits import RETRY_AFTER_SECONDS


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


def list_visible_issues(scan: ScanItem, ahead: Sequence[FindingItem]) -> list[PublishedFinding]:
    """Returns the readable findings with their inbox items, most urgent first. Empty if the findings have expired.

    ahead: what `findings.read_ahead` returned for the scan.
    Raises ScanNotCompleted, ScanWithoutResult, UnlockRequired.
    """
    require_readable(scan)
    found = findings.confirm(scan, ahead, findings.readable_count(scan))
    return findings.publish(found, findings.find_items(scan, [finding.fingerprint for finding in found]))


def require_readable(scan: ScanItem) -> None:
    """Raises ScanNotCompleted, ScanWithoutResult, or UnlockRequired if the scan has no findings that may be read."""
    if scan.is_open:
        raise ScanNotCompleted(scan)
    if scan.status != "completed":
        raise ScanWithoutResult(scan)
    if scan.access == "locked" and scan.locked_count and not scan.findings_expired:
        raise UnlockRequired(scan)
