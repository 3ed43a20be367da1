"""Request and response models of starting and unlocking scans."""

from typing import Annotated, Literal, Self

from pydantic import Field

from code_audit.fields import PROJECT_ID, REPOSITORY_ID, TIME
from code_audit.scan_schemas import Scan
from controlplane.platform.http.envelope import Wire
from controlplane.platform.http.fields import Reason
from controlplane.scans.items import RequestItem
from controlplane.scans.reads import RETRY_AFTER_SECONDS

_PREPARATION_ID = "spr_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"


class ScanCreate(Wire):
    """A scan to start."""

    repository_id: str = Field(
        description="The ID of a connected repository.", min_length=1, max_length=100, examples=[REPOSITORY_ID]
    )
    project_id: Annotated[str, Field(min_length=1, max_length=100)] = Field(
        default_factory=str,
        description="The linked project whose production branch and folder to scan. Defaults to the first one.",
        examples=[PROJECT_ID],
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
    created_at: str = Field(description="The time the scan was requested.", **TIME)
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
