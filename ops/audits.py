"""`assent-ops audit`: scheduled website audits and their runs."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from controlplane.platform.core.actions import Action
from controlplane.platform.table import keys
from controlplane.platform.table.table import Leg, table
from controlplane.projects import audits
from controlplane.projects.audits import AuditItem, UnknownAudit
from controlplane.projects.changes import change_until_written
from controlplane.projects.items import ProjectItem, WebsiteItem
from controlplane.projects.store import audit_deletions
from ops.arguments import Project, Yes, new_group, one_of
from ops.lookup import get_project
from ops.output import Conflict, NotFound, Refused, Result, confirm, fields

app = new_group("Website audits and their results.")

_RESULTS = ("passed", "failed")

Audit = Annotated[str, typer.Argument(metavar="AUDIT_ID", help="aud_…")]


@app.command("create")
def create_audit(
    project: Project,
    website: Annotated[
        str, typer.Argument(metavar="WEBSITE", help="Its id (web_…) or origin, as listed in the project.")
    ],
    every_days: Annotated[int, typer.Option("--every-days", min=1, max=365, help="The interval in days.")] = 7,
) -> Result:
    """Schedule an audit of a website. Only websites of kind `domain` can be audited, each by at most 5 audits."""
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
    return Result({"projectId": project, **_document(audit, audited, every_days)})


@app.command("list")
def list_audits(project: Project) -> Result:
    """List a project's audits, grouped by website."""
    item = get_project(project)
    ids = [(website, audit_id) for website in item.websites for audit_id in website.audits]
    # At most 40, so one round trip reads them all.
    wanted = [key(*item.project_id.location, it) for key in (keys.audit, keys.audit_schedule) for _, it in ids]
    found = table.batch_get(wanted)
    return Result(
        [
            _document(AuditItem.from_item(audit), website, schedule["everyDays"])
            for (website, _), audit, schedule in zip(ids, found[: len(ids)], found[len(ids) :], strict=True)
            if audit and schedule
        ]
    )


@app.command("delete")
def delete_audit(project: Project, audit: Audit, yes: Yes = False) -> Result:
    """Delete an audit and its schedule. Its runs are kept.

    A website that is only audited, and not a consent entry, is deleted with its last audit.
    """
    confirm(f"Delete the audit {audit}?", yes=yes)
    try:
        deleted_website = remove_audit(get_project(project), audit)
    except UnknownAudit:
        raise NotFound(f"The project {project} has no audit {audit}.") from None
    return Result({"deleted": True, "auditId": audit, "deletedWebsiteId": deleted_website})


@app.command("record")
def record_run(
    project: Project,
    audit: Audit,
    result: Annotated[
        str, typer.Option("--result", parser=one_of(_RESULTS), metavar="RESULT", help=f"{' or '.join(_RESULTS)}.")
    ],
) -> Result:
    """Record an audit run, and its result, as of now."""
    item = get_project(project)
    unknown = NotFound(f"The project {project} has no audit {audit}.")
    if not any(audit in website.audits for website in item.websites):
        raise unknown
    try:
        run = audits.record_run(item.project_id, audit, result)
    except UnknownAudit:
        raise unknown from None
    return Result(
        {"auditId": run.audit_id, "projectId": run.project_id, "startedAt": run.started_at, "result": run.result}
    )


def _document(audit: AuditItem, website: WebsiteItem, every_days: int) -> dict[str, Any]:
    shown = fields(audit, "audit_id", "website_id", "created_at")
    return {**shown, "origin": website.origin, "everyDays": every_days}


def remove_audit(project: ProjectItem, audit_id: str) -> str | None:
    """Deletes an audit and its schedule; its runs are kept. Raises UnknownProject, UnknownAudit.

    A website that isn't a consent entry is deleted with its last audit. Returns that website's id, or None.
    """
    website_id = ""

    def without_audit(before: ProjectItem) -> tuple[ProjectItem, Mapping[str, Leg]]:
        nonlocal website_id
        website = next((it for it in before.websites if audit_id in it.audits), None)
        if website is None:
            raise UnknownAudit
        website_id = website.website_id
        after = before.with_website(website._replace(audits=tuple(it for it in website.audits if it != audit_id)))
        return after.with_new_version(), audit_deletions(before, [website._replace(audits=(audit_id,))])

    after = change_until_written(project, Action.AUDIT_DELETE, without_audit)
    return None if after.find_website(website_id) else website_id
