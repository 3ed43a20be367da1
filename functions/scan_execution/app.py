"""Wiring of `scan_execution`."""

from typing import Annotated

from pydantic import Field, TypeAdapter

from controlplane.platform.queues.messages import ExecuteScan, PublishScan, Queue
from controlplane.platform.queues.worker import create_worker
from scan_execution.service import execute_scan, publish_scan

type ScanMessage = ExecuteScan | PublishScan

ACCEPTED: TypeAdapter[ScanMessage] = TypeAdapter(Annotated[ExecuteScan | PublishScan, Field(discriminator="kind")])


def take(message: ScanMessage) -> None:
    """Dispatches the message by its kind."""
    if message.kind == "execute-scan":
        execute_scan(message)
    else:
        publish_scan(message)


handler = create_worker(Queue.SCAN_EXECUTION, ACCEPTED, take)
