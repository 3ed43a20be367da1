"""Messages of scan requests and scans, and the step of the sweep that resends them if a worker crashed."""

from controlplane.queues import messages
from controlplane.queues.messages import ExecuteScan, PrepareScan, Queue
from controlplane.store import scan_requests
from controlplane.store.outbox import Entry
from controlplane.store.sweep_runs import SweepRun


def message_of(request_id: str, scan_id: str | None) -> Entry:
    """Returns the message that makes a worker take the scan, or the scan request if there is no scan yet."""
    if scan_id is None:
        return messages.entry(Queue.SCAN_PREPARATION, PrepareScan(request_id=request_id))
    return messages.entry(Queue.SCAN_EXECUTION, ExecuteScan(scan_id=scan_id))


def recover_scans(run: SweepRun) -> None:
    """Resends the messages of scans whose workers crashed, and ends those without attempts left.

    Runs as a step of the sweep.
    """
    scan_requests.recover_scans(run, message_of, messages.dispatch)
