"""A connected repository as one item of the table, with its links to the projects that are built from it.

The item also names the repository's requested or running scan: see `scans`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self, TypedDict

from controlplane.platform.core import clock, ids
from controlplane.platform.core.actions import Action
from controlplane.platform.core.ids import ProjectId, RepositoryId
from controlplane.platform.core.priorities import Priority
from controlplane.platform.core.schedules import Schedule, next_run
from controlplane.platform.table import keys
from controlplane.platform.table.codec import present
from controlplane.platform.table.table import Recorded

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

    def to_item(self) -> dict[str, Any]:
        # A link equals its stored form when it is read again. The condition of `_replace_links` depends on that.
        return {
            "projectId": self.project_id,
            "productionBranch": self.production_branch,
            "rootDirectory": self.root_directory,
            "pullRequestScansEnabled": self.pull_request_scans_enabled,
            **present(
                scanOnPush=self.scan_on_push or None,
                schedule=self.schedule,
                failureThreshold=None
                if self.failure_threshold == DEFAULT_FAILURE_THRESHOLD
                else self.failure_threshold,
            ),
        }

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        return cls(
            project_id=ProjectId.stored(item["projectId"]),
            production_branch=item["productionBranch"],
            root_directory=item["rootDirectory"],
            pull_request_scans_enabled=item["pullRequestScansEnabled"],
            scan_on_push=item.get("scanOnPush", False),
            schedule=item.get("schedule"),
            failure_threshold=item.get("failureThreshold", DEFAULT_FAILURE_THRESHOLD),
        )

    def next_scheduled_scan(self, repository_id: RepositoryId) -> float | None:
        """Returns the time of the next scheduled scan in Unix seconds, or None without a schedule."""
        if self.schedule is None:
            return None
        return next_run(self.schedule, repository_id, self.project_id, clock.now())


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedRepository:
    """A repository as the code host describes it.

    hosted_id: the code host's id, which stays the same if the repository is renamed. None: the operator connected it by
    name.
    """

    hosted_id: int | None = None
    installation_id: int
    owner: str
    name: str
    html_url: str
    default_branch: str | None
    visibility: str

    def to_item(self) -> dict[str, Any]:
        return {
            "installationId": self.installation_id,
            "owner": self.owner,
            "name": self.name,
            "htmlUrl": self.html_url,
            "defaultBranch": self.default_branch,
            "visibility": self.visibility,
            **present(hostedId=self.hosted_id),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryItem(HostedRepository):
    """A connected repository, as the code host last described it.

    access_lost_at: when the code host said that our App no longer has access. None: it has.
    """

    repository_id: RepositoryId
    connected_at: str
    links: tuple[Link, ...]
    preview_used: bool
    access_lost_at: str | None = None

    @property
    def organization_id(self) -> str:
        return self.repository_id.organization_id

    @property
    def location(self) -> ids.Located:
        return self.repository_id.location

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

    def to_item(self) -> dict[str, Any]:
        return {
            **keys.repository(*self.location)._asdict(),
            "repositoryId": self.repository_id,
            "organizationId": self.organization_id,
            **HostedRepository.to_item(self),
            "connectedAt": self.connected_at,
            "links": [link.to_item() for link in self.links],
            "previewUsed": self.preview_used,
            **present(accessLostAt=self.access_lost_at),
        }

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        return cls(
            repository_id=RepositoryId.stored(item["repositoryId"]),
            installation_id=item["installationId"],
            owner=item["owner"],
            name=item["name"],
            html_url=item["htmlUrl"],
            default_branch=item["defaultBranch"],
            visibility=item["visibility"],
            connected_at=item["connectedAt"],
            links=tuple(Link.from_item(link) for link in item["links"]),
            preview_used=item["previewUsed"],
            hosted_id=item.get("hostedId"),
            access_lost_at=item.get("accessLostAt"),
        )
