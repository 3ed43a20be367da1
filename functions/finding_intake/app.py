"""Wiring of `finding_intake`."""

from controlplane.platform.queues.messages import Queue
from controlplane.platform.queues.worker import create_worker
from finding_intake.service import ACCEPTED, process_finding

handler = create_worker(Queue.FINDING_INTAKE, ACCEPTED, process_finding)
