"""Reports that several scans share: those of the same commit and folder of a repository, made with the same rules.

A report is paid for once. The transaction that charges for it writes an item, which the completion of every locked scan
checks. A scan that is completed before that has an entry, so that it is unlocked in the background.
"""

from collections.abc import Iterator
from contextlib import suppress

from controlplane.platform.core import clock
from controlplane.platform.core.ids import ScanId
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.table import Check, ConditionFailed, Delete, Leg, Put, Unrecorded, Update, table
from controlplane.scans.items import ScanItem, work_key


def with_paid_access(scan: ScanItem) -> ScanItem:
    """Returns the scan, unlocked if its report has been paid for. Consistent."""
    if scan.access == "full" or scan.report is None or table.get(_paid_key(scan, scan.report)) is None:
        return scan
    return scan.as_unlocked()


def completion_legs(scan: ScanItem) -> dict[str, Leg]:
    """Returns the legs of a scan's completion. `report` fails if a locked scan's report has been paid for."""
    if scan.access == "full" or scan.report is None:
        return {}
    entry = {**_entry_key(scan, scan.report)._asdict(), "scanId": scan.scan_id}
    return {
        "report": Check(_paid_key(scan, scan.report), "attribute_not_exists(pk)"),
        "lockedScan": Put(entry),
    }


def payment_legs(scan: ScanItem) -> dict[str, Leg]:
    """Returns the leg that records that the scan's report is paid for. `report` fails if it is already."""
    if scan.report is None:
        return {}
    paid = {**_paid_key(scan, scan.report)._asdict(), "at": clock.timestamp()}
    return {"report": Put(paid, "attribute_not_exists(pk)")}


def unlocking_legs(scan: ScanItem) -> dict[str, Leg]:
    """Returns the leg that removes the entry of a scan that is unlocked."""
    return {} if scan.report is None else {"lockedScan": Delete(_entry_key(scan, scan.report))}


def entry_keys(scan: ScanItem) -> list[Key]:
    """Returns the keys of items that must be deleted with the scan."""
    return [] if scan.report is None else [_entry_key(scan, scan.report)]


def unlock_others(scan: ScanItem) -> Iterator[ScanItem]:
    """Unlocks the other scans of the report if it has been paid for, and yields each, to publish its findings.

    Can be repeated: the entry of a scan is deleted after the caller has published its findings. Scans whose
    findings have expired stay locked.
    """
    if scan.report is None:
        return
    pk, prefix = _paid_key(scan, scan.report)
    items = table.query(pk, prefix=prefix, consistent=True).items
    if not items or items[0]["sk"] != prefix:
        return
    for entry in items[1:]:
        with suppress(ConditionFailed):
            yield _unlock(ScanId.stored(entry["scanId"]))
        table.delete(Delete(Key(entry["pk"], entry["sk"])), Unrecorded.PUBLICATION)


def _unlock(scan_id: ScanId) -> ScanItem:
    """Returns the unlocked scan. Raises ConditionFailed if it was deleted or its findings have expired."""
    change = Update(
        work_key(scan_id),
        "SET #access = :full REMOVE #unlockCredits",
        "attribute_exists(pk) AND (attribute_not_exists(#findingsExpireAt) OR #findingsExpireAt > :now)",
        {"full": "full", "now": int(clock.now())},
    )
    return ScanItem.from_item(table.update(change, Unrecorded.PUBLICATION))


def _paid_key(scan: ScanItem, report: str) -> Key:
    return keys.paid_report(scan.repository_id, report)


def _entry_key(scan: ScanItem, report: str) -> Key:
    return keys.locked_scan(scan.repository_id, report, scan.scan_id.local)
