"""Vendors of a project, which the runtime detected or scans found in its code, and the decision about each.

A decision and its finding change in one transaction. A vendor of the catalog can be decided on before it is seen.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

from controlplane.findings import inbox
from controlplane.findings.changes import Change, transact_and_tell
from controlplane.findings.discoveries import finding_item_id
from controlplane.findings.items import CodeUse, Evidence, InboxItem, RuntimeVendor, VendorDecision
from controlplane.organizations import store as organizations
from controlplane.platform.core import clock
from controlplane.platform.core.actions import Action
from controlplane.platform.core.errors import Conflict, NotFound, RoleRequired
from controlplane.platform.core.ids import InboxItemId, ProjectId
from controlplane.platform.table import keys
from controlplane.platform.table.legs import set_expression
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.stored import SPARSE, StoredMap
from controlplane.platform.table.table import Leg, LegFailed, QueryPage, Recorded, Update, table
from controlplane.projects.changes import vendors_leg
from controlplane.projects.items import MAX_DECIDED_VENDORS, ConfiguredVendor, ProjectItem
from controlplane.projects.store import existing

VendorState = Literal["approved", "ignored"]
ReviewState = Literal["accepted", "suggested", "rejected", "needs_review"]

# The state of a vendor after each decision.
STATES: dict[str, VendorState] = {"approve": "approved", "ignore": "ignored"}
REVIEWS: dict[VendorState, ReviewState] = {"approved": "accepted", "ignored": "rejected"}
# Made from the catalog of the analysis by scripts/rule_texts.py.
_CATALOG: Final = Path(__file__).with_name("vendor_ids.json")


class UnknownVendor(NotFound):
    message = "The project has no such vendor, and the catalog doesn't have it. Use a `vendorId` of the project's list."


class DecisionLimitReached(Conflict):
    message = f"The project has decisions on {MAX_DECIDED_VENDORS} vendors, the most that a configuration can have."

    def __init__(self) -> None:
        super().__init__(details={"limit": MAX_DECIDED_VENDORS})


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorItem(StoredMap):
    """A vendor of a project, as stored. Writes change single attributes, so there is no `to_item`.

    name to last_seen_at: set once the runtime or an audit has detected the vendor. The latest detection sets name,
        domain, category, and before_consent; all contribute to evidence, first_seen_at, and last_seen_at. A scan sets a
        missing name and category. inbox_item_id: the finding of the runtime's detections. An audit has findings of its
        own.
    state to decided_by: set once a person has decided.
    revision: changes with every detection that is stored.
    code: the repositories whose scans found it, the latest scan first.
    """

    project_id: str
    vendor_id: str
    review_state: Annotated[ReviewState, SPARSE] = "needs_review"
    inbox_item_id: Annotated[str | None, SPARSE] = None
    name: Annotated[str | None, SPARSE] = None
    domain: Annotated[str | None, SPARSE] = None
    category: Annotated[str | None, SPARSE] = None
    before_consent: Annotated[bool, SPARSE] = False
    evidence: Annotated[tuple[Evidence, ...], SPARSE] = ()
    first_seen_at: Annotated[str | None, SPARSE] = None
    last_seen_at: Annotated[str | None, SPARSE] = None
    state: Annotated[VendorState | None, SPARSE] = None
    decided_at: Annotated[str | None, SPARSE] = None
    decided_by: Annotated[str | None, SPARSE] = None
    revision: Annotated[int | None, SPARSE] = None
    code: Annotated[tuple[CodeUse, ...], SPARSE] = ()

    @property
    def decision(self) -> VendorDecision | None:
        """Returns the decision, or None until there is one."""
        if self.state is None or self.decided_at is None:
            return None
        return VendorDecision(self.vendor_id, self.state, self.decided_at)

    @property
    def is_configured(self) -> bool:
        """Returns whether the public configuration contains the vendor: not if it was only in code, and is gone."""
        return self.state is not None or self.revision is not None or any(use.places for use in self.code)

    @property
    def configured(self) -> ConfiguredVendor:
        return ConfiguredVendor(self.vendor_id, self.name, self.domain, self.category, self.state)

    @property
    def runtime_vendor(self) -> RuntimeVendor | None:
        """Returns the vendor as its finding shows it, or None if it hasn't been detected."""
        if self.name is None or self.domain is None:
            return None
        return RuntimeVendor(self.project_id, self.vendor_id, self.name, self.domain)

    def undetected_since(self) -> tuple[str, dict[str, Any]]:
        """Returns the condition, and its values, that no detection was stored since the vendor was read."""
        if self.revision is None:  # only decided on
            return "attribute_not_exists(#revision)", {}
        return "#revision = :readRevision", {"readRevision": self.revision}


def list_vendors(
    project_id: ProjectId, limit: int, after: str | None, *, consistent: bool = False
) -> QueryPage[VendorItem]:
    """Returns one page of the project's vendors, seen or decided on, ordered by id."""
    organization_id, local = project_id.location
    page = table.query(
        keys.organization_pk(organization_id),
        prefix=keys.vendor_prefix(local),
        limit=limit,
        after=after,
        consistent=consistent,
    )
    return page.read(VendorItem.from_item)


def find_vendor(project_id: ProjectId, vendor_id: str) -> VendorItem | None:
    """Returns the project's vendor, seen or decided on, with a consistent read, or None."""
    return table.find(keys.vendor(*project_id.location, vendor_id), VendorItem.from_item)


def list_all_vendors(project_id: ProjectId) -> list[VendorItem]:
    """Returns all vendors of the project, seen or decided on, with the decisions. Consistent."""
    organization_id, local = project_id.location
    page = table.query(keys.organization_pk(organization_id), prefix=keys.vendor_prefix(local), consistent=True)
    return [VendorItem.from_item(item) for item in page.items]


class Seen(NamedTuple):
    """A vendor and its finding as they were read, or None for each that doesn't exist.

    of_audit: a finding of a website audit about the vendor, which a decision resolves, too.
    """

    vendor: VendorItem | None
    finding: InboxItem | None
    of_audit: InboxItem | None = None


def decide_vendor(
    project: ProjectItem,
    vendor_id: str,
    state: VendorState,
    user_id: str,
    seen: Seen | None = None,
) -> str | None:
    """Stores an admin's decision and resolves the vendor's runtime finding. Returns the finding's id, or None.

    The write checks the admin's role. A finding that is resolved stays as it is. The next scan applies the decision to
    code findings, and the next run of a website audit to those of the audit.

    seen: the vendor and its findings if they were read. Without it, this takes another round trip.
    Raises UnknownVendor for one that is neither seen nor in the catalog, DecisionLimitReached, RoleRequired, and
    UnknownProject if the project was deleted, so that a deleted project never gets a vendor.
    """
    organization_id = project.project_id.organization_id
    of_audit_id = seen.of_audit.item_id if seen and seen.of_audit else None

    def decide() -> str | None:
        nonlocal seen, project
        vendor, finding, of_audit = seen or see_vendor(project.project_id, vendor_id, of_audit_id)
        seen = None  # if one of them has changed, all are read again
        if vendor is None and finding is None and vendor_id not in _catalog():
            raise UnknownVendor
        # The project may have been read later than the vendor, so what it says counts for all but the decision.
        shown = project.find_vendor(vendor_id) or (vendor.configured if vendor else ConfiguredVendor(vendor_id))
        after = project.with_vendors(shown._replace(state=state))
        if after.find_vendor(vendor_id) is None:
            raise DecisionLimitReached
        legs: dict[str, Leg] = {
            **organizations.admin_check(user_id, organization_id),
            "project": vendors_leg(project, after),
            "vendor": _decision(project, vendor_id, state, user_id, vendor),
        }
        record = Recorded(
            Action.VENDOR_DECIDE,
            organization_id,
            project.project_id,
            project.name,
            before={vendor_id: vendor.state} if vendor else {},
            after={vendor_id: state},
        )
        change = inbox.ItemChange("resolved")
        changes = [
            Change(it.item_id, inbox.change_leg(it, change, inbox.new_version(), user_id), it.status)
            for it in (finding, of_audit)
            if it is not None and it.status != "resolved"
        ]
        try:
            transact_and_tell(changes, legs, record)
        except LegFailed as failure:
            if failure.leg == "project":
                project = existing(failure.item)
            # WriteConflict: the vendor was detected or decided on, or its finding or the project changed.
            raise failure.mapped({"caller": RoleRequired}, WriteConflict) from None
        return finding.item_id if finding else None

    return retry_on_conflict(decide, "the vendor")


def see_vendor(project_id: ProjectId, vendor_id: str, of_audit: InboxItemId | None = None) -> Seen:
    """Returns the project's vendor and its findings. Consistent, one round trip. of_audit: see `Seen`."""
    items = [_finding_id(project_id, vendor_id), *([of_audit] if of_audit else [])]
    vendor, *findings = table.batch_get(
        [keys.vendor(*project_id.location, vendor_id), *(keys.inbox_item(*it.location) for it in items)]
    )
    return Seen(
        VendorItem.from_item(vendor) if vendor else None,
        *(InboxItem.from_item(it) if it else None for it in findings),
    )


def is_detection(item: InboxItem) -> bool:
    """Returns whether the item is the finding of the runtime's detections of its vendor."""
    vendor = item.runtime_vendor
    return vendor is not None and item.item_id == _finding_id(ProjectId.stored(vendor.project_id), vendor.vendor_id)


def _finding_id(project_id: ProjectId, vendor_id: str) -> InboxItemId:
    return finding_item_id(project_id.organization_id, "runtime", project_id, vendor_id)


@cache
def _catalog() -> frozenset[str]:
    return frozenset(json.loads(_CATALOG.read_text(encoding="utf-8")))


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
    when = "attribute_not_exists(#revision)"
    if vendor is not None and vendor.revision is not None:
        when, read = vendor.undetected_since()
        values |= read
        if vendor.state is None:
            when += " AND attribute_not_exists(#state)"
        else:
            when += " AND #state = :formerState"
            values["formerState"] = vendor.state
    return Update(keys.vendor(*project.project_id.location, vendor_id), change, when, values)
