"""Wiring of `finding_intake`."""

from controlplane.findings.intake import ACCEPTED
from controlplane.platform.queues.messages import Queue
from controlplane.platform.queues.worker import create_worker
from finding_intake.service import process_finding

handler = create_worker(Queue.FINDING_INTAKE, ACCEPTED, process_finding)
