"""Resolves the inbox items of findings that a scan no longer finds, and publishes late findings accordingly.

A finding is first marked as gone in the repository's history, and then its item is resolved. A publication of an older,
unlocked report checks the mark in its transaction. So whichever comes first, a fixed finding never stays open.
"""

from collections.abc import Sequence
from dataclasses import replace

from controlplane.core.ids import InboxItemId
from controlplane.store import inbox, keys, leases
from controlplane.store.inbox_items import Discovery, Resolution
from controlplane.store.leases import Lease
from controlplane.store.retry import WriteConflict, retry_on_conflict
from controlplane.store.scans.findings import item_id_of
from controlplane.store.scans.history import HistoryItem, held, put_history
from controlplane.store.scans.items import ScanItem
from controlplane.store.table import Check, Leg, LegFailed, Put, table


def resolve_gone(scan: ScanItem, lease: Lease, gone: Sequence[HistoryItem]) -> None:
    """Resolves the open inbox items of findings that are marked as gone, with the scan as the reason.

    A finding that a person accepted or dismissed keeps that status, and its history stays unsettled, so that a later
    scan resolves the item if it is open by then. Raises leases.LeaseLost.
    """
    item_ids = [item_id_of(scan.repository_id, entry.fingerprint) for entry in gone]
    stored = table.batch_get([keys.inbox_item(*item_id.location) for item_id in item_ids])
    settled = []
    for entry, item_id, item in zip(gone, item_ids, stored, strict=True):
        if item is None or item["status"] == "resolved":
            settled.append(replace(entry, unsettled=False))
        elif item["status"] == "open":
            _resolve(scan, lease, entry, item_id)
    put_history(lease, settled)


def _resolve(scan: ScanItem, lease: Lease, entry: HistoryItem, item_id: InboxItemId) -> None:
    """Resolves the item, unless it is no longer open or a later scan has found it."""
    resolution = _no_longer_found(scan.scan_id, scan.created_at, lease.attempt)

    def resolve() -> None:
        item = table.get(keys.inbox_item(*item_id.location))
        finding = inbox.resolve_leg(item, resolution) if item else None
        if finding is None:
            return
        legs: dict[str, Leg] = {
            "scan": held(lease),
            "finding": finding,
            "history": Put(replace(entry, unsettled=False).to_item()),
        }
        try:
            table.transact(legs)
        except LegFailed as failure:
            if failure.leg == "scan":
                raise leases.LeaseLost from None
            raise WriteConflict from None

    retry_on_conflict(resolve, "the item")


def publish_late(discovery: Discovery, scan: ScanItem, fingerprint: str) -> None:
    """Publishes a finding of a scan that was unlocked. It is resolved if a later scan no longer found it."""
    history_key = keys.finding_history(scan.repository_id, fingerprint)
    item_key = keys.inbox_item(*discovery.item_id.location)

    def publish() -> None:
        history, existing = table.batch_get([history_key, item_key])
        gone = HistoryItem.from_item(history).gone if history else None
        resolution = None
        if gone is not None and gone.since > scan.created_at:
            resolution = _no_longer_found(*gone)
        write = inbox.publish_leg(discovery._replace(resolution=resolution), existing)
        if write is None:
            return
        when, values = "attribute_not_exists(#gone)", {}
        if gone is not None:
            when, values = "#gone = :gone", {"gone": gone.to_item()}
        unchanged = Check(history_key, when, values)
        try:
            table.transact({"history": unchanged, "finding": write})
        except LegFailed:
            raise WriteConflict from None

    retry_on_conflict(publish, "the item")


def _no_longer_found(scan_id: str, scanned_at: str, attempt: int = 0) -> Resolution:
    return Resolution(scan_id, scanned_at, f"Scan {scan_id} no longer finds it.", attempt)
