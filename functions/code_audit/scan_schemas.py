"""Response models of scans and their inventories."""

from typing import Annotated, Any, Self

from pydantic import Field

from code_audit.fields import REPOSITORY_ID, SCAN_ID, TIME, FindingsExpireAt, expiry_of
from controlplane.platform.http.envelope import Wire
from controlplane.platform.http.fields import Reason
from controlplane.scans.items import STAGES, Access, ScanItem, Stage, Status
from controlplane.scans.reads import Inventory


class InventoryLanguage(Wire):
    """A language of the repository."""

    name: str = Field(description="The language's name.", examples=["TypeScript"])
    files: int = Field(description="The number of its files.", ge=1, examples=[310])
    bytes: int = Field(description="The total size of its files.", ge=0, examples=[912345])


class InventoryTechnology(Wire):
    """A framework or a package manager that the repository uses."""

    id: str = Field(description="The ID in the service's list.", examples=["nextjs"])
    name: str = Field(description="The name.", examples=["Next.js"])
    version: str | None = Field(
        description="The version as a manifest names it, which may be a range. Null if none does.", examples=["^15.3.0"]
    )
    path: str = Field(
        description="The file that shows it, relative to the repository's root. If there are several, the one nearest "
        "to the root.",
        examples=["apps/web/package.json"],
    )


class InventoryPackage(Wire):
    """A package of a vendor in a manifest of the repository."""

    name: str = Field(description="The package's name.", examples=["posthog-js"])
    version: str | None = Field(
        description="The version as the manifest names it, which may be a range. Null if it names none.",
        examples=["^1.2.0"],
    )
    path: str = Field(
        description="The manifest, relative to the repository's root.", examples=["apps/web/package.json"]
    )


class InventoryVendor(Wire):
    """A third party whose code the repository uses."""

    id: str = Field(description="The vendor's ID in the service's catalog.", examples=["posthog"])
    name: str = Field(description="The vendor's name.", examples=["PostHog"])
    category: str = Field(description="What the vendor's code is for.", examples=["analytics"])
    packages: list[InventoryPackage] = Field(description="Up to three of its packages that manifests name.")
    hosts: list[str] = Field(
        description="Up to three hosts that the code loads it from. Empty unless `access` is `full`.",
        examples=[["eu.posthog.com"]],
    )
    loading_files: int | None = Field(
        description="The number of analyzed files that load it, whether or not they wait for consent. Null until the "
        "stage `analyze` is completed, unless `access` is `full`, and for kinds of vendors that the analysis doesn't "
        "look for, such as payment providers.",
        ge=0,
        examples=[2],
    )

    ungated_files: int | None = Field(
        description="The number of those files that load it without waiting for consent. Null whenever `loadingFiles` "
        "is null.",
        ge=0,
        examples=[1],
    )


class ScanInventory(Wire):
    """The contents of a scanned repository: its languages, frameworks, package managers, and vendors."""

    files: int = Field(description="The number of files in the scanned folder.", ge=0, examples=[412])
    languages: list[InventoryLanguage] = Field(
        description="The programming and template languages, those with the most files first. Counts all files except "
        "vendored and generated ones, also those in languages that aren't analyzed."
    )
    frameworks: list[InventoryTechnology] = Field(description="The frameworks, by name.")
    package_managers: list[InventoryTechnology] = Field(description="The package managers, by name.")
    vendors: list[InventoryVendor] = Field(
        description="The third parties that manifests name, in the order of their names. If the scan's `access` is "
        "`full`, also those that only the code loads, because they can reveal findings."
    )
    truncated: bool = Field(description="Whether the repository has more manifests or vendors than an inventory lists.")


StageStatus = Annotated[
    str, Field(json_schema_extra={"enum": ["pending", "running", "completed", "failed", "canceled"]})
]


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
        "with. Null at other times.",
        examples=[1200],
    )
    files_to_analyze: int | None = Field(
        ge=0, description="The total for `analyzedFiles`. Null whenever that is null.", examples=[3650]
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

    files: int = Field(
        ge=0,
        description="The number of files in the scanned folder, or in the part that was read: see `incomplete`.",
        examples=[412],
    )
    analyzed_files: int = Field(description="The number of files that were analyzed.", ge=0, examples=[398])
    skipped: dict[str, int] = Field(
        description="The number of skipped files by reason.", examples=[{"too_large": 2, "minified": 12}]
    )
    kinds: list[CoveredKind] = Field(
        description="The kinds of files that can load something in a browser or an app, those with the most files "
        "first. A scan without findings says nothing about files that weren't assessed."
    )
    incomplete: str | None = Field(
        description="What the scan left out because the repository is too large, for people. Null if nothing. "
        "Findings in files that weren't analyzed stay as they are.",
        examples=[None],
    )
    suppressed: dict[str, dict[str, int]] = Field(
        description="The number of findings that a `comment`, `rule`, or `vendor` suppresses, by rule.",
        examples=[{"comment": {"session-replay-loaded": 2}}],
    )
    notes: list[str] = Field(
        description="Comments and settings without effect, for people.", examples=[["a.js, line 3: …"]]
    )


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
    scope: str = Field(
        description="What was scanned: `repository` or `pull_request`. The scan of a pull request has only the "
        "findings that the pull request adds.",
        examples=["repository"],
    )
    trigger: str = Field(
        description="What triggered the scan: `manual`, `push` (to the production branch), `scheduled`, or "
        "`pull_request`.",
        examples=["manual"],
    )
    status: Status = Field(description="The status of the scan.", examples=["completed"])
    access: Access = Field(
        description="Which findings are readable: all, up to three, or none. On plans without full scans, each scan is "
        "a free preview. New scans are never `locked`.",
        examples=["free-preview"],
    )
    unlock_credits: int | None = Field(
        ge=0,
        description="The price of unlocking all findings, in credits: 0 if a completed scan hides none. Null if all "
        "are unlocked or have expired, and for a scan that failed or was canceled.",
        examples=[50],
    )
    finding_count: int | None = Field(
        ge=0,
        description="The number of places in the code with findings. Null until the scan is completed.",
        examples=[21],
    )
    issue_count: int | None = Field(
        ge=0,
        description="The number of distinct findings: the same code in several places of a file counts once. Null "
        "until the scan is completed.",
        examples=[17],
    )
    progress: Progress | None = Field(description="The progress of the scan.")
    created_at: str = Field(description="The time the scan was created.", **TIME)
    started_at: str | None = Field(description="The time the first stage started.", **TIME)
    completed_at: str | None = Field(description="The time the scan ended, successfully or not.", **TIME)
    failure: Reason | None = Field(description="The reason the scan failed or was canceled, or null.", examples=[None])
    coverage: Coverage | None = Field(description="The files that the scan covered. Null until the scan is completed.")
    findings_expire_at: FindingsExpireAt

    @classmethod
    def of(cls, scan: ScanItem, **more: Any) -> Self:
        return cls.showing(
            scan,
            id=scan.scan_id,
            pull_request_number=scan.cause.pull_request_number,
            scope="repository" if scan.cause.pull_request_number is None else "pull_request",
            trigger=scan.cause.trigger,
            unlock_credits=None if scan.findings_expired or scan.failure else scan.unlock_credits,
            findings_expire_at=expiry_of(scan),
            **more,
        )


class ScanDetail(Scan):
    """A scan, with the inventory of its repository."""

    inventory: ScanInventory | None = Field(
        description="What the repository is made of. Null until the stage `inventory` is completed."
    )

    @classmethod
    def with_inventory(cls, scan: ScanItem, inventory: Inventory | None) -> Self:
        return cls.of(scan, inventory=inventory.readable(scan) if inventory else None)
