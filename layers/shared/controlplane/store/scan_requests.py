"""Scan requests, from their creation until the scan is created or fails to be.

A repository has one scan at a time: its item names the active request, and the scan once there is one. A request and
its preparation message are written in one transaction, as are a scan and its execution message.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from controlplane.core import clock, ids
from controlplane.core.plans import SCAN_UNLOCK_CREDITS
from controlplane.store import keys, leases, outbox, scans
from controlplane.store.keys import Key
from controlplane.store.leases import Lease
from controlplane.store.outbox import Entry
from controlplane.store.repositories import Link, ProjectGone, RepositoryItem, UnknownRepository, read_repository
from controlplane.store.scans import STAGES, Access, Failure, Progress, ScanItem
from controlplane.store.sweep_runs import SweepRun
from controlplane.store.table import Check, Delete, Leg, LegFailed, Put, StoreError, Throttled, Update, table

_STARTING = "starting"
# A request or scan is ended at this age because its message can no longer be in a queue. A message is sent at most a
# day late: it stays in the outbox until a queue accepts it.
_LOST_AFTER_SECONDS = outbox.RETENTION_SECONDS + 86_400
# Allows for clock skew: work counts as abandoned only this long after its lease has expired.
_GRACE_SECONDS = 60
_TRIES = 8


class UnknownRequest(StoreError):
    """No such scan request."""


class ScanInProgress(StoreError):
    """The repository has a requested or running scan; `scan_id` is None until the scan has been created."""

    def __init__(self, request_id: str, scan_id: str | None) -> None:
        super().__init__("a scan is in progress")
        self.request_id = request_id
        self.scan_id = scan_id


class RequestItem(NamedTuple):
    request_id: str
    organization_id: str
    repository_id: str
    project_id: str
    status: Literal["starting", "started", "failed"]
    created_at: str
    scan_id: str | None
    failure: Failure | None


def read_request(item: Mapping[str, Any]) -> RequestItem:
    """Returns the scan request that the stored attributes describe."""
    return RequestItem(
        item["requestId"],
        item["organizationId"],
        item["repositoryId"],
        item["projectId"],
        item["status"],
        item["createdAt"],
        item.get("scanId"),
        scans.read_failure(item),
    )


def _request_key(request_id: str) -> Key:
    return keys.scan_request(*scans.located(ids.SCAN_REQUEST, request_id))


def new_request_id(organization_id: str) -> str:
    return ids.owned(ids.SCAN_REQUEST, organization_id, ids.new_local())


def create_request(
    repository: RepositoryItem,
    link: Link,
    request_id: str,
    *,
    message: Entry,
    requested_by: str,
    extra_legs: Mapping[str, Leg] | None = None,
) -> RequestItem:
    """Creates a request to scan the linked project, with its preparation message. `extra_legs` precede these.

    Raises ScanInProgress, ProjectGone, UnknownRepository.
    """
    item = {
        **_request_key(request_id)._asdict(),
        "requestId": request_id,
        "organizationId": repository.organization_id,
        "repositoryId": repository.repository_id,
        "projectId": link.project_id,
        "status": _STARTING,
        "requestedBy": requested_by,
        "createdAt": clock.timestamp(),
        **leases.NEVER_TAKEN,
    }
    watch = scans.watch_key(request_id)
    legs: dict[str, Leg] = {
        **(extra_legs or {}),
        "project": Check(keys.project(*scans.located(ids.PROJECT, link.project_id)), "attribute_exists(pk)"),
        "repository": Update(
            keys.repository(*repository.location),
            "SET #activeRequestId = :request, #activeUntil = :until",
            "attribute_exists(pk) AND attribute_not_exists(#activeRequestId)",
            # Not read by this release. Earlier releases, which time out a waiting scan, read `activeUntil`.
            {"request": request_id, "until": int(clock.now()) + _LOST_AFTER_SECONDS},
        ),
        "request": Put(item, "attribute_not_exists(pk)"),
        "watch": Put({**watch._asdict(), "requestId": request_id, "repositoryId": repository.repository_id}),
        "message": message.leg,
    }
    for _ in range(_TRIES):
        try:
            table.transact(legs)
        except LegFailed as refusal:
            if refusal.leg == "project":
                raise ProjectGone from None
            if refusal.leg != "repository":
                raise
            stands = refusal.item
            if stands is None:
                raise UnknownRepository from None
            if stands["activeRequestId"] != request_id:  # otherwise our own write, whose response was lost
                _end_if_dead(stands)
                continue
        return read_request(item)
    raise Throttled("the repository keeps changing")


def recover_scans(
    run: SweepRun, message_of: Callable[[str, str | None], Entry], dispatch: Callable[[Entry], None]
) -> None:
    """Recovers requests and scans that haven't ended ten minutes after the request, as a step of the sweep.

    Releases the work of a crashed worker and resends its message, once per attempt; ends the work as failed when no
    attempts are left. Leaves queued work alone for as long as its message can be in the queue.

    message_of: creates the message for a request, or for its scan if there is one. dispatch: sends that message.
    """
    for watch in run.entries(keys.SCAN_WATCH_PKS, before=clock.timestamp()):
        with run.isolating(watch):
            repository = table.get(keys.repository(*scans.located(ids.REPOSITORY, watch["repositoryId"])))
            if repository is None or repository.get("activeRequestId") != watch["requestId"]:
                table.delete(Delete(Key(watch["pk"], watch["sk"])))
                continue
            work = _get_work(repository)
            if not _is_open(work):
                continue  # it ended, or its scan was created, after the repository was read
            if _is_dead(work):
                run.finished += _end_dead(work)
            elif leases.is_abandoned(work, _GRACE_SECONDS):
                message = message_of(work["requestId"], work.get("scanId"))
                if _retry(work, message):
                    dispatch(message)
                    run.finished += 1


def _get_work(repository: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the repository's active scan, or the request if there is no scan yet. Consistent."""
    request_id, scan_id = repository["activeRequestId"], repository.get("activeScanId")
    item = table.get(scans.scan_key(scan_id) if scan_id else _request_key(request_id))
    if item is None:
        raise LookupError("a repository names a scan that does not exist")
    return item


def _is_open(work: Mapping[str, Any]) -> bool:
    return work["status"] in (_STARTING, *scans.OPEN)


def _is_dead(work: Mapping[str, Any]) -> bool:
    """Returns whether no worker will acquire the open work: its attempts are used up, or its message is lost."""
    if leases.is_waiting(work):
        return clock.timestamp(clock.now() - _LOST_AFTER_SECONDS) > str(work.get("queuedAt", work["createdAt"]))
    return leases.is_abandoned(work, _GRACE_SECONDS) and work["attempts"] >= leases.MAX_ATTEMPTS


def _end_if_dead(repository: Mapping[str, Any]) -> None:
    """Ends the repository's active work if it is dead. Raises ScanInProgress if it is still open and not dead."""
    work = _get_work(repository)
    if not _is_open(work):
        return
    if not _is_dead(work):
        raise ScanInProgress(repository["activeRequestId"], repository.get("activeScanId"))
    _end_dead(work)


def _retry(work: Mapping[str, Any], message: Entry) -> bool:
    """Releases a crashed worker's work and writes the message to retry it. Returns False if the work has changed.

    One transaction does both, on the condition that the work is as the crashed worker left it. So each attempt has
    exactly one message, even if sweeps overlap or one crashes before sending.
    """
    legs: dict[str, Leg] = {
        "item": leases.given_back(
            work, ", #queuedAt = :now", " AND #status = :open", {"now": clock.timestamp(), "open": work["status"]}
        ),
        "message": message.leg,
    }
    try:
        table.transact(legs)
    except LegFailed:
        return False
    return True


def _end_dead(work: Mapping[str, Any]) -> bool:
    """Ends the work as failed. Returns False if it has changed since it was read."""
    failure = Failure("ABANDONED", "The scan did not come to an end. Start another one.")
    unmoved = "#leaseUntil = :seen AND #attempts = :attempts"
    try:
        scans.end_work(work, failure, unmoved, {"seen": work["leaseUntil"], "attempts": work["attempts"]})
    except leases.LeaseLost:
        return False
    return True


def end_waiting(work_id: str) -> bool:
    """Ends a waiting request or scan whose message an operator discards. Returns whether it did.

    Leaves the work alone if it has ended, or if a worker has or had it: then the sweep recovers it.
    """
    is_scan = ids.locate(ids.SCAN, work_id) is not None
    work = table.get(scans.scan_key(work_id) if is_scan else _request_key(work_id))
    return work is not None and _is_open(work) and leases.is_waiting(work) and _end_dead(work)


def get_request(request_id: str) -> RequestItem:
    """Returns the request, with a consistent read. Raises UnknownRequest."""
    item = table.get(_request_key(request_id))
    if item is None:
        raise UnknownRequest
    return read_request(item)


def acquire_request(request_id: str, lease_seconds: int) -> tuple[Lease, RequestItem]:
    """Acquires the request for a worker. Raises leases.Finished, Held, Exhausted."""
    lease, item = leases.acquire(_request_key(request_id), (_STARTING,), lease_seconds)
    return lease, read_request(item)


class Subject(NamedTuple):
    """The subject of a scan: the repository, its organization's plan, and whether the project still exists."""

    repository: RepositoryItem
    plan: str
    project_exists: bool


def find_subject(request: RequestItem) -> Subject | None:
    """Returns the subject, or None if the repository or organization is gone. Consistent, in one round trip."""
    repository, organization, project = table.batch_get(
        [
            keys.repository(*scans.located(ids.REPOSITORY, request.repository_id)),
            keys.organization(request.organization_id),
            keys.project(*scans.located(ids.PROJECT, request.project_id)),
        ]
    )
    if repository is None or organization is None:
        return None
    return Subject(read_repository(repository), organization["plan"], project is not None)


def new_scan_id(organization_id: str) -> str:
    return ids.owned(ids.SCAN, organization_id, ids.new_local())


class Target(NamedTuple):
    """The repository, link, branch, and commit to scan."""

    repository: RepositoryItem
    link: Link
    branch: str
    head_commit_sha: str


def start_scan(
    request: RequestItem, lease: Lease, scan_id: str, target: Target, *, access: Access, message: Entry
) -> ScanItem:
    """Creates the request's scan, with its execution message. Raises leases.LeaseLost.

    `access` must be `free-preview` if and only if the repository hasn't used its free preview.
    """
    repository = target.repository
    preview = access == "free-preview"
    now = clock.timestamp()
    item: dict[str, Any] = {
        **scans.scan_key(scan_id)._asdict(),
        "scanId": scan_id,
        "organizationId": request.organization_id,
        "repositoryId": request.repository_id,
        "requestId": request.request_id,
        "projectId": request.project_id,
        "repositoryName": repository.name,
        "repositoryUrl": repository.html_url,
        "rootDirectory": target.link.root_directory,
        "branch": target.branch,
        "headCommitSha": target.head_commit_sha,
        "access": access,
        **({} if access == "full" else {"unlockCredits": SCAN_UNLOCK_CREDITS}),
        "progress": scans.written_progress(Progress(STAGES[0], "pending", 0)),
        "createdAt": now,
        **leases.NEVER_TAKEN,
        **scans.indexed(request.organization_id, request.repository_id, "queued"),
    }
    legs: dict[str, Leg] = {
        "request": Update(
            lease.key,
            "SET #status = :started, #scanId = :scan",
            f"{leases.HELD} AND #status = :starting",
            {"started": "started", "starting": _STARTING, "scan": scan_id, "claim": lease.claim},
        ),
        "repository": Update(
            keys.repository(*repository.location),
            "SET #activeScanId = :scan, #previewUsed = :true",
            "#activeRequestId = :request AND #previewUsed = :used",
            {"scan": scan_id, "request": request.request_id, "used": not preview, "true": True},
        ),
        "scan": Put(item, "attribute_not_exists(pk)"),
        "message": message.leg,
    }
    try:
        table.transact(legs)
    except LegFailed as refusal:
        stands = refusal.items.get("request")
        if stands is None or stands.get("scanId") != scan_id:
            raise leases.LeaseLost from None
    return scans.read_scan(item)


def fail_request(request_id: str, failure: Failure, lease: Lease | None = None) -> None:
    """Ends the request without a scan, and frees the repository. Raises leases.LeaseLost.

    lease: the reporting worker's lease; None if all attempts are used up.
    """
    item = table.get(_request_key(request_id))
    if item is None or item["status"] != _STARTING:
        raise leases.LeaseLost
    scans.end_held(item, failure, lease)
