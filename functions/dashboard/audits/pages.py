"""The pages of website audits: a project's list with the form that creates one, an audit with its runs, and a run."""

import re
from collections.abc import Mapping
from typing import Any, get_args
from urllib.parse import urlsplit

from fastapi import Response

from controlplane.access.web_session import WebSession
from controlplane.audits import runs, store
from controlplane.audits.items import AuditItem, ReportItem, RunChanges, RunItem, UnknownAudit, UnknownRun
from controlplane.audits.store import AlreadyAudited, DailyRunsUsed, RunInProgress
from controlplane.platform.core import clock, ids
from controlplane.platform.core.errors import ApiError
from controlplane.platform.core.ids import ProjectId, RunId
from controlplane.platform.core.schedules import Schedule, next_run
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.pagination import CursorCodec
from controlplane.platform.table.parallel import read_all, read_both
from controlplane.platform.table.table import Leg
from controlplane.projects import store as projects
from controlplane.projects.items import AUDITABLE_KIND
from controlplane.projects.store import MAX_AUDITS, UnknownProject
from dashboard import once
from dashboard.audits.report import WIDTH, read_report
from dashboard.forms import NotAcceptable, read_choice
from dashboard.pages import redirect_within
from dashboard.parameters import AdminSubmits, AuditPath, MemberSees, MemberSubmits, ProjectSlug, RunPath
from dashboard.projects.pages import project_page, read_slug

router = ControlRouter(tags=["Pages"], include_in_schema=False)

RUNS_PER_PAGE = 25
_AUDIT_ID = re.compile(ids.AUDIT_PATTERN)
SCHEDULES: tuple[Schedule, ...] = get_args(Schedule)
_DONE = {
    "created": "The audit is created, and its first run has started.",
    "started": "The run has started.",
    "scheduled": "The schedule is saved.",
    "deleted": "The audit is deleted.",
    "deleted-website": "The audit is deleted, with its website, which was only audited.",
}
# How each visit is named.
_VISITED = {"untouched": "didn't answer", "refused": "refused", "accepted": "accepted"}
_ADVICE = {
    "bot-protection": "Let the audit's browser pass the protection, or audit a website that it doesn't guard.",
    "login": "Audit a website whose start page needs no login.",
    "timeout": "Run the audit again. If that repeats, find out why the website answers so slowly.",
    "unreachable": "Check that the website answers at this address from the internet, with a valid certificate.",
    "answer": "Check what the website answers at this address: it must be a page.",
    "banner": "A banner was seen, but neither its library's interface nor its buttons answered it.",
    "limit": "The website exceeded a limit of the audit, so its visits ended early.",
    "no-browser": "The service's browser didn't start. That isn't the website's fault: run the audit again.",
}
_NO_ADVICE = "Run the audit again. If that repeats, ask the operator of the service."


@router.get("/organizations/{organizationSlug}/projects/{projectSlug}/audits")
async def show_audits(session: MemberSees, project_slug: ProjectSlug) -> Response:
    """Lists the project's audits, with a form that creates one."""
    return _audits(session, project_slug)


@router.post("/organizations/{organizationSlug}/projects/{projectSlug}/audits")
async def submit_audit(session: MemberSubmits, project_slug: ProjectSlug) -> Response:
    """Creates an audit with its first run, to which it leads. Leads to the website's audit if it has one."""
    project = projects.get_project(_resolve(session, project_slug))

    created: list[AuditItem] = []

    def create(legs: Mapping[str, Leg]) -> str:
        website_id, schedule = session.form.get("website_id", ""), _read_schedule(session)
        created.append(store.create_audit(project, website_id, schedule, legs, starts=True))
        return created[0].audit_id

    try:
        audit_id = once.create_once(session, "createAuditOnPage", create)
    except UnknownProject:
        raise
    except AlreadyAudited as failure:
        return _redirect(session, project.slug, f"/{failure.audit_id}")
    except ApiError as failure:
        return _audits(session, project.slug, failure)
    # A form that is sent again leads to the audit.
    below = "".join(f"/runs/{it.active_run_id}" for it in created)
    return _redirect(session, project.slug, f"/{audit_id}{below}?done=created")


@router.get("/organizations/{organizationSlug}/projects/{projectSlug}/audits/{auditId}")
async def show_audit(session: MemberSees, project_slug: ProjectSlug, audit_id: AuditPath) -> Response:
    """Shows an audit: its runs, its schedule, and how to prove that the website is one's own."""
    return _audit(session, project_slug, _resolve(session, project_slug, audit_id), audit_id)


@router.post("/organizations/{organizationSlug}/projects/{projectSlug}/audits/{auditId}")
async def schedule_audit(session: MemberSubmits, project_slug: ProjectSlug, audit_id: AuditPath) -> Response:
    """Changes the audit's schedule."""
    project_id = _resolve(session, project_slug, audit_id)
    try:
        store.change_schedule(store.get_audit(project_id, audit_id), _read_schedule(session))
    except NotAcceptable as failure:
        return _audit(session, project_slug, project_id, audit_id, failure)
    return _redirect(session, project_slug, f"/{audit_id}?done=scheduled")


@router.post("/organizations/{organizationSlug}/projects/{projectSlug}/audits/{auditId}/runs")
async def start_audit_run_on_page(session: MemberSubmits, project_slug: ProjectSlug, audit_id: AuditPath) -> Response:
    """Starts a run, and leads to it."""
    project_id = _resolve(session, project_slug, audit_id)
    try:
        run = store.start_run(store.get_audit(project_id, audit_id))
    except (RunInProgress, DailyRunsUsed) as failure:
        return _audit(session, project_slug, project_id, audit_id, failure)
    return _redirect(session, project_slug, f"/{audit_id}/runs/{run.run_id}?done=started")


@router.post("/organizations/{organizationSlug}/projects/{projectSlug}/audits/{auditId}/delete")
async def delete_audit_on_page(session: AdminSubmits, project_slug: ProjectSlug, audit_id: AuditPath) -> Response:
    """Deletes the audit with its schedule. Its runs are kept."""
    project = projects.get_project(_resolve(session, project_slug, audit_id))
    website_id = store.delete_audit(project, audit_id, session.user_id)
    return _redirect(session, project.slug, f"?done={'deleted-website' if website_id else 'deleted'}")


@router.get("/organizations/{organizationSlug}/projects/{projectSlug}/audits/{auditId}/runs/{runId}")
async def show_audit_run(session: MemberSees, project_slug: ProjectSlug, audit_id: AuditPath, run: RunPath) -> Response:
    """Shows a run: its status, and what its visits found and recorded. It outlives its audit."""
    project_id, run_id = _resolve(session, project_slug, audit_id), RunId.parse(run)
    if run_id is None or run_id.organization_id != session.organization.organization_id:
        raise UnknownRun
    project, audit, (item, report) = read_all(
        lambda: projects.get_project(project_id),
        lambda: store.find_audit(project_id, audit_id),
        lambda: runs.get_report(project_id, audit_id, run_id),
    )
    return project_page(
        "audit_run",
        session,
        project_slug,
        project,
        below=f"/audits/{audit_id}/runs/{run_id}",
        done=_DONE,
        run=item,
        audit=audit,
        host=urlsplit(item.url).hostname,
        **_result(item, report),
    )


def _resolve(session: WebSession, slug: str, audit_id: str = "") -> ProjectId:
    """Returns the ID of the project with that current or former slug. Raises UnknownProject, UnknownAudit.

    audit_id: as the path has it.
    """
    if audit_id and not _AUDIT_ID.fullmatch(audit_id):
        raise UnknownAudit
    return projects.resolve_slug(session.organization.organization_id, read_slug(slug))[0]


def _redirect(session: WebSession, slug: str, below: str) -> Response:
    return redirect_within(session.organization, f"/projects/{slug}/audits{below}")


def _read_schedule(session: WebSession) -> Schedule | None:
    """Returns the schedule of the form, or None for none. Raises NotAcceptable."""
    if not session.form.get("schedule"):
        return None
    return read_choice(session.form, "schedule", SCHEDULES, "Choose one of the schedules, or none.")


def _audits(session: WebSession, slug: str, failure: ApiError | None = None) -> Response:
    project_id = _resolve(session, slug)
    project, listed = read_both(
        lambda: projects.get_project(project_id), lambda: store.list_audits(project_id, MAX_AUDITS, None)
    )
    # After a form, the page is at the address that the form was sent to.
    own = slug if failure is None else project.slug
    return project_page(
        "project_audits",
        session,
        own,
        project,
        failure,
        below="/audits",
        done=_DONE,
        audits=sorted(listed.items, key=lambda it: it.url),
        next_runs={it.audit_id: _next_run(it) for it in listed.items},
        websites=[it for it in project.websites if it.kind == AUDITABLE_KIND and not it.audits],
        schedules=SCHEDULES,
    )


def _audit(
    session: WebSession, slug: str, project_id: ProjectId, audit_id: str, failure: ApiError | None = None
) -> Response:
    codec = CursorCodec(session.parameters.get("after"), "showAudit", project_id, audit_id)
    project, audit, listed = read_all(
        lambda: projects.get_project(project_id),
        lambda: store.get_audit(project_id, audit_id),
        lambda: runs.list_runs(project_id, audit_id, RUNS_PER_PAGE, codec.after),
    )
    website = project.find_website(audit.website_id)
    return project_page(
        "audit",
        session,
        slug if failure is None else project.slug,
        project,
        failure,
        below=f"/audits/{audit_id}",
        done=_DONE,
        audit=audit,
        next_run=_next_run(audit),
        runs=listed.items,
        next_cursor=codec.cursor(listed.next_sk),
        is_first=codec.after is None,
        schedules=SCHEDULES,
        deletes_website=website is not None and not website.trusted and len(website.audits) == 1,
    )


def _next_run(audit: AuditItem) -> str | None:
    """Returns the time of the next scheduled run. None without a schedule, or while it waits for a proof."""
    if audit.schedule is None or audit.proof is None:
        return None
    return clock.timestamp(next_run(audit.schedule, audit.audit_id, audit.project_id, clock.now()))


def _result(run: RunItem, report: ReportItem) -> dict[str, Any]:
    """Returns the variables of the page that shows a completed run."""
    if run.status != "completed":
        return {"shown": None}
    named = {it.vendor_id: it.name for it in report.vendors}
    changed = run.changes or RunChanges()
    changes = {
        "Gone findings": [_named(it) for it in changed.resolved_findings],
        "New vendors": [named.get(it, it) for it in changed.new_vendors],
        "Gone vendors": changed.gone_vendors,
    }
    return {
        "shown": read_report(run, report),
        "changes": {label: texts for label, texts in changes.items() if texts},
        "visited": _VISITED,
        "advice": _ADVICE.get(run.reason.code, _NO_ADVICE) if run.reason else "",
        "width": WIDTH,
    }


def _named(finding_id: str) -> str:
    """Returns a finding that is gone as its kind and subject: `Loaded before consent: hotjar`."""
    kind, _, subject = finding_id.partition(":")
    return f"{kind.replace('-', ' ').capitalize()}: {subject}"
