"""Wiring of `scan_preparation`."""

from pydantic import TypeAdapter

from controlplane.platform.queues.messages import PrepareScan, Queue
from controlplane.platform.queues.worker import create_worker
from scan_preparation.service import prepare_scan

handler = create_worker(Queue.SCAN_PREPARATION, TypeAdapter(PrepareScan), prepare_scan)
