"""Request and response models of website audits."""

from typing import Annotated, Any, Self

from pydantic import Field

from controlplane.audits.items import AuditItem, Outcome, ProofMethod, ReportItem, RunItem, RunStatus, Trigger
from controlplane.platform.core.priorities import Priority
from controlplane.platform.core.schedules import Schedule
from controlplane.platform.http.envelope import Wire
from controlplane.platform.http.fields import OptionalTimestamp, ProjectId, Reason, Timestamp, Url
from controlplane.platform.table.stored import to_map

AUDIT_ID = "aud_01kb2m3n4p5q6r7s8t"
RUN_ID = "run_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"
_WEBSITE_ID = "web_01kb2m3n4p5q6r7s8t"
_PROOF = "8c4f0b1e7d2a95364c1b7e90f3a2d586"

AuditId = Annotated[str, Field(description="The audit's ID.", examples=[AUDIT_ID])]
RunId = Annotated[str, Field(description="The run's ID.", examples=[RUN_ID])]
WebsiteId = Annotated[str, Field(description="The website's ID.", examples=[_WEBSITE_ID])]
WebsiteUrl = Annotated[Url, Field(description="The start page.", examples=["https://example.com/"])]
RunsItself = Annotated[
    Schedule | None, Field(description="How often a run starts by itself. Null means never.", examples=["weekly"])
]
Findings = Annotated[list[str], Field(description="Findings.", examples=[["loaded-before-consent:segment"]])]
Vendors = Annotated[list[str], Field(description="Vendors.", examples=[["segment"]])]
Pages = Annotated[list[str], Field(description="The visited pages.", examples=[["https://example.com/"]])]


class AuditCreate(Wire):
    """An audit of one of the project's websites."""

    website_id: str = Field(
        description="A website of the kind `domain`.", min_length=1, max_length=100, examples=[_WEBSITE_ID]
    )
    schedule: RunsItself = None


class AuditUpdate(Wire):
    """A change of an audit."""

    schedule: RunsItself


class LatestRun(Wire):
    """The last completed run of an audit."""

    run_id: RunId
    outcome: Outcome
    finished_at: Timestamp = Field(description="The time it ended.")


class Proof(Wire):
    """The proof of ownership that the last run found."""

    method: ProofMethod
    at: Timestamp = Field(description="The time it was seen.")


class Ownership(Wire):
    """The proofs of ownership: a TXT record or a file. The page that loads the project's consent is another one."""

    dns_name: str = Field(description="The record's name.", examples=["_assent-audit.example.com"])
    dns_value: str = Field(description="The record's text.", examples=[_PROOF])
    file_url: Url = Field(
        description="The file's address.", examples=["https://example.com/.well-known/assent-audit.txt"]
    )
    file_content: str = Field(description="The file's content.", examples=[_PROOF])


class Audit(Wire):
    """An audit of a website."""

    audit_id: AuditId
    project_id: ProjectId
    website_id: WebsiteId
    url: WebsiteUrl
    schedule: RunsItself
    created_at: Timestamp = Field(description="The time it was created.")
    active_run_id: str | None = Field(description="The run in progress.", examples=[RUN_ID])
    latest_run: LatestRun | None = Field(description="The last completed run.")
    proof: Proof | None = Field(description="Without it, no run starts by itself.")
    ownership: Ownership

    @classmethod
    def of(cls, audit: AuditItem) -> Self:
        latest = audit.latest_run
        return cls.showing(
            audit,
            latest_run=latest and LatestRun(run_id=latest.run_id, outcome=latest.outcome, finished_at=latest.at),
            ownership=Ownership(
                dns_name=audit.dns_name, dns_value=audit.token, file_url=audit.file_url, file_content=audit.token
            ),
        )


class DeletedAudit(Wire):
    """The result of deleting an audit."""

    audit_id: AuditId
    deleted_website_id: str | None = Field(
        description="The website, if it was only audited and this was its last audit.", examples=[None]
    )


class RunFinding(Wire):
    """A finding of a run."""

    id: str = Field(description="The same in every run.", examples=["loaded-before-consent:segment"])
    kind: str = Field(description="The kind of finding.", examples=["loaded-before-consent"])
    title: str = Field(description="The title.", examples=["Segment loads before consent"])
    priority: Priority
    vendor_id: str | None = Field(description="The vendor.", examples=["segment"])
    inbox_item_id: str | None = Field(
        description="The inbox item.", examples=["inb_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"]
    )


class RunChanges(Wire):
    """The differences from the completed run before: IDs."""

    new_findings: Findings
    resolved_findings: Findings
    new_vendors: Vendors
    gone_vendors: Vendors


class AuditRun(Wire):
    """A run of an audit."""

    run_id: RunId
    audit_id: AuditId
    project_id: ProjectId
    website_id: WebsiteId
    url: WebsiteUrl
    trigger: Trigger
    status: RunStatus = Field(description="`failed`: it has no result.", examples=["completed"])
    outcome: Outcome | None = Field(
        description="`failed`: it has findings. `blocked`: the website couldn't be audited.", examples=["failed"]
    )
    reason: Reason | None = Field(description="Why it is blocked or has no result.", examples=[None])
    created_at: Timestamp = Field(description="The time it was started.")
    finished_at: OptionalTimestamp = Field(description="The time it ended.")
    findings: list[RunFinding] = Field(description="The findings.")
    changes: RunChanges | None = Field(description="The differences from the completed run before.")

    @classmethod
    def of(cls, run: RunItem, **more: Any) -> Self:
        findings = [RunFinding.showing(it, inbox_item_id=it.item_id) for it in run.findings]
        return cls.showing(run, findings=findings, **more)


class AuditRunReport(AuditRun):
    """A run with what it recorded, as docs/audits.md describes it: nothing until it is completed."""

    vendors: list[dict[str, Any]] = Field(description="The third parties.", examples=[[{"vendorId": "segment"}]])
    visits: list[dict[str, Any]] = Field(description="One for each choice.", examples=[[{"choice": "refused"}]])
    banner: dict[str, Any] | None = Field(description="The banner.", examples=[None])
    pages: Pages
    picture: str | None = Field(description="The start page before a choice: a JPEG in base64.", examples=[None])

    @classmethod
    def with_report(cls, run: RunItem, report: ReportItem) -> Self:
        vendors = [to_map(vendor) for vendor in report.vendors]
        return cls.of(run, vendors=vendors, picture=report.picture, **report.recorded)
