"""The expiry of findings: a completed scan supersedes the earlier scans of its repository and project.

From the expiry date on, their findings are no longer shown, and TTL removes them.
"""

from contextlib import suppress
from typing import Any

from controlplane.platform.core.clock import expiry
from controlplane.platform.core.ids import ScanId
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.table import ConditionFailed, Unrecorded, Update, table
from controlplane.scans.items import ScanItem, UnknownScan
from controlplane.scans.reads import get_scan

_PAGE = 100


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
        _expire_findings(earlier.scan_id, expires)
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


def _expire_findings(scan_id: ScanId, expires: dict[str, Any]) -> None:
    after = None
    while True:
        page = table.query(keys.scan_pk(scan_id), prefix=keys.FINDING_PREFIX, limit=_PAGE, after=after)
        # Findings are immutable, so they can be rewritten as read.
        table.put_all(({**item, **expires} for item in page.items), Unrecorded.CLEANUP)
        after = page.next_sk
        if after is None:
            return
