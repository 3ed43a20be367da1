"""Scans while `scan_execution` runs them: acquired, reported stage by stage, and completed."""

from dataclasses import replace
from typing import Any, Literal

from controlplane.code_host.pull_requests import report_entry
from controlplane.platform.core import clock
from controlplane.platform.core.actions import Action
from controlplane.platform.core.ids import ScanId
from controlplane.platform.core.settings import settings
from controlplane.platform.queues import deletion_items, events
from controlplane.platform.queues.outbox import Entry
from controlplane.platform.table import leases
from controlplane.platform.table.leases import Lease
from controlplane.platform.table.legs import Delete, Leg, Put, Recorded, Unrecorded, Update, set_expression
from controlplane.platform.table.retry import ConditionFailed, LegFailed, StoreError
from controlplane.platform.table.stored import to_map
from controlplane.platform.table.table import table
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
    inventory: Put | None = None,
) -> None:
    """Stores the scan's current stage, with the inventory if there is one. Raises leases.LeaseLost.

    reached: how many stages an earlier attempt completed. files: how many are analyzed, and how many there are.
    """
    completed = max(STAGES.index(stage) + (stage_status == "completed"), reached)
    progress = Progress(stage, stage_status, completed, *(files or ()))
    values = {"progress": to_map(progress), "claim": lease.claim, "running": "running"}
    report = Update(lease.key, "SET #progress = :progress", f"{leases.HELD} AND #status = :running", values)
    try:
        if inventory is None:
            table.update(report, Unrecorded.PROGRESS)
        else:
            table.transact({"scan": report, "inventory": inventory}, Unrecorded.PROGRESS)
    except (ConditionFailed, LegFailed):
        raise leases.LeaseLost from None


def complete_scan(
    scan: ScanItem,
    lease: Lease,
    finding_count: int,
    issue_count: int,
    coverage: Coverage,
) -> tuple[ScanItem, list[Entry]]:
    """Completes the scan with the findings that the lease's attempt has stored, and frees the repository.

    Unless it is of a pull request, it supersedes the earlier ones: a background job then sets when their findings
    expire. If no issue is locked, unlocking costs nothing. Returns the scan, and the messages to send: about the scan,
    and the report of a pull request's scan. Raises leases.LeaseLost, and ReportPaid without completing.
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
    number = scan.cause.pull_request_number
    sent = [events.entry(scan.organization_id, "scan.completed", scan.scan_id)]
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
        "event": sent[0].leg,
    }
    if number is not None:
        sent.append(report_entry(scan.repository_id, scan.project_id, number))
        legs["message"] = sent[1].leg
    elif settings.finding_retention_days:
        legs["supersedes"] = deletion_items.work_item(scan.scan_id)
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
    return completed, sent


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
