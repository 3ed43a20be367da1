"""What `code_audit` takes and answers."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, JsonValue

from controlplane import clock
from controlplane.envelope import Wire
from controlplane.store.findings import Finding
from controlplane.store.inbox import InboxItem, Priority, Status
from controlplane.store.project_items import ProjectItem
from controlplane.store.repositories import RepositoryItem
from controlplane.store.scan_requests import RequestItem
from controlplane.store.scans import STAGES, ScanItem, Stage

_TIME: dict[str, Any] = {"json_schema_extra": {"format": "date-time"}, "examples": ["2026-03-04T05:06:07.000Z"]}
REPOSITORY_ID = "rep_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"
_SCAN_ID = "scn_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"
_PREPARATION_ID = "spr_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"
_FINGERPRINT = "77abf0c21d9e4b6f8a35c1e8b2a6f013"
_PROJECT_ID = "prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"

FindingsExpireAt = Annotated[
    str | None,
    Field(
        description="When the findings expire, or did. Null while no later scan of the same project is completed.",
        json_schema_extra={"format": "date-time"},
        examples=[None],
    ),
]

RETRY_AFTER_SECONDS = 2

# What the analysis knows; a test holds them against it.
CATEGORIES: list[JsonValue] = ["trackers", "cookies", "secrets", "banner", "personal-data", "outdated"]
SEVERITIES: list[JsonValue] = ["critical", "high", "medium", "low"]

StageStatus = Annotated[str, Field(json_schema_extra={"enum": ["pending", "running", "completed", "failed"]})]
ScanStatus = Literal["queued", "running", "completed", "failed", "canceled"]


class LinkedProject(Wire):
    """A project that a repository is linked to."""

    project_id: str = Field(description="The project's id.", examples=[_PROJECT_ID])
    project_slug: str = Field(description="Its name in addresses.", examples=["shop"])
    project_name: str = Field(description="Its name for people.", examples=["Shop"])
    production_branch: str | None = Field(
        description="The branch that is scanned. Null: the repository's default branch.", examples=["main"]
    )
    root_directory: str | None = Field(
        description="The folder that is scanned. Null: the whole repository.", examples=["apps/web"]
    )
    pull_request_scans_enabled: bool = Field(description="Whether pull requests are to be scanned.", examples=[False])


class Repository(Wire):
    """A source repository that is connected to the organization."""

    id: str = Field(description="The repository's id.", examples=[REPOSITORY_ID])
    organization_id: str = Field(description="The organization's id.", examples=["org_3f8k2m9q7r1s5t6v"])
    owner: str = Field(description="The account at the code host.", examples=["acme"])
    name: str = Field(description="Its name at the code host.", examples=["shop"])
    html_url: str = Field(
        description="Where people see it.",
        json_schema_extra={"format": "uri"},
        examples=["https://github.com/acme/shop"],
    )
    default_branch: str | None = Field(description="The branch that the code host shows first.", examples=["main"])
    visibility: str = Field(
        description="Who sees it at the code host: `public`, `private` or `internal`.", examples=["private"]
    )
    connected_at: str | None = Field(description="When it was connected.", **_TIME)
    projects: list[LinkedProject] = Field(description="The projects it is linked to.")

    @classmethod
    def of(cls, repository: RepositoryItem, projects: dict[str, ProjectItem]) -> Self:
        linked = [(link, projects[link.project_id]) for link in repository.links if link.project_id in projects]
        return cls(
            id=repository.repository_id,
            organization_id=repository.organization_id,
            owner=repository.owner,
            name=repository.name,
            html_url=repository.html_url,
            default_branch=repository.default_branch,
            visibility=repository.visibility,
            connected_at=repository.connected_at,
            projects=[
                LinkedProject(
                    project_id=project.project_id,
                    project_slug=project.slug,
                    project_name=project.name,
                    production_branch=link.production_branch,
                    root_directory=link.root_directory,
                    pull_request_scans_enabled=link.pull_request_scans_enabled,
                )
                for link, project in linked
            ],
        )


class Progress(Wire):
    """How far a scan has come."""

    stage: Stage = Field(description="The stages follow each other in this order.", examples=["analyze"])
    stage_status: StageStatus | None = Field(description="Where the stage stands.", examples=["running"])
    completed_stages: int | None = Field(description="How many stages are done.", ge=0, examples=[2])
    total_stages: int | None = Field(description="How many there are.", ge=0, examples=[len(STAGES)])


class Reason(Wire):
    """Why something failed."""

    code: str = Field(description="What a program decides by.", examples=["ARCHIVE_TOO_LARGE"])
    message: str = Field(description="The same for people.", examples=["The repository is larger than a scan reads."])


class Coverage(Wire):
    """What a scan looked at."""

    files: int = Field(ge=0, description="Files in the scanned folder.", examples=[412])
    analyzed_files: int = Field(description="Those of them that were analyzed.", ge=0, examples=[398])
    skipped: dict[str, int] = Field(
        description="How many files were left out, by reason.", examples=[{"too_large": 2, "minified": 12}]
    )


def expiry_of(scan: ScanItem) -> str | None:
    """When the scan's findings expire, as the wire has times."""
    return None if scan.findings_expire_at is None else clock.timestamp(scan.findings_expire_at)


class Scan(Wire):
    """One analysis of a repository at a commit."""

    id: str = Field(description="The scan's id.", examples=[_SCAN_ID])
    organization_id: str = Field(description="The organization's id.", examples=["org_3f8k2m9q7r1s5t6v"])
    repository_id: str = Field(description="The repository's id.", examples=[REPOSITORY_ID])
    repository_name: str = Field(description="The repository's name.", examples=["shop"])
    branch: str | None = Field(description="The branch that is scanned.", examples=["main"])
    head_commit_sha: str | None = Field(
        description="The commit that is scanned.", examples=["1f0c2b9e7d3a4a559a516f1f8f0c9a11d2e3f4a5"]
    )
    pull_request_number: int | None = Field(
        description="The pull request that is scanned, if one is.", ge=1, examples=[None]
    )
    scope: str = Field(description="What is scanned: `repository`.", examples=["repository"])
    trigger: str = Field(description="What started it: `manual`.", examples=["manual"])
    status: ScanStatus = Field(description="Where the scan stands.", examples=["completed"])
    access: Literal["full", "free-preview", "locked"] = Field(
        description="How much of the findings can be read: all, the 3 most urgent, or none.", examples=["free-preview"]
    )
    unlock_credits: int | None = Field(
        ge=0, description="What reading all of them costs. Null where nothing is left to unlock.", examples=[50]
    )
    finding_count: int | None = Field(
        ge=0, description="Places in the code that were found. Null until the scan is completed.", examples=[21]
    )
    issue_count: int | None = Field(
        ge=0,
        description="Different findings: the same code at several places of a file counts once. Null until the scan "
        "is completed.",
        examples=[17],
    )
    progress: Progress | None = Field(description="How far it has come.")
    created_at: str = Field(description="When it was created.", **_TIME)
    started_at: str | None = Field(description="When its first stage began.", **_TIME)
    completed_at: str | None = Field(description="When it ended, however it did.", **_TIME)
    failure: Reason | None = Field(description="Why the scan failed.", examples=[None])
    coverage: Coverage | None = Field(description="Null until the scan is completed.")
    findings_expire_at: FindingsExpireAt

    @classmethod
    def of(cls, scan: ScanItem) -> Self:
        progress, coverage, failure = scan.progress, scan.coverage, scan.failure
        return cls(
            id=scan.scan_id,
            organization_id=scan.organization_id,
            repository_id=scan.repository_id,
            repository_name=scan.repository_name,
            branch=scan.branch,
            head_commit_sha=scan.head_commit_sha,
            pull_request_number=None,
            scope="repository",
            trigger="manual",
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
            ),
            created_at=scan.created_at,
            started_at=scan.started_at,
            completed_at=scan.completed_at,
            failure=Reason(code=failure.code, message=failure.message) if failure else None,
            coverage=Coverage(
                files=coverage.files, analyzed_files=coverage.analyzed_files, skipped=dict(coverage.skipped)
            )
            if coverage
            else None,
            findings_expire_at=expiry_of(scan),
        )


class ScanCreate(Wire):
    """What to scan."""

    repository_id: str = Field(
        description="One of the connected repositories.", min_length=1, max_length=100, examples=[REPOSITORY_ID]
    )
    project_id: Annotated[str, Field(min_length=1, max_length=100)] = Field(
        default_factory=str,
        description="The linked project whose production branch and folder are scanned. Without it: the first one.",
        examples=[_PROJECT_ID],
    )


class ScanStarted(Wire):
    """The scan exists."""

    status: Literal["started"] = Field(description="Tells the forms of this answer apart.", examples=["started"])
    scan: Scan


class ScanStarting(Wire):
    """The scan does not exist yet: ask again."""

    status: Literal["starting"] = Field(description="Tells the forms of this answer apart.", examples=["starting"])
    preparation_id: str = Field(
        description="For `GET /v1/code-audit/scan-requests/{preparationId}`.", examples=[_PREPARATION_ID]
    )
    repository_id: str = Field(description="The repository's id.", examples=[REPOSITORY_ID])
    created_at: str = Field(description="When the scan was asked for.", **_TIME)
    retry_after_seconds: int = Field(
        description="Seconds to wait before asking again.", ge=1, examples=[RETRY_AFTER_SECONDS]
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
    """There will be no scan: its branch could not be read."""

    status: Literal["failed"] = Field(description="Tells the forms of this answer apart.", examples=["failed"])
    preparation_id: str = Field(description="The scan request's id.", examples=[_PREPARATION_ID])
    repository_id: str = Field(description="The repository's id.", examples=[REPOSITORY_ID])
    error: Reason


class Location(Wire):
    """Where in the repository a finding is."""

    path: str = Field(description="The file, from the repository's root.", examples=["apps/web/src/app.tsx"])
    start_line: int = Field(ge=1, description="From 1.", examples=[12])
    end_line: int = Field(description="The last line.", ge=1, examples=[14])
    start_column: int = Field(ge=1, description="From 1.", examples=[5])
    end_column: int = Field(description="The column behind the last character.", ge=1, examples=[7])
    snippet: str = Field(description="The code itself.", examples=["gtag('config', 'G-123')"])
    permalink: str = Field(
        description="The lines at the scanned commit.",
        json_schema_extra={"format": "uri"},
        examples=["https://github.com/acme/shop/blob/1f0c2b9e/apps/web/src/app.tsx#L12-L14"],
    )


class Issue(Wire):
    """One finding of a scan."""

    id: str = Field(description="The finding's id within its scan.", examples=[f"{_SCAN_ID}:{_FINGERPRINT[:16]}"])
    scan_id: str = Field(description="The scan's id.", examples=[_SCAN_ID])
    fingerprint: str = Field(
        description="The same in every scan of the repository that finds it, wherever its lines have moved.",
        examples=[_FINGERPRINT],
    )
    rule_id: str = Field(description="The rule that found it.", examples=["analytics-loaded"])
    title: str = Field(
        description="What was found, in a few words.", examples=["Google Analytics is loaded before consent"]
    )
    description: str = Field(
        description="What it means, and why it matters.",
        examples=["Google Analytics starts with the page and recognises the visitor from then on."],
    )
    category: str = Field(
        description="What kind of finding it is.", examples=["trackers"], json_schema_extra={"enum": CATEGORIES}
    )
    severity: str = Field(
        description="How bad it is by its rule.", examples=["high"], json_schema_extra={"enum": SEVERITIES}
    )
    priority: Priority = Field(examples=["P1"])
    status: Status = Field(description="What people decided in the inbox.", examples=["open"])
    inbox_item_id: str | None = Field(
        description="Its item in the inbox.", examples=["inb_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"]
    )
    location: Location
    remediation: str = Field(
        description="How to fix it.",
        examples=["Load Google Analytics only after the visitor has agreed to analytics."],
    )
    references: list[str] = Field(
        description="Where to read more.", examples=[["https://eur-lex.europa.eu/eli/dir/2002/58/oj"]]
    )
    first_seen_at: str = Field(description="When a scan of the repository first found it.", **_TIME)

    @classmethod
    def of(cls, scan: ScanItem, finding: Finding, item: InboxItem | None) -> Self:
        place = finding.location
        return cls.model_validate(
            {
                "id": f"{scan.scan_id}:{finding.fingerprint[:16]}",
                "scan_id": scan.scan_id,
                "fingerprint": finding.fingerprint,
                "rule_id": finding.rule_id,
                "title": finding.title,
                "description": finding.description,
                "category": finding.category,
                "severity": finding.severity,
                "priority": finding.priority,
                "status": item.status if item else "open",
                "inbox_item_id": item.item_id if item else None,
                "location": Location(**place._asdict()),
                "remediation": finding.remediation,
                "references": list(finding.references),
                "first_seen_at": finding.first_seen_at,
            }
        )


class ScanIssues(Wire):
    """The findings of a scan."""

    issues: list[Issue] = Field(description="The findings that can be read, most urgent first.")
    locked_count: int = Field(description="How many more there are.", ge=0, examples=[14])
    unlock_credits: int | None = Field(ge=0, description="What reading those costs.", examples=[50])
    expired_count: int = Field(
        ge=0, description="How many findings the scan had, once they have expired; 0 until then.", examples=[0]
    )
    findings_expire_at: FindingsExpireAt


class Unlocked(Wire):
    """Whether this call unlocked the findings."""

    status: Literal["unlocked", "already-unlocked"] = Field(
        description="`already-unlocked` where nothing was charged.", examples=["unlocked"]
    )
