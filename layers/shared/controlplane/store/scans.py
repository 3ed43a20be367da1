"""Scans of repositories: execution and lists. `scan_requests` creates scans; `unlocks` unlocks their findings.

Ending a scan also frees its repository, in the same transaction. A terminal status is written only once, because each
change is conditional on the previous status.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from controlplane.core import clock, ids
from controlplane.core.settings import settings
from controlplane.store import deletions, keys, leases
from controlplane.store.keys import Key
from controlplane.store.leases import Lease
from controlplane.store.repositories import RepositoryItem, UnknownRepository, read_repository
from controlplane.store.table import ConditionFailed, Delete, Leg, LegFailed, StoreError, Update, table

Status = Literal["queued", "running", "completed", "failed", "canceled"]
STATUSES: tuple[Status, ...] = ("queued", "running", "completed", "failed", "canceled")
OPEN = ("queued", "running")
Access = Literal["full", "free-preview", "locked"]
Stage = Literal["fetch", "inventory", "analyze", "publish"]
STAGES: tuple[Stage, ...] = ("fetch", "inventory", "analyze", "publish")
PREVIEW_FINDINGS = 3
# The sweep checks a scan request from this age on. Most requests, and their scans, have ended by then.
_WATCHED_AFTER_SECONDS = 600
_PAGE = 100


class UnknownScan(StoreError):
    """No such scan."""


class Failure(NamedTuple):
    """The reason for a missing scan or result: a code, and a sentence for the user who requested it."""

    code: str
    message: str


class Progress(NamedTuple):
    """A scan's current stage, and that stage's status: pending, running, completed, or failed."""

    stage: Stage
    stage_status: str
    completed_stages: int


class Coverage(NamedTuple):
    """A scan's coverage: files in the archive, files analyzed, and the number of skipped files by reason."""

    files: int
    analyzed_files: int
    skipped: Mapping[str, int]


class ScanItem(NamedTuple):
    scan_id: str
    organization_id: str
    repository_id: str
    request_id: str
    project_id: str
    repository_name: str
    repository_url: str
    root_directory: str | None
    branch: str
    head_commit_sha: str
    status: Status
    access: Access
    unlock_credits: int | None
    finding_count: int | None
    issue_count: int | None
    findings_attempt: int
    progress: Progress
    coverage: Coverage | None
    failure: Failure | None
    created_at: str
    started_at: str | None
    completed_at: str | None
    # Unix time; None until a later scan supersedes this one.
    findings_expire_at: int | None

    @property
    def findings_expired(self) -> bool:
        return self.findings_expire_at is not None and self.findings_expire_at <= clock.now()

    @property
    def location(self) -> ids.Located:
        located = ids.locate(ids.SCAN, self.scan_id)
        if located is None:
            raise LookupError("a scan's item holds no scan id")
        return located

    @property
    def visible_count(self) -> int:
        """Returns how many issues, the most urgent first, the organization can read."""
        issues = self.issue_count or 0
        return {"full": issues, "free-preview": min(issues, PREVIEW_FINDINGS), "locked": 0}[self.access]

    @property
    def locked_count(self) -> int:
        return (self.issue_count or 0) - self.visible_count


class ScanPage(NamedTuple):
    scans: list[ScanItem]
    next_sk: str | None


def read_failure(item: Mapping[str, Any]) -> Failure | None:
    failure = item.get("failure")
    return Failure(failure["code"], failure["message"]) if failure else None


def read_scan(item: Mapping[str, Any]) -> ScanItem:
    """Returns the scan that the stored attributes describe."""
    progress, coverage = item["progress"], item.get("coverage")
    return ScanItem(
        item["scanId"],
        item["organizationId"],
        item["repositoryId"],
        item["requestId"],
        item["projectId"],
        item["repositoryName"],
        item["repositoryUrl"],
        item["rootDirectory"],
        item["branch"],
        item["headCommitSha"],
        item["status"],
        item["access"],
        item.get("unlockCredits"),
        item.get("findingCount"),
        item.get("issueCount"),
        item.get("findingsAttempt", 0),
        Progress(progress["stage"], progress["stageStatus"], progress["completedStages"]),
        Coverage(coverage["files"], coverage["analyzedFiles"], coverage["skipped"]) if coverage else None,
        read_failure(item),
        item["createdAt"],
        item.get("startedAt"),
        item.get("completedAt"),
        item.get("findingsExpireAt"),
    )


def located(prefix: str, text: str) -> ids.Located:
    located = ids.locate(prefix, text)
    if located is None:
        raise LookupError(f"a stored id is no {prefix} id")
    return located


def scan_key(scan_id: str) -> Key:
    return keys.scan(*located(ids.SCAN, scan_id))


def watch_key(request_id: str) -> Key:
    """Returns the key of the sweep's entry for the request.

    It derives from the request's id, so the write that ends the request or scan can delete the entry.
    """
    created_at = ids.created_at(located(ids.SCAN_REQUEST, request_id).local)
    return keys.scan_watch(clock.timestamp(created_at + _WATCHED_AFTER_SECONDS), request_id)


def get_scan(scan_id: str) -> ScanItem:
    """Returns the scan, with a consistent read. Raises UnknownScan."""
    item = table.get(scan_key(scan_id))
    if item is None:
        raise UnknownScan
    return read_scan(item)


def list_superseded(scan: ScanItem) -> list[ScanItem]:
    """Returns earlier completed scans of the same repository and project whose findings have no expiry yet.

    Oldest first, so a caller that is interrupted while setting expiries in this order finds the rest on retry.
    """
    found: list[ScanItem] = []
    after: str | None = scan_key(scan.scan_id).sk
    while after is not None:
        page = table.query(
            f"{scan.repository_id}#completed",
            prefix=keys.SCAN_PREFIX,
            newest_first=True,
            after=after,
            limit=_PAGE,
            index=keys.SCANS_BY_REPOSITORY_AND_STATUS,
        )
        for item in page.items:
            earlier = read_scan(item)
            if earlier.project_id != scan.project_id:
                continue
            if earlier.findings_expire_at is not None:
                return found[::-1]
            found.append(earlier)
        after = page.next_sk
    return found[::-1]


def set_findings_expiry(scan_id: str, expires_at: int) -> None:
    """Sets the time when the scan's findings expire. Does nothing if the scan doesn't exist."""
    change = Update(scan_key(scan_id), "SET #findingsExpireAt = :at", "attribute_exists(pk)", {"at": expires_at})
    with suppress(ConditionFailed):
        table.update(change)


def get_repository_of(scan: ScanItem) -> RepositoryItem:
    """Returns the scanned repository, with a consistent read. Raises UnknownRepository."""
    item = table.get(keys.repository(*located(ids.REPOSITORY, scan.repository_id)))
    if item is None:
        raise UnknownRepository
    return read_repository(item)


def list_scans(
    organization_id: str, limit: int, after: str | None, repository_id: str | None = None, status: str | None = None
) -> ScanPage:
    """Returns one page of the organization's scans, newest first, optionally filtered by repository and status.

    The repository must belong to the organization.
    """
    if repository_id is not None and status is not None:
        index, pk = keys.SCANS_BY_REPOSITORY_AND_STATUS, f"{repository_id}#{status}"
    elif repository_id is not None:
        index, pk = keys.SCANS_BY_REPOSITORY, repository_id
    elif status is not None:
        index, pk = keys.SCANS_BY_STATUS, f"{organization_id}#{status}"
    else:
        page = table.query(
            keys.organization_pk(organization_id), prefix=keys.SCAN_PREFIX, newest_first=True, limit=limit, after=after
        )
        return ScanPage([read_scan(item) for item in page.items], page.next_sk)
    page = table.query(pk, prefix=keys.SCAN_PREFIX, newest_first=True, limit=limit, after=after, index=index)
    return ScanPage([read_scan(item) for item in page.items], page.next_sk)


def acquire_scan(scan_id: str, lease_seconds: int) -> tuple[Lease, ScanItem]:
    """Acquires the scan for a worker and sets it to running. Raises leases.Finished, Held, Exhausted."""
    key = scan_key(scan_id)
    stands = table.get(key)
    if stands is None:
        raise leases.Finished
    running = indexed(stands["organizationId"], stands["repositoryId"], "running")
    change = ", #startedAt = if_not_exists(#startedAt, :at)" + "".join(f", #{name} = :{name}" for name in running)
    lease, item = leases.acquire(key, OPEN, lease_seconds, change, {**running, "at": clock.timestamp()})
    return lease, read_scan(item)


def report_stage(lease: Lease, stage: Stage, stage_status: Literal["running", "completed"]) -> None:
    """Stores the scan's current stage. Raises leases.LeaseLost."""
    done = STAGES.index(stage) + (stage_status == "completed")
    values = {
        "progress": written_progress(Progress(stage, stage_status, done)),
        "claim": lease.claim,
        "running": "running",
    }
    try:
        table.update(Update(lease.key, "SET #progress = :progress", f"{leases.HELD} AND #status = :running", values))
    except ConditionFailed:
        raise leases.LeaseLost from None


def complete_scan(scan: ScanItem, lease: Lease, finding_count: int, issue_count: int, coverage: Coverage) -> ScanItem:
    """Completes the scan with the findings that the lease's attempt has stored, and frees the repository.

    A background job then sets when the findings of the repository's earlier scans expire.
    If no issue is locked, unlocking costs nothing. Raises leases.LeaseLost.
    """
    ended = scan._replace(
        status="completed",
        finding_count=finding_count,
        issue_count=issue_count,
        findings_attempt=lease.attempt,
        progress=Progress(STAGES[-1], "completed", len(STAGES)),
        coverage=coverage,
        completed_at=clock.timestamp(),
    )
    if ended.unlock_credits is not None and ended.locked_count == 0:
        ended = ended._replace(unlock_credits=0)
    changed: dict[str, Any] = {
        **indexed(scan.organization_id, scan.repository_id, "completed"),
        "findingCount": finding_count,
        "issueCount": issue_count,
        "findingsAttempt": lease.attempt,
        "progress": written_progress(ended.progress),
        "coverage": {"files": coverage.files, "analyzedFiles": coverage.analyzed_files, "skipped": coverage.skipped},
        "completedAt": ended.completed_at,
    }
    if ended.unlock_credits is not None:
        changed["unlockCredits"] = ended.unlock_credits
    legs: dict[str, Leg] = {
        "scan": Update(
            lease.key,
            _set(changed),
            f"{leases.HELD} AND #status = :open",
            {**changed, "claim": lease.claim, "open": "running"},
        ),
        "repository": _freed(scan.repository_id, scan.request_id),
        "watch": Delete(watch_key(scan.request_id)),
        **({"supersedes": deletions.work_item(scan.scan_id)} if settings.finding_retention_days else {}),
    }
    try:
        table.transact(legs)
    except LegFailed as refusal:
        stands = refusal.items.get("scan")
        if stands is None or stands.get("claim") != lease.claim or stands["status"] != "completed":
            raise leases.LeaseLost from None
    return ended


def fail_scan(scan_id: str, failure: Failure, lease: Lease | None = None) -> None:
    """Ends the scan without findings, and frees the repository. Raises leases.LeaseLost.

    lease: the reporting worker's lease; None if all attempts are used up.
    """
    item = table.get(scan_key(scan_id))
    if item is None or item["status"] not in OPEN:
        raise leases.LeaseLost
    end_held(item, failure, lease)


def end_held(item: Mapping[str, Any], failure: Failure, lease: Lease | None) -> None:
    if lease is None:
        end_work(item, failure, "#attempts = :most", {"most": leases.MAX_ATTEMPTS})
    else:
        end_work(item, failure, leases.HELD, {"claim": lease.claim})


def end_work(item: Mapping[str, Any], failure: Failure, when: str, values: Mapping[str, Any]) -> None:
    """Ends a request or scan as failed, once and only if the condition `when` holds. Raises leases.LeaseLost."""
    changed: dict[str, Any] = {"failure": failure._asdict(), "completedAt": clock.timestamp()}
    if "progress" in item:
        changed |= indexed(item["organizationId"], item["repositoryId"], "failed")
        changed["progress"] = {**item["progress"], "stageStatus": "failed"}
    else:
        changed["status"] = "failed"
    legs: dict[str, Leg] = {
        "item": Update(
            Key(item["pk"], item["sk"]),
            _set(changed),
            f"({when}) AND #status = :open",
            {**changed, **values, "open": item["status"]},
        ),
        # A failed scan doesn't use up the free preview.
        "repository": _freed(item["repositoryId"], item["requestId"], gives_back=item.get("access") == "free-preview"),
        "watch": Delete(watch_key(item["requestId"])),
    }
    try:
        table.transact(legs)
    except LegFailed:
        raise leases.LeaseLost from None


def _freed(repository_id: str, request_id: str, *, gives_back: bool = False) -> Update:
    """Returns a leg that frees the repository and, if `gives_back` is set, restores its free preview."""
    change, values = "REMOVE #activeRequestId, #activeScanId, #activeUntil", {"request": request_id}
    key = keys.repository(*located(ids.REPOSITORY, repository_id))
    if gives_back:
        return Update(
            key, f"{change} SET #previewUsed = :false", "#activeRequestId = :request", {**values, "false": False}
        )
    return Update(key, change, "#activeRequestId = :request", values)


def _set(changed: Mapping[str, Any]) -> str:
    return "SET " + ", ".join(f"#{name} = :{name}" for name in changed)


def written_progress(progress: Progress) -> dict[str, Any]:
    return {
        "stage": progress.stage,
        "stageStatus": progress.stage_status,
        "completedStages": progress.completed_stages,
    }


def indexed(organization_id: str, repository_id: str, status: Status) -> dict[str, Any]:
    """Returns the scan's status and the attributes of its list indexes, which depend on the status."""
    return {
        "status": status,
        keys.SCANS_BY_STATUS.pk: f"{organization_id}#{status}",
        keys.SCANS_BY_REPOSITORY.pk: repository_id,
        keys.SCANS_BY_REPOSITORY_AND_STATUS.pk: f"{repository_id}#{status}",
    }
