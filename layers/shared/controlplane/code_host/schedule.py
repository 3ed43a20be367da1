"""When links are scanned by themselves. Each link with a schedule has an entry for its next time.

The times follow from the schedule and the ids. An entry at another time was written for an earlier schedule.
"""

from collections.abc import Callable
from datetime import datetime

from controlplane.platform.core import clock
from controlplane.platform.core.ids import ProjectId, RepositoryId
from controlplane.platform.core.schedules import Schedule, next_run
from controlplane.platform.queues.sweep_runs import SweepRun
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.table import Check, Delete, Leg, LegFailed, Put, Unrecorded, table


def entry_leg(schedule: Schedule, repository_id: RepositoryId, project_id: ProjectId) -> Put:
    """Returns the leg that writes the link's next entry, for the transaction that sets the schedule."""
    at = clock.timestamp(next_run(schedule, repository_id, project_id, clock.now()))
    key = keys.scheduled_scan(at, repository_id, project_id.local)
    return Put({**key._asdict(), "repositoryId": repository_id, "projectId": project_id})


def take_due(
    run: SweepRun,
    schedule_of: Callable[[RepositoryId, ProjectId], Schedule | None],
    enqueued: Callable[[RepositoryId, ProjectId], Put],
) -> None:
    """Queues the scans that are due, and replaces their entries by the next ones, as a step of the sweep.

    Runs that were missed, because no sweep ran, are made up for by one scan. enqueued: returns the leg that queues it.
    """
    for entry in run.entries(keys.SCAN_SCHEDULE_PKS, before=clock.timestamp()):
        with run.isolating(entry):
            repository_id, project_id = RepositoryId.stored(entry["repositoryId"]), ProjectId.stored(entry["projectId"])
            schedule = schedule_of(repository_id, project_id)
            key = Key(entry["pk"], entry["sk"])
            at = datetime.fromisoformat(entry["sk"].partition("#")[0]).timestamp()
            if schedule is None or next_run(schedule, repository_id, project_id, at - 1) != at:
                table.delete(Delete(key), Unrecorded.MESSAGE)
                continue
            legs: dict[str, Leg] = {
                "due": Delete(key, "attribute_exists(pk)"),
                "next": entry_leg(schedule, repository_id, project_id),
                "repository": Check(keys.repository(*repository_id.location), "attribute_exists(pk)"),
                "scan": enqueued(repository_id, project_id),
            }
            try:
                table.transact(legs, Unrecorded.MESSAGE)
            except LegFailed:
                continue  # another sweep was faster, or the repository was disconnected
            run.finished += 1
