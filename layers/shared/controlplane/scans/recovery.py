"""Recovers requests and scans that no worker will end: retries those whose worker crashed, and fails the others."""

from controlplane.platform.core import clock
from controlplane.platform.core.ids import RepositoryId, ScanId
from controlplane.platform.queues import messages, outbox
from controlplane.platform.queues.messages import ExecuteScan, PrepareScan, Queue
from controlplane.platform.queues.outbox import Entry
from controlplane.platform.queues.sweep_runs import SweepRun
from controlplane.platform.table import keys, leases
from controlplane.platform.table.keys import Key
from controlplane.platform.table.table import Delete, Leg, LegFailed, Unrecorded, table
from controlplane.scans.failures import fail_abandoned
from controlplane.scans.items import Work, WorkId
from controlplane.scans.reads import find_work, get_active_work

# A request or scan is ended at this age because its message can no longer be in a queue. A message is sent at most a
# day late: it stays in the outbox until a queue accepts it.
LOST_AFTER_SECONDS = outbox.RETENTION_SECONDS + 86_400
# Allows for clock skew: work counts as abandoned only this long after its lease has expired.
_GRACE_SECONDS = 60


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
