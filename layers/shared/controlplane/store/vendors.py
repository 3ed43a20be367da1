"""Vendors detected on a project, and the user's decision about each.

A decision and its finding change in one transaction. A vendor can be decided on before a scan has detected it.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from controlplane.core import clock, ids
from controlplane.store import inbox, keys, organizations
from controlplane.store.inbox import Discovery, Evidence, RuntimeVendor
from controlplane.store.organizations import UnknownOrganization
from controlplane.store.project_items import ProjectItem
from controlplane.store.projects import UnknownProject
from controlplane.store.table import Check, Leg, LegFailed, Throttled, Update, table

VendorState = Literal["approved", "ignored"]
ReviewState = Literal["accepted", "suggested", "rejected", "needs_review"]

REVIEWS: dict[VendorState, ReviewState] = {"approved": "accepted", "ignored": "rejected"}

_TRIES = 8


def decide_vendor(project: ProjectItem, vendor_id: str, state: VendorState, decided_by: str) -> str | None:
    """Stores the decision and resolves the vendor's finding. Returns the finding's id, or None if there isn't one.

    Raises UnknownProject if the project was deleted, so that a deleted project never gets a vendor.
    """
    finding: str | None = None
    gone = False
    for _ in range(_TRIES):
        legs: dict[str, Leg] = {
            "project": Check(project.key, "attribute_exists(pk)"),
            "vendor": _decision(project, vendor_id, state, decided_by, finding),
        }
        if finding is not None and not gone:
            legs["finding"] = inbox.moved(finding, inbox.new_version(), "resolved")
        try:
            table.transact(legs)
        except LegFailed as refusal:
            if refusal.leg == "project":
                raise UnknownProject from None
            if refusal.leg == "finding":
                gone = True  # it was resolved and has expired
                continue
            # Either the vendor has no finding yet, or one was added concurrently: the existing item tells.
            finding, gone = (refusal.item.get("inboxItemId") if refusal.item else None), False
        else:
            return None if gone else finding
    raise Throttled("the vendor keeps changing")


def _decision(project: ProjectItem, vendor_id: str, state: VendorState, decided_by: str, finding: str | None) -> Update:
    """Returns the leg that stores the decision if the vendor's finding is still `finding`."""
    values: dict[str, Any] = {
        "vendor": vendor_id,
        "project": project.project_id,
        "state": state,
        "review": REVIEWS[state],
        "by": decided_by,
        "at": clock.timestamp(),
    }
    when = "attribute_not_exists(#inboxItemId)"
    if finding is not None:
        when = "#inboxItemId = :finding"
        values["finding"] = finding
    return Update(
        keys.vendor(*project.location, vendor_id),
        "SET #vendorId = :vendor, #projectId = :project, #state = :state, #reviewState = :review, #decidedBy = :by, "
        "#decidedAt = :at",
        when,
        values,
    )


class Detection(NamedTuple):
    """A vendor detected at runtime, and the text of its finding.

    category: the vendor's purpose; None if the detector didn't recognize the vendor.
    observed_at: RFC 3339, in the format of `clock.timestamp`.
    """

    vendor: RuntimeVendor
    category: str | None
    title: str
    summary: str
    priority: inbox.Priority
    evidence: tuple[Evidence, ...]
    observed_at: str

    def as_discovery(self, organization_id: str, *, settled: bool) -> Discovery:
        return Discovery(
            organization_id,
            "runtime",
            (self.vendor.project_id, self.vendor.vendor_id),
            self.title,
            self.observed_at,
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
    located = ids.locate(ids.PROJECT, detection.vendor.project_id)
    if located is None:
        raise UnknownProject
    key = keys.vendor(*located, detection.vendor.vendor_id)
    local = detection.as_discovery(located.organization_id, settled=False).local
    for _ in range(_TRIES):
        vendor, stands = table.batch_get([key, keys.inbox_item(located.organization_id, local)])
        decided = vendor is not None and "state" in vendor
        discovery = detection.as_discovery(located.organization_id, settled=decided)
        finding = inbox.publication(discovery, stands)
        if finding is None:
            return
        legs: dict[str, Leg] = {
            "project": Check(keys.project(*located), "attribute_exists(pk)"),
            "vendor": _detected(key, detection, discovery.item_id, vendor),
            "finding": finding,
        }
        try:
            table.transact(legs)
        except LegFailed as refusal:
            if refusal.leg == "project":
                if organizations.find_organization(located.organization_id) is None:
                    raise UnknownOrganization from None
                raise UnknownProject from None
            # A decision or another detection was written first: retry.
        else:
            return
    raise Throttled("the vendor keeps changing")


def _detected(key: keys.Key, detection: Detection, item_id: str, vendor: Mapping[str, Any] | None) -> Update:
    """Returns the leg that stores the vendor with its finding, if its decision hasn't changed since it was read."""
    values: dict[str, Any] = {
        "vendor": detection.vendor.vendor_id,
        "project": detection.vendor.project_id,
        "name": detection.vendor.name,
        "domain": detection.vendor.domain,
        "category": detection.category,
        "finding": item_id,
        "seen": detection.observed_at,
    }
    change = (
        "SET #vendorId = :vendor, #projectId = :project, #name = :name, #domain = :domain, #category = :category, "
        "#inboxItemId = :finding, #lastSeenAt = :seen, #firstSeenAt = if_not_exists(#firstSeenAt, :seen)"
    )
    if vendor is not None and "state" in vendor:
        decision = {"state": vendor["state"], "at": vendor["decidedAt"]}
        return Update(key, change, "#state = :state AND #decidedAt = :at", {**values, **decision})
    values["review"] = "needs_review" if detection.category is None else "suggested"
    return Update(key, f"{change}, #reviewState = :review", "attribute_not_exists(#state)", values)
