"""The rules of `finding_intake`: which messages become findings, and which are dropped.

A message may arrive more than once, late, or after a newer one, so findings are ordered by observation time. Messages
for a deleted project or audit are dropped, because some are still in flight when it is deleted.

Reports of audits have a queue of their own. They are also accepted from the other one, to which the release before
sends them: what counts is a report's claim.
"""

from datetime import datetime
from typing import Annotated

from pydantic import Field, TypeAdapter

from controlplane.audits.completion import Forged, Superfluous, complete_run
from controlplane.audits.reports import WebsiteAuditReport
from controlplane.findings.intake import Advisory, RuntimeVendorDetection, publish_advisory, record_detection
from controlplane.organizations.store import UnknownOrganization
from controlplane.platform.core import clock
from controlplane.platform.core.observability import logger
from controlplane.platform.queues import messages
from controlplane.platform.queues.outbox import Entry
from controlplane.platform.queues.worker import Rejected
from controlplane.projects.store import UnknownProject

# Tolerates clock skew between detectors. An observation further in the future would supersede all valid later ones.
_MOST_AHEAD_SECONDS = 300

type Finding = RuntimeVendorDetection | Advisory | WebsiteAuditReport

ACCEPTED: TypeAdapter[Finding] = TypeAdapter(
    Annotated[RuntimeVendorDetection | Advisory | WebsiteAuditReport, Field(discriminator="kind")]
)


def process_finding(message: Finding) -> None:
    """Publishes what the message reports to the inbox. Raises Rejected."""
    if _observed_at(message).timestamp() > clock.now() + _MOST_AHEAD_SECONDS:
        raise Rejected("observed in the future")
    try:
        told = _publish(message)
    except UnknownOrganization:
        raise Rejected("unknown organization") from None
    except Forged:
        raise Rejected("not the report of the run's worker") from None
    except (UnknownProject, Superfluous) as reason:
        logger.info("finding dropped", extra={"kind": message.kind, "reason": type(reason).__name__})
    else:
        messages.dispatch(*told)


def _observed_at(message: Finding) -> datetime:
    match message:
        case Advisory():
            return message.published_at
        case RuntimeVendorDetection():
            return message.observed_at
        case WebsiteAuditReport():
            return message.finished_at


def _publish(message: Finding) -> list[Entry]:
    match message:
        case Advisory():
            return publish_advisory(message)
        case RuntimeVendorDetection():
            return record_detection(message)
        case WebsiteAuditReport():
            return complete_run(message)
