"""A connected repository as one item of the table, with its links to the projects that are built from it.

The item also names the repository's requested or running scan: see `scans`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Final, NamedTuple, TypedDict

from controlplane.platform.core import clock
from controlplane.platform.core.actions import Action
from controlplane.platform.core.ids import ProjectId, RepositoryId
from controlplane.platform.core.priorities import Priority
from controlplane.platform.core.schedules import Schedule, next_run
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.stored import SPARSE, StoredItem, StoredMap
from controlplane.platform.table.table import Leg, Put, Recorded

DEFAULT_FAILURE_THRESHOLD: Final = "P1"


class LinkSettings(TypedDict, total=False):
    """The settings of a link to change; absent keys keep their values."""

    production_branch: str | None
    root_directory: str | None
    pull_request_scans_enabled: bool
    scan_on_push: bool
    schedule: Schedule | None
    failure_threshold: Priority


class Link(NamedTuple):
    """A project built from the repository. A branch of None means the repository's default branch.

    A new finding whose priority is `failure_threshold` or more urgent fails the check of its pull request.
    """

    project_id: ProjectId
    production_branch: str | None
    root_directory: str | None
    pull_request_scans_enabled: bool
    scan_on_push: bool = False
    schedule: Schedule | None = None
    failure_threshold: Priority = DEFAULT_FAILURE_THRESHOLD

    def next_scheduled_scan(self, repository_id: RepositoryId) -> float | None:
        """Returns the time of the next scheduled scan in Unix seconds, or None without a schedule."""
        if self.schedule is None:
            return None
        return next_run(self.schedule, repository_id, self.project_id, clock.now())

    def schedule_legs(self, repository_id: RepositoryId) -> dict[str, Leg]:
        """Returns the leg that makes the sweep start the next scheduled scan, if the link has a schedule.

        Its time follows from the schedule and the IDs. An entry at another time was written for an earlier schedule.
        """
        at = self.next_scheduled_scan(repository_id)
        if at is None:
            return {}
        key = keys.scheduled_scan(clock.timestamp(at), repository_id, self.project_id.local)
        return {"schedule": Put({**key._asdict(), "repositoryId": repository_id, "projectId": self.project_id})}


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedRepository(StoredMap):
    """A repository as the code host describes it.

    hosted_id: the code host's id, which stays the same if the repository is renamed. None: the operator connected it by
    name.
    """

    hosted_id: Annotated[int | None, SPARSE] = None
    installation_id: int
    owner: str
    name: str
    html_url: str
    default_branch: str | None
    visibility: str

    @property
    def described(self) -> dict[str, Any]:
        """Returns the attributes that the code host determines."""
        return HostedRepository(**{it.name: getattr(self, it.name) for it in fields(HostedRepository)}).to_map()


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryItem(StoredItem, HostedRepository):
    """A connected repository, as the code host last described it.

    access_lost_at: when the code host said that our App no longer has access. None: it has.
    """

    repository_id: RepositoryId
    connected_at: str
    links: tuple[Link, ...]
    preview_used: bool
    access_lost_at: Annotated[str | None, SPARSE] = None

    @property
    def organization_id(self) -> str:
        return self.repository_id.organization_id

    @property
    def key(self) -> Key:
        return keys.repository(*self.repository_id.location)

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"

    def recorded(
        self,
        action: Action,
        resource: str | None = None,
        *,
        before: Mapping[str, Any] | None = None,
        after: Mapping[str, Any] | None = None,
    ) -> Recorded:
        """Returns the entry of a change of the repository, or of a resource of it, in the audit log."""
        changed = resource or self.repository_id
        return Recorded(action, self.organization_id, changed, self.full_name, before or {}, after or {})

    def find_link(self, project_id: str) -> Link | None:
        return next((link for link in self.links if link.project_id == project_id), None)
