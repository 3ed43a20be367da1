"""Response models of repositories and the projects that they are linked to."""

from typing import Self

from pydantic import Field

from code_audit.fields import PROJECT_ID, REPOSITORY_ID, TIME
from controlplane.code_host.items import Link, RepositoryItem
from controlplane.platform.core import clock
from controlplane.platform.core.priorities import Priority
from controlplane.platform.core.schedules import Schedule
from controlplane.platform.http.envelope import Wire
from controlplane.projects.items import ProjectItem


class LinkedProject(Wire):
    """A project that a repository is linked to."""

    project_id: str = Field(description="The project's ID.", examples=[PROJECT_ID])
    project_slug: str = Field(description="The name used in URLs.", examples=["shop"])
    project_name: str = Field(description="The display name.", examples=["Shop"])
    production_branch: str | None = Field(
        description="The branch to scan. Null means the repository's default branch.", examples=["main"]
    )
    root_directory: str | None = Field(
        description="The folder to scan. Null means the whole repository.", examples=["apps/web"]
    )
    pull_request_scans_enabled: bool = Field(description="Whether pull requests are to be scanned.")
    scan_on_push: bool = Field(description="Whether a push to the production branch starts a scan.")
    schedule: Schedule | None = Field(
        description="How often a scan starts by itself: `daily`, `weekly`, or null for never.", examples=["daily"]
    )
    failure_threshold: Priority = Field(
        description="The lowest priority of a new finding that fails the check of a pull request.", examples=["P1"]
    )
    next_scheduled_scan_at: str | None = Field(
        description="The time the next scheduled scan starts, or null without a `schedule`. The minute depends on the "
        "link, so that scans are spread over the day or the week.",
        **TIME,
    )

    @classmethod
    def of(cls, repository: RepositoryItem, link: Link, project: ProjectItem) -> Self:
        next_scan = link.next_scheduled_scan(repository.repository_id)
        return cls.showing(
            link,
            project_slug=project.slug,
            project_name=project.name,
            next_scheduled_scan_at=None if next_scan is None else clock.timestamp(next_scan),
        )


class Repository(Wire):
    """A source code repository that is connected to the organization."""

    id: str = Field(description="The repository's ID.", examples=[REPOSITORY_ID])
    organization_id: str = Field(description="The organization's ID.", examples=["org_3f8k2m9q7r1s5t6v"])
    owner: str = Field(description="The account that owns the repository on the code host.", examples=["acme"])
    name: str = Field(description="The repository's name on the code host.", examples=["shop"])
    html_url: str = Field(
        description="The repository's page on the code host.",
        json_schema_extra={"format": "uri"},
        examples=["https://github.com/acme/shop"],
    )
    default_branch: str | None = Field(description="The default branch on the code host.", examples=["main"])
    visibility: str = Field(
        description="The visibility on the code host: `public`, `private`, or `internal`.", examples=["private"]
    )
    connected_at: str | None = Field(description="The time the repository was connected.", **TIME)
    access_lost_at: str | None = Field(
        description="The time since which the GitHub App can no longer read the repository, or null if it can.",
        **TIME,
    )
    projects: list[LinkedProject] = Field(description="The projects that the repository is linked to.")

    @classmethod
    def of(cls, repository: RepositoryItem, projects: dict[str, ProjectItem]) -> Self:
        return cls.showing(
            repository,
            id=repository.repository_id,
            projects=[
                LinkedProject.of(repository, link, projects[link.project_id])
                for link in repository.links
                if link.project_id in projects
            ],
        )
