"""Has the scans of dead workers taken up again: the messages of requests and scans, and the sweep that repeats them."""

from controlplane import queues
from controlplane.queues import ExecuteScan, PrepareScan, Queue
from controlplane.store import scan_requests
from controlplane.store.outbox import Entry
from controlplane.store.sweep_runs import SweepRun


def message_of(request_id: str, scan_id: str | None) -> Entry:
    """Makes the message that has a worker take the scan, or the request while there is no scan."""
    if scan_id is None:
        return queues.entry(Queue.SCAN_PREPARATION, PrepareScan(request_id=request_id))
    return queues.entry(Queue.SCAN_EXECUTION, ExecuteScan(scan_id=scan_id))


def recover_scans(run: SweepRun) -> None:
    """A step of the sweep: sends the messages of scans again whose workers died, and ends those without an attempt."""
    scan_requests.recover_scans(run, message_of, queues.dispatch)
