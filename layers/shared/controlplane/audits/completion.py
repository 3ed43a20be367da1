"""Completes a run with its report: its vendors go to the project, its findings to the inbox, and the run ends.

The report must have the claim of the run, which must be pending. Every transaction requires that it is its audit's
active run: a deletion of the audit or of its project, and the end of the run, end that. So a report that is repeated,
late, or forged, or whose audit was deleted, changes nothing, and what a killed worker has left can be written again.
"""

import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import batched
from typing import Any, NamedTuple

from controlplane.audits.findings import detection_of, discovery_of, item_id_of
from controlplane.audits.items import AuditItem, LatestRun, Proof, Reason, ReportItem, RunChanges, RunFinding, RunItem
from controlplane.audits.kinds import KINDS
from controlplane.audits.reports import CHOICES, Finding, WebsiteAuditReport
from controlplane.findings import publications
from controlplane.findings.changes import Change, transact_and_tell
from controlplane.findings.discoveries import Resolution
from controlplane.findings.intake import RuntimeVendorDetection, see
from controlplane.findings.vendors import VendorItem
from controlplane.organizations import store as organizations
from controlplane.organizations.store import UnknownOrganization
from controlplane.platform.core.actions import Action
from controlplane.platform.core.ids import InboxItemId, ProjectId, RunId
from controlplane.platform.queues import events
from controlplane.platform.queues.outbox import Entry
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.legs import Record, set_expression
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.stored import to_map
from controlplane.platform.table.table import (
    Check,
    Delete,
    Leg,
    LegFailed,
    Put,
    Recorded,
    StoreError,
    Unrecorded,
    Update,
    table,
)
from controlplane.projects.changes import vendors_leg
from controlplane.projects.items import ProjectItem
from controlplane.projects.store import UnknownProject

# A transaction has at most 100 legs.
_PER_TRANSACTION = 25
# Findings that a run can't judge are kept from run to run.
_MOST_KNOWN = 300
_ACTIVE = "#activeRunId = :run"
_ENDING = ("status", "finishedAt", "outcome", "reason", "findings", "changes")


class Superfluous(StoreError):
    """The run has ended, or its audit was deleted."""


class Forged(StoreError):
    """The report is of no run, or isn't from the run's worker."""


class _State(NamedTuple):
    """The run with its audit and its project, and the other items that were read with them."""

    project: ProjectItem
    audit: AuditItem
    run: RunItem
    others: Sequence[dict[str, Any] | None]


class _Step(NamedTuple):
    """A transaction: changes of findings, other legs, and further messages that it writes."""

    changes: Sequence[Change] = ()
    legs: Mapping[str, Leg] = {}
    record: Record = Unrecorded.PUBLICATION
    told: tuple[Entry, ...] = ()


def complete_run(report: WebsiteAuditReport) -> list[Entry]:
    """Completes the run. Can be repeated. Returns the messages to send.

    Raises Superfluous, Forged, UnknownProject, and UnknownOrganization, without having changed anything if that was so
    from the start.
    """
    done = _Completion(report)
    found = {it.vendor_id for it in report.findings}
    listed = (it for it in report.vendors if it.needs_consent or it.vendor_id in found)
    seen = (detection_of(report, it) for it in listed)
    for detections in batched(filter(None, seen), _PER_TRANSACTION, strict=False):
        done.feed(detections)
    for findings in batched(report.findings, _PER_TRANSACTION, strict=False):
        done.publish(findings)
    for gone in batched(done.gone, _PER_TRANSACTION, strict=False):
        done.withdraw(gone)
    done.end()
    return done.told


class _Completion:
    """The transactions that complete a run. told: the messages that they have written."""

    def __init__(self, report: WebsiteAuditReport) -> None:
        self.report = report
        self.project_id, self.run_id = ProjectId.stored(report.project_id), RunId.stored(report.run_id)
        self.told: list[Entry] = []
        self.gone = self._gone(self._read([]).audit)

    def _gone(self, audit: AuditItem) -> list[str]:
        """Returns the findings of earlier runs that this one would have seen, and didn't."""
        found = {it.id for it in self.report.findings}
        return [it for it in audit.findings if it not in found and self._would_show(it)]

    def _would_show(self, finding_id: str) -> bool:
        about = KINDS.get(finding_id.partition(":")[0])
        return self.report.outcome != "blocked" and about is not None and about.visits <= {*self.report.made}

    def feed(self, detections: Sequence[RuntimeVendorDetection]) -> None:
        """Adds vendors to the project's list. The findings of an audit are its own, so they raise none."""

        def step(state: _State) -> _Step:
            seen = [see(it, item) for it, item in zip(detections, state.others, strict=True)]
            changed = [it for it in seen if it.changes]
            if not changed:
                return _Step()
            after = state.project.with_vendors(*(it.configured for it in changed))
            project = {"project": vendors_leg(state.project, after)}
            return _Step(legs=project | {it.leg.key.sk: it.leg for it in changed}, record=Unrecorded.OBSERVATION)

        self._transact([self._vendor_key(it.vendor_id) for it in detections], step)

    def publish(self, findings: Sequence[Finding]) -> None:
        """Opens, reopens, and updates the items of findings."""
        vendor_ids = sorted({it.vendor_id for it in findings if it.vendor_id})
        item_keys = [self._item_key(it.id) for it in findings]

        def step(state: _State) -> _Step:
            stored = [VendorItem.from_item(it) for it in state.others[: len(vendor_ids)] if it]
            known = {it.vendor_id: it for it in stored}
            changes = []
            for finding, existing in zip(findings, state.others[len(vendor_ids) :], strict=True):
                discovery = discovery_of(self.report, state.audit.host, finding, known)
                leg = publications.publish_leg(discovery, existing)
                if leg is not None:
                    changes.append(Change(discovery.item_id, leg, existing["status"] if existing else None))
            return _Step(changes)

        self._transact([*map(self._vendor_key, vendor_ids), *item_keys], step)

    def withdraw(self, finding_ids: Sequence[str]) -> None:
        """Resolves the items of findings that are gone."""
        reason = f"Run {self.run_id} no longer sees it."
        resolution = Resolution(None, self.report.at, reason, run_id=self.run_id)

        def step(state: _State) -> _Step:
            changes = []
            for finding_id, existing in zip(finding_ids, state.others, strict=True):
                leg = publications.withdraw_leg(existing, resolution) if existing else None
                if leg is not None and existing is not None:
                    changes.append(Change(self._item_id(finding_id), leg, existing["status"]))
            return _Step(changes)

        self._transact([self._item_key(it) for it in finding_ids], step)

    def end(self) -> None:
        """Ends the run, with its event."""
        self._transact([], self._ending)

    def _ending(self, state: _State) -> _Step:
        report, audit = self.report, state.audit
        run = replace(
            state.run,
            status="completed",
            finished_at=report.at,
            outcome=report.outcome,
            reason=Reason(report.reason.code, report.reason.message) if report.reason else None,
            findings=tuple(self._listed(it) for it in report.findings),
            changes=self._changes(audit),
        )
        ended = {name: value for name, value in run.to_item().items() if name in _ENDING}
        stored = ReportItem(
            run_id=run.run_id,
            audit_id=run.audit_id,
            project_id=run.project_id,
            vendors=tuple(it.as_item() for it in report.vendors),
            visits=report.visits.packed,
            picture=report.picture,
        )
        event = events.entry(
            self.project_id.organization_id, "audit.completed", run.run_id, run.project_id, run.audit_id
        )
        after = {"status": "completed", "runId": run.run_id, "outcome": run.outcome, "findings": len(run.findings)}
        legs: dict[str, Leg] = {
            "run": Update(run.key, set_expression(ended), None, ended),
            "audit": self._audit_leg(audit),
            "report": Put(stored.to_item()),
            "watch": Delete(run.watch_key),
            "event": event.leg,
        }
        organization_id = self.project_id.organization_id
        record = Recorded(Action.AUDIT_COMPLETE, organization_id, run.audit_id, run.url, {"status": "pending"}, after)
        return _Step(legs=legs, record=record, told=(event,))

    def _listed(self, finding: Finding) -> RunFinding:
        item_id = self._item_id(finding.id)
        return RunFinding(finding.id, finding.kind, finding.title, finding.priority, finding.vendor_id, item_id)

    def _changes(self, audit: AuditItem) -> RunChanges | None:
        """Returns how the run compares with the last one that wasn't blocked. None without one, or if it is blocked."""
        if audit.vendors is None or self.report.outcome == "blocked":
            return None
        seen = [it.vendor_id for it in self.report.vendors]
        # A run that lacks a visit may only not have come to a vendor.
        missing = [it for it in audit.vendors if it not in seen] if {*CHOICES} <= {*self.report.made} else []
        return RunChanges(
            new_findings=tuple(it.id for it in self.report.findings if it.id not in audit.findings),
            resolved_findings=tuple(self.gone),
            new_vendors=tuple(it for it in seen if it not in audit.vendors),
            gone_vendors=tuple(missing),
        )

    def _audit_leg(self, audit: AuditItem) -> Update:
        """Returns the leg that ends the run in its audit. One that was blocked has seen neither proof nor findings."""
        at, removed = self.report.at, ["#activeRunId"]
        changed: dict[str, Any] = {"latestRun": to_map(LatestRun(self.run_id, self.report.outcome, at))}
        if self.report.outcome != "blocked":
            found = [it.id for it in self.report.findings]
            unseen = [it for it in audit.findings if it not in found and it not in self.gone]
            changed["findings"] = [*found, *unseen][:_MOST_KNOWN]
            changed["vendors"] = [it.vendor_id for it in self.report.vendors]
            if self.report.proof is None:
                removed.append("#proof")
            else:
                changed["proof"] = to_map(Proof(self.report.proof, at))
        change = f"{set_expression(changed)} REMOVE {', '.join(removed)}"
        return Update(audit.key, change, _ACTIVE, {**changed, "run": self.run_id})

    def _transact(self, also: Sequence[Key], step: Callable[[_State], _Step]) -> None:
        """Makes a step's transaction, after reading what it depends on and the items at the keys. Raises as `_read`."""

        def attempt() -> None:
            state = self._read(also)
            made = step(state)
            if not made.changes and not made.legs:
                return
            active: dict[str, Leg] = {"audit": Check(state.audit.key, _ACTIVE, {"run": self.run_id})}
            try:
                self.told += transact_and_tell(made.changes, active | dict(made.legs), made.record)
            except LegFailed:
                raise WriteConflict from None  # another delivery, a decision, a deletion, or the sweep was faster
            self.told += made.told

        retry_on_conflict(attempt, "the audit")

    def _read(self, also: Sequence[Key]) -> _State:
        """Reads the run, and whether its report still counts. Raises as `complete_run`."""
        location, audit_id = self.project_id.location, self.report.audit_id
        project, run, audit, *others = table.batch_get(
            [
                keys.project(*location),
                keys.audit_run(*location, audit_id, self.run_id.local),
                keys.audit(*location, audit_id),
                *also,
            ]
        )
        if project is None:
            gone = organizations.find_organization(location.organization_id) is None
            raise UnknownOrganization if gone else UnknownProject
        if run is None or not hmac.compare_digest(run["claim"], self.report.claim):
            raise Forged
        if run["status"] != "pending" or audit is None or audit.get("activeRunId") != self.run_id:
            raise Superfluous
        return _State(ProjectItem.from_item(project), AuditItem.from_item(audit), RunItem.from_item(run), others)

    def _vendor_key(self, vendor_id: str) -> Key:
        return keys.vendor(*self.project_id.location, vendor_id)

    def _item_id(self, finding_id: str) -> InboxItemId:
        return item_id_of(self.project_id, self.report.audit_id, finding_id)

    def _item_key(self, finding_id: str) -> Key:
        return keys.inbox_item(*self._item_id(finding_id).location)
