"""`assent-ops audit`: scheduled website audits and their runs."""
# ruff: noqa: PLC0415 (see ops.command.command)

from typing import Annotated

import typer

from ops.arguments import Project, Yes, one_of
from ops.command import command
from ops.errors import Conflict, NotFound, Refused
from ops.output import Result, confirm

app = typer.Typer(no_args_is_help=True, help="Website audits and their results.")

_RESULTS = ("passed", "failed")

Audit = Annotated[str, typer.Argument(metavar="AUDIT_ID", help="aud_…")]


@command(app, "create")
def create_audit(
    project: Project,
    website: Annotated[
        str, typer.Argument(metavar="WEBSITE", help="Its id (web_…) or origin, as listed in the project.")
    ],
    every_days: Annotated[int, typer.Option("--every-days", min=1, max=365, help="The interval in days.")] = 7,
) -> Result:
    """Schedule an audit of a website. Only websites of kind `domain` can be audited, each by at most 5 audits."""
    from controlplane.projects import audits
    from ops.lookup import get_project

    item = get_project(project)
    audited = next((it for it in item.websites if website in (it.website_id, it.origin)), None)
    if audited is None:
        origins = ", ".join(it.origin for it in item.websites)
        raise NotFound(f"The project has no website {website}. It has: {origins or 'none'}.")
    try:
        audit = audits.create_audit(item.project_id, audited.website_id, every_days)
    except audits.NotAuditable:
        raise Refused(f"{audited.origin} is of the kind {audited.kind}; only a domain can be audited.") from None
    except audits.AuditLimitReached:
        raise Conflict("The website or its project has reached its limit of audits. Delete one first.") from None
    document = {
        "auditId": audit.audit_id,
        "projectId": project,
        "websiteId": audited.website_id,
        "origin": audited.origin,
        "everyDays": every_days,
        "createdAt": audit.created_at,
    }
    return Result(document)


@command(app, "list")
def list_audits(project: Project) -> Result:
    """List a project's audits, grouped by website."""
    from ops import audits
    from ops.lookup import get_project

    return Result(audits.list_audits(get_project(project)))


@command(app, "delete")
def delete_audit(project: Project, audit: Audit, yes: Yes = False) -> Result:
    """Delete an audit and its schedule. Its runs are kept.

    A website that is only audited, and not a consent entry, is deleted with its last audit.
    """
    from controlplane.projects.audits import UnknownAudit
    from ops import audits
    from ops.lookup import get_project

    confirm(f"Delete the audit {audit}?", yes=yes)
    try:
        deleted_website = audits.delete_audit(get_project(project), audit)
    except UnknownAudit:
        raise NotFound(f"The project {project} has no audit {audit}.") from None
    return Result({"deleted": True, "auditId": audit, "deletedWebsiteId": deleted_website})


@command(app, "record")
def record_run(
    project: Project,
    audit: Audit,
    result: Annotated[
        str, typer.Option("--result", parser=one_of(_RESULTS), metavar="RESULT", help=f"{' or '.join(_RESULTS)}.")
    ],
) -> Result:
    """Record an audit run, and its result, as of now."""
    from controlplane.projects import audits
    from ops.lookup import get_project

    item = get_project(project)
    unknown = NotFound(f"The project {project} has no audit {audit}.")
    if not any(audit in website.audits for website in item.websites):
        raise unknown
    try:
        run = audits.record_run(item.project_id, audit, result)
    except audits.UnknownAudit:
        raise unknown from None
    document = {
        "auditId": run.audit_id,
        "projectId": run.project_id,
        "startedAt": run.started_at,
        "result": run.result,
    }
    return Result(document)
