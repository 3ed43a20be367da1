"""Ends requests and scans as failed or canceled, each once, and frees the repository in the same transaction.

Four situations differ only in the condition under which the work may be ended: by the worker that has it, because no
worker will take it, because its project, repository, or organization was deleted, and because a person or a change of
its pull request cancels it. The sweep finds the work that no worker will end: it retries the work of a crashed worker,
and fails the rest.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from controlplane.code_host.pull_requests import report_entry
from controlplane.platform.core import clock
from controlplane.platform.core.actions import Action
from controlplane.platform.core.errors import Conflict
from controlplane.platform.core.ids import RepositoryId, ScanId, ScanRequestId
from controlplane.platform.queues import messages, outbox
from controlplane.platform.queues.messages import ExecuteScan, PrepareScan, Queue
from controlplane.platform.queues.outbox import Entry
from controlplane.platform.queues.sweep_runs import SweepRun
from controlplane.platform.table import keys, leases
from controlplane.platform.table.keys import Key
from controlplane.platform.table.leases import Lease
from controlplane.platform.table.legs import Delete, Leg, Put, Recorded, Unrecorded, Update, set_expression
from controlplane.platform.table.retry import ConditionFailed, LegFailed, WriteConflict, retry_on_conflict
from controlplane.platform.table.stored import to_map
from controlplane.platform.table.table import table
from controlplane.scans.items import (
    OPEN,
    STAGES,
    Failure,
    QueuedScan,
    RequestItem,
    ScanItem,
    Status,
    UnknownScan,
    Work,
    WorkId,
    watch_key,
)
from controlplane.scans.reads import find_work, get_active_work, get_scan

_ABANDONED = Failure("ABANDONED", "The scan did not come to an end. Start another one.")
_CANCELED = Failure("CANCELED", "A member of the organization canceled it.")
CODE_HOST_UNAVAILABLE, ACCESS_LOST = "CODE_HOST_UNAVAILABLE", "ACCESS_LOST"
# Failures that end by themselves, and when an automatic scan is started again after them. It starts sooner if the
# App's access is back.
RETRY_SECONDS = {CODE_HOST_UNAVAILABLE: 300, ACCESS_LOST: 3_600}
_DELETED = Failure("DELETED", "The project, repository or organization was deleted.")
# A request or scan is ended at this age because its message can no longer be in a queue. A message is sent at most a
# day late: it stays in the outbox until a queue accepts it.
LOST_AFTER_SECONDS = outbox.RETENTION_SECONDS + 86_400
# A scan that publishes isn't canceled, so no finding of a canceled scan is ever published. Requests have no progress.
_UNPUBLISHED = "attribute_not_exists(#progress) OR #progress.#completedStages < :publishing"
# Allows for clock skew: work counts as abandoned only this long after its lease has expired.
_GRACE_SECONDS = 60


def fail_attempted(work_id: WorkId, failure: Failure, lease: Lease | None) -> None:
    """Ends the request or scan that a worker gives up. Raises leases.LeaseLost.

    lease: the reporting worker's lease; None if all attempts are used up.
    """
    work = find_work(work_id)
    if work is None or not work.is_open:
        raise leases.LeaseLost
    if lease is None:
        _fail(work, failure, "#attempts = :most", {"most": leases.MAX_ATTEMPTS})
    else:
        _fail(work, failure, leases.HELD, {"claim": lease.claim})


def fail_abandoned(work: Work) -> bool:
    """Ends work that no worker will acquire. Returns False if it has changed since it was read."""
    try:
        _fail(work, _ABANDONED, leases.UNCHANGED, work.lease.values)
    except leases.LeaseLost:
        return False
    return True


def fail_deleted[W: (RequestItem, ScanItem)](work: W) -> W:
    """Ends the work of something deleted, whether or not its repository still exists. Returns the stored item."""

    def attempt() -> W:
        nonlocal work
        with suppress(leases.LeaseLost):
            _fail(work, _DELETED, "attribute_exists(pk)", {})
        item = table.get(work.key)
        if item is None:
            return work
        before, work = work, type(work).from_item(item)
        if not work.is_open:
            return work
        if work.status == before.status:
            return _fail_without_repository(work)
        raise WriteConflict  # its status has changed since it was read

    return retry_on_conflict(attempt, "the scan")


class NotCancelable(Conflict):
    """The scan has ended, or an attempt has begun to publish its findings."""

    def __init__(self, status: Status) -> None:
        publishing = "An attempt has begun to publish findings, so the scan can't be canceled anymore."
        message = publishing if status in OPEN else f"The scan is {status}, so it can't be canceled anymore."
        super().__init__(message, details={"currentStatus": status})


def cancel_scan(scan: ScanItem) -> ScanItem:
    """Cancels the scan for a person, unless it is canceled already. Its worker, if it has one, loses its lease.

    Returns the canceled scan. Raises NotCancelable, and UnknownScan if its repository was disconnected.
    """

    def cancel() -> ScanItem:
        nonlocal scan
        if scan.status == "canceled":
            return scan
        if not scan.is_cancelable:
            raise NotCancelable(scan.status)
        with suppress(leases.LeaseLost):
            return ScanItem.from_item({**scan.to_item(), **_cancel(scan, _CANCELED)})
        before, scan = scan, get_scan(scan.scan_id)
        if scan.is_cancelable and scan.status == before.status:
            raise UnknownScan
        raise WriteConflict

    return retry_on_conflict(cancel, "the scan")


def cancel_superseded(work: Work, reason: str) -> bool:
    """Cancels work that is obsolete for its pull request. Returns False if it has ended or is publishing."""
    try:
        _cancel(work, Failure("SUPERSEDED", reason))
    except leases.LeaseLost:
        return False
    return True


def superseded_by(commit_sha: str) -> str:
    """Returns the reason for canceling the scan of an older commit."""
    return f"Commit {commit_sha[:7]} was pushed, and its scan replaces this one."


def _cancel(work: Work, failure: Failure) -> dict[str, Any]:
    return _fail(work, failure, _UNPUBLISHED, {"publishing": STAGES.index("publish")}, canceled=True)


def _fail(
    work: Work, failure: Failure, when: str, values: Mapping[str, Any], *, canceled: bool = False
) -> dict[str, Any]:
    """Ends the work. Raises leases.LeaseLost if it has already ended or the condition `when` doesn't hold.

    Returns the attributes that have changed.
    """
    changed = {
        "failure": to_map(failure),
        "completedAt": clock.timestamp(),
        **work.ended_attributes(canceled=canceled),
    }
    legs: dict[str, Leg] = {
        "item": Update(
            work.key,
            set_expression(changed),
            f"({when}) AND #status = :open",
            {**changed, **values, "open": work.status},
        ),
        "repository": free_repository(work.repository_id, work.request_id),
        "watch": Delete(watch_key(work.request_id)),
    }
    number = work.cause.pull_request_number
    if number is not None:
        legs["report"] = report_entry(work.repository_id, work.project_id, number).leg
    record = Recorded(
        Action.SCAN_CANCEL if canceled else Action.SCAN_FAIL,
        work.organization_id,
        work.work_id,
        before={"status": work.status},
        after={"status": changed["status"], "reason": failure.code},
    )
    try:
        _transact(legs, _again(work, failure), record)
    except LegFailed:
        raise leases.LeaseLost from None
    return changed


def _again(work: Work, failure: Failure) -> dict[str, Leg]:
    """Returns the leg that starts an automatic scan again if its failure can end by itself."""
    if failure.code not in RETRY_SECONDS or (work.cause.retry_until or 0) <= clock.now():
        return {}
    wait_seconds = RETRY_SECONDS[failure.code]
    again = QueuedScan.of(work.repository_id, work.project_id, work.cause, wait_seconds=wait_seconds)
    return {"again": Put(again.to_item(), "attribute_not_exists(pk)")}


def _transact(legs: Mapping[str, Leg], again: Mapping[str, Leg], record: Recorded) -> None:
    """Writes the legs, and `again` unless a newer scan of the same subject is queued. Raises LegFailed."""
    try:
        table.transact({**legs, **again}, record)
    except LegFailed as failure:
        if failure.leg not in again:
            raise
        table.transact(legs, record)


def _fail_without_repository[W: (RequestItem, ScanItem)](work: W) -> W:
    changed = work.status_attributes("failed")
    with suppress(ConditionFailed):
        update = Update(work.key, set_expression(changed), "attribute_exists(pk)", changed)
        return type(work).from_item(table.update(update, Unrecorded.CLEANUP))
    return work


def free_repository(repository_id: RepositoryId, request_id: ScanRequestId, *, uses_preview: bool = False) -> Update:
    """Returns a leg that makes the request and its scan no longer the repository's active ones.

    uses_preview: notes that the repository had its free preview. A scan that failed or was canceled uses none.
    """
    change = "REMOVE #activeRequestId, #activeScanId"
    values: dict[str, Any] = {"request": request_id}
    key = keys.repository(*repository_id.location)
    if uses_preview:
        change, values = f"{change} SET #previewUsed = :true", {**values, "true": True}
    return Update(key, change, "#activeRequestId = :request", values)


def message_of(work_id: WorkId) -> Entry:
    """Returns the message that makes a worker take the scan or the scan request."""
    if isinstance(work_id, ScanId):
        return messages.entry(Queue.SCAN_EXECUTION, ExecuteScan(scan_id=work_id))
    return messages.entry(Queue.SCAN_PREPARATION, PrepareScan(request_id=work_id))


def recover_scans(run: SweepRun) -> None:
    """Recovers requests and scans that haven't ended ten minutes after the request, as a step of the sweep.

    Releases the work of a crashed worker and resends its message, once per attempt; ends the work as failed when no
    attempts are left. Leaves queued work alone for as long as its message can be in the queue.
    """
    for watch in run.entries(keys.SCAN_WATCH_PKS, before=clock.timestamp()):
        with run.isolating(watch):
            repository = table.get(keys.repository(*RepositoryId.stored(watch["repositoryId"]).location))
            if repository is None or repository.get("activeRequestId") != watch["requestId"]:
                table.delete(Delete(Key(watch["pk"], watch["sk"])), Unrecorded.PROGRESS)
                continue
            work = get_active_work(repository)
            if not work.is_open:
                continue  # it ended, or its scan was created, after the repository was read
            if is_lost(work):
                run.finished += fail_abandoned(work)
            elif work.lease.is_abandoned(_GRACE_SECONDS):
                message = message_of(work.work_id)
                if _retry(work, message):
                    messages.dispatch(message)
                    run.finished += 1


def is_lost(work: Work) -> bool:
    """Returns whether no worker will acquire the open work: its attempts are used up, or its message is lost."""
    if work.lease.is_waiting:
        return clock.timestamp(clock.now() - LOST_AFTER_SECONDS) > (work.queued_at or work.created_at)
    return work.lease.is_abandoned(_GRACE_SECONDS) and work.lease.attempts >= leases.MAX_ATTEMPTS


def _retry(work: Work, message: Entry) -> bool:
    """Releases a crashed worker's work and writes the message to retry it. Returns False if the work has changed.

    One transaction does both, on the condition that the work is as the crashed worker left it. So each attempt has
    exactly one message, even if sweeps overlap or one crashes before sending.
    """
    queued = {"now": clock.timestamp(), "open": work.status}
    legs: dict[str, Leg] = {
        "item": leases.release_abandoned(work.key, work.lease, ", #queuedAt = :now", " AND #status = :open", queued),
        "message": message.leg,
    }
    try:
        table.transact(legs, Unrecorded.PROGRESS)
    except LegFailed:
        return False
    return True


def fail_waiting(work_id: WorkId) -> bool:
    """Ends a waiting request or scan whose message an operator discards. Returns whether it did.

    Leaves the work alone if it has ended, or if a worker has or had it: then the sweep recovers it.
    """
    work = find_work(work_id)
    return work is not None and work.is_open and work.lease.is_waiting and fail_abandoned(work)
