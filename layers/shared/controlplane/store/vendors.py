"""Vendors detected on a project, and the user's decision about each.

A decision and its finding change in one transaction. A vendor can be decided on before a scan has detected it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from controlplane.core import clock
from controlplane.core.ids import InboxItemId, ProjectId
from controlplane.store import inbox, keys, organizations
from controlplane.store.inbox_items import Discovery, Evidence, Priority, RuntimeVendor
from controlplane.store.organizations import UnknownOrganization
from controlplane.store.project_items import ProjectItem
from controlplane.store.projects import UnknownProject
from controlplane.store.retry import WriteConflict, retry_on_conflict
from controlplane.store.table import Check, Leg, LegFailed, Update, table

VendorState = Literal["approved", "ignored"]
ReviewState = Literal["accepted", "suggested", "rejected", "needs_review"]

REVIEWS: dict[VendorState, ReviewState] = {"approved": "accepted", "ignored": "rejected"}


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorItem:
    """The attributes of a vendor that decide about writes. Writes change single attributes, so there is no `to_item`.

    finding_id: the vendor's inbox item, once the runtime has detected the vendor.
    state, decided_at: set once a person has decided.
    """

    finding_id: str | None
    state: VendorState | None
    decided_at: str | None

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        return cls(finding_id=item.get("inboxItemId"), state=item.get("state"), decided_at=item.get("decidedAt"))


def decide_vendor(project: ProjectItem, vendor_id: str, state: VendorState, decided_by: str) -> str | None:
    """Stores the decision and resolves the vendor's finding. Returns the finding's id, or None if there isn't one.

    Raises UnknownProject if the project was deleted, so that a deleted project never gets a vendor.
    """
    finding_id: str | None = None
    finding_expired = False

    def decide() -> str | None:
        nonlocal finding_id, finding_expired
        legs: dict[str, Leg] = {
            "project": Check(project.key, "attribute_exists(pk)"),
            "vendor": _decision(project, vendor_id, state, decided_by, finding_id),
        }
        if finding_id is not None and not finding_expired:
            legs["finding"] = inbox.update_leg(InboxItemId.stored(finding_id), inbox.new_version(), "resolved")
        try:
            table.transact(legs)
        except LegFailed as failure:
            if failure.leg == "project":
                raise UnknownProject from None
            if failure.leg == "finding":
                finding_expired = True  # it was resolved before
            else:
                # The vendor has a finding, or another one than before. The existing item tells which.
                finding_id = VendorItem.from_item(failure.item).finding_id if failure.item else None
                finding_expired = False
            raise WriteConflict from None
        return None if finding_expired else finding_id

    return retry_on_conflict(decide, "the vendor")


def _decision(
    project: ProjectItem, vendor_id: str, state: VendorState, decided_by: str, finding_id: str | None
) -> Update:
    """Returns the leg that stores the decision if the vendor's finding is still that one."""
    values: dict[str, Any] = {
        "vendor": vendor_id,
        "project": project.project_id,
        "state": state,
        "review": REVIEWS[state],
        "by": decided_by,
        "at": clock.timestamp(),
    }
    when = "attribute_not_exists(#inboxItemId)"
    if finding_id is not None:
        when = "#inboxItemId = :finding"
        values["finding"] = finding_id
    return Update(
        keys.vendor(*project.project_id.location, vendor_id),
        "SET #vendorId = :vendor, #projectId = :project, #state = :state, #reviewState = :review, #decidedBy = :by, "
        "#decidedAt = :at",
        when,
        values,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """A vendor detected at runtime, and the text of its finding.

    category: the vendor's purpose; None if the detector didn't recognize the vendor.
    observed_at: RFC 3339, in the format of `clock.timestamp`.
    """

    vendor: RuntimeVendor
    category: str | None
    title: str
    summary: str
    priority: Priority
    evidence: tuple[Evidence, ...]
    observed_at: str

    def as_discovery(self, organization_id: str, *, settled: bool) -> Discovery:
        return Discovery(
            organization_id=organization_id,
            source="runtime",
            identity=(self.vendor.project_id, self.vendor.vendor_id),
            title=self.title,
            observed_at=self.observed_at,
            summary=self.summary,
            priority=self.priority,
            project_id=self.vendor.project_id,
            evidence=self.evidence,
            runtime_vendor=self.vendor,
            settled=settled,
        )


def record_detection(detection: Detection) -> None:
    """Stores a detected vendor with its finding, in one transaction.

    Keeps existing decisions: if the vendor was decided on, its finding stays resolved. A duplicate or out-of-order
    detection changes nothing. Raises UnknownProject if the project was deleted, and UnknownOrganization if the
    organization doesn't exist.
    """
    project_id = ProjectId.parse(detection.vendor.project_id)
    if project_id is None:
        raise UnknownProject
    organization_id = project_id.organization_id
    key = keys.vendor(*project_id.location, detection.vendor.vendor_id)
    finding_key = keys.inbox_item(*detection.as_discovery(organization_id, settled=False).item_id.location)

    def record() -> None:
        item, existing_finding = table.batch_get([key, finding_key])
        vendor = VendorItem.from_item(item or {})
        discovery = detection.as_discovery(organization_id, settled=vendor.state is not None)
        finding = inbox.publish_leg(discovery, existing_finding)
        if finding is None:
            return
        legs: dict[str, Leg] = {
            "project": Check(keys.project(*project_id.location), "attribute_exists(pk)"),
            "vendor": _detected(key, detection, discovery.item_id, vendor),
            "finding": finding,
        }
        try:
            table.transact(legs)
        except LegFailed as failure:
            if failure.leg != "project":
                raise WriteConflict from None  # a decision or another detection was written first
            if organizations.find_organization(organization_id) is None:
                raise UnknownOrganization from None
            raise UnknownProject from None

    retry_on_conflict(record, "the vendor")


def _detected(key: keys.Key, detection: Detection, finding_id: str, vendor: VendorItem) -> Update:
    """Returns the leg that stores the vendor with its finding, if its decision hasn't changed since it was read."""
    values: dict[str, Any] = {
        "vendor": detection.vendor.vendor_id,
        "project": detection.vendor.project_id,
        "name": detection.vendor.name,
        "domain": detection.vendor.domain,
        "category": detection.category,
        "finding": finding_id,
        "at": detection.observed_at,
    }
    change = (
        "SET #vendorId = :vendor, #projectId = :project, #name = :name, #domain = :domain, #category = :category, "
        "#inboxItemId = :finding, #lastSeenAt = :at, #firstSeenAt = if_not_exists(#firstSeenAt, :at)"
    )
    if vendor.state is not None:
        decision = {"state": vendor.state, "decidedAt": vendor.decided_at}
        return Update(key, change, "#state = :state AND #decidedAt = :decidedAt", {**values, **decision})
    values["review"] = "needs_review" if detection.category is None else "suggested"
    return Update(key, f"{change}, #reviewState = :review", "attribute_not_exists(#state)", values)
