"""The rules of `finding_intake`: which messages become findings, and which are dropped.

A message may arrive more than once, late, or after a newer one, so findings are ordered by observation time. Messages
for a deleted project are dropped, because some are still in flight when a project is deleted.
"""

from controlplane.findings.intake import Advisory, Finding, publish_advisory, record_detection
from controlplane.organizations.store import UnknownOrganization
from controlplane.platform.core import clock
from controlplane.platform.core.observability import logger
from controlplane.platform.queues import messages
from controlplane.platform.queues.worker import Rejected
from controlplane.projects.store import UnknownProject

# Tolerates clock skew between detectors. An observation further in the future would supersede all valid later ones.
_MOST_AHEAD_SECONDS = 300


def process_finding(message: Finding) -> None:
    """Publishes the reported finding to the inbox. Raises Rejected."""
    moment = message.published_at if isinstance(message, Advisory) else message.observed_at
    if moment.timestamp() > clock.now() + _MOST_AHEAD_SECONDS:
        raise Rejected("observed in the future")
    try:
        told = publish_advisory(message) if isinstance(message, Advisory) else record_detection(message)
    except UnknownOrganization:
        raise Rejected("unknown organization") from None
    except UnknownProject:
        logger.info("finding dropped", extra={"kind": message.kind, "reason": "the project is gone"})
    else:
        messages.dispatch(*told)
