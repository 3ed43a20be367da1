"""Scans while `scan_execution` runs them: acquired, reported stage by stage, and completed."""

from dataclasses import replace
from typing import Any, Literal

from controlplane.platform.core import clock
from controlplane.platform.core.actions import Action
from controlplane.platform.core.ids import ScanId
from controlplane.platform.core.settings import settings
from controlplane.platform.queues import deletion_items, events
from controlplane.platform.queues.outbox import Entry
from controlplane.platform.table import leases
from controlplane.platform.table.leases import Lease
from controlplane.platform.table.legs import set_expression
from controlplane.platform.table.stored import to_map
from controlplane.platform.table.table import (
    ConditionFailed,
    Delete,
    Leg,
    LegFailed,
    Put,
    Recorded,
    StoreError,
    Unrecorded,
    Update,
    table,
)
from controlplane.scans import unlocks
from controlplane.scans.failures import free_repository
from controlplane.scans.items import OPEN, STAGES, Coverage, Progress, ScanItem, Stage, watch_key, work_key


class ReportPaid(StoreError):
    """The locked scan's report has been paid for since it was read: complete the scan with full access."""


def acquire_scan(scan_id: ScanId, lease_seconds: int) -> tuple[Lease, ScanItem]:
    """Acquires the scan for a worker and sets it to running. Raises leases.Finished, Held, Exhausted."""
    key = work_key(scan_id)
    stored = table.get(key)
    if stored is None:
        raise leases.Finished
    running = ScanItem.from_item(stored).status_attributes("running")
    change = ", #startedAt = if_not_exists(#startedAt, :at)" + "".join(f", #{name} = :{name}" for name in running)
    lease, item = leases.acquire(key, OPEN, lease_seconds, change, {**running, "at": clock.timestamp()})
    return lease, ScanItem.from_item(item)


def report_stage(
    lease: Lease,
    stage: Stage,
    stage_status: Literal["running", "completed"],
    *,
    reached: int = 0,
    files: tuple[int, int] | None = None,
) -> None:
    """Stores the scan's current stage. Raises leases.LeaseLost.

    reached: how many stages an earlier attempt completed. files: how many are analyzed, and how many there are.
    """
    try:
        table.update(_progress(lease, stage, stage_status, reached, files), Unrecorded.PROGRESS)
    except ConditionFailed:
        raise leases.LeaseLost from None


def complete_stage(lease: Lease, stage: Stage, inventory: Put, *, reached: int = 0) -> None:
    """Stores the inventory and, in the same transaction, that the stage is completed. Raises leases.LeaseLost."""
    try:
        completed = _progress(lease, stage, "completed", reached, None)
        table.transact({"scan": completed, "inventory": inventory}, Unrecorded.PROGRESS)
    except LegFailed:
        raise leases.LeaseLost from None


def _progress(lease: Lease, stage: Stage, stage_status: str, reached: int, files: tuple[int, int] | None) -> Update:
    completed = max(STAGES.index(stage) + (stage_status == "completed"), reached)
    progress = Progress(stage, stage_status, completed, *(files or ()))
    values = {"progress": to_map(progress), "claim": lease.claim, "running": "running"}
    return Update(lease.key, "SET #progress = :progress", f"{leases.HELD} AND #status = :running", values)


def complete_scan(
    scan: ScanItem,
    lease: Lease,
    finding_count: int,
    issue_count: int,
    coverage: Coverage,
    *,
    report: Entry | None = None,
) -> tuple[ScanItem, Entry]:
    """Completes the scan with the findings that the lease's attempt has stored, and frees the repository.

    report: the message that reports a pull request's scan. Any other scan supersedes the earlier ones: a background job
    then sets when their findings expire.
    If no issue is locked, unlocking costs nothing. Returns the scan, and the message to send about it.
    Raises leases.LeaseLost, and ReportPaid without completing.
    """
    completed = replace(
        scan,
        status="completed",
        finding_count=finding_count,
        issue_count=issue_count,
        findings_attempt=lease.attempt,
        progress=Progress(STAGES[-1], "completed", len(STAGES)),
        coverage=coverage,
        completed_at=clock.timestamp(),
    )
    if completed.unlock_credits is not None and completed.locked_count == 0:
        completed = replace(completed, unlock_credits=0)
    event = events.entry(scan.organization_id, "scan.completed", scan.scan_id)
    changed = _completed_attributes(completed)
    legs: dict[str, Leg] = {
        "scan": Update(
            lease.key,
            set_expression(changed) + ("" if "unlockCredits" in changed else " REMOVE #unlockCredits"),
            f"{leases.HELD} AND #status = :open",
            {**changed, "claim": lease.claim, "open": "running"},
        ),
        "repository": free_repository(scan.repository_id, scan.request_id),
        "watch": Delete(watch_key(scan.request_id)),
        **unlocks.completion_legs(completed),
        **_following_legs(scan, report),
        "event": event.leg,
    }
    record = Recorded(
        Action.SCAN_COMPLETE,
        scan.organization_id,
        scan.scan_id,
        scan.repository_name,
        before={"status": "running"},
        after={"status": "completed", "findings": finding_count, "issues": issue_count, "access": completed.access},
    )
    try:
        table.transact(legs, record)
    except LegFailed as failure:
        if failure.leg == "report":
            raise ReportPaid from None
        stored = failure.items.get("scan")
        if stored is None or stored.get("claim") != lease.claim or stored["status"] != "completed":
            raise leases.LeaseLost from None
    return completed, event


def _following_legs(scan: ScanItem, report: Entry | None) -> dict[str, Leg]:
    if report is not None:
        return {"message": report.leg}
    return {"supersedes": deletion_items.work_item(scan.scan_id)} if settings.finding_retention_days else {}


def _completed_attributes(scan: ScanItem) -> dict[str, Any]:
    item = scan.to_item()
    names = (
        "findingCount",
        "issueCount",
        "findingsAttempt",
        "progress",
        "coverage",
        "completedAt",
        "unlockCredits",
        "access",
        "rulesVersion",
        "comparison",
        "priorityCounts",
    )
    return {**scan.status_attributes("completed"), **{name: item[name] for name in names if name in item}}
