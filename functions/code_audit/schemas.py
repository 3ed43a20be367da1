"""Request and response models of `code_audit`."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field

from code_audit.finding_schemas import SCAN_ID, FindingsExpireAt
from code_audit.inventory_schemas import ScanInventory
from controlplane.core import clock
from controlplane.core.schedules import Schedule
from controlplane.http.envelope import Wire
from controlplane.rules.scans import RETRY_AFTER_SECONDS
from controlplane.store.inbox_items import Priority
from controlplane.store.project_items import ProjectItem
from controlplane.store.repositories import Link, RepositoryItem
from controlplane.store.scans.causes import Trigger
from controlplane.store.scans.inventories import Inventory
from controlplane.store.scans.items import STAGES, RequestItem, ScanItem, Stage

_TIME: dict[str, Any] = {"json_schema_extra": {"format": "date-time"}, "examples": ["2026-03-04T05:06:07.000Z"]}
REPOSITORY_ID = "rep_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"
_PREPARATION_ID = "spr_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"
_PROJECT_ID = "prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"


StageStatus = Annotated[str, Field(json_schema_extra={"enum": ["pending", "running", "completed", "failed"]})]
ScanStatus = Literal["queued", "running", "completed", "failed", "canceled"]


class LinkedProject(Wire):
    """A project that a repository is linked to."""

    project_id: str = Field(description="The project's ID.", examples=[_PROJECT_ID])
    project_slug: str = Field(description="The name used in URLs.", examples=["shop"])
    project_name: str = Field(description="The display name.", examples=["Shop"])
    production_branch: str | None = Field(
        description="The branch to scan. Null means the repository's default branch.", examples=["main"]
    )
    root_directory: str | None = Field(
        description="The folder to scan. Null means the whole repository.", examples=["apps/web"]
    )
    pull_request_scans_enabled: bool = Field(description="Whether pull requests are to be scanned.", examples=[False])
    scan_on_push: bool = Field(description="Whether a push to the production branch starts a scan.", examples=[False])
    schedule: Schedule | None = Field(
        description="How often a scan starts by itself: `daily`, `weekly`, or null for never.", examples=["daily"]
    )
    failure_threshold: Priority = Field(
        description="The lowest priority of a new finding that fails the check of a pull request.", examples=["P1"]
    )
    next_scheduled_scan_at: str | None = Field(
        description="The time the next scheduled scan starts, or null without a `schedule`. The minute depends on the "
        "link, so that scans are spread over the day or the week.",
        **_TIME,
    )

    @classmethod
    def of(cls, repository: RepositoryItem, link: Link, project: ProjectItem) -> Self:
        next_scan = link.next_scheduled_scan(repository.repository_id)
        return cls(
            project_id=project.project_id,
            project_slug=project.slug,
            project_name=project.name,
            production_branch=link.production_branch,
            root_directory=link.root_directory,
            pull_request_scans_enabled=link.pull_request_scans_enabled,
            scan_on_push=link.scan_on_push,
            schedule=link.schedule,
            failure_threshold=link.failure_threshold,
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
    connected_at: str | None = Field(description="The time the repository was connected.", **_TIME)
    access_lost_at: str | None = Field(
        description="The time since which the GitHub App can no longer read the repository, or null if it can.",
        **_TIME,
    )
    projects: list[LinkedProject] = Field(description="The projects that the repository is linked to.")

    @classmethod
    def of(cls, repository: RepositoryItem, projects: dict[str, ProjectItem]) -> Self:
        return cls(
            id=repository.repository_id,
            organization_id=repository.organization_id,
            owner=repository.owner,
            name=repository.name,
            html_url=repository.html_url,
            default_branch=repository.default_branch,
            visibility=repository.visibility,
            connected_at=repository.connected_at,
            access_lost_at=repository.access_lost_at,
            projects=[
                LinkedProject.of(repository, link, projects[link.project_id])
                for link in repository.links
                if link.project_id in projects
            ],
        )


class Progress(Wire):
    """The progress of a scan."""

    stage: Stage = Field(
        description="The current stage. Stages run in the order listed: `fetch` downloads the commit, `inventory` "
        "lists what the repository is made of, `analyze` searches for findings, and `publish` stores them.",
        examples=["analyze"],
    )
    stage_status: StageStatus | None = Field(description="The status of the stage.", examples=["running"])
    completed_stages: int | None = Field(
        description="The number of stages that have been completed. If the scan is interrupted, its stages run again; "
        "this number doesn't decrease.",
        ge=0,
        examples=[2],
    )
    total_stages: int | None = Field(description="The total number of stages.", ge=0, examples=[len(STAGES)])
    analyzed_files: int | None = Field(
        ge=0,
        description="While the stage `analyze` runs for more than a few seconds: the number of files that it is done "
        "with. Otherwise null.",
        examples=[1200],
    )
    files_to_analyze: int | None = Field(
        ge=0, description="The total for `analyzedFiles`. Null whenever that is null.", examples=[3650]
    )


class Reason(Wire):
    """The reason for a failure."""

    code: str = Field(description="The error code, for use in programs.", examples=["ARCHIVE_TOO_LARGE"])
    message: str = Field(
        description="The explanation, for people.", examples=["The repository is larger than a scan reads."]
    )


class CoveredKind(Wire):
    """The files of one kind."""

    name: str = Field(description="The kind of file.", examples=["ERB"])
    analyzed_files: int = Field(description="The number of files that were analyzed.", ge=0, examples=[61])
    unassessed_files: int = Field(
        description="The number of files that weren't: the analysis doesn't read this kind, or skipped them.",
        ge=0,
        examples=[2],
    )


class Coverage(Wire):
    """The files that a scan covered."""

    files: int = Field(ge=0, description="The number of files in the scanned folder.", examples=[412])
    analyzed_files: int = Field(description="The number of files that were analyzed.", ge=0, examples=[398])
    skipped: dict[str, int] = Field(
        description="The number of skipped files by reason.", examples=[{"too_large": 2, "minified": 12}]
    )
    kinds: list[CoveredKind] = Field(
        description="The kinds of files that can load something in a browser or an app, those with the most files "
        "first. A scan without findings says nothing about files that weren't assessed. Empty for scans of earlier "
        "releases."
    )


def expiry_of(scan: ScanItem) -> str | None:
    """Returns the time the scan's findings expire as an ISO 8601 timestamp, or None."""
    return None if scan.findings_expire_at is None else clock.timestamp(scan.findings_expire_at)


# A push isn't a trigger of its own, because clients know only these three.
_TRIGGERS: dict[Trigger, str] = {
    "manual": "manual",
    "push": "scheduled",
    "scheduled": "scheduled",
    "pull_request": "pull_request",
}


class Scan(Wire):
    """An analysis of a repository at a commit."""

    id: str = Field(description="The scan's ID.", examples=[SCAN_ID])
    organization_id: str = Field(description="The organization's ID.", examples=["org_3f8k2m9q7r1s5t6v"])
    repository_id: str = Field(description="The repository's ID.", examples=[REPOSITORY_ID])
    repository_name: str = Field(description="The repository's name.", examples=["shop"])
    branch: str | None = Field(description="The scanned branch.", examples=["main"])
    head_commit_sha: str | None = Field(
        description="The scanned commit.", examples=["1f0c2b9e7d3a4a559a516f1f8f0c9a11d2e3f4a5"]
    )
    pull_request_number: int | None = Field(
        description="The scanned pull request, or null if the scan isn't of one.", ge=1, examples=[None]
    )
    scope: str = Field(description="The scope of the scan: `repository`.", examples=["repository"])
    trigger: str = Field(
        description="What triggered the scan: `manual`, `pull_request`, or `scheduled`, which is also a push to the "
        "production branch.",
        examples=["manual"],
    )
    status: ScanStatus = Field(description="The status of the scan.", examples=["completed"])
    access: Literal["full", "free-preview", "locked"] = Field(
        description="Which findings are readable: all, the three most urgent, or none.", examples=["free-preview"]
    )
    unlock_credits: int | None = Field(
        ge=0,
        description="The price of unlocking all findings, in credits. Null if nothing is left to unlock.",
        examples=[50],
    )
    finding_count: int | None = Field(
        ge=0, description="The number of places found in the code. Null until the scan is completed.", examples=[21]
    )
    issue_count: int | None = Field(
        ge=0,
        description="The number of distinct findings: the same code in several places of a file counts once. Null "
        "until the scan is completed.",
        examples=[17],
    )
    progress: Progress | None = Field(description="The progress of the scan.")
    created_at: str = Field(description="The time the scan was created.", **_TIME)
    started_at: str | None = Field(description="The time the first stage started.", **_TIME)
    completed_at: str | None = Field(description="The time the scan ended, successfully or not.", **_TIME)
    failure: Reason | None = Field(description="The reason the scan failed, or null if it didn't.", examples=[None])
    coverage: Coverage | None = Field(description="The files that the scan covered. Null until the scan is completed.")
    findings_expire_at: FindingsExpireAt

    @classmethod
    def of(cls, scan: ScanItem, **more: Any) -> Self:
        progress, coverage, failure = scan.progress, scan.coverage, scan.failure
        return cls(
            id=scan.scan_id,
            organization_id=scan.organization_id,
            repository_id=scan.repository_id,
            repository_name=scan.repository_name,
            branch=scan.branch,
            head_commit_sha=scan.head_commit_sha,
            pull_request_number=scan.cause.pull_request_number,
            scope="repository",
            trigger=_TRIGGERS[scan.cause.trigger],
            status=scan.status,
            access=scan.access,
            unlock_credits=None if scan.findings_expired else scan.unlock_credits,
            finding_count=scan.finding_count,
            issue_count=scan.issue_count,
            progress=Progress(
                stage=progress.stage,
                stage_status=progress.stage_status,
                completed_stages=progress.completed_stages,
                total_stages=len(STAGES),
                analyzed_files=progress.analyzed_files,
                files_to_analyze=progress.files_to_analyze,
            ),
            created_at=scan.created_at,
            started_at=scan.started_at,
            completed_at=scan.completed_at,
            failure=Reason(code=failure.code, message=failure.message) if failure else None,
            coverage=Coverage(
                files=coverage.files,
                analyzed_files=coverage.analyzed_files,
                skipped=dict(coverage.skipped),
                kinds=[
                    CoveredKind(name=it.name, analyzed_files=it.analyzed_files, unassessed_files=it.unassessed_files)
                    for it in coverage.kinds
                ],
            )
            if coverage
            else None,
            findings_expire_at=expiry_of(scan),
            **more,
        )


class ScanDetail(Scan):
    """A scan, with the inventory of its repository."""

    inventory: ScanInventory | None = Field(
        description="What the repository is made of. Null until the stage `inventory` is completed, and for scans from "
        "before inventories were taken."
    )

    @classmethod
    def with_inventory(cls, scan: ScanItem, inventory: Inventory | None) -> Self:
        return cls.of(scan, inventory=ScanInventory.of(scan, inventory) if inventory else None)


class ScanCreate(Wire):
    """A scan to start."""

    repository_id: str = Field(
        description="The ID of a connected repository.", min_length=1, max_length=100, examples=[REPOSITORY_ID]
    )
    project_id: Annotated[str, Field(min_length=1, max_length=100)] = Field(
        default_factory=str,
        description="The linked project whose production branch and folder to scan. Defaults to the first one.",
        examples=[_PROJECT_ID],
    )


class ScanStarted(Wire):
    """A scan request whose scan exists."""

    status: Literal["started"] = Field(description="Identifies the variant of this response.", examples=["started"])
    scan: Scan


class ScanStarting(Wire):
    """A scan request whose scan doesn't exist yet. Poll it."""

    status: Literal["starting"] = Field(description="Identifies the variant of this response.", examples=["starting"])
    preparation_id: str = Field(
        description="The ID for `GET /v1/code-audit/scan-requests/{preparationId}`.", examples=[_PREPARATION_ID]
    )
    repository_id: str = Field(description="The repository's ID.", examples=[REPOSITORY_ID])
    created_at: str = Field(description="The time the scan was requested.", **_TIME)
    retry_after_seconds: int = Field(
        description="Seconds to wait before polling again.", ge=1, examples=[RETRY_AFTER_SECONDS]
    )

    @classmethod
    def of(cls, request: RequestItem) -> Self:
        return cls(
            status="starting",
            preparation_id=request.request_id,
            repository_id=request.repository_id,
            created_at=request.created_at,
            retry_after_seconds=RETRY_AFTER_SECONDS,
        )


class ScanNotStarted(Wire):
    """A scan request that failed because the branch couldn't be read. There will be no scan."""

    status: Literal["failed"] = Field(description="Identifies the variant of this response.", examples=["failed"])
    preparation_id: str = Field(description="The scan request's ID.", examples=[_PREPARATION_ID])
    repository_id: str = Field(description="The repository's ID.", examples=[REPOSITORY_ID])
    error: Reason


class Unlocked(Wire):
    """The result of unlocking a scan."""

    status: Literal["unlocked", "already-unlocked"] = Field(
        description="`already-unlocked` if the scan, or another one of the same report, was unlocked before; "
        "nothing was charged.",
        examples=["unlocked"],
    )
