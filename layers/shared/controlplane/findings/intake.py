"""Findings that other systems report: advisories, which are external notices, and detections of vendors at runtime.

The messages, version 1, are documented for senders in docs/intake.md. Unlike the messages between our own functions,
they carry the finding itself, because it isn't stored anywhere else. They contain no personal data: page addresses are
reduced to origin and path.

An advisory is stored only as an inbox item. A detection is stored as a vendor of the project, with its finding.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NamedTuple, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, AwareDatetime, Field, StrictBool, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from controlplane.findings import publications
from controlplane.findings.changes import Change, transact_and_tell
from controlplane.findings.discoveries import Discovery, merge_evidence
from controlplane.findings.items import Evidence, RuntimeVendor
from controlplane.findings.vendors import VendorItem, VendorState
from controlplane.organizations import store as organizations
from controlplane.organizations.store import UnknownOrganization
from controlplane.platform.core import clock, ids
from controlplane.platform.core.actions import Action
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.queues.messages import Message
from controlplane.platform.queues.outbox import Entry
from controlplane.platform.table import keys
from controlplane.platform.table.legs import Record, set_expression
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.stored import read_map
from controlplane.platform.table.table import Check, Leg, LegFailed, Put, Recorded, Unrecorded, Update, table
from controlplane.projects.changes import vendors_leg
from controlplane.projects.items import ConfiguredVendor, ProjectItem
from controlplane.projects.store import UnknownProject

_EXISTS = "attribute_exists(pk)"


MOST_ADDRESSES = 20
_LABEL = "[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?"


def bare(address: str) -> str:
    """Returns the address without query and fragment, which may identify a person.

    Raises ValueError if it has credentials or no host.
    """
    parts = urlsplit(address)
    if not parts.hostname or parts.username is not None:
        raise ValueError("an address has a host and no credentials")
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def _of_project(text: str) -> str:
    if ProjectId.parse(text) is None:
        raise ValueError("not the id of a project")
    return text


def _of_organization(text: str) -> str:
    if not ids.is_root(ids.ORGANIZATION, text):
        raise ValueError("not the id of an organization")
    return text


ProjectText = Annotated[str, AfterValidator(_of_project)]
Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4_000)]
# Published unchanged, because its query may identify a page or a document.
Reference = Annotated[str, StringConstraints(pattern=r"^https?://[^\s]+$", max_length=2_000)]
Address = Annotated[Reference, AfterValidator(bare)]
# RFC 3339 with an offset. Times before the product existed are rejected as bogus.
Moment = Annotated[AwareDatetime, Field(strict=True, ge=datetime(2020, 1, 1, tzinfo=UTC))]


class RuntimeVendorDetection(Message):
    """A third party that the consent runtime detected on a project's website.

    vendor_id: identifies the vendor, and is the same in all its detections.
    before_consent: the vendor was loaded before the visitor consented.
    category: the vendor's purpose, if the detector recognized it.
    seen_on: pages on which it was detected; query and fragment are dropped.
    observed_at: time of detection. The latest one of a vendor wins, in whatever order messages arrive.
    """

    kind: Literal["runtime-vendor-detection"] = "runtime-vendor-detection"
    project_id: ProjectText
    vendor_id: str = Field(pattern=r"^[a-z0-9._-]{1,100}$")
    name: Line
    domain: str = Field(max_length=253, pattern=rf"^{_LABEL}(\.{_LABEL})*$")
    category: Line | None = None
    before_consent: StrictBool = False
    seen_on: tuple[Address, ...] = Field((), max_length=MOST_ADDRESSES)
    observed_at: Moment

    @property
    def at(self) -> str:
        """Returns the time of detection in the table's format."""
        return clock.timestamp(self.observed_at.timestamp())

    def as_discovery(self, evidence: tuple[Evidence, ...] = (), state: VendorState | None = None) -> Discovery:
        """Returns the finding of the vendor with that evidence, its own included, and the decision on the vendor.

        Ignoring the vendor settles it. Approving the vendor does so only for a detection after consent.
        """
        kind = f" ({self.category})" if self.category else ""
        seen = f"{self.domain}{kind} was seen on the project's website"
        advice = "Approve it if the project may use it, or ignore it."
        if self.before_consent:
            seen += " before visitors had consented"
            advice = "Load it after consent, even if it is approved, or ignore it."
        waits = state == "approved" and not self.before_consent
        return Discovery(
            organization_id=ProjectId.stored(self.project_id).organization_id,
            source="runtime",
            identity=(self.project_id, self.vendor_id),
            title=f"{self.name} loads before consent" if self.before_consent else f"New vendor: {self.name}",
            observed_at=self.at,
            summary=f"{seen}. {advice}",
            priority="P1" if self.before_consent else "P2",
            project_id=self.project_id,
            evidence=evidence,
            runtime_vendor=RuntimeVendor(self.project_id, self.vendor_id, self.name, self.domain),
            settled=waits or state == "ignored",
        )


class Advisory(Message):
    """A notice that concerns an organization, or one of its projects.

    advisory_id: identifies the advisory, and is the same in all its editions.
    published_at: when this edition was published. The latest edition wins.
    """

    kind: Literal["advisory"] = "advisory"
    organization_id: Annotated[str, AfterValidator(_of_organization)]
    project_id: ProjectText | None = None
    advisory_id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,99}$")
    title: Line
    summary: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1_000)] | None = None
    priority: Literal["P0", "P1", "P2", "P3"] | None = None
    description: Text | None = None
    remediation: Text | None = None
    references: tuple[Reference, ...] = Field((), max_length=MOST_ADDRESSES)
    published_at: Moment

    @model_validator(mode="after")
    def _is_of_one_organization(self) -> Self:
        project_id = ProjectId.parse(self.project_id) if self.project_id else None
        if project_id is not None and project_id.organization_id != self.organization_id:
            raise PydanticCustomError("contradiction", "The project belongs to another organization.")
        return self

    def as_discovery(self) -> Discovery:
        return Discovery(
            organization_id=self.organization_id,
            source="advisory",
            identity=(self.advisory_id, self.project_id or ""),
            title=self.title,
            observed_at=clock.timestamp(self.published_at.timestamp()),
            summary=self.summary,
            priority=self.priority,
            project_id=self.project_id,
            description=self.description,
            remediation=self.remediation,
            references=self.references,
        )


def publish_advisory(advisory: Advisory) -> list[Entry]:
    """Publishes the advisory as a new item, or replaces its earlier edition. Returns the messages to send.

    Duplicates and editions older than the stored one change nothing. Raises UnknownOrganization, and UnknownProject
    if the advisory's project no longer exists.
    """
    discovery = advisory.as_discovery()
    key = keys.inbox_item(*discovery.item_id.location)
    around: dict[str, Leg] = {"organization": Check(keys.organization(discovery.organization_id), _EXISTS)}
    if advisory.project_id is not None:
        around["project"] = Check(keys.project(*ProjectId.stored(advisory.project_id).location), _EXISTS)

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
            return transact_and_tell([change], around, record)
        except LegFailed as failure:
            errors = {"organization": UnknownOrganization, "project": UnknownProject}
            raise failure.mapped(errors, WriteConflict) from None

    return retry_on_conflict(publish, "the item")


def record_detection(detection: RuntimeVendorDetection) -> list[Entry]:
    """Stores a detected vendor with its finding, in one transaction. Returns the messages to send.

    Keeps existing decisions: the finding of an ignored vendor stays resolved, and that of an approved one unless it
    loads before consent. Merges the evidence into that of
    earlier detections. An out-of-order detection changes nothing else except the time the vendor was first seen, a
    duplicate changes nothing. Raises UnknownProject if the project was deleted, and UnknownOrganization if the
    organization doesn't exist.
    """
    project_id = ProjectId.stored(detection.project_id)
    key = keys.vendor(*project_id.location, detection.vendor_id)
    finding_key = keys.inbox_item(*detection.as_discovery().item_id.location)
    project_key = keys.project(*project_id.location)

    def record() -> list[Entry]:
        project, *stored = table.batch_get([project_key, key, finding_key])
        if project is None:
            raise _unknown(project_id)
        legs, changes = _detection(detection, ProjectItem.from_item(project), *stored)
        if not legs:
            return []
        try:
            leg = changes[0].leg if changes else None
            return transact_and_tell(changes, legs, _recorded(detection, leg))
        except LegFailed as failure:
            if failure.leg == "project" and failure.item is None:
                raise _unknown(project_id) from None
            raise WriteConflict from None  # a decision, another detection, or a change of the project was written first

    return retry_on_conflict(record, "the vendor")


def _unknown(project_id: ProjectId) -> Exception:
    is_deleted = organizations.find_organization(project_id.organization_id) is None
    return UnknownOrganization() if is_deleted else UnknownProject()


def _recorded(detection: RuntimeVendorDetection, finding: Leg | None) -> Record:
    """Returns the entry of a detection whose finding is new or changes its status. Another one changes no decision."""
    discovery = detection.as_discovery()
    written = finding.item if isinstance(finding, Put) else finding.values if isinstance(finding, Update) else {}
    if "status" not in written:
        return Unrecorded.OBSERVATION
    return Recorded(
        Action.VENDOR_DETECT,
        discovery.organization_id,
        discovery.item_id,
        detection.name,
        after={"projectId": detection.project_id, "vendorId": detection.vendor_id, "status": written["status"]},
    )


class Sighting(NamedTuple):
    """A detection of a vendor, with the vendor as it was read, if it exists, and what the detection changes of it.

    evidence: that of all its detections. It outlives a finding that expires.
    """

    vendor: VendorItem | None
    evidence: tuple[Evidence, ...]
    changes: Mapping[str, Any]
    configured: ConfiguredVendor
    leg: Update


def see(detection: RuntimeVendorDetection, item: Mapping[str, Any] | None, finding: str | None = None) -> Sighting:
    """Returns the vendor with the detection, and the leg that stores it. item: the vendor. finding: its finding's id.

    The leg fails if a decision or a detection was stored since the vendor was read.
    """
    vendor = VendorItem.from_item(item) if item else None
    page = f"A page that loads {detection.domain}"
    seen = [Evidence(page, url, seen_at=detection.at) for url in detection.seen_on]
    evidence = merge_evidence([*(vendor.evidence if vendor else ()), *seen])
    observed = _observed(detection, evidence, vendor) | ({"inboxItemId": finding} if finding else {})
    changes = {name: value for name, value in observed.items() if not item or (name, value) not in item.items()}
    configured = read_map(ConfiguredVendor, {**(item or {}), **changes})
    key = keys.vendor(*ProjectId.stored(detection.project_id).location, detection.vendor_id)
    return Sighting(vendor, evidence, changes, configured, _if_unchanged(key, vendor, changes))


def _detection(
    detection: RuntimeVendorDetection,
    project: ProjectItem,
    item: Mapping[str, Any] | None,
    existing_finding: Mapping[str, Any] | None,
) -> tuple[dict[str, Leg], list[Change]]:
    """Returns the transaction that stores the detection, given the vendor and its finding. Empty if nothing changes.

    The change of the finding is separate.
    """
    sighting = see(detection, item, detection.as_discovery().item_id)
    vendor = sighting.vendor
    discovery = detection.as_discovery(sighting.evidence, vendor.state if vendor else None)
    # A detection after consent may be of another page, so an open finding of an approved vendor stays as it is.
    stays = discovery.settled and vendor is not None and vendor.state == "approved"
    is_kept = stays and existing_finding is not None and existing_finding["status"] == "open"
    finding = None if is_kept else publications.publish_leg(discovery, existing_finding)
    if finding is None and existing_finding:
        finding = publications.evidence_leg(discovery, existing_finding)
    if not sighting.changes and finding is None:
        return {}, []
    legs: dict[str, Leg] = {
        "project": vendors_leg(project, project.with_vendors(sighting.configured)),
        "vendor": sighting.leg,
    }
    if finding is None:
        return legs, []
    return legs, [Change(discovery.item_id, finding, existing_finding["status"] if existing_finding else None)]


def _observed(
    detection: RuntimeVendorDetection, evidence: Sequence[Evidence], vendor: VendorItem | None
) -> dict[str, Any]:
    """Returns the vendor's attributes that follow from the detection and from earlier ones."""
    at = detection.at
    attributes: dict[str, Any] = {
        "vendorId": detection.vendor_id,
        "projectId": detection.project_id,
        "evidence": [piece.to_map() for piece in evidence],
        "firstSeenAt": min(vendor.first_seen_at or at, at) if vendor else at,
    }
    if vendor is not None and vendor.last_seen_at is not None and at <= vendor.last_seen_at:
        return attributes
    attributes |= {
        "lastSeenAt": at,
        "name": detection.name,
        "domain": detection.domain,
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
