"""Findings as sources report them. Inbox items are written from them (`publications`)."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from controlplane.findings.fixes import Fix
from controlplane.findings.items import (
    SUMMARY_LENGTH,
    TITLE_LENGTH,
    URL_LENGTH,
    AuditRun,
    Confidence,
    Evidence,
    LockedFindings,
    RuntimeVendor,
    Source,
    VendorDecision,
    truncate,
)
from controlplane.platform.core import ids
from controlplane.platform.core.ids import InboxItemId
from controlplane.platform.core.priorities import Priority
from controlplane.platform.table.stored import to_map

_TEXT_LENGTH = 4_000
_MOST_EVIDENCE, _MOST_REFERENCES = 20, 20


def merge_evidence(pieces: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Returns the evidence once per URL, or per description if it has none, newest first and at most 20 pieces.

    Pieces that were seen at the same time keep their order. Merging the same pieces again changes nothing.
    """
    latest: dict[str, Evidence] = {}
    for piece in pieces:
        place = piece.url or piece.description
        if place not in latest or (piece.seen_at or "") > (latest[place].seen_at or ""):
            latest[place] = piece
    newest_first = sorted(latest.values(), key=lambda piece: piece.seen_at or "", reverse=True)
    return tuple(newest_first[:_MOST_EVIDENCE])


class Resolution(NamedTuple):
    """The scan that resolved an item, or the run of an audit, the time of its observation, and the scan's attempt."""

    scan_id: str | None
    observed_at: str
    reason: str
    attempt: int = 0
    run_id: str | None = None

    def to_map(self) -> dict[str, Any]:
        of_run = {"runId": self.run_id} if self.run_id else {}
        return {"scanId": self.scan_id, "observedAt": self.observed_at, "attempt": self.attempt, **of_run}


def finding_item_id(organization_id: str, source: Source, *identity: str) -> InboxItemId:
    """Returns the id of the item of a finding with this identity."""
    return InboxItemId.of(organization_id, ids.derived_local(source, *identity))


class Discovery(NamedTuple):
    """A source's finding and the time of observation, to be published as an item.

    identity: identifies the same finding when it is found again, within organization and source.
    observed_at: RFC 3339, in the format of `clock.timestamp`. Of two reports, the later observation wins, not the later
        arrival.
    attempt: the attempt at a scan. If attempts at one scan differ, the later one counts.
    settled: a person has decided on it elsewhere, for example on a vendor. It is resolved and doesn't reopen.
    settled_reason: why, if its item is to say so. Only then is an open item resolved, too.
    resolution: a later scan no longer finds it. It is resolved, but reopens if it is found after that.
    edition: of an advisory from the product's list. A new one reopens an item that a person has dismissed or resolved.
    vendor_ids, decisions: the catalog's vendors that it is about, and the project's decisions on them.
    confidence, fix: how sure the source is, and how to fix the finding. Set for code findings.
    locked_findings: set if it announces locked findings instead of being one.
    repository_id: set for code findings and for advisories about packages of a repository.
    rule_id: set for code findings. Issues are opened only for these.
    audit_run: set for findings of website audits.
    description, remediation, references: why it matters, how to fix it, and URLs with more information.
    """

    organization_id: str
    source: Source
    identity: tuple[str, ...]
    title: str
    observed_at: str
    summary: str | None = None
    priority: Priority | None = None
    project_id: str | None = None
    repository_id: str | None = None
    repository_name: str | None = None
    rule_id: str | None = None
    description: str | None = None
    remediation: str | None = None
    references: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    runtime_vendor: RuntimeVendor | None = None
    settled: bool = False
    settled_reason: str | None = None
    attempt: int = 0
    resolution: Resolution | None = None
    vendor_ids: tuple[str, ...] = ()
    decisions: tuple[VendorDecision, ...] = ()
    confidence: Confidence | None = None
    fix: Fix | None = None
    locked_findings: LockedFindings | None = None
    edition: str | None = None
    audit_run: AuditRun | None = None

    @property
    def item_id(self) -> InboxItemId:
        return finding_item_id(self.organization_id, self.source, *self.identity)

    @property
    def path(self) -> str | None:
        """The file that a code finding is about."""
        return next((it.path for it in self.evidence if it.path), None) if self.source == "code-audit" else None

    def to_map(self) -> dict[str, Any]:
        """Returns the item's attributes that each publication of the finding sets, truncated to the limits."""
        return {
            "observedAt": self.observed_at,
            "title": truncate(self.title, TITLE_LENGTH),
            "summary": truncate(self.summary, SUMMARY_LENGTH),
            "priority": self.priority,
            "projectId": self.project_id,
            "repositoryName": self.repository_name,
            "repositoryId": self.repository_id,
            "ruleId": self.rule_id,
            "description": truncate(self.description, _TEXT_LENGTH),
            "remediation": truncate(self.remediation, _TEXT_LENGTH),
            "references": [url for url in self.references if len(url) <= URL_LENGTH][:_MOST_REFERENCES],
            "evidence": [evidence.to_map() for evidence in self.evidence[:_MOST_EVIDENCE]],
            "runtimeVendor": self.runtime_vendor.to_map() if self.runtime_vendor else None,
            "vendorIds": list(self.vendor_ids),
            "decisions": [to_map(decision) for decision in self.decisions],
            "confidence": self.confidence,
            "fix": to_map(self.fix) if self.fix else None,
            "lockedFindings": to_map(self.locked_findings) if self.locked_findings else None,
            "edition": self.edition,
            "auditRun": to_map(self.audit_run) if self.audit_run else None,
        }

    def resolved_attributes(self) -> dict[str, Any]:
        """Returns the attributes that say why the item is resolved, if the discovery does so."""
        if self.resolution is not None:
            return resolved_by(self.resolution)
        return {"statusReason": truncate(self.settled_reason, SUMMARY_LENGTH)} if self.settled_reason else {}


def resolved_by(resolution: Resolution) -> dict[str, Any]:
    return {"statusReason": resolution.reason, "resolvedBy": resolution.to_map()}


# The attributes of a discovery that lists show.
LISTED = ("title", "summary", "priority", "projectId", "repositoryName", "runtimeVendor")
