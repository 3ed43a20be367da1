"""Scans that no person asked for: after pushes, on a schedule, and of pull requests.

They wait until their repository has no other scan: the newest for the production branch and each pull request. The
worker that queued one tries to start it, and so does every sweep, so it starts within a minute after its repository's
last scan has ended.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from controlplane.code_host import installations, repositories
from controlplane.code_host.items import Link, RepositoryItem
from controlplane.code_host.repositories import ProjectGone, UnknownRepository
from controlplane.platform.core import clock
from controlplane.platform.core.ids import ProjectId, RepositoryId
from controlplane.platform.core.plans import PLANS
from controlplane.platform.core.schedules import next_run
from controlplane.platform.queues import messages
from controlplane.platform.queues.sweep_runs import SweepRun
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.table import Check, ConditionFailed, Delete, Leg, LegFailed, Put, Unrecorded, table
from controlplane.scans import reads, requests
from controlplane.scans.items import Cause, QueuedScan


def enqueue(queued: QueuedScan) -> None:
    """Queues the scan in place of an older one with the same subject."""
    table.put(Put(queued.to_item()), Unrecorded.MESSAGE)


def list_queued(repository_id: RepositoryId) -> list[QueuedScan]:
    """Returns the repository's queued scans that may start, the oldest first. Consistent."""
    page = table.query(keys.scan_queue_pk(repository_id), prefix=f"{repository_id}#", consistent=True)
    queued = map(QueuedScan.from_item, page.items)
    return sorted((it for it in queued if it.not_before <= clock.now()), key=lambda it: it.queued_at)


def find_last_turns(repository_ids: Iterable[RepositoryId]) -> dict[RepositoryId, str]:
    """Returns when a scan of each repository was last started by itself; empty if it never was. Consistent."""
    distinct = [*dict.fromkeys(repository_ids)]
    items = table.batch_get([keys.repository(*repository_id.location) for repository_id in distinct])
    found = zip(distinct, items, strict=True)
    return {repository_id: (item or {}).get("lastTurnAt", "") for repository_id, item in found}


def drop(queued: QueuedScan) -> None:
    """Removes an entry that is no longer wanted, unless a newer one has replaced it."""
    with suppress(ConditionFailed):
        table.delete(queued.taken_leg(), Unrecorded.MESSAGE)


def drop_subject(repository_id: RepositoryId, project_id: ProjectId, cause: Cause) -> None:
    """Removes the entry of the subject, if there is one."""
    table.delete(Delete(keys.queued_scan(repository_id, project_id.local, cause.subject)), Unrecorded.MESSAGE)


def is_queued(repository_id: RepositoryId, project_id: ProjectId, cause: Cause) -> bool:
    """Returns whether the subject has an entry. Consistent."""
    return table.get(keys.queued_scan(repository_id, project_id.local, cause.subject)) is not None


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


def start_next(repository_id: RepositoryId, *, in_turn: bool = False, just_started: int = 0) -> bool:
    """Starts the repository's oldest queued scan, unless another one is active. Returns whether it did.

    in_turn: whether the organization's other repositories had their turn. If not, the scan starts only while half of
    what the plan allows is unused: a repository with many events must not take what the sweep gives out in turn.
    just_started: the number of the organization's scans that lists don't show yet.

    A scan also waits while the organization has as many running ones as its plan lets start by themselves, and while
    our App has no access to the repository or GitHub limits its requests.
    """
    for queued in list_queued(repository_id):
        item, organization = table.batch_get(
            [keys.repository(*repository_id.location), keys.organization(repository_id.organization_id)]
        )
        plan = organization["plan"] if organization else ""
        repository = RepositoryItem.from_item(item) if item else None
        link = repository.find_link(queued.project_id) if repository else None
        if item is None or repository is None or not plan or not is_wanted(queued.cause, link, plan):
            drop(queued)
            continue
        if item.get("activeRequestId") or _must_wait(repository):
            return False
        most = PLANS[plan].automatic_scans
        if _has_enough(repository_id.organization_id, (most if in_turn else most // 2) - just_started):
            return False
        if link is not None:
            try:
                return _start(repository, link, queued)
            except (ProjectGone, UnknownRepository):
                drop(queued)
    return False


def _must_wait(repository: RepositoryItem) -> bool:
    """Returns whether the code host wouldn't let us read the repository. Then a scan could only fail."""
    return repository.access_lost_at is not None or installations.seconds_left(repository.installation_id) > 0


def _has_enough(organization_id: str, most: int) -> bool:
    """Returns whether the organization has that many scans. Lists lag, so there may be a few more."""
    return most <= 0 or any(
        len(reads.list_scans(organization_id, most, None, status=status).items) >= most
        for status in ("running", "queued")
    )


def _start(repository: RepositoryItem, link: Link, queued: QueuedScan) -> bool:
    try:
        _, message = requests.create_request(
            repository, link, requested_by="", extra_legs={"queued": queued.taken_leg()}, cause=queued.cause
        )
    except (requests.ScanInProgress, LegFailed):
        return False  # another scan, another process that starts this one, or a newer entry was faster
    messages.dispatch(message)
    return True


# Steps of the sweep


def start_queued(run: SweepRun) -> None:
    """Starts queued scans, at most one for each repository. Runs as a step of the sweep.

    Repositories take turns: the one whose last turn is the longest ago is first.
    """
    waiting: dict[RepositoryId, Mapping[str, Any]] = {}
    for entry in run.entries(keys.SCAN_QUEUE_PKS):
        with run.isolating(entry):
            waiting[RepositoryId.stored(entry["repositoryId"])] = entry
    last_turns = find_last_turns(waiting)
    started: Counter[str] = Counter()
    for repository_id in sorted(last_turns, key=lambda it: (last_turns[it], it)):
        if run.is_over:
            run.unfinished = True
            break
        with run.isolating(waiting[repository_id]):
            organization_id = repository_id.organization_id
            started[organization_id] += start_next(repository_id, in_turn=True, just_started=started[organization_id])
    run.finished += started.total()


def queue_scheduled(run: SweepRun) -> None:
    """Queues the scans that are due by their link's schedule, and replaces their entries by the next ones.

    Runs as a step of the sweep. Runs that were missed, because no sweep ran, are made up for by one scan.
    """
    for entry in run.entries(keys.SCAN_SCHEDULE_PKS, before=clock.timestamp()):
        with run.isolating(entry):
            repository_id, project_id = RepositoryId.stored(entry["repositoryId"]), ProjectId.stored(entry["projectId"])
            repository = repositories.find_repository(repository_id)
            link = repository.find_link(project_id) if repository else None
            key = Key(entry["pk"], entry["sk"])
            at = datetime.fromisoformat(entry["sk"].partition("#")[0]).timestamp()
            if not link or not link.schedule or next_run(link.schedule, repository_id, project_id, at - 1) != at:
                table.delete(Delete(key), Unrecorded.MESSAGE)
                continue
            legs: dict[str, Leg] = {
                "due": Delete(key, "attribute_exists(pk)"),
                **link.schedule_legs(repository_id),
                "repository": Check(keys.repository(*repository_id.location), "attribute_exists(pk)"),
                "scan": Put(QueuedScan.of(repository_id, project_id, Cause("scheduled")).to_item()),
            }
            try:
                table.transact(legs, Unrecorded.MESSAGE)
            except LegFailed:
                continue  # another sweep was faster, or the repository was disconnected
            run.finished += 1
