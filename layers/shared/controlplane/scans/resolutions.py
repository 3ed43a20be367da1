"""Resolves the inbox items of findings that a scan no longer finds, and publishes late findings accordingly.

A finding is first marked as gone in the repository's history, and then its item is resolved. A publication of an older,
unlocked report checks the mark in its transaction. So whichever comes first, a fixed finding never stays open.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import batched

from controlplane.findings import inbox, publications
from controlplane.findings.inbox import Change
from controlplane.findings.items import Discovery, Resolution
from controlplane.platform.core.ids import InboxItemId
from controlplane.platform.queues import events
from controlplane.platform.queues.outbox import Entry
from controlplane.platform.table import keys, leases
from controlplane.platform.table.keys import Key
from controlplane.platform.table.leases import Lease
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.stored import to_map
from controlplane.platform.table.table import Check, Leg, LegFailed, Put, Unrecorded, table
from controlplane.scans.findings import item_id_of
from controlplane.scans.history import Absence, HistoryItem, held, put_history
from controlplane.scans.items import ScanItem


def resolve_gone(scan: ScanItem, lease: Lease, gone: Sequence[HistoryItem]) -> list[Entry]:
    """Resolves the open inbox items of findings that are marked as gone, with the scan as the reason.

    A finding that a person accepted or dismissed keeps that status, and its history stays unsettled, so that a later
    scan resolves the item if it is open by then. Returns the messages to send. Raises leases.LeaseLost.
    """
    item_ids = [item_id_of(scan.repository_id, entry.fingerprint) for entry in gone]
    stored = table.batch_get([keys.inbox_item(*item_id.location) for item_id in item_ids])
    settled, is_open = [], {}
    for entry, item_id, item in zip(gone, item_ids, stored, strict=True):
        if item is None or item["status"] == "resolved":
            settled.append(replace(entry, unsettled=False))
        elif item["status"] == "open":
            is_open[item_id] = entry
    told = []
    for batch in batched(is_open.items(), events.MOST_SUBJECTS, strict=False):
        told += _resolve(scan, lease, dict(batch))
    put_history(lease, settled)
    return told


def _resolve(scan: ScanItem, lease: Lease, gone: Mapping[InboxItemId, HistoryItem]) -> list[Entry]:
    """Resolves the items, except those that are no longer open or that a later scan has found."""
    resolution = _no_longer_found(scan.scan_id, scan.created_at, lease.attempt)

    def resolve() -> list[Entry]:
        legs: dict[str, Leg] = {"scan": held(lease)}
        changes = []
        items = table.batch_get([keys.inbox_item(*item_id.location) for item_id in gone])
        for (item_id, entry), item in zip(gone.items(), items, strict=True):
            finding = publications.resolve_leg(item, resolution) if item else None
            if item is not None and finding is not None:
                changes.append(Change(item_id, finding, item["status"]))
                legs[f"history of {item_id}"] = Put(replace(entry, unsettled=False).to_item())
        if not changes:
            return []
        try:
            return inbox.transact_and_tell(changes, legs, Unrecorded.PUBLICATION)
        except LegFailed as failure:
            if failure.leg == "scan":
                raise leases.LeaseLost from None
            raise WriteConflict from None

    return retry_on_conflict(resolve, "the items")


def publish_late(scan: ScanItem, discoveries: Mapping[str, Discovery]) -> list[Entry]:
    """Publishes findings, by fingerprint, of a scan that was unlocked.

    Those that a later scan no longer found are resolved. Returns the messages to send.
    """
    batches = batched(discoveries.items(), events.MOST_SUBJECTS, strict=False)
    return [it for batch in batches for it in _publish_late(scan, dict(batch))]


def _publish_late(scan: ScanItem, discoveries: Mapping[str, Discovery]) -> list[Entry]:
    history_keys = [keys.finding_history(scan.repository_id, fingerprint) for fingerprint in discoveries]
    item_keys = [keys.inbox_item(*discovery.item_id.location) for discovery in discoveries.values()]

    def publish() -> list[Entry]:
        found = table.batch_get([*history_keys, *item_keys])
        legs: dict[str, Leg] = {}
        changes = []
        for key, discovery, history, existing in zip(
            history_keys, discoveries.values(), found[: len(history_keys)], found[len(history_keys) :], strict=True
        ):
            gone = HistoryItem.from_item(history).gone if history else None
            resolution = None
            if gone is not None and gone.since > scan.created_at:
                resolution = _no_longer_found(*gone)
            write = publications.publish_leg(discovery._replace(resolution=resolution), existing)
            if write is None:
                continue
            changes.append(Change(discovery.item_id, write, existing["status"] if existing else None))
            legs[f"history of {discovery.item_id}"] = _if_unchanged(key, gone)
        if not changes:
            return []
        try:
            return inbox.transact_and_tell(changes, legs, Unrecorded.PUBLICATION)
        except LegFailed:
            raise WriteConflict from None

    return retry_on_conflict(publish, "the items")


def _if_unchanged(history_key: Key, gone: Absence | None) -> Check:
    if gone is None:
        return Check(history_key, "attribute_not_exists(#gone)")
    return Check(history_key, "#gone = :gone", {"gone": to_map(gone)})


def _no_longer_found(scan_id: str, scanned_at: str, attempt: int = 0) -> Resolution:
    return Resolution(scan_id, scanned_at, f"Scan {scan_id} no longer finds it.", attempt)
