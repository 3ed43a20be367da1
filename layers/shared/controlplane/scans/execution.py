"""Attempts at requests and scans, each under a lease, and the writes of the worker that runs a scan.

An attempt ends the work or releases it for the next delivery; the last attempt always ends it. If a worker crashes, the
sweep releases the work. So every scan ends, regardless of what fails.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

from controlplane.code_host.github import errors as host
from controlplane.code_host.pull_requests import report_entry
from controlplane.code_host.requests import retried_later
from controlplane.platform.core import clock
from controlplane.platform.core.actions import Action
from controlplane.platform.core.errors import known
from controlplane.platform.core.ids import ProjectId, ScanId
from controlplane.platform.core.observability import describe, logger
from controlplane.platform.core.settings import settings
from controlplane.platform.queues import comparisons, deletion_items, events
from controlplane.platform.queues.outbox import Entry
from controlplane.platform.queues.worker import Delayed, LeftToSweep, Postponed, Rejected, is_last_delivery
from controlplane.platform.table import keys, leases
from controlplane.platform.table.leases import Lease
from controlplane.platform.table.legs import Delete, Leg, Put, Recorded, Unrecorded, Update, set_expression
from controlplane.platform.table.retry import ConditionFailed, LegFailed, StoreError
from controlplane.platform.table.stored import to_map
from controlplane.platform.table.table import table
from controlplane.scans import unlocks
from controlplane.scans.failures import ACCESS_LOST, CODE_HOST_UNAVAILABLE, fail_attempted, free_repository
from controlplane.scans.items import (
    OPEN,
    STAGES,
    Coverage,
    Failure,
    Progress,
    ScanItem,
    Stage,
    WorkId,
    watch_key,
    work_key,
)

_UNAVAILABLE_SECONDS = 30

_INTERNAL_ERROR = Failure("INTERNAL_ERROR", "The scan failed on our side. Start another one.")
_HOST_UNAVAILABLE = Failure(CODE_HOST_UNAVAILABLE, "The code host could not be reached. Start another scan later.")
_HOST_FAILURES: dict[type[host.CodeHostError], Failure] = {
    host.RepositoryGone: Failure(
        "REPOSITORY_GONE", "The repository is gone from the code host, or the app may no longer see it."
    ),
    host.AccessLost: Failure(ACCESS_LOST, "The app was removed from the repository. Install it again."),
    host.BranchGone: Failure("BRANCH_GONE", "The production branch does not exist in the repository."),
    host.CommitGone: Failure("COMMIT_GONE", "The commit is gone: its branch was rewritten. Start another scan."),
    host.InvalidName: Failure("REPOSITORY_GONE", "The code host has no repository or branch of that name."),
    host.Refused: Failure("CODE_HOST_REFUSED", "The code host refused to hand out the repository."),
}


class ReportPaid(StoreError):
    """The locked scan's report has been paid for since it was read: complete the scan with full access."""


def acquire_scan(scan_id: ScanId, lease_seconds: int) -> tuple[Lease, ScanItem]:
    """Acquires the scan for a worker and sets it to running. Raises leases.Finished, Held, Exhausted."""
    key = work_key(scan_id)
    stored = known(table.get(key), leases.Finished)
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

    Unless it is of a pull request, it supersedes the earlier ones: the sweep then sets when their findings expire, and
    compares its inventory with the list of advisories. If no issue is locked, unlocking costs nothing. Returns the
    scan, and the messages to send: about the scan, and the report of a pull request's scan. Raises leases.LeaseLost,
    and ReportPaid without completing.
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
        "repository": free_repository(scan.repository_id, scan.request_id, uses_preview=number is None),
        "watch": Delete(watch_key(scan.request_id)),
        **unlocks.completion_legs(completed),
        "event": sent[0].leg,
    }
    if number is not None:
        sent.append(report_entry(scan.repository_id, scan.project_id, number))
        legs["message"] = sent[1].leg
    else:
        latest = keys.latest_scan(scan.repository_id, ProjectId.stored(scan.project_id).local)
        legs["latest"] = Put({**latest._asdict(), "projectId": scan.project_id, "scanId": scan.scan_id})
        legs["comparison"] = comparisons.due_leg(scan.repository_id)
        if settings.finding_retention_days:
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
        table.transact(legs, record, {"report": ReportPaid})
    except LegFailed as failure:
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
        "previewCounts",
    )
    return {**scan.status_attributes("completed"), **{name: item[name] for name in names if name in item}}


class PermanentFailure(Exception):
    """A permanent failure: a retry would have the same result."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure


def run_attempt[T](work_id: WorkId, acquire: Callable[[], tuple[Lease, T]], work: Callable[[Lease, T], None]) -> None:
    """Runs one attempt for a delivery. If the work is already finished, this is a success.

    acquire: takes the lease, as `leases.acquire` does. work: does the work and ends it.
    Raises Postponed, Delayed, Rejected after the work has ended as failed, LeftToSweep, or the errors of `work`.
    """
    try:
        lease, item = acquire()
    except leases.Finished:
        return
    except leases.Held as held:
        if is_last_delivery():  # if the worker that holds the lease crashes, the sweep retries
            raise LeftToSweep("held by another delivery") from None
        raise Postponed(held.seconds, "held by another delivery") from None
    except leases.Exhausted:
        _fail(work_id, _INTERNAL_ERROR, None)
        raise Rejected("no attempt came to an end") from None
    try:
        work(lease, item)
    except leases.LeaseLost:
        logger.warning("lease lost")  # another delivery holds the lease or has ended the work, so don't retry
    except PermanentFailure as permanent:
        logger.info("given up", extra={"reason": permanent.failure.code})
        _fail(work_id, permanent.failure, lease)
    except Delayed:
        leases.release(lease, counted=False)
        raise
    except Postponed as postponed:
        _release_or_fail(work_id, lease, postponed.reason, _HOST_UNAVAILABLE)
        raise
    except Exception as error:  # any error: the last attempt ends the work, and the worker logs the error
        described = describe(error)
        reason = f"{described['errorType']} at {described['stack'][-1]}"
        _release_or_fail(work_id, lease, reason, _INTERNAL_ERROR)
        raise


def _release_or_fail(work_id: WorkId, lease: Lease, reason: str, failure: Failure) -> None:
    """Releases the lease for the message's next delivery. Raises LeftToSweep if the message isn't redelivered.

    If this was the last attempt, ends the work with the failure and raises Rejected.
    """
    if lease.last:
        _fail(work_id, failure, lease)
        raise Rejected(reason)
    leases.release(lease, redelivered=not is_last_delivery())
    if is_last_delivery():
        raise LeftToSweep(reason)


def _fail(work_id: WorkId, failure: Failure, lease: Lease | None) -> None:
    try:
        fail_attempted(work_id, failure, lease)
    except leases.LeaseLost:
        logger.warning("ended by another")


@contextmanager
def code_host_errors(installation_id: int) -> Iterator[None]:
    """Converts the code host's errors to PermanentFailure, Postponed, or Delayed, and keeps to its limits."""
    try:
        with retried_later(installation_id, _UNAVAILABLE_SECONDS):
            yield
    except host.CodeHostError as error:
        failure = _HOST_FAILURES.get(type(error))
        if failure is None:
            raise
        raise PermanentFailure(failure) from error
