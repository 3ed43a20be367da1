"""The findings of a repository over all of its scans: when each was first seen, where it is now, and if it is gone.

A finding keeps its fingerprint when its file is renamed or its code is edited. It then has a `place`, which is the
fingerprint that the analysis computes from its new path and code. Only the worker that runs the repository's active
scan writes here, and each write checks the worker's lease.

A finding is first marked as gone here, and then its inbox item is resolved. A publication of an older, unlocked report
checks the mark in its transaction. So whichever comes first, a fixed finding never stays open.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import batched
from typing import Annotated, NamedTuple

from controlplane.findings import publications
from controlplane.findings.changes import Change, transact_and_tell
from controlplane.findings.discoveries import Discovery, Resolution
from controlplane.platform.core.ids import InboxItemId, RepositoryId
from controlplane.platform.queues import events
from controlplane.platform.queues.outbox import Entry
from controlplane.platform.table import keys, leases
from controlplane.platform.table.keys import Key
from controlplane.platform.table.leases import Lease
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.stored import SPARSE, Derived, StoredItem, to_map
from controlplane.platform.table.table import Check, Leg, Put, Unrecorded, table
from controlplane.scans.findings import item_id_of
from controlplane.scans.items import ScanItem

# A transaction has at most 100 legs; one checks the lease.
_MOST_PUTS = 99


class Absence(NamedTuple):
    """The scan that no longer found a finding in any project, and when that scan was created."""

    scan_id: str
    since: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryItem(StoredItem):
    """A finding of a repository.

    content, ordinal, shape: see `openassent_analysis.fingerprints`. project_ids: the projects whose scans find it.
    gone: set if the last scan didn't find it.
    unsettled: it is gone, but its inbox item isn't known to be resolved.
    """

    repository_id: Annotated[
        RepositoryId, Derived(lambda item: RepositoryId.stored(item["pk"].removeprefix(keys.finding_history_pk(""))))
    ]
    fingerprint: Annotated[str, Derived(lambda item: item["sk"].removeprefix(keys.FINDING_HISTORY_PREFIX))]
    first_seen_at: str
    rule_id: str
    content: str
    ordinal: Annotated[int, SPARSE] = 0
    shape: str
    path: str
    place: Annotated[str | None, SPARSE] = None
    project_ids: Annotated[tuple[str, ...], SPARSE] = ()
    gone: Annotated[Absence | None, SPARSE] = None
    unsettled: Annotated[bool, SPARSE] = False

    @property
    def key(self) -> Key:
        return keys.finding_history(self.repository_id, self.fingerprint)


def list_history(repository_id: RepositoryId) -> dict[str, HistoryItem]:
    """Returns everything that was ever found in the repository, by fingerprint. Consistent."""
    page = table.query(keys.finding_history_pk(repository_id), prefix=keys.FINDING_HISTORY_PREFIX, consistent=True)
    return {found.fingerprint: found for found in map(HistoryItem.from_item, page.items)}


def put_history(lease: Lease, items: Sequence[HistoryItem]) -> None:
    """Writes the items, in transactions that check the lease of the running scan. Raises leases.LeaseLost."""
    for start in range(0, len(items), _MOST_PUTS):
        part = items[start : start + _MOST_PUTS]
        legs: dict[str, Leg] = {"scan": held(lease), **{item.fingerprint: Put(item.to_item()) for item in part}}
        table.transact(legs, Unrecorded.PUBLICATION, otherwise=leases.LeaseLost)


def held(lease: Lease) -> Check:
    """Returns the leg that checks that the worker still runs the scan."""
    values = {"claim": lease.claim, "running": "running"}
    return Check(lease.key, f"{leases.HELD} AND #status = :running", values)


def resolve_gone(scan: ScanItem, lease: Lease, gone: Sequence[HistoryItem], reasons: Mapping[str, str]) -> list[Entry]:
    """Resolves the open inbox items of findings that are marked as gone, with the scan as the reason.

    reasons: other ones, by fingerprint.
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
        told += _resolve(scan, lease, dict(batch), reasons)
    put_history(lease, settled)
    return told


def _resolve(
    scan: ScanItem, lease: Lease, gone: Mapping[InboxItemId, HistoryItem], reasons: Mapping[str, str]
) -> list[Entry]:
    """Resolves the items, except those that are no longer open or that a later scan has found."""
    resolution = _no_longer_found(scan.scan_id, scan.created_at, lease.attempt)

    def resolve() -> list[Entry]:
        legs: dict[str, Leg] = {"scan": held(lease)}
        changes = []
        items = table.batch_get([keys.inbox_item(*item_id.location) for item_id in gone])
        for (item_id, entry), item in zip(gone.items(), items, strict=True):
            reason = reasons.get(entry.fingerprint, resolution.reason)
            finding = publications.resolve_leg(item, resolution._replace(reason=reason)) if item else None
            if item is not None and finding is not None:
                changes.append(Change(item_id, finding, item["status"]))
                legs[f"history of {item_id}"] = Put(replace(entry, unsettled=False).to_item())
        if not changes:
            return []
        return transact_and_tell(changes, legs, Unrecorded.PUBLICATION, {"scan": leases.LeaseLost}, WriteConflict)

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
        return transact_and_tell(changes, legs, Unrecorded.PUBLICATION, otherwise=WriteConflict)

    return retry_on_conflict(publish, "the items")


def _if_unchanged(history_key: Key, gone: Absence | None) -> Check:
    if gone is None:
        return Check(history_key, "attribute_not_exists(#gone)")
    return Check(history_key, "#gone = :gone", {"gone": to_map(gone)})


def _no_longer_found(scan_id: str, scanned_at: str, attempt: int = 0) -> Resolution:
    return Resolution(scan_id, scanned_at, f"Scan {scan_id} no longer finds it.", attempt)
