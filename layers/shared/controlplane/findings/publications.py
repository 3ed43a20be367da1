"""Publishes findings as inbox items: opens, reopens, and resolves them as scans and the runtime observe them."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import batched
from typing import Any

from controlplane.findings import inbox
from controlplane.findings.changes import Change, transact_and_tell
from controlplane.findings.discoveries import LISTED, Discovery, Resolution, resolved_by
from controlplane.findings.items import InboxItem, Status
from controlplane.platform.core.ids import InboxItemId
from controlplane.platform.queues import events
from controlplane.platform.queues.outbox import Entry
from controlplane.platform.table import keys
from controlplane.platform.table.legs import set_expression
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.table import ConditionFailed, Put, Unrecorded, Update, table


def publish_findings(discoveries: Iterable[Discovery]) -> list[Entry]:
    """Publishes distinct findings of an organization. Returns the messages to send, one for each 25 that it opens.

    A new item is open, or resolved if the finding is settled or gone. An existing item keeps its status, except:

    - A resolved item reopens if the finding was observed after the resolution and is neither settled nor gone.
    - A resolved or dismissed item reopens if the advisory has a new edition.
    - A dismissed item reopens if the finding was observed at the end of the dismissal or later, and isn't settled.
    - An open item is resolved if the finding has a `settled_reason`, unless a person reopened it after the decision.

    An observation that is older than the stored one changes nothing. One of the same time, such as a duplicate, changes
    the item only if the advisory has a new edition, or has moved to another project.
    """
    return [it for batch in batched(discoveries, events.MOST_SUBJECTS, strict=False) for it in _publish_batch(batch)]


def _publish_batch(batch: Sequence[Discovery]) -> list[Entry]:
    item_keys = [keys.inbox_item(*discovery.item_id.location) for discovery in batch]

    def publish() -> list[Entry]:
        told = []
        for discovery, existing in zip(batch, table.batch_get(item_keys), strict=True):
            write = publish_leg(discovery, existing)
            if write is None:
                continue
            change = Change(discovery.item_id, write, existing["status"] if existing else None)
            if change.event is None:
                _write(write)
            else:
                told.append(change)
        return _transact(told) if told else []

    return retry_on_conflict(publish, "the items")


def _write(write: Put | Update) -> None:
    """Writes one item. Raises WriteConflict."""
    try:
        if isinstance(write, Put):
            table.put(write, Unrecorded.PUBLICATION)
        else:
            table.update(write, Unrecorded.PUBLICATION)
    except ConditionFailed:
        raise WriteConflict from None  # or the response to our own write was lost


def _transact(told: Sequence[Change]) -> list[Entry]:
    return transact_and_tell(told, {}, Unrecorded.PUBLICATION, otherwise=WriteConflict)


def refresh_status(discovery: Discovery) -> list[Entry]:
    """Changes the status of the finding's existing item as `publish_findings` does, but doesn't show the finding."""
    return _change_existing([discovery.item_id], lambda existing: _status_leg(discovery, existing))


def withdraw(item_id: InboxItemId, resolution: Resolution) -> list[Entry]:
    """Resolves an open or accepted item that announces something, unless a later scan has announced it again."""
    return _change_existing([item_id], lambda existing: withdraw_leg(existing, resolution))


def end_findings(item_ids: Sequence[InboxItemId], reason: str, ended_at: str) -> list[Entry]:
    """Resolves up to 25 items of findings that nothing will look for anymore, in one transaction.

    An item that waits for the end of its dismissal is resolved, too. Keeps statuses that are newer than `ended_at`.
    """

    def leg_of(existing: Mapping[str, Any]) -> Update | None:
        is_due = existing["status"] in {"open", "accepted"} or existing.get("dismissedUntil")
        if not is_due or existing["statusAt"] > ended_at:
            return None
        run = existing.get("auditRun") or {}
        return _resolve(existing, Resolution(None, existing["observedAt"], reason, run_id=run.get("runId")))

    return _change_existing(item_ids, leg_of)


def withdraw_leg(existing: Mapping[str, Any], resolution: Resolution) -> Update | None:
    """Returns the write that resolves the item as `withdraw` does, or None."""
    is_due = existing["status"] in {"open", "accepted"} and existing["observedAt"] <= resolution.observed_at
    return _resolve(existing, resolution) if is_due else None


def _change_existing(
    item_ids: Sequence[InboxItemId], leg_of: Callable[[Mapping[str, Any]], Update | None]
) -> list[Entry]:
    """Applies the change to the items that exist, except those for which `leg_of` returns None."""

    def change() -> list[Entry]:
        changes = []
        for item_id, existing in zip(
            item_ids, table.batch_get([keys.inbox_item(*it.location) for it in item_ids]), strict=True
        ):
            leg = leg_of(existing) if existing else None
            if leg and existing:
                changes.append(Change(item_id, leg, existing["status"]))
        return _transact(changes) if changes else []

    return retry_on_conflict(change, "the items")


def publish_leg(discovery: Discovery, existing: Mapping[str, Any] | None) -> Put | Update | None:
    """Returns the write that publishes, given the existing item (None if it doesn't exist). None if nothing changes.

    The write is conditional on that state of the item. It can also be a leg of a transaction with related changes.
    """
    item_id, attributes = discovery.item_id, discovery.to_map()
    if existing is None:
        is_resolved = discovery.settled or discovery.resolution is not None
        item = {
            **keys.inbox_item(*item_id.location)._asdict(),
            "itemId": item_id,
            "source": discovery.source,
            **attributes,
            **discovery.resolved_attributes(),
            **inbox.list_attributes(
                item_id, "resolved" if is_resolved else "open", discovery.runtime_vendor, discovery.path, None
            ),
            "version": inbox.new_version(),
        }
        return Put(item, "attribute_not_exists(pk)")
    is_known = discovery.edition == existing.get("edition") and not _has_moved(discovery, existing)
    if discovery.observed_at < existing["observedAt"] or (is_known and discovery.observed_at == existing["observedAt"]):
        return None
    status = _next_status(discovery, existing)
    if status is None and all(attributes[name] == existing.get(name) for name in LISTED):
        # Nothing listed changed, so the item keeps its position, and its version, so pending decisions still succeed.
        assignee = InboxItem.from_item(existing).assignee
        order = inbox.order_of(existing["updatedAt"], item_id, discovery.runtime_vendor, discovery.path, assignee)
        changed = {**attributes, keys.INBOX.sk: order}
        when, values = _unchanged(existing)
        return Update(keys.inbox_item(*item_id.location), set_expression(changed), when, {**changed, **values})
    return _change(discovery, existing, status, attributes)


def _has_moved(discovery: Discovery, existing: Mapping[str, Any]) -> bool:
    """Returns whether it is an advisory from the product's list of which another project has the latest scan."""
    return discovery.edition is not None and discovery.project_id != existing["projectId"]


def _status_leg(discovery: Discovery, existing: Mapping[str, Any]) -> Update | None:
    status = _next_status(discovery, existing)
    if status is None:
        return None
    return _change(discovery, existing, status, {"decisions": discovery.to_map()["decisions"]})


def _change(
    discovery: Discovery, existing: Mapping[str, Any], status: Status | None, attributes: Mapping[str, Any]
) -> Update:
    reasons = discovery.resolved_attributes() if status == "resolved" else {}
    when, values = _unchanged(existing)
    item = InboxItem.from_item(existing)
    return inbox.update_leg(
        replace(item, runtime_vendor=discovery.runtime_vendor, path=discovery.path),
        inbox.new_version(),
        status,
        fields={**attributes, **reasons},
        when=when,
        values=values,
    )


def _unchanged(existing: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Returns the condition that the item is as it was read, and its values."""
    values = {"readVersion": existing["version"], "readObservedAt": existing["observedAt"]}
    return "#version = :readVersion AND #observedAt = :readObservedAt", values


def _next_status(discovery: Discovery, existing: Mapping[str, Any]) -> Status | None:
    """Returns the status that the finding's item gets because the finding was observed, or None to keep the status."""
    if discovery.edition != existing.get("edition") and existing["status"] in {"dismissed", "resolved"}:
        return "open"
    if existing["status"] == "resolved":
        by_scan = existing.get("resolvedBy")
        resolved_at = (by_scan["observedAt"], by_scan["attempt"]) if by_scan else (existing["statusAt"], math.inf)
        is_back = (discovery.observed_at, discovery.attempt) > resolved_at and discovery.resolution is None
        return "open" if is_back and not discovery.settled else None
    if existing["status"] == "dismissed" and existing.get("dismissedUntil"):
        is_over = discovery.observed_at >= existing["dismissedUntil"] and discovery.resolution is None
        return "open" if is_over and not discovery.settled else None
    if existing["status"] == "open" and discovery.settled_reason is not None:
        # A person who reopens the item after the decision wants it open.
        decided_at = max((decision.decided_at for decision in discovery.decisions), default="")
        by_person = existing.get("statusBy") is not None and existing["statusAt"] > decided_at
        return None if by_person else "resolved"
    return None


def resolve_leg(existing: Mapping[str, Any], resolution: Resolution) -> Update | None:
    """Returns the write that resolves the item, or None if it isn't open, or was observed by that scan or later."""
    if existing["status"] != "open" or existing["observedAt"] >= resolution.observed_at:
        return None
    return _resolve(existing, resolution)


def _resolve(existing: Mapping[str, Any], resolution: Resolution) -> Update:
    when, values = _unchanged(existing)
    return inbox.update_leg(
        InboxItem.from_item(existing),
        inbox.new_version(),
        "resolved",
        fields=resolved_by(resolution),
        when=when,
        values=values,
    )


def evidence_leg(discovery: Discovery, existing: Mapping[str, Any]) -> Update | None:
    """Returns the write that replaces the evidence of an existing item and nothing else. None if it is the same.

    The caller ensures that no concurrent write replaces evidence, and that the new evidence contains the existing one.
    """
    evidence = discovery.to_map()["evidence"]
    if evidence == existing.get("evidence"):
        return None
    key = keys.inbox_item(*discovery.item_id.location)
    return Update(key, "SET #evidence = :evidence", "attribute_exists(pk)", {"evidence": evidence})
