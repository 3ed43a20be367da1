"""Messages of scan requests and scans, and the step of the sweep that resends them if a worker crashed."""

from controlplane.core.ids import ScanId
from controlplane.queues import messages
from controlplane.queues.messages import ExecuteScan, PrepareScan, Queue
from controlplane.store.outbox import Entry
from controlplane.store.scans import recovery
from controlplane.store.scans.items import WorkId
from controlplane.store.sweep_runs import SweepRun


def message_of(work_id: WorkId) -> Entry:
    """Returns the message that makes a worker take the scan or the scan request."""
    if isinstance(work_id, ScanId):
        return messages.entry(Queue.SCAN_EXECUTION, ExecuteScan(scan_id=work_id))
    return messages.entry(Queue.SCAN_PREPARATION, PrepareScan(request_id=work_id))


def recover_scans(run: SweepRun) -> None:
    """Resends the messages of scans whose workers crashed, and ends those without attempts left.

    Runs as a step of the sweep.
    """
    recovery.recover_scans(run, message_of, messages.dispatch)
