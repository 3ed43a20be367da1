"""Wiring of `finding_intake`, the worker of two queues.

Audits of websites run strangers' code, which may get the credentials of their function. These can send only to the
queue of reports, in which no other message is accepted. So it is IAM that keeps them from sending other findings.
"""

from typing import Any

from pydantic import TypeAdapter

from controlplane.audits.reports import WebsiteAuditReport
from controlplane.platform.queues.messages import Queue
from controlplane.platform.queues.worker import create_worker
from finding_intake.service import ACCEPTED, process_finding

_process_findings = create_worker(Queue.FINDING_INTAKE, ACCEPTED, process_finding)
_process_reports = create_worker(Queue.AUDIT_REPORTS, TypeAdapter(WebsiteAuditReport), process_finding)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Processes the messages of one of the queues. An empty batch is of none."""
    names = {record["eventSourceARN"].rpartition(":")[2] for record in event["Records"]}
    is_of_reports = Queue.AUDIT_REPORTS.url.rpartition("/")[2] in names
    return (_process_reports if is_of_reports else _process_findings)(event, context)
