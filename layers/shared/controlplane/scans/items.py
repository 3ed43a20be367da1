"""Scan requests, scans, and queued scans as they are stored: their statuses, fields, and keys.

`Work` is a request or a scan. A repository has at most one open work at a time: a request, and later its scan.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, NamedTuple, Self

from controlplane.platform.core import clock, ids
from controlplane.platform.core.errors import NotFound
from controlplane.platform.core.ids import ProjectId, RepositoryId, ScanId, ScanRequestId
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.leases import LeaseState
from controlplane.platform.table.stored import FLAT, SPARSE, StoredItem, to_map
from controlplane.platform.table.table import Delete

RequestStatus = Literal["starting", "started", "failed"]
Status = Literal["queued", "running", "completed", "failed", "canceled"]
STATUSES: tuple[Status, ...] = ("queued", "running", "completed", "failed", "canceled")
OPEN: tuple[Status, ...] = ("queued", "running")
Access = Literal["full", "free-preview", "locked"]
PREVIEW_FINDINGS = 3
# The sweep checks a scan request from this age on. Most requests, and their scans, have ended by then.
_WATCHED_AFTER_SECONDS = 600
# How long a scan is started again after the code host was unavailable.
_RETRIED_SECONDS = 86_400
Trigger = Literal["manual", "push", "scheduled", "pull_request"]
Stage = Literal["fetch", "inventory", "analyze", "publish"]
STAGES: tuple[Stage, ...] = ("fetch", "inventory", "analyze", "publish")


class UnknownRequest(NotFound):
    """No such scan request."""


class UnknownScan(NotFound):
    """No such scan."""


class Cause(NamedTuple):
    """The cause of a scan. retry_until: until when an automatic scan is started again, in Unix seconds."""

    trigger: Trigger = "manual"
    pull_request_number: int | None = None
    retry_until: int | None = None

    @property
    def subject(self) -> str:
        """Returns the key of the queue's entry: a newer scan with the same subject replaces an older one."""
        number = self.pull_request_number
        return "PRODUCTION" if number is None else f"PULL{number:010d}"


MANUAL = Cause()


class Comparison(NamedTuple):
    """A scan's findings compared with those of the last completed scan of the production branch before it.

    base_scan_id: None if there is no scan to compare with. fixed: the fingerprints of the first fixed findings.
    new_count: None for a pull request's scan, which only has new findings.
    """

    base_scan_id: str | None
    fixed_count: int = 0
    fixed: tuple[str, ...] = ()
    new_count: int | None = None


class Progress(NamedTuple):
    """A scan's current stage, and that stage's status: pending, running, completed, failed, or canceled.

    completed_stages: how many stages any attempt has completed. A retry runs them again, but doesn't decrease it.
    analyzed_files: the files that the stage `analyze` is done with, of `files_to_analyze`. None before it.
    """

    stage: Stage
    stage_status: str
    completed_stages: int
    analyzed_files: int | None = None
    files_to_analyze: int | None = None

    @property
    def total_stages(self) -> int:
        return len(STAGES)


class CoveredKind(NamedTuple):
    """The number of files of one kind, such as ERB templates, that were analyzed, and that weren't assessed."""

    name: str
    analyzed_files: int
    unassessed_files: int


class Coverage(NamedTuple):
    """A scan's coverage: files in the archive, files analyzed, the number of skipped files by reason, and by kind.

    incomplete: what was left out at a limit of the whole scan, for people. skipped_examples: a path by reason.
    suppressed: the number of findings by kind of suppression and by rule. notes: comments and settings without effect,
    for people.
    """

    files: int
    analyzed_files: int
    skipped: Mapping[str, int]
    kinds: tuple[CoveredKind, ...] = ()
    incomplete: str | None = None
    skipped_examples: Mapping[str, str] = {}
    suppressed: Mapping[str, Mapping[str, int]] = {}
    notes: tuple[str, ...] = ()

    @property
    def unassessed_files(self) -> int:
        return sum(kind.unassessed_files for kind in self.kinds)

    @property
    def suppressed_findings(self) -> int:
        return sum(sum(by_rule.values()) for by_rule in self.suppressed.values())


class Failure(NamedTuple):
    """The reason for a missing scan or result: a code, and a sentence for the user who requested it."""

    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestItem(StoredItem):
    """A request to scan a project's repository. It ends when its scan is created, or when that fails."""

    request_id: ScanRequestId
    repository_id: RepositoryId
    project_id: ProjectId
    status: RequestStatus
    requested_by: str
    created_at: str
    scan_id: Annotated[ScanId | None, SPARSE] = None
    failure: Annotated[Failure | None, SPARSE] = None
    lease: Annotated[LeaseState, FLAT] = field(default_factory=LeaseState)
    # When the sweep last enqueued it again.
    queued_at: Annotated[str | None, SPARSE] = None
    cause: Annotated[Cause, SPARSE] = MANUAL

    @property
    def organization_id(self) -> str:
        return self.request_id.organization_id

    @property
    def work_id(self) -> ScanRequestId:
        return self.request_id

    @property
    def key(self) -> Key:
        return keys.scan_request(*self.request_id.location)

    @property
    def is_open(self) -> bool:
        return self.status == "starting"

    def status_attributes(self, status: RequestStatus) -> dict[str, Any]:
        """Returns the attributes that change with the status."""
        return {"status": status}

    def ended_attributes(self, *, canceled: bool = False) -> dict[str, Any]:  # noqa: ARG002 (a request only fails)
        """Returns the attributes that change when the request fails, except the failure and its time."""
        return self.status_attributes("failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanItem(StoredItem):
    """A scan of a repository at a commit."""

    scan_id: ScanId
    repository_id: RepositoryId
    request_id: ScanRequestId
    project_id: ProjectId
    repository_name: str
    repository_url: str
    root_directory: str | None
    branch: str
    head_commit_sha: str
    status: Status
    access: Access
    unlock_credits: Annotated[int | None, SPARSE] = None
    progress: Progress
    created_at: str
    finding_count: Annotated[int | None, SPARSE] = None
    issue_count: Annotated[int | None, SPARSE] = None
    findings_attempt: Annotated[int, SPARSE] = 0
    coverage: Annotated[Coverage | None, SPARSE] = None
    failure: Annotated[Failure | None, SPARSE] = None
    started_at: Annotated[str | None, SPARSE] = None
    completed_at: Annotated[str | None, SPARSE] = None
    # Unix time; None until a later scan supersedes this one.
    findings_expire_at: Annotated[int | None, SPARSE] = None
    lease: Annotated[LeaseState, FLAT] = field(default_factory=LeaseState)
    # When the sweep last enqueued it again.
    queued_at: Annotated[str | None, SPARSE] = None
    # The version of the rules that produced the findings; None until completed.
    rules_version: Annotated[str | None, SPARSE] = None
    cause: Annotated[Cause, SPARSE] = MANUAL
    # None until completed, and without an earlier scan.
    comparison: Annotated[Comparison | None, SPARSE] = None
    # The number of issues by priority. None until completed.
    priority_counts: Annotated[Mapping[str, int] | None, SPARSE] = None
    # The number of those that a free preview shows. Without it, these are the most urgent.
    preview_counts: Annotated[Mapping[str, int] | None, SPARSE] = None

    @property
    def organization_id(self) -> str:
        return self.scan_id.organization_id

    @property
    def work_id(self) -> ScanId:
        return self.scan_id

    @property
    def key(self) -> Key:
        return keys.scan(*self.scan_id.location)

    @property
    def is_open(self) -> bool:
        return self.status in OPEN

    @property
    def is_cancelable(self) -> bool:
        """Returns whether the scan is open and no attempt has begun to publish its findings."""
        return self.is_open and self.progress.completed_stages < STAGES.index("publish")

    @property
    def is_preview(self) -> bool:
        return self.access == "free-preview"

    @property
    def report(self) -> str | None:
        """Returns the digest of commit, folder, and rules, which identifies the report. None until completed."""
        if self.rules_version is None:
            return None
        parts = (self.head_commit_sha, self.rules_version, self.root_directory or "")
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]

    @property
    def findings_expired(self) -> bool:
        return self.findings_expire_at is not None and self.findings_expire_at <= clock.now()

    @property
    def visible_count(self) -> int:
        """Returns how many issues, the first ones that are stored, the organization can read."""
        issues = self.issue_count or 0
        return {"full": issues, "free-preview": min(issues, PREVIEW_FINDINGS), "locked": 0}[self.access]

    @property
    def locked_count(self) -> int:
        return (self.issue_count or 0) - self.visible_count

    @property
    def visible_priorities(self) -> dict[str, int] | None:
        """Returns the number of issues that the organization can read, by priority. None until completed."""
        if self.priority_counts is None:
            return None
        if self.is_preview and self.preview_counts is not None:
            return {priority: self.preview_counts.get(priority, 0) for priority in self.priority_counts}
        left, visible = self.visible_count, {}
        for priority, count in sorted(self.priority_counts.items()):
            visible[priority] = min(count, left)
            left -= visible[priority]
        return visible

    def as_unlocked(self) -> Self:
        return replace(self, access="full", unlock_credits=None)

    def status_attributes(self, status: Status) -> dict[str, Any]:
        """Returns the attributes that change with the status: itself, and the keys of the list indexes."""
        return {
            "status": status,
            keys.SCANS_BY_STATUS.pk: f"{self.organization_id}#{status}",
            keys.SCANS_BY_REPOSITORY.pk: self.repository_id,
            keys.SCANS_BY_REPOSITORY_AND_STATUS.pk: f"{self.repository_id}#{status}",
        }

    def ended_attributes(self, *, canceled: bool = False) -> dict[str, Any]:
        """Returns the attributes that change when the scan fails or is canceled, except the reason and its time."""
        status: Status = "canceled" if canceled else "failed"
        progress = self.progress._replace(stage_status=status, analyzed_files=None, files_to_analyze=None)
        return {**self.status_attributes(status), "progress": to_map(progress)}

    def to_item(self) -> dict[str, Any]:
        return {**StoredItem.to_item(self), **self.status_attributes(self.status)}


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedScan(StoredItem):
    """A scan that is to start, but not before `not_before`, in Unix seconds."""

    repository_id: RepositoryId
    project_id: ProjectId
    cause: Cause
    queued_at: str
    not_before: int

    @classmethod
    def of(cls, repository_id: RepositoryId, project_id: ProjectId, cause: Cause, *, wait_seconds: int = 0) -> Self:
        now = int(clock.now())
        if cause.retry_until is None:
            cause = cause._replace(retry_until=now + _RETRIED_SECONDS)
        return cls(
            repository_id=repository_id,
            project_id=project_id,
            cause=cause,
            queued_at=clock.timestamp(),
            not_before=now + wait_seconds,
        )

    @property
    def key(self) -> Key:
        return keys.queued_scan(self.repository_id, self.project_id.local, self.cause.subject)

    def taken_leg(self) -> Delete:
        """Returns the leg that takes the entry out of the queue. Fails if a newer one has replaced it."""
        return Delete(self.key, "#queuedAt = :at", {"at": self.queued_at})


type Work = RequestItem | ScanItem
type WorkId = ScanRequestId | ScanId


def work_key(work_id: WorkId) -> Key:
    """Returns the key of the scan or of the request."""
    return keys.scan(*work_id.location) if isinstance(work_id, ScanId) else keys.scan_request(*work_id.location)


def watch_key(request_id: ScanRequestId) -> Key:
    """Returns the key of the sweep's entry for the request and its scan.

    It derives from the request's id, so the write that ends the request or scan can delete the entry.
    """
    created_at = ids.created_at(request_id.local)
    return keys.scan_watch(clock.timestamp(created_at + _WATCHED_AFTER_SECONDS), request_id)
