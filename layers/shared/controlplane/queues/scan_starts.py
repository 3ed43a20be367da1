"""Starts scans that no person asked for: after pushes, on a schedule, and of pull requests.

They wait in `store.scans.queue`. The worker that queued one tries to start it, and so does every sweep, so it starts
within a minute after its repository's last scan has ended.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from controlplane.core.ids import ProjectId, RepositoryId
from controlplane.core.plans import PLANS
from controlplane.core.schedules import Schedule
from controlplane.queues import messages
from controlplane.queues.messages import PrepareScan, Queue
from controlplane.store import keys, pull_requests, repositories
from controlplane.store.repositories import Link, ProjectGone, RepositoryItem, UnknownRepository
from controlplane.store.scans import queue, reads, requests, schedule
from controlplane.store.scans.causes import Cause
from controlplane.store.scans.queue import QueuedScan
from controlplane.store.sweep_runs import SweepRun
from controlplane.store.table import Leg, LegFailed, Put, table


def is_wanted(cause: Cause, link: Link | None, plan: str) -> bool:
    """Returns whether the link's settings and the organization's plan still ask for the scan."""
    if link is None:
        return False
    return {
        "manual": True,
        "push": link.scan_on_push,
        "scheduled": link.schedule is not None,
        "pull_request": link.pull_request_scans_enabled and PLANS[plan].pull_request_scans,
    }[cause.trigger]


def start_next(repository_id: RepositoryId) -> bool:
    """Starts the repository's oldest queued scan, unless another one is active. Returns whether it did.

    A scan also waits while the organization has as many running ones as its plan lets start by themselves.
    """
    for queued in queue.list_queued(repository_id):
        repository, organization = table.batch_get(
            [keys.repository(*repository_id.location), keys.organization(repository_id.organization_id)]
        )
        plan = organization["plan"] if organization else ""
        link = RepositoryItem.from_item(repository).find_link(queued.project_id) if repository else None
        if repository is None or not plan or not is_wanted(queued.cause, link, plan):
            queue.drop(queued)
            continue
        if repository.get("activeRequestId") or _has_enough(repository_id.organization_id, plan):
            return False
        with _dropping_unstartable(queued):
            return _start(RepositoryItem.from_item(repository), link, queued)
    return False


def _has_enough(organization_id: str, plan: str) -> bool:
    """Returns whether the organization's scans use up what its plan lets run. Lists lag, so there may be a few more."""
    most = PLANS[plan].automatic_scans
    return any(
        len(reads.list_scans(organization_id, most, None, status=status).scans) >= most
        for status in ("running", "queued")
    )


@contextmanager
def _dropping_unstartable(queued: QueuedScan) -> Iterator[None]:
    try:
        yield
    except (ProjectGone, UnknownRepository):
        queue.drop(queued)


def _start(repository: RepositoryItem, link: Link | None, queued: QueuedScan) -> bool:
    if link is None:
        return False
    request_id = requests.new_request_id(repository.organization_id)
    message = messages.entry(Queue.SCAN_PREPARATION, PrepareScan(request_id=request_id))
    legs: dict[str, Leg] = {"queued": queued.taken_leg()}
    number = queued.cause.pull_request_number
    if number is not None:
        key = keys.pull_request(repository.repository_id, number, queued.project_id.local)
        legs["pullRequest"] = pull_requests.requested_leg(key, request_id)
    try:
        requests.create_request(
            repository, link, request_id, message=message, requested_by="", extra_legs=legs, cause=queued.cause
        )
    except (requests.ScanInProgress, LegFailed):
        return False  # another scan, another process that starts this one, or a newer entry was faster
    messages.dispatch(message)
    return True


# Steps of the sweep


def start_queued(run: SweepRun) -> None:
    """Starts what is queued, at most one scan for each repository. Runs as a step of the sweep."""
    seen: set[str] = set()
    for entry in run.entries(keys.SCAN_QUEUE_PKS):
        with run.isolating(entry):
            if entry["repositoryId"] not in seen:
                seen.add(entry["repositoryId"])
                run.finished += start_next(RepositoryId.stored(entry["repositoryId"]))


def queue_scheduled(run: SweepRun) -> None:
    """Queues the scans that are due by their link's schedule. Runs as a step of the sweep."""
    schedule.take_due(run, _schedule_of, _queued)


def _schedule_of(repository_id: RepositoryId, project_id: ProjectId) -> Schedule | None:
    repository = repositories.find_repository(repository_id)
    link = repository.find_link(project_id) if repository else None
    return link.schedule if link else None


def _queued(repository_id: RepositoryId, project_id: ProjectId) -> Put:
    return Put(QueuedScan.of(repository_id, project_id, Cause("scheduled")).to_item())
