"""What `inbox` takes and answers."""

from typing import Annotated, Any, Self

from pydantic import Field

from controlplane.envelope import Wire
from controlplane.store import inbox
from controlplane.store.inbox import Priority, Source, Status

_DATE_TIME: dict[str, Any] = {"format": "date-time"}
_URI: dict[str, Any] = {"format": "uri"}

Reason = Annotated[str, Field(max_length=1_000)]


class InboxItemUpdate(Wire):
    """`status` and `version` as a pair: no other field changes anything."""

    status: Status = Field(examples=["dismissed"])
    version: str = Field(
        min_length=1, max_length=200, description="As it was read.", examples=["0f9c2b4d7e1a4c3f8b6d5e2a19c70b48"]
    )
    reason: Reason | None = Field(
        None, description="Why, for whoever reads the item next.", examples=["Loaded by the consent manager itself"]
    )


class GithubIssue(Wire):
    number: int = Field(ge=1, examples=[42])
    url: str = Field(json_schema_extra=_URI, examples=["https://github.com/acme/shop/issues/42"])
    created_at: str = Field(json_schema_extra=_DATE_TIME, examples=["2026-03-04T05:06:07Z"])


class InboxItem(Wire):
    """A finding as lists and changes answer it."""

    id: str = Field(examples=["inb_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"])
    organization_id: str = Field(examples=["org_3f8k2m9q7r1s5t6v"])
    title: str = Field(examples=["Google Analytics loads before consent"])
    summary: str | None = Field(examples=["The tag is in the page's head, where no consent is asked for yet."])
    priority: Priority | None = Field(description="P0 is the most urgent.", examples=["P1"])
    status: Status = Field(examples=["open"])
    source: Source = Field(examples=["code-audit"])
    project_id: str | None = Field(examples=["prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"])
    repository_name: str | None = Field(examples=["shop"])
    github_issue: GithubIssue | None
    updated_at: str = Field(json_schema_extra=_DATE_TIME, examples=["2026-03-04T05:06:07.000Z"])
    version: str = Field(
        description="Send it back when changing the status.", examples=["0f9c2b4d7e1a4c3f8b6d5e2a19c70b48"]
    )

    @classmethod
    def of(cls, item: inbox.InboxItem) -> Self:
        return cls(**_fields(item))


class CodeLocation(Wire):
    path: str = Field(examples=["src/index.html"])
    start_line: int | None = Field(ge=1, examples=[12])
    end_line: int | None = Field(ge=1, examples=[14])
    snippet: str | None = Field(examples=['<script src="https://www.googletagmanager.com/gtag/js"></script>'])


class Evidence(Wire):
    """One thing that shows the finding."""

    description: str = Field(examples=["src/index.html, line 12"])
    url: str | None = Field(
        description="Leads to it: for code the permalink of its lines.",
        json_schema_extra=_URI,
        examples=["https://github.com/acme/shop/blob/1f0c2b9e7d3a4a559a516f1f8f0c9a11d2e3f4a5/src/index.html#L12-L14"],
    )
    location: CodeLocation | None = Field(description="Where in the repository, for code.")


class RuntimeVendor(Wire):
    """The vendor of a runtime finding: `projectId` and `vendorId` address the decision about it."""

    project_id: str = Field(examples=["prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"])
    vendor_id: str = Field(examples=["segment"])
    name: str = Field(examples=["Segment"])
    domain: str = Field(examples=["segment.com"])


class InboxItemDetail(InboxItem):
    """A finding with all that is known of it."""

    description: str | None = Field(description="What it means, and why it matters.", examples=[None])
    remediation: str | None = Field(
        description="How to mend it.", examples=["Load the tag once the visitor has agreed to measurement."]
    )
    references: list[str] = Field(examples=[["https://developers.google.com/tag-platform/security/guides/consent"]])
    evidence: list[Evidence]
    runtime_vendor: RuntimeVendor | None
    status_reason: str | None = Field(description="What the last change of status gave as its reason.", examples=[None])

    @classmethod
    def of(cls, item: inbox.InboxItem) -> Self:
        vendor = item.runtime_vendor
        return cls(
            **_fields(item),
            description=item.description,
            remediation=item.remediation,
            references=list(item.references),
            evidence=[_evidence(shown) for shown in item.evidence],
            runtime_vendor=RuntimeVendor(**vendor._asdict()) if vendor else None,
            status_reason=item.status_reason,
        )


def _fields(item: inbox.InboxItem) -> dict[str, Any]:
    issue = item.github_issue
    return {
        "id": item.item_id,
        "organization_id": item.organization_id,
        "title": item.title,
        "summary": item.summary,
        "priority": item.priority,
        "status": item.status,
        "source": item.source,
        "project_id": item.project_id,
        "repository_name": item.repository_name,
        "github_issue": GithubIssue(**issue._asdict()) if issue else None,
        "updated_at": item.updated_at,
        "version": item.version,
    }


def _evidence(shown: inbox.Evidence) -> Evidence:
    location = None
    if shown.path is not None:
        location = CodeLocation(
            path=shown.path, start_line=shown.start_line, end_line=shown.end_line, snippet=shown.snippet
        )
    return Evidence(description=shown.description, url=shown.url, location=location)
