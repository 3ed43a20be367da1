"""When links are scanned by themselves. Each link with a schedule has an entry for its next time.

The times follow from the schedule and the ids. An entry at another time was written for an earlier schedule.
"""

from controlplane.platform.core import clock
from controlplane.platform.core.ids import ProjectId, RepositoryId
from controlplane.platform.core.schedules import Schedule, next_run
from controlplane.platform.table import keys
from controlplane.platform.table.table import Put


def entry_leg(schedule: Schedule, repository_id: RepositoryId, project_id: ProjectId) -> Put:
    """Returns the leg that writes the link's next entry, for the transaction that sets the schedule."""
    at = clock.timestamp(next_run(schedule, repository_id, project_id, clock.now()))
    key = keys.scheduled_scan(at, repository_id, project_id.local)
    return Put({**key._asdict(), "repositoryId": repository_id, "projectId": project_id})
