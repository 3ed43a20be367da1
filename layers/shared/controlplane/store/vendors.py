"""Vendors detected on a project, and the user's decision about each.

A decision and its finding change in one transaction. A vendor can be decided on before a scan has detected it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

from controlplane.core import clock
from controlplane.core.actions import Action
from controlplane.core.errors import Forbidden
from controlplane.core.ids import ProjectId
from controlplane.store import events, inbox, keys, organizations, publications
from controlplane.store.codec import present
from controlplane.store.events import Announce
from controlplane.store.inbox import Change
from controlplane.store.inbox_items import (
    Discovery,
    Evidence,
    InboxItem,
    Priority,
    RuntimeVendor,
    VendorDecision,
    finding_item_id,
    merge_evidence,
)
from controlplane.store.legs import set_expression
from controlplane.store.organizations import UnknownOrganization
from controlplane.store.project_items import ProjectItem
from controlplane.store.projects import UnknownProject
from controlplane.store.recording import Record
from controlplane.store.retry import WriteConflict, retry_on_conflict
from controlplane.store.table import Check, ConditionFailed, Leg, LegFailed, Put, Recorded, Unrecorded, Update, table

VendorState = Literal["approved", "ignored"]
ReviewState = Literal["accepted", "suggested", "rejected", "needs_review"]

REVIEWS: dict[VendorState, ReviewState] = {"approved": "accepted", "ignored": "rejected"}


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorItem:
    """A vendor of a project, as stored. Writes change single attributes, so there is no `to_item`.

    finding_id to last_seen_at: set once the runtime has detected the vendor. The latest detection sets name, domain,
        category, and before_consent; all detections contribute to evidence, first_seen_at, and last_seen_at.
    state to decided_by: set once a person has decided.
    revision: changes with every detection that is stored.
    """

    project_id: str
    vendor_id: str
    review_state: ReviewState
    finding_id: str | None
    name: str | None
    domain: str | None
    category: str | None
    before_consent: bool
    evidence: tuple[Evidence, ...]
    first_seen_at: str | None
    last_seen_at: str | None
    state: VendorState | None
    decided_at: str | None
    decided_by: str | None
    revision: int | None

    @property
    def runtime_vendor(self) -> RuntimeVendor | None:
        """Returns the vendor as its finding shows it, or None if it hasn't been detected."""
        if self.name is None or self.domain is None:
            return None
        return RuntimeVendor(self.project_id, self.vendor_id, self.name, self.domain)

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        return cls(
            project_id=item["projectId"],
            vendor_id=item["vendorId"],
            review_state=item.get("reviewState", "needs_review"),
            finding_id=item.get("inboxItemId"),
            name=item.get("name"),
            domain=item.get("domain"),
            category=item.get("category"),
            before_consent=item.get("beforeConsent", False),
            evidence=tuple(Evidence.from_item(piece) for piece in item.get("evidence", ())),
            first_seen_at=item.get("firstSeenAt"),
            last_seen_at=item.get("lastSeenAt"),
            state=item.get("state"),
            decided_at=item.get("decidedAt"),
            decided_by=item.get("decidedBy"),
            revision=item.get("revision"),
        )


class VendorPage(NamedTuple):
    """Vendors, and the sort key that the next page starts after (None on the last page)."""

    vendors: list[VendorItem]
    next_sk: str | None


def list_vendors(project_id: ProjectId, limit: int, after: str | None, *, consistent: bool = False) -> VendorPage:
    """Returns one page of the project's vendors, detected or decided on, ordered by id."""
    organization_id, local = project_id.location
    page = table.query(
        keys.organization_pk(organization_id),
        prefix=keys.vendor_prefix(local),
        limit=limit,
        after=after,
        consistent=consistent,
    )
    return VendorPage([VendorItem.from_item(item) for item in page.items], page.next_sk)


def find_vendor(project_id: ProjectId, vendor_id: str) -> VendorItem | None:
    """Returns the project's vendor, detected or decided on, with a consistent read, or None."""
    item = table.get(keys.vendor(*project_id.location, vendor_id))
    return VendorItem.from_item(item) if item else None


# Decisions


class DecidedVendor(NamedTuple):
    """A decision on a vendor, and the vendor's domain if the runtime has detected it."""

    decision: VendorDecision
    domain: str | None


def list_decisions(project_id: ProjectId) -> list[DecidedVendor]:
    """Returns the project's decisions on its vendors. Consistent."""
    organization_id, local = project_id.location
    page = table.query(keys.organization_pk(organization_id), prefix=keys.vendor_prefix(local), consistent=True)
    return [
        DecidedVendor(VendorDecision.from_item(item), item.get("domain")) for item in page.items if item.get("state")
    ]


class Seen(NamedTuple):
    """A vendor and its finding as they were read, or None for each that doesn't exist."""

    vendor: VendorItem | None
    finding: InboxItem | None


def decide_vendor(
    project: ProjectItem,
    vendor_id: str,
    state: VendorState,
    decided_by: str,
    caller_id: str | None = None,
    *,
    seen: Seen | None = None,
) -> str | None:
    """Stores the decision and resolves the vendor's finding. Returns the finding's id, or None if there isn't one.

    A finding that is resolved stays as it is.

    caller_id: the user who must be an admin at commit; None for the operator.
    seen: the vendor and its finding if they were read. Without it, this takes another round trip.
    Raises Forbidden, and UnknownProject if the project was deleted, so that a deleted project never gets a vendor.
    """
    organization_id = project.project_id.organization_id

    def decide() -> str | None:
        nonlocal seen
        vendor, finding = seen or see_vendor(project.project_id, vendor_id)
        seen = None  # if one of them has changed, both are read again
        legs: dict[str, Leg] = {
            **organizations.admin_check(caller_id, organization_id),
            "project": Check(project.key, "attribute_exists(pk)"),
            "vendor": _decision(project, vendor_id, state, decided_by, vendor),
        }
        record = Recorded(
            Action.VENDOR_DECIDE,
            organization_id,
            project.project_id,
            project.name,
            before={vendor_id: vendor.state} if vendor else {},
            after={vendor_id: state},
        )
        changes = [_resolution(finding, decided_by)] if finding and finding.status != "resolved" else []
        try:
            inbox.transact_and_tell(changes, legs, record, events.leave_to_sweep)
        except LegFailed as failure:
            if failure.leg == "caller":
                raise Forbidden from None
            if failure.leg == "project":
                raise UnknownProject from None
            raise WriteConflict from None  # the vendor was detected or decided on, or its finding changed
        return finding.item_id if finding else None

    return retry_on_conflict(decide, "the vendor")


def see_vendor(project_id: ProjectId, vendor_id: str) -> Seen:
    """Returns the project's vendor and its finding. Consistent, one round trip."""
    finding_id = finding_item_id(project_id.organization_id, "runtime", project_id, vendor_id)
    vendor, finding = table.batch_get(
        [keys.vendor(*project_id.location, vendor_id), keys.inbox_item(*finding_id.location)]
    )
    return Seen(VendorItem.from_item(vendor) if vendor else None, InboxItem.from_item(finding) if finding else None)


def _resolution(finding: InboxItem, decided_by: str) -> Change:
    leg = inbox.status_leg(finding, "resolved", inbox.new_version(), decided_by)
    return Change(finding.item_id, leg, finding.status)


def _decision(
    project: ProjectItem, vendor_id: str, state: VendorState, decided_by: str, vendor: VendorItem | None
) -> Update:
    """Returns the leg that stores the decision if the vendor is as it was read."""
    values: dict[str, Any] = {
        "vendorId": vendor_id,
        "projectId": project.project_id,
        "state": state,
        "reviewState": REVIEWS[state],
        "decidedBy": decided_by,
        "decidedAt": clock.timestamp(),
    }
    change = set_expression(values)
    when = "attribute_not_exists(#inboxItemId)"
    if vendor is not None and vendor.finding_id is not None:
        unchanged, read = _unchanged(vendor)
        when = f"#inboxItemId = :finding AND {unchanged}"
        values |= {"finding": vendor.finding_id, **read}
        if vendor.state is None:
            when += " AND attribute_not_exists(#state)"
        else:
            when += " AND #state = :formerState"
            values["formerState"] = vendor.state
    return Update(keys.vendor(*project.project_id.location, vendor_id), change, when, values)


def _unchanged(vendor: VendorItem) -> tuple[str, dict[str, Any]]:
    """Returns the condition, and its values, that no detection was stored since the vendor was read."""
    if vendor.revision is None:  # written by a release that didn't merge evidence, or only decided on
        return "attribute_not_exists(#revision)", {}
    return "#revision = :readRevision", {"readRevision": vendor.revision}


# Detections


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


def record_detection(detection: Detection, announce: Announce = events.leave_to_sweep) -> None:
    """Stores a detected vendor with its finding, in one transaction.

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

    def record() -> None:
        legs, changes = _detection(detection, project_id, *table.batch_get([key, finding_key]))
        if not legs:
            return
        try:
            leg = changes[0].leg if changes else None
            inbox.transact_and_tell(changes, legs, _recorded(detection, leg), announce)
        except LegFailed as failure:
            if failure.leg != "project":
                raise WriteConflict from None  # a decision or another detection was written first
            if organizations.find_organization(organization_id) is None:
                raise UnknownOrganization from None
            raise UnknownProject from None

    retry_on_conflict(record, "the vendor")


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
    evidence = _merged_evidence(detection, vendor, existing_finding)
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


def _merged_evidence(
    detection: Detection, vendor: VendorItem | None, finding: Mapping[str, Any] | None
) -> tuple[Evidence, ...]:
    """Returns the evidence of the vendor, its finding, and the detection. The vendor's outlives a finding that expires.

    A finding that an older release wrote has evidence that the vendor lacks, all of its latest observation.
    """
    seen = [piece._replace(seen_at=detection.observed_at) for piece in detection.evidence]
    return merge_evidence([*(vendor.evidence if vendor else ()), *_evidence_of(finding or {}), *seen])


def _evidence_of(finding: Mapping[str, Any]) -> list[Evidence]:
    """Returns the evidence of a stored finding, each piece with the time it was seen."""
    pieces = [Evidence.from_item(piece) for piece in finding.get("evidence", ())]
    return [piece if piece.seen_at else piece._replace(seen_at=finding["observedAt"]) for piece in pieces]


def _observed(detection: Detection, discovery: Discovery, vendor: VendorItem | None) -> dict[str, Any]:
    """Returns the vendor's attributes that follow from the detection and from earlier ones."""
    at = detection.observed_at
    attributes: dict[str, Any] = {
        "vendorId": detection.vendor.vendor_id,
        "projectId": detection.vendor.project_id,
        "inboxItemId": discovery.item_id,
        "evidence": _to_items(discovery.evidence),
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
    unchanged, read = _unchanged(vendor)
    same_decision = "attribute_not_exists(#state)"
    if vendor.state is not None:
        same_decision = "#state = :readState AND #decidedAt = :readDecidedAt"
        read |= {"readState": vendor.state, "readDecidedAt": vendor.decided_at}
    return Update(key, set_expression(changed), f"{same_decision} AND {unchanged}", {**changed, **read})


def keep_evidence(finding: Mapping[str, Any]) -> bool:
    """Copies the evidence of a finding that an older release wrote to its vendor.

    Returns False if the vendor has evidence, or doesn't exist. A concurrent detection merges the finding's evidence
    itself.
    """
    vendor = RuntimeVendor.from_item(finding["runtimeVendor"])
    values = {
        "evidence": _to_items(_evidence_of(finding)),
        "beforeConsent": finding["priority"] == "P1",  # the intake gives it to these vendors only
        "finding": finding["itemId"],
    }
    key = keys.vendor(*ProjectId.stored(vendor.project_id).location, vendor.vendor_id)
    when = "#inboxItemId = :finding AND attribute_not_exists(#evidence)"
    try:
        table.update(
            Update(key, "SET #evidence = :evidence, #beforeConsent = :beforeConsent", when, values), Unrecorded.BACKFILL
        )
    except ConditionFailed:
        return False
    return True


def _to_items(evidence: Iterable[Evidence]) -> list[dict[str, Any]]:
    return [present(**piece.to_item()) for piece in evidence]
