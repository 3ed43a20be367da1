"""Wiring of `scan_execution`."""

from controlplane.platform.queues.messages import Queue
from controlplane.platform.queues.worker import create_worker
from scan_execution.messages import ACCEPTED, ScanMessage
from scan_execution.service import execute_scan, publish_scan


def take(message: ScanMessage) -> None:
    """Dispatches the message by its kind."""
    if message.kind == "execute-scan":
        execute_scan(message)
    else:
        publish_scan(message)


handler = create_worker(Queue.SCAN_EXECUTION, ACCEPTED, take)
