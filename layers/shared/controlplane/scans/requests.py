"""Scan requests, from the request of a person or the queue until `scan_preparation` creates the scan."""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from controlplane.code_host import pull_requests, repositories
from controlplane.code_host.items import Link, RepositoryItem
from controlplane.code_host.repositories import ProjectGone, UnknownRepository
from controlplane.platform.core import clock, ids
from controlplane.platform.core.actions import Action
from controlplane.platform.core.errors import ApiError, NotFound
from controlplane.platform.core.ids import RepositoryId, ScanId, ScanRequestId
from controlplane.platform.core.plans import SCAN_UNLOCK_CREDITS
from controlplane.platform.queues import messages
from controlplane.platform.queues.outbox import Entry
from controlplane.platform.table import keys, leases
from controlplane.platform.table.leases import Lease
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.table import Check, Leg, LegFailed, Put, StoreError, Unrecorded, Update, table
from controlplane.scans import reads
from controlplane.scans.failures import fail_abandoned, is_lost, message_of
from controlplane.scans.items import (
    MANUAL,
    STAGES,
    Access,
    Cause,
    Progress,
    RequestItem,
    ScanItem,
    watch_key,
    work_key,
)
from controlplane.scans.reads import Outcome, get_active_work


class ScanInProgress(ApiError):
    """The repository has a requested or running scan; `scan_id` is None until the scan has been created."""

    code = "SCAN_IN_PROGRESS"
    message = "A scan of this repository is in progress. Wait until it ends."

    def __init__(self, request_id: str, scan_id: str | None) -> None:
        super().__init__(details={"scanId": scan_id} if scan_id else {"preparationId": request_id})


def create_request(
    repository: RepositoryItem,
    link: Link,
    *,
    requested_by: str,
    extra_legs: Mapping[str, Leg] | None = None,
    cause: Cause = MANUAL,
) -> tuple[RequestItem, Entry]:
    """Creates a request to scan the linked project. Returns it with its preparation message, which the caller sends.

    requested_by: the person's ID; empty if no person did. `extra_legs` precede those of the request.
    Raises ScanInProgress, ProjectGone, UnknownRepository.
    """
    request_id = ScanRequestId.of(repository.organization_id, ids.new_local())
    request = RequestItem(
        request_id=request_id,
        repository_id=repository.repository_id,
        project_id=link.project_id,
        status="starting",
        requested_by=requested_by,
        created_at=clock.timestamp(),
        cause=cause,
    )
    message = message_of(request_id)
    legs = {**(extra_legs or {}), **_request_legs(request), "message": message.leg}
    record = repository.recorded(Action.SCAN_REQUEST, request_id, after={"projectId": link.project_id})

    def create() -> tuple[RequestItem, Entry]:
        try:
            table.transact(legs, record, {"project": ProjectGone})
        except LegFailed as failure:
            if failure.leg != "repository":
                raise
            if failure.item is None:
                raise UnknownRepository from None
            if failure.item["activeRequestId"] != request_id:  # if equal, our own write, whose response was lost
                _fail_if_lost(failure.item)
                raise WriteConflict from None
        return request, message

    return retry_on_conflict(create, "the repository")


def _request_legs(request: RequestItem) -> dict[str, Leg]:
    watch = {
        **watch_key(request.request_id)._asdict(),
        "requestId": request.request_id,
        "repositoryId": request.repository_id,
    }
    turn, now = (", #lastTurnAt = :now", {"now": clock.timestamp()}) if request.cause.trigger != "manual" else ("", {})
    legs: dict[str, Leg] = {
        "project": Check(keys.project(*request.project_id.location), "attribute_exists(pk)"),
        "repository": Update(
            keys.repository(*request.repository_id.location),
            "SET #activeRequestId = :request" + turn,
            "attribute_exists(pk) AND attribute_not_exists(#activeRequestId)",
            {"request": request.request_id, **now},
        ),
        "request": Put(request.to_item(), "attribute_not_exists(pk)"),
        "watch": Put(watch),
    }
    number = request.cause.pull_request_number
    if number is not None:
        key = keys.pull_request(request.repository_id, number, request.project_id.local)
        legs["pullRequest"] = pull_requests.requested_leg(key, request.request_id)
    return legs


def _fail_if_lost(repository: Mapping[str, Any]) -> None:
    """Ends the active work of the stored repository if no worker will. Raises ScanInProgress if one still may."""
    work = get_active_work(repository)
    if not work.is_open:
        return
    if not is_lost(work):
        raise ScanInProgress(work.request_id, work.scan_id)
    fail_abandoned(work)


def acquire_request(request_id: ScanRequestId, lease_seconds: int) -> tuple[Lease, RequestItem]:
    """Acquires the request for a worker. Raises leases.Finished, Held, Exhausted."""
    lease, item = leases.acquire(work_key(request_id), ("starting",), lease_seconds)
    return lease, RequestItem.from_item(item)


class Subject(NamedTuple):
    """The subject of a scan: the repository, its organization's plan, and whether the project still exists."""

    repository: RepositoryItem
    plan: str
    project_exists: bool


def find_subject(request: RequestItem) -> Subject | None:
    """Returns the subject, or None if the repository or organization is gone. Consistent, in one round trip."""
    repository, organization, project = table.batch_get(
        [
            keys.repository(*request.repository_id.location),
            keys.organization(request.organization_id),
            keys.project(*request.project_id.location),
        ]
    )
    if repository is None or organization is None:
        return None
    return Subject(RepositoryItem.from_item(repository), organization["plan"], project is not None)


class Target(NamedTuple):
    """The repository, link, branch, and commit to scan."""

    repository: RepositoryItem
    link: Link
    branch: str
    head_commit_sha: str


def start_scan(request: RequestItem, lease: Lease, target: Target, access: Access) -> tuple[ScanItem, list[Entry]]:
    """Creates the request's scan. Returns it with its messages: the execution, and the report of a pull request's scan.

    Raises leases.LeaseLost.
    """
    scan = _new_scan(request, target, access)
    scan_id, sent = scan.scan_id, [message_of(scan.scan_id)]
    number = request.cause.pull_request_number
    legs: dict[str, Leg] = {
        "request": Update(
            lease.key,
            "SET #status = :started, #scanId = :scan",
            f"{leases.HELD} AND #status = :starting",
            {"started": "started", "starting": "starting", "scan": scan_id, "claim": lease.claim},
        ),
        "repository": Update(
            keys.repository(*request.repository_id.location),
            "SET #activeScanId = :scan",
            "#activeRequestId = :request",
            {"scan": scan_id, "request": request.request_id},
        ),
        "scan": Put(scan.to_item(), "attribute_not_exists(pk)"),
        "message": sent[0].leg,
    }
    if number is not None:
        key = keys.pull_request(request.repository_id, number, request.project_id.local)
        legs["pullRequest"] = pull_requests.started_leg(key, request.request_id, scan_id, scan.head_commit_sha)
        sent.append(pull_requests.report_entry(request.repository_id, request.project_id, number))
        legs["report"] = sent[1].leg
    try:
        table.transact(legs, Unrecorded.PROGRESS)
    except LegFailed as failure:
        stored = failure.items.get("request")
        if stored is None or stored.get("scanId") != scan_id:
            raise leases.LeaseLost from None
    return scan, sent


def _new_scan(request: RequestItem, target: Target, access: Access) -> ScanItem:
    return ScanItem(
        scan_id=ScanId.of(request.organization_id, ids.new_local()),
        repository_id=request.repository_id,
        request_id=request.request_id,
        project_id=request.project_id,
        repository_name=target.repository.name,
        repository_url=target.repository.html_url,
        root_directory=target.link.root_directory,
        branch=target.branch,
        head_commit_sha=target.head_commit_sha,
        status="queued",
        access=access,
        unlock_credits=None if access == "full" else SCAN_UNLOCK_CREDITS,
        progress=Progress(STAGES[0], "pending", 0),
        cause=request.cause,
        created_at=clock.timestamp(),
    )


class RepositoryNotLinked(ApiError):
    code = "REPOSITORY_NOT_LINKED"
    message = "The repository isn't linked to that project, or to any project. Ask an admin to link it."


def find_repository(repository_id: str) -> RepositoryItem | None:
    """Returns the repository of any organization, for a caller whose organization isn't known yet, or None."""
    parsed = RepositoryId.parse(repository_id)
    return repositories.find_repository(parsed) if parsed is not None else None


def request_scan(
    repository: RepositoryItem, project_id: str | None, user_id: str, extra_legs: Mapping[str, Leg]
) -> tuple[RequestItem, Outcome | None]:
    """Requests a scan of the linked project, by default the first one that still exists.

    Returns the request, and its state right after its message was sent, or None if that couldn't be read.
    `extra_legs` precede those of the request in the transaction. Raises RepositoryNotLinked, ScanInProgress, and
    UnknownRepository.
    """
    for link in repository.links:
        if project_id not in {None, link.project_id}:
            continue
        try:
            request, message = create_request(repository, link, requested_by=user_id, extra_legs=extra_legs)
        except ProjectGone:
            continue
        return request, messages.dispatch_and_read(message, partial(_look, request.request_id))
    raise RepositoryNotLinked


def _look(request_id: ScanRequestId) -> Outcome | None:
    """Returns the request's state, or None if it can't be read: the request exists, so its answer must not fail."""
    try:
        return reads.find_outcome(reads.get_request(request_id))
    except (StoreError, NotFound):
        return None
