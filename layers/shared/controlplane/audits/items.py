"""Audits, runs, and reports as they are stored, with the entries that the sweep reads."""

import gzip
import json
from base64 import b64decode
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlsplit

from controlplane.platform.core import clock, ids
from controlplane.platform.core.errors import NotFound
from controlplane.platform.core.ids import InboxItemId, ProjectId, RunId
from controlplane.platform.core.schedules import Schedule
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.stored import SPARSE, StoredItem
from controlplane.platform.table.table import Leg, Put
from controlplane.projects.store import audit_schedule_key

Outcome = Literal["passed", "failed", "blocked"]
RunStatus = Literal["pending", "completed", "failed"]
Trigger = Literal["manual", "schedule"]
ProofMethod = Literal["dns", "file", "consent"]
# A run without a report at this age is lost: its worker has crashed, or its message has.
LOST_AFTER_SECONDS = 3 * 3_600


class UnknownAudit(NotFound):
    """The project doesn't have this audit, or it was deleted."""


class UnknownRun(NotFound):
    """The audit doesn't have this run, or it has expired."""


class Proof(NamedTuple):
    """The proof that the website is the organization's, as the latest run that wasn't blocked found it."""

    method: ProofMethod
    at: str


class LatestRun(NamedTuple):
    """The last completed run of an audit."""

    run_id: RunId
    outcome: Outcome
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditItem(StoredItem):
    """An audit of a website.

    url: `https://HOST/`. token: it is shown to prove ownership. consent_url: the base of what the page requests from
    the project's consent instance. findings: the ids of those that no run has seen gone. vendors: the ids of those
    that the last run saw that wasn't blocked, or None.
    """

    audit_id: str
    project_id: ProjectId
    website_id: str
    url: str
    schedule: Schedule | None
    token: str
    created_at: str
    consent_url: Annotated[str | None, SPARSE] = None
    proof: Annotated[Proof | None, SPARSE] = None
    latest_run: Annotated[LatestRun | None, SPARSE] = None
    active_run_id: Annotated[RunId | None, SPARSE] = None
    findings: Annotated[tuple[str, ...], SPARSE] = ()
    vendors: Annotated[tuple[str, ...] | None, SPARSE] = None

    @property
    def key(self) -> Key:
        return keys.audit(*self.project_id.location, self.audit_id)

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    @property
    def dns_name(self) -> str:
        """The name of the TXT record that proves ownership."""
        return f"_{settings.service_brand}-audit.{self.host}"

    @property
    def file_url(self) -> str:
        """The address of the file that proves ownership."""
        return f"{self.url}.well-known/{settings.service_brand}-audit.txt"

    @property
    def schedule_key(self) -> Key | None:
        """The key of the sweep's entry for the next scheduled run. None: the audit has no schedule.

        Its time follows from the schedule and the IDs. An entry at another time was written for an earlier schedule.
        """
        return audit_schedule_key(self.audit_id, self.project_id, self.schedule)

    def schedule_legs(self) -> dict[str, Leg]:
        """Returns the leg that makes the sweep start the next scheduled run, if the audit has a schedule."""
        key = self.schedule_key
        entry = {"auditId": self.audit_id, "projectId": self.project_id}
        return {"schedule": Put({**key._asdict(), **entry})} if key else {}


class Reason(NamedTuple):
    """Why a run has no result: a code, and a sentence for people."""

    code: str
    message: str


class RunFinding(NamedTuple):
    """A finding of a run. id: as in the report, the same in every run. item_id: that of its inbox item."""

    id: str
    kind: str
    title: str
    priority: str
    vendor_id: str | None = None
    item_id: InboxItemId | None = None


class RunChanges(NamedTuple):
    """A run compared with the last completed one before it: ids of findings and vendors."""

    new_findings: tuple[str, ...] = ()
    resolved_findings: tuple[str, ...] = ()
    new_vendors: tuple[str, ...] = ()
    gone_vendors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunItem(StoredItem):
    """A run of an audit. It outlives the audit, and expires after `audit_run_retention_days`.

    claim: only the worker's message has it, so only that worker can report. outcome: None until completed.
    changes: None without a run to compare with.
    """

    run_id: RunId
    audit_id: str
    project_id: ProjectId
    website_id: str
    url: str
    trigger: Trigger
    status: RunStatus
    claim: str
    created_at: str
    finished_at: Annotated[str | None, SPARSE] = None
    outcome: Annotated[Outcome | None, SPARSE] = None
    reason: Annotated[Reason | None, SPARSE] = None
    findings: Annotated[tuple[RunFinding, ...], SPARSE] = ()
    changes: Annotated[RunChanges | None, SPARSE] = None

    @property
    def key(self) -> Key:
        return keys.audit_run(*self.project_id.location, self.audit_id, self.run_id.local)

    @property
    def report_key(self) -> Key:
        return keys.audit_report(*self.project_id.location, self.audit_id, self.run_id.local)

    @property
    def watch_key(self) -> Key:
        """The key of the sweep's entry, which the write that ends the run deletes."""
        at = ids.created_at(self.run_id.local) + LOST_AFTER_SECONDS
        return keys.audit_watch(clock.timestamp(at), self.run_id)

    def to_item(self) -> dict[str, Any]:
        return {**StoredItem.to_item(self), **_expiry(self.run_id)}


class RunVendor(NamedTuple):
    """A third party that a run saw, and whether it got requests before a choice, after refusal, and after acceptance.

    alias_of: the name behind a host of the website's own domain. pages: at most five.
    """

    vendor_id: str
    name: str
    domain: str
    category: str | None
    needs_consent: bool
    before: bool
    refused: bool
    accepted: bool
    alias_of: str | None
    pages: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportItem(StoredItem):
    """The report of a completed run. It expires with the run.

    visits: base64 of compressed JSON: `visits`, `banner`, and `pages`. picture: base64 of a JPEG.
    """

    run_id: RunId
    audit_id: str
    project_id: ProjectId
    vendors: tuple[RunVendor, ...] = ()
    visits: str = ""
    picture: Annotated[str | None, SPARSE] = None

    @property
    def key(self) -> Key:
        return keys.audit_report(*self.project_id.location, self.audit_id, self.run_id.local)

    @property
    def recorded(self) -> dict[str, Any]:
        """Returns `visits`, `banner`, and `pages`. The intake has checked their size."""
        found: dict[str, Any] = json.loads(gzip.decompress(b64decode(self.visits))) if self.visits else {}
        return {"visits": [], "banner": None, "pages": [], **found}

    def to_item(self) -> dict[str, Any]:
        return {**StoredItem.to_item(self), **_expiry(self.run_id)}


def _expiry(run_id: RunId) -> dict[str, int]:
    return clock.expiry(settings.audit_run_retention_days, ids.created_at(run_id.local))
