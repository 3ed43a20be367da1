"""Routes of `projects` about audits of live websites, and their runs."""

from collections.abc import Mapping
from typing import Annotated

from fastapi import Path

from controlplane.access.access import Access, Requires
from controlplane.access.idempotency import IdempotencyKey, idempotent
from controlplane.audits import runs
from controlplane.audits import store as audits
from controlplane.audits.items import AuditItem, ReportItem, RunItem, UnknownRun
from controlplane.platform.core import ids
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.envelope import Answer, Page
from controlplane.platform.http.pagination import Cursor, CursorCodec, Limit
from controlplane.platform.http.route import refuses
from controlplane.platform.http.validation import described
from controlplane.platform.table.table import Leg, QueryPage
from controlplane.projects.items import ProjectItem
from projects.audit_schemas import (
    AUDIT_ID,
    RUN_ID,
    Audit,
    AuditCreate,
    AuditRun,
    AuditRunReport,
    AuditUpdate,
    DeletedAudit,
)
from projects.fields import PROJECT

router = ControlRouter(tags=["Projects"])

ReadsAudits = Annotated[Access[ProjectItem], Requires("projects.read", resource=PROJECT, late=True)]
CreatesAudit = Annotated[Access[ProjectItem], Requires("projects.write", resource=PROJECT)]
ChangesAudit = Annotated[Access[ProjectItem], Requires("projects.write", resource=PROJECT, late=True)]
DeletesAudit = Annotated[Access[ProjectItem], Requires("projects.write", role="admin", resource=PROJECT)]

AuditPath = Annotated[
    str,
    Path(
        alias="auditId",
        pattern=described(ids.AUDIT_PATTERN, f"Must be the ID of an audit, such as {AUDIT_ID}"),
        description="The audit's ID.",
        examples=[AUDIT_ID],
    ),
]
RunPath = Annotated[str, Path(alias="runId", description="The run's ID.", examples=[RUN_ID])]


@router.get("/v1/projects/{projectId}/audits", summary="List the audits of a project")
async def list_audits(access: ReadsAudits, limit: Limit = 50, cursor: Cursor = None) -> Page[Audit]:
    """Lists the audits of the project's websites, newest first."""

    def read(project_id: ProjectId) -> tuple[CursorCodec, QueryPage[AuditItem]]:
        codec = CursorCodec(cursor, "listAudits", project_id)
        return codec, audits.list_audits(project_id, limit, codec.after)

    codec, page = access.enter_while(read)
    return Page([Audit.of(audit) for audit in page.items], codec.cursor(page.next_sk))


@router.post("/v1/projects/{projectId}/audits", summary="Audit a website", status_code=201)
@refuses(audits.NotAuditable, audits.AuditLimitReached)
async def create_audit(
    access: CreatesAudit, body: AuditCreate, idempotency_key: IdempotencyKey = None
) -> Answer[Audit]:
    """Creates an audit, whose runs visit the website in a browser.

    With a schedule, they start by themselves once a run has found a proof of `ownership`.
    """
    project = access.resource

    def create(legs: Mapping[str, Leg]) -> Audit:
        return Audit.of(audits.create_audit(project, body.website_id, body.schedule, legs))

    payload = {"projectId": project.project_id, **body.model_dump(mode="json", by_alias=True)}
    return idempotent(access, "createAudit", idempotency_key, payload, create)


@router.patch("/v1/projects/{projectId}/audits/{auditId}", summary="Change the schedule of an audit")
async def update_audit(access: ChangesAudit, audit_id: AuditPath, body: AuditUpdate) -> Audit:
    """Changes how often the audit runs by itself."""
    audit = access.enter_while(lambda project_id: audits.get_audit(project_id, audit_id))
    return Audit.of(audits.change_schedule(audit, body.schedule))


@router.delete("/v1/projects/{projectId}/audits/{auditId}", summary="Delete an audit")
async def delete_audit(access: DeletesAudit, audit_id: AuditPath) -> DeletedAudit:
    """Deletes an audit with its schedule. Its runs are kept, and its open findings are resolved.

    A website that is only audited is deleted with its last audit.
    """
    deleted = audits.delete_audit(access.resource, audit_id, access.principal.user_id)
    return DeletedAudit(audit_id=audit_id, deleted_website_id=deleted)


@router.post("/v1/projects/{projectId}/audits/{auditId}/runs", summary="Start a run of an audit", status_code=201)
@refuses(audits.RunInProgress, audits.DailyRunsUsed)
async def start_audit_run(
    access: ChangesAudit, audit_id: AuditPath, idempotency_key: IdempotencyKey = None
) -> Answer[AuditRun]:
    """Starts a run, which takes minutes. Takes no body. The event `audit.completed` says that it has ended.

    An audit has one run at a time, and people can start 6 runs of a website a day, in all its audits.
    """
    audit = access.enter_while(lambda project_id: audits.get_audit(project_id, audit_id))

    def start(legs: Mapping[str, Leg]) -> AuditRun:
        return AuditRun.of(audits.start_run(audit, legs))

    payload = {"projectId": audit.project_id, "auditId": audit_id}
    return idempotent(access, "startAuditRun", idempotency_key, payload, start)


@router.get("/v1/projects/{projectId}/audits/{auditId}/runs", summary="List the runs of an audit")
async def list_audit_runs(
    access: ReadsAudits, audit_id: AuditPath, limit: Limit = 50, cursor: Cursor = None
) -> Page[AuditRun]:
    """Lists the runs of an audit, newest first, also of one that was deleted."""

    def read(project_id: ProjectId) -> tuple[CursorCodec, QueryPage[RunItem]]:
        codec = CursorCodec(cursor, "listAuditRuns", project_id, audit_id)
        return codec, runs.list_runs(project_id, audit_id, limit, codec.after)

    codec, page = access.enter_while(read)
    return Page([AuditRun.of(run) for run in page.items], codec.cursor(page.next_sk))


@router.get("/v1/projects/{projectId}/audits/{auditId}/runs/{runId}", summary="Get a run of an audit")
async def get_audit_run(access: ReadsAudits, audit_id: AuditPath, run_id: RunPath) -> AuditRunReport:
    """Returns a run with its report."""

    def read(project_id: ProjectId) -> tuple[RunItem, ReportItem]:
        parsed = ids.RunId.parse(run_id)
        if parsed is None or parsed.organization_id != project_id.organization_id:
            raise UnknownRun
        return runs.get_report(project_id, audit_id, parsed)

    return AuditRunReport.with_report(*access.enter_while(read))
