"""Requests for a scan: from the asking until the scan exists, or cannot.

A repository has one scan at a time: its item names the request, then the scan, that has it. A request and the message
that has it prepared are written together, as are a scan and the message that has it run.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from controlplane import clock, ids
from controlplane.plans import SCAN_UNLOCK_CREDITS
from controlplane.store import keys, leases, outbox, scans
from controlplane.store.keys import Key
from controlplane.store.leases import Lease
from controlplane.store.outbox import Entry
from controlplane.store.repositories import Link, ProjectGone, RepositoryItem, UnknownRepository, read_repository
from controlplane.store.scans import STAGES, Access, Failure, Progress, ScanItem
from controlplane.store.sweep_runs import SweepRun
from controlplane.store.table import Check, Delete, Leg, LegFailed, Put, StoreError, Throttled, Update, table

_STARTING = "starting"
# A request or scan whose message is in no queue any more ends after this. A message is sent at most a day late: while
# a queue refuses it, it is in the outbox.
_LOST_AFTER_SECONDS = outbox.RETENTION_SECONDS + 86_400
# A worker's clock and ours may differ: its work is taken for abandoned so long after its lease ended.
_GRACE_SECONDS = 60
_TRIES = 8


class UnknownRequest(StoreError):
    """No such scan request."""


class ScanInProgress(StoreError):
    """The repository has a scan that is wanted or runs; `scan_id` is None while it is only wanted."""

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
    """The stored attributes as a scan request."""
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
    first: Mapping[str, Leg] | None = None,
) -> RequestItem:
    """A request for a scan of the linked project, with the message that has it prepared. `first`: legs before these.

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
        **(first or {}),
        "project": Check(keys.project(*scans.located(ids.PROJECT, link.project_id)), "attribute_exists(pk)"),
        "repository": Update(
            keys.repository(*repository.location),
            "SET #activeRequestId = :request, #activeUntil = :until",
            "attribute_exists(pk) AND attribute_not_exists(#activeRequestId)",
            # Releases that failed a scan for waiting read `activeUntil`. This one doesn't.
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
            if stands["activeRequestId"] != request_id:  # else our own write, whose answer was lost
                _end_if_dead(stands)
                continue
        return read_request(item)
    raise Throttled("the repository keeps changing")


def recover_scans(
    run: SweepRun, message_of: Callable[[str, str | None], Entry], dispatch: Callable[[Entry], None]
) -> None:
    """A step of the sweep: looks after requests and scans that haven't ended ten minutes after they were asked for.

    Work of a dead worker is given back and its message is sent again, once for each attempt, while attempts are left;
    then it is ended as failed. Work that waits in a queue is left alone for as long as its message can be there.

    message_of: makes the message of a request, or of its scan if there is one. dispatch: sends what it made.
    """
    for watch in run.entries(keys.SCAN_WATCH_PKS, before=clock.timestamp()):
        with run.isolating(watch):
            repository = table.get(keys.repository(*scans.located(ids.REPOSITORY, watch["repositoryId"])))
            if repository is None or repository.get("activeRequestId") != watch["requestId"]:
                table.delete(Delete(Key(watch["pk"], watch["sk"])))
                continue
            work = _get_work(repository)
            if not _is_open(work):
                continue  # it ended, or became a scan, since the repository was read
            if _is_dead(work):
                run.finished += _end_dead(work)
            elif leases.is_abandoned(work, _GRACE_SECONDS):
                message = message_of(work["requestId"], work.get("scanId"))
                if _retry(work, message):
                    dispatch(message)
                    run.finished += 1


def _get_work(repository: Mapping[str, Any]) -> dict[str, Any]:
    """The scan that has the repository, or the request while there is no scan. Consistent."""
    request_id, scan_id = repository["activeRequestId"], repository.get("activeScanId")
    item = table.get(scans.scan_key(scan_id) if scan_id else _request_key(request_id))
    if item is None:
        raise LookupError("a repository names a scan that does not exist")
    return item


def _is_open(work: Mapping[str, Any]) -> bool:
    return work["status"] in (_STARTING, *scans.OPEN)


def _is_dead(work: Mapping[str, Any]) -> bool:
    """Whether no worker will take the open work any more: its attempts are used up, or its message is in no queue."""
    if leases.is_waiting(work):
        return clock.timestamp(clock.now() - _LOST_AFTER_SECONDS) > str(work.get("queuedAt", work["createdAt"]))
    return leases.is_abandoned(work, _GRACE_SECONDS) and work["attempts"] >= leases.MAX_ATTEMPTS


def _end_if_dead(repository: Mapping[str, Any]) -> None:
    """Ends what has the repository if no worker will take it any more. Raises ScanInProgress if one has it or will."""
    work = _get_work(repository)
    if not _is_open(work):
        return
    if not _is_dead(work):
        raise ScanInProgress(repository["activeRequestId"], repository.get("activeScanId"))
    _end_dead(work)


def _retry(work: Mapping[str, Any], message: Entry) -> bool:
    """Gives the work of a dead worker back, with the message that has it taken again; False if it has moved on.

    Both are one transaction, on the condition that the work is as the dead worker left it. So there is one message for
    each attempt, whichever sweep writes it and whatever dies before it is sent.
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
    """Ends the work as failed; False if it has moved on since it was read."""
    failure = Failure("ABANDONED", "The scan did not come to an end. Start another one.")
    unmoved = "#leaseUntil = :seen AND #attempts = :attempts"
    try:
        scans.end_work(work, failure, unmoved, {"seen": work["leaseUntil"], "attempts": work["attempts"]})
    except leases.LeaseLost:
        return False
    return True


def end_waiting(work_id: str) -> bool:
    """Ends a request or scan whose message will never come, for an operator who discards it. Returns whether it did.

    Leaves it alone if a worker has it or had it, because the sweep looks after that, and if it has ended.
    """
    is_scan = ids.locate(ids.SCAN, work_id) is not None
    work = table.get(scans.scan_key(work_id) if is_scan else _request_key(work_id))
    return work is not None and _is_open(work) and leases.is_waiting(work) and _end_dead(work)


def get_request(request_id: str) -> RequestItem:
    """Consistent. Raises UnknownRequest."""
    item = table.get(_request_key(request_id))
    if item is None:
        raise UnknownRequest
    return read_request(item)


def acquire_request(request_id: str, lease_seconds: int) -> tuple[Lease, RequestItem]:
    """Takes the request for a worker. Raises leases.Finished, Held, Exhausted."""
    lease, item = leases.acquire(_request_key(request_id), (_STARTING,), lease_seconds)
    return lease, read_request(item)


class Subject(NamedTuple):
    """What is about to be scanned: the repository, its organization's plan, and whether the project still exists."""

    repository: RepositoryItem
    plan: str
    project_exists: bool


def find_subject(request: RequestItem) -> Subject | None:
    """Consistent, in one round trip; None where the repository is gone."""
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
    """What exactly is scanned."""

    repository: RepositoryItem
    link: Link
    branch: str
    head_commit_sha: str


def start_scan(
    request: RequestItem, lease: Lease, scan_id: str, target: Target, *, access: Access, message: Entry
) -> ScanItem:
    """Makes the scan of the request, with the message that has it run. Raises leases.LeaseLost.

    `access` is `free-preview` exactly where the repository has had none.
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

    lease: that of the worker who says so; None where every attempt is used up.
    """
    item = table.get(_request_key(request_id))
    if item is None or item["status"] != _STARTING:
        raise leases.LeaseLost
    scans.end_held(item, failure, lease)
