"""Findings that other systems report: advisories, which are external notices, and detections of vendors at runtime.

An advisory is stored only as an inbox item. A detection is stored as a vendor of the project, with its finding.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controlplane.findings import inbox, publications
from controlplane.findings.inbox import Change
from controlplane.findings.items import Discovery, Evidence, RuntimeVendor, merge_evidence
from controlplane.findings.vendors import VendorItem
from controlplane.organizations import store as organizations
from controlplane.organizations.store import UnknownOrganization
from controlplane.platform.core.actions import Action
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.core.priorities import Priority
from controlplane.platform.queues.outbox import Entry
from controlplane.platform.table import keys
from controlplane.platform.table.legs import Record, set_expression
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.table import Check, Leg, LegFailed, Put, Recorded, Unrecorded, Update, table
from controlplane.projects.store import UnknownProject

_EXISTS = "attribute_exists(pk)"


def publish_advisory(discovery: Discovery) -> list[Entry]:
    """Publishes an advisory as a new item, or replaces its earlier edition. Returns the messages to send.

    Duplicates and editions older than the stored one change nothing. Raises UnknownOrganization, and UnknownProject
    if the advisory's project no longer exists.
    """
    key = keys.inbox_item(*discovery.item_id.location)
    around: dict[str, Leg] = {"organization": Check(keys.organization(discovery.organization_id), _EXISTS)}
    if discovery.project_id is not None:
        project_id = ProjectId.parse(discovery.project_id)
        if project_id is None:
            raise UnknownProject
        around["project"] = Check(keys.project(*project_id.location), _EXISTS)

    def publish() -> list[Entry]:
        existing = table.get(key)
        finding = publications.publish_leg(discovery, existing)
        if finding is None:
            return []
        change = Change(discovery.item_id, finding, existing["status"] if existing else None)
        record = Recorded(
            Action.ADVISORY_PUBLISH,
            discovery.organization_id,
            discovery.item_id,
            discovery.title,
            after={"edition": discovery.observed_at},
        )
        try:
            return inbox.transact_and_tell([change], around, record)
        except LegFailed as failure:
            errors = {"organization": UnknownOrganization, "project": UnknownProject}
            raise failure.mapped(errors, WriteConflict) from None

    return retry_on_conflict(publish, "the item")


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """A vendor detected at runtime, and the text of its finding.

    category: the vendor's purpose; None if the detector didn't recognize the vendor.
    before_consent: the vendor was loaded before the visitor consented.
    observed_at: RFC 3339, in the format of `clock.timestamp`.
    """

    vendor: RuntimeVendor
    category: str | None
    title: str
    summary: str
    priority: Priority
    evidence: tuple[Evidence, ...]
    observed_at: str
    before_consent: bool = False

    def as_discovery(
        self, organization_id: str, evidence: tuple[Evidence, ...] = (), *, settled: bool = False
    ) -> Discovery:
        """Returns the finding of the vendor with that evidence, its own included."""
        return Discovery(
            organization_id=organization_id,
            source="runtime",
            identity=(self.vendor.project_id, self.vendor.vendor_id),
            title=self.title,
            observed_at=self.observed_at,
            summary=self.summary,
            priority=self.priority,
            project_id=self.vendor.project_id,
            evidence=evidence,
            runtime_vendor=self.vendor,
            settled=settled,
        )


def record_detection(detection: Detection) -> list[Entry]:
    """Stores a detected vendor with its finding, in one transaction. Returns the messages to send.

    Keeps existing decisions: if the vendor was decided on, its finding stays resolved. Merges the evidence into that of
    earlier detections. An out-of-order detection changes nothing else except the time the vendor was first seen, a
    duplicate changes nothing. Raises UnknownProject if the project was deleted, and UnknownOrganization if the
    organization doesn't exist.
    """
    project_id = ProjectId.parse(detection.vendor.project_id)
    if project_id is None:
        raise UnknownProject
    organization_id = project_id.organization_id
    key = keys.vendor(*project_id.location, detection.vendor.vendor_id)
    finding_key = keys.inbox_item(*detection.as_discovery(organization_id).item_id.location)

    def record() -> list[Entry]:
        legs, changes = _detection(detection, project_id, *table.batch_get([key, finding_key]))
        if not legs:
            return []
        try:
            leg = changes[0].leg if changes else None
            return inbox.transact_and_tell(changes, legs, _recorded(detection, leg))
        except LegFailed as failure:
            if failure.leg != "project":
                raise WriteConflict from None  # a decision or another detection was written first
            if organizations.find_organization(organization_id) is None:
                raise UnknownOrganization from None
            raise UnknownProject from None

    return retry_on_conflict(record, "the vendor")


def _recorded(detection: Detection, finding: Leg | None) -> Record:
    """Returns the entry of a detection whose finding is new or changes its status. Another one changes no decision."""
    discovery = detection.as_discovery(ProjectId.stored(detection.vendor.project_id).organization_id)
    written = finding.item if isinstance(finding, Put) else finding.values if isinstance(finding, Update) else {}
    if "status" not in written:
        return Unrecorded.OBSERVATION
    return Recorded(
        Action.VENDOR_DETECT,
        discovery.organization_id,
        discovery.item_id,
        detection.vendor.name,
        after={
            "projectId": detection.vendor.project_id,
            "vendorId": detection.vendor.vendor_id,
            "status": written["status"],
        },
    )


def _detection(
    detection: Detection,
    project_id: ProjectId,
    item: Mapping[str, Any] | None,
    existing_finding: Mapping[str, Any] | None,
) -> tuple[dict[str, Leg], list[Change]]:
    """Returns the transaction that stores the detection, given the vendor and its finding. Empty if nothing changes.

    The change of the finding is separate.
    """
    vendor = VendorItem.from_item(item) if item else None
    seen = [piece._replace(seen_at=detection.observed_at) for piece in detection.evidence]
    # The vendor's evidence outlives a finding that expires.
    evidence = merge_evidence([*(vendor.evidence if vendor else ()), *seen])
    settled = vendor is not None and vendor.state is not None
    discovery = detection.as_discovery(project_id.organization_id, evidence, settled=settled)
    observed = _observed(detection, discovery, vendor)
    changes = {name: value for name, value in observed.items() if not item or (name, value) not in item.items()}
    finding = publications.publish_leg(discovery, existing_finding)
    if finding is None and existing_finding:
        finding = publications.evidence_leg(discovery, existing_finding)
    if not changes and finding is None:
        return {}, []
    legs: dict[str, Leg] = {
        "project": Check(keys.project(*project_id.location), "attribute_exists(pk)"),
        "vendor": _if_unchanged(keys.vendor(*project_id.location, detection.vendor.vendor_id), vendor, changes),
    }
    if finding is None:
        return legs, []
    return legs, [Change(discovery.item_id, finding, existing_finding["status"] if existing_finding else None)]


def _observed(detection: Detection, discovery: Discovery, vendor: VendorItem | None) -> dict[str, Any]:
    """Returns the vendor's attributes that follow from the detection and from earlier ones."""
    at = detection.observed_at
    attributes: dict[str, Any] = {
        "vendorId": detection.vendor.vendor_id,
        "projectId": detection.vendor.project_id,
        "inboxItemId": discovery.item_id,
        "evidence": [piece.to_map() for piece in discovery.evidence],
        "firstSeenAt": min(vendor.first_seen_at or at, at) if vendor else at,
    }
    if vendor is not None and vendor.last_seen_at is not None and at <= vendor.last_seen_at:
        return attributes
    attributes |= {
        "lastSeenAt": at,
        "name": detection.vendor.name,
        "domain": detection.vendor.domain,
        "category": detection.category,
        "beforeConsent": detection.before_consent,
    }
    if vendor is None or vendor.state is None:
        attributes["reviewState"] = "needs_review" if detection.category is None else "suggested"
    return attributes


def _if_unchanged(key: keys.Key, vendor: VendorItem | None, changes: Mapping[str, Any]) -> Update:
    """Returns the leg that changes the vendor if neither a decision nor a detection was stored since it was read."""
    if vendor is None:
        changed = {**changes, "revision": 1}
        return Update(key, set_expression(changed), "attribute_not_exists(pk)", changed)
    changed = {**changes, "revision": (vendor.revision or 0) + 1}
    unchanged, read = vendor.undetected_since()
    same_decision = "attribute_not_exists(#state)"
    if vendor.state is not None:
        same_decision = "#state = :readState"
        read |= {"readState": vendor.state}
    return Update(key, set_expression(changed), f"{same_decision} AND {unchanged}", {**changed, **read})
