"""The rules of `finding_intake`: how messages become inbox items, and which messages are dropped.

A message may arrive more than once, late, or after a newer one, so findings are ordered by observation time. Messages
for a deleted project are dropped, because some are still in flight when a project is deleted.
"""

from datetime import datetime

from controlplane.findings import intake
from controlplane.findings.items import Discovery, Evidence, RuntimeVendor
from controlplane.organizations.store import UnknownOrganization
from controlplane.platform.core import clock
from controlplane.platform.core.observability import logger
from controlplane.platform.queues import messages
from controlplane.platform.queues.outbox import Entry
from controlplane.platform.queues.worker import Rejected
from controlplane.projects.store import UnknownProject
from finding_intake.messages import Advisory, Finding, RuntimeVendorDetection

# Tolerates clock skew between detectors. An observation further in the future would supersede all valid later ones.
_MOST_AHEAD_SECONDS = 300


def process_finding(message: Finding) -> None:
    """Publishes the reported finding to the inbox. Raises Rejected."""
    try:
        told = _publish_advisory(message) if isinstance(message, Advisory) else _record_detection(message)
    except UnknownOrganization:
        raise Rejected("unknown organization") from None
    except UnknownProject:
        logger.info("finding dropped", extra={"kind": message.kind, "reason": "the project is gone"})
    else:
        messages.dispatch(*told)


def _record_detection(message: RuntimeVendorDetection) -> list[Entry]:
    observed_at = _observed(message.observed_at)
    vendor = RuntimeVendor(message.project_id, message.vendor_id, message.name, message.domain)
    return intake.record_detection(
        intake.Detection(
            vendor=vendor,
            category=message.category,
            title=f"{message.name} loads before consent" if message.before_consent else f"New vendor: {message.name}",
            summary=_summary(message),
            priority="P1" if message.before_consent else "P2",
            evidence=tuple(Evidence(f"A page that loads {message.domain}", url) for url in message.seen_on),
            observed_at=observed_at,
            before_consent=message.before_consent,
        )
    )


def _summary(message: RuntimeVendorDetection) -> str:
    kind = f" ({message.category})" if message.category else ""
    seen = f"{message.domain}{kind} was seen on the project's website"
    if message.before_consent:
        return f"{seen} before visitors had consented. Decide whether it is approved, and load it after consent."
    return f"{seen}. Decide whether it is approved or ignored."


def _publish_advisory(message: Advisory) -> list[Entry]:
    return intake.publish_advisory(
        Discovery(
            organization_id=message.organization_id,
            source="advisory",
            identity=(message.advisory_id, message.project_id or ""),
            title=message.title,
            observed_at=_observed(message.published_at),
            summary=message.summary,
            priority=message.priority,
            project_id=message.project_id,
            description=message.description,
            remediation=message.remediation,
            references=message.references,
        )
    )


def _observed(moment: datetime) -> str:
    """Returns the time in the table's format. Raises Rejected if it is in the future."""
    seconds = moment.timestamp()
    if seconds > clock.now() + _MOST_AHEAD_SECONDS:
        raise Rejected("observed in the future")
    return clock.timestamp(seconds)
