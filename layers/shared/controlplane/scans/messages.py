"""Messages of scan requests and scans, and the step of the sweep that resends them if a worker crashed."""

from controlplane.platform.core.ids import ScanId
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import ExecuteScan, PrepareScan, Queue
from controlplane.platform.queues.outbox import Entry
from controlplane.platform.queues.sweep_runs import SweepRun
from controlplane.scans import recovery
from controlplane.scans.items import WorkId


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
