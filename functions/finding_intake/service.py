"""The rules of `finding_intake`: what a message comes to in the inbox, and which messages come to nothing.

A message may come more than once, late, and after a newer one: what it reports counts by the time of its observation.
What concerns a project that was deleted is dropped, since messages are still under way when a project goes.
"""

from datetime import datetime

from controlplane import clock
from controlplane.observability import logger
from controlplane.store import advisories, vendors
from controlplane.store.inbox import Discovery, Evidence, RuntimeVendor
from controlplane.store.organizations import UnknownOrganization
from controlplane.store.projects import UnknownProject
from controlplane.worker import Rejected
from finding_intake.messages import Advisory, Finding, RuntimeVendorDetection

# Clocks of detectors differ. An observation from further ahead would outweigh every true one that follows.
_MOST_AHEAD_SECONDS = 300


def take_finding(message: Finding) -> None:
    """Publishes what the message reports. Raises Rejected."""
    try:
        if isinstance(message, Advisory):
            _take_advisory(message)
        else:
            _take_detection(message)
    except UnknownOrganization:
        raise Rejected("unknown organization") from None
    except UnknownProject:
        logger.info("finding dropped", extra={"kind": message.kind, "reason": "the project is gone"})


def _take_detection(message: RuntimeVendorDetection) -> None:
    observed_at = _observed(message.observed_at)
    vendor = RuntimeVendor(message.project_id, message.vendor_id, message.name, message.domain)
    vendors.record_detection(
        vendors.Detection(
            vendor,
            message.category,
            title=f"{message.name} loads before consent" if message.before_consent else f"New vendor: {message.name}",
            summary=_summary(message),
            priority="P1" if message.before_consent else "P2",
            evidence=tuple(Evidence(f"A page that loads {message.domain}", url) for url in message.seen_on),
            observed_at=observed_at,
        )
    )


def _summary(message: RuntimeVendorDetection) -> str:
    kind = f" ({message.category})" if message.category else ""
    seen = f"{message.domain}{kind} was seen on the project's website"
    if message.before_consent:
        return f"{seen} before visitors had consented. Decide whether it is approved, and load it after consent."
    return f"{seen}. Decide whether it is approved or ignored."


def _take_advisory(message: Advisory) -> None:
    advisories.publish_advisory(
        Discovery(
            message.organization_id,
            "advisory",
            (message.advisory_id, message.project_id or ""),
            message.title,
            _observed(message.published_at),
            summary=message.summary,
            priority=message.priority,
            project_id=message.project_id,
            description=message.description,
            remediation=message.remediation,
            references=message.references,
        )
    )


def _observed(moment: datetime) -> str:
    """The time as the table has it. Raises Rejected for one that is still to come."""
    seconds = moment.timestamp()
    if seconds > clock.now() + _MOST_AHEAD_SECONDS:
        raise Rejected("observed in the future")
    return clock.timestamp(seconds)
