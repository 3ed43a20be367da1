"""Vendors detected on a project, and what a person decided about each.

A decision and the finding it settles change together. A vendor may be decided on before any scan has found it.
"""

from typing import Any, Literal

from controlplane import clock
from controlplane.store import inbox, keys
from controlplane.store.projects import ProjectItem, UnknownProject
from controlplane.store.table import Check, Leg, LegFailed, Throttled, Update, table

VendorState = Literal["approved", "ignored"]
ReviewState = Literal["accepted", "suggested", "rejected", "needs_review"]

REVIEWS: dict[VendorState, ReviewState] = {"approved": "accepted", "ignored": "rejected"}

_TRIES = 8
_PAGE = 100


def decide_vendor(project: ProjectItem, vendor_id: str, state: VendorState, decided_by: str) -> str | None:
    """Records the decision and resolves the vendor's finding: the finding's id, or None where there is none yet.

    Raises UnknownProject where the project is gone by then, so that a deleted project never gets a vendor.
    """
    finding: str | None = None
    for _ in range(_TRIES):
        legs: dict[str, Leg] = {
            "project": Check(project.key, "attribute_exists(pk)"),
            "vendor": _decision(project, vendor_id, state, decided_by, finding),
        }
        if finding is not None:
            legs["finding"] = inbox.moved(finding, inbox.new_version(), "resolved")
        try:
            table.transact(legs)
        except LegFailed as refusal:
            if refusal.leg == "project":
                raise UnknownProject from None
            if refusal.leg == "finding":
                raise LookupError("a vendor names a finding that does not exist") from refusal
            # Most vendors have no finding, or a finding came meanwhile: what stands there says which.
            finding = refusal.item.get("inboxItemId") if refusal.item else None
        else:
            return finding
    raise Throttled("the vendor keeps changing")


def _decision(project: ProjectItem, vendor_id: str, state: VendorState, decided_by: str, finding: str | None) -> Update:
    """The decision, on the condition that the vendor's finding is the one given, or that it has none."""
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


def delete_vendors(project: ProjectItem) -> None:
    """Removes the vendors of a project that is deleted already, page by page."""
    organization_id, local = project.location
    while True:
        # Consistent: what was decided just before the project went must not stay behind.
        page = table.query(
            keys.organization_pk(organization_id), prefix=keys.vendor_prefix(local), limit=_PAGE, consistent=True
        )
        table.delete_all(keys.Key(item["pk"], item["sk"]) for item in page.items)
        if page.next_sk is None:
            return
