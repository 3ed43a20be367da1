"""Creates, changes, deletes, and lists audits, and starts their runs.

A run starts with its message in the same transaction. An audit has at most one active run, and its item names it.
"""

import secrets
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from controlplane.audits.items import AuditItem, RunItem, RunsOn, Trigger, UnknownAudit
from controlplane.organizations.store import admin_check
from controlplane.platform.core import clock, ids
from controlplane.platform.core.actions import Action
from controlplane.platform.core.errors import Conflict, RateLimited
from controlplane.platform.core.ids import ProjectId, RunId
from controlplane.platform.core.schedules import Schedule
from controlplane.platform.core.urls import consent_backend_url
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import Queue, RunAudit
from controlplane.platform.queues.outbox import Entry
from controlplane.platform.table import keys
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.stored import to_map
from controlplane.platform.table.table import Delete, Leg, LegFailed, Put, QueryPage, Recorded, Update, table
from controlplane.projects.changes import UnknownWebsite, change_until_written
from controlplane.projects.items import AUDITABLE_KIND, ProjectItem
from controlplane.projects.store import MAX_AUDITS, audit_deletions

MAX_AUDITS_PER_WEBSITE = 5
RUNS_PER_DAY = 6


class NotAuditable(Conflict):
    def __init__(self, kind: str) -> None:
        super().__init__(
            f"Only a website of the kind {AUDITABLE_KIND} can be audited.",
            details={"reason": "not_auditable", "kind": kind},
        )


class AuditLimitReached(Conflict):
    message = f"A website has at most {MAX_AUDITS_PER_WEBSITE} audits, and a project {MAX_AUDITS}. Delete one first."

    def __init__(self) -> None:
        super().__init__(details={"reason": "audit_limit"})


class RunInProgress(Conflict):
    message = "A run of this audit is in progress. Wait until it ends."

    def __init__(self, run_id: str) -> None:
        super().__init__(details={"reason": "run_in_progress", "runId": run_id})


class DailyRunsUsed(RateLimited):
    message = f"{RUNS_PER_DAY} runs a day can be started. Start the next one after the time in Retry-After."

    def __init__(self) -> None:
        now = datetime.fromtimestamp(clock.now(), UTC)
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        super().__init__(
            int((midnight - now).total_seconds()) + 1, details={"reason": "daily_runs", "limit": RUNS_PER_DAY}
        )


def list_audits(project_id: ProjectId, limit: int, after: str | None) -> QueryPage[AuditItem]:
    """Returns one page of the project's audits, newest first."""
    organization_id, local = project_id.location
    pk, prefix = keys.organization_pk(organization_id), keys.audit_prefix(local)
    return table.query(pk, prefix=prefix, newest_first=True, limit=limit, after=after).read(AuditItem.from_item)


def find_audit(project_id: ProjectId, audit_id: str) -> AuditItem | None:
    """Returns the audit, with a consistent read, or None."""
    return table.find(keys.audit(*project_id.location, audit_id), AuditItem.from_item)


def get_audit(project_id: ProjectId, audit_id: str) -> AuditItem:
    """Returns the audit, with a consistent read. Raises UnknownAudit."""
    audit = find_audit(project_id, audit_id)
    if audit is None:
        raise UnknownAudit
    return audit


def create_audit(
    project: ProjectItem, website_id: str, schedule: Schedule | None, extra_legs: Mapping[str, Leg] | None = None
) -> AuditItem:
    """Creates an audit of the website: at most 5 per website and 40 per project.

    Raises UnknownProject, UnknownWebsite, NotAuditable, AuditLimitReached.
    """
    audit_id, token, consent = ids.within(ids.AUDIT), secrets.token_hex(16), project.consent
    created: AuditItem | None = None

    def with_audit(before: ProjectItem) -> tuple[ProjectItem, Mapping[str, Leg]]:
        nonlocal created
        website = before.find_website(website_id)
        if website is None:
            raise UnknownWebsite
        if website.kind != AUDITABLE_KIND:
            raise NotAuditable(website.kind)
        if len(website.audits) >= MAX_AUDITS_PER_WEBSITE or before.audit_count >= MAX_AUDITS:
            raise AuditLimitReached
        created = AuditItem(
            audit_id=audit_id,
            project_id=before.project_id,
            website_id=website_id,
            url=f"https://{website.origin}/",
            schedule=schedule,
            token=token,
            created_at=clock.timestamp(),
            consent_url=consent_backend_url(before.region, consent.instance_id) if consent else None,
        )
        after = before.with_website(website._replace(audits=(*website.audits, audit_id)))
        legs = {**(extra_legs or {}), "audit": Put(created.to_item()), **created.schedule_legs()}
        return after.with_new_version(), legs

    change_until_written(project, Action.AUDIT_CREATE, with_audit)
    if created is None:
        raise LookupError("the change wasn't made")
    return created


def change_schedule(audit: AuditItem, schedule: Schedule | None) -> AuditItem:
    """Changes how often the audit runs by itself, and returns it. Raises UnknownAudit."""
    changed = replace(audit, schedule=schedule)
    legs: dict[str, Leg] = {
        "audit": Update(audit.key, "SET #schedule = :schedule", "attribute_exists(pk)", {"schedule": schedule}),
        **changed.schedule_legs(),
    }
    # The times of both schedules can be the same.
    if (earlier := audit.schedule_key) and earlier != changed.schedule_key:
        legs["earlier schedule"] = Delete(earlier)
    before, after = {"schedule": audit.schedule}, {"schedule": schedule}
    try:
        table.transact(legs, _recorded(Action.AUDIT_UPDATE, audit, before=before, after=after))
    except LegFailed:
        raise UnknownAudit from None
    return changed


def delete_audit(project: ProjectItem, audit_id: str, caller_id: str | None = None) -> str | None:
    """Deletes an audit; its runs are kept. Raises UnknownProject, UnknownAudit, RoleRequired.

    A website that isn't a consent entry is deleted with its last audit. Returns that website's id, or None.
    caller_id: the user who must be an admin at commit; None for an API key.
    """
    website_id = ""

    def without_audit(before: ProjectItem) -> tuple[ProjectItem, Mapping[str, Leg]]:
        nonlocal website_id
        website = next((it for it in before.websites if audit_id in it.audits), None)
        if website is None:
            raise UnknownAudit
        website_id = website.website_id
        after = before.with_website(website._replace(audits=tuple(it for it in website.audits if it != audit_id)))
        admin = admin_check(caller_id, before.project_id.organization_id)
        return after.with_new_version(), {**admin, **audit_deletions(before, [website._replace(audits=(audit_id,))])}

    after = change_until_written(project, Action.AUDIT_DELETE, without_audit)
    return None if after.find_website(website_id) else website_id


def start_run(audit: AuditItem, extra_legs: Mapping[str, Leg] | None = None) -> RunItem:
    """Starts a run for a person, and sends its message: at most 6 a day. `extra_legs` precede those of the run.

    Raises UnknownAudit, RunInProgress, DailyRunsUsed.
    """
    run = new_run(audit, "manual")

    def start() -> RunItem:
        nonlocal audit
        if audit.active_run_id == run.run_id:
            return run  # our own write, whose response was lost
        if audit.active_run_id is not None:
            raise RunInProgress(audit.active_run_id)
        legs, message, record = starting(audit, run, _counted(audit))
        try:
            table.transact({**(extra_legs or {}), **legs}, record)
        except LegFailed as failure:
            if "audit" not in failure.items:
                raise
            item = failure.items["audit"]
            if item is None:
                raise UnknownAudit from None
            audit = AuditItem.from_item(item)
            raise WriteConflict from None
        messages.dispatch(message)
        return run

    return retry_on_conflict(start, "the audit")


def _counted(audit: AuditItem) -> RunsOn:
    today, seen = clock.timestamp()[:10], audit.runs_on
    started = seen.started if seen and seen.day == today else 0
    if started >= RUNS_PER_DAY:
        raise DailyRunsUsed
    return RunsOn(today, started + 1)


def new_run(audit: AuditItem, trigger: Trigger) -> RunItem:
    return RunItem(
        run_id=RunId.of(audit.project_id.organization_id, ids.new_local()),
        audit_id=audit.audit_id,
        project_id=audit.project_id,
        website_id=audit.website_id,
        url=audit.url,
        trigger=trigger,
        status="pending",
        claim=secrets.token_hex(16),
        created_at=clock.timestamp(),
    )


def starting(audit: AuditItem, run: RunItem, counted: RunsOn | None = None) -> tuple[dict[str, Leg], Entry, Recorded]:
    """Returns the legs that start the run, its message, which the caller sends, and the entry in the audit log.

    counted: the runs of the day with this one, if a person started it. The leg `audit` fails if the audit was deleted,
    has an active run, or was started by another person at the same time.
    """
    message = messages.entry(
        Queue.WEBSITE_AUDITS,
        RunAudit(
            run_id=run.run_id,
            audit_id=run.audit_id,
            project_id=run.project_id,
            url=run.url,
            claim=run.claim,
            token=audit.token,
            consent_url=audit.consent_url,
        ),
    )
    change, values = "SET #activeRunId = :run", dict[str, Any](run=run.run_id)
    when = "attribute_exists(pk) AND attribute_not_exists(#activeRunId)"
    if counted is not None:
        change, values = f"{change}, #runsOn = :counted", {**values, "counted": to_map(counted)}
        when += " AND #runsOn = :seen" if audit.runs_on else " AND attribute_not_exists(#runsOn)"
        values |= {"seen": to_map(audit.runs_on)} if audit.runs_on else {}
    watch = {"runId": run.run_id, "auditId": run.audit_id, "projectId": run.project_id}
    legs: dict[str, Leg] = {
        "audit": Update(audit.key, change, when, values),
        "run": Put(run.to_item(), "attribute_not_exists(pk)"),
        "watch": Put({**run.watch_key._asdict(), **watch}),
        "message": message.leg,
    }
    record = _recorded(Action.AUDIT_RUN, audit, after={"runId": run.run_id, "trigger": run.trigger})
    return legs, message, record


def _recorded(
    action: Action, audit: AuditItem, *, before: Mapping[str, object] | None = None, after: Mapping[str, object]
) -> Recorded:
    return Recorded(action, audit.project_id.organization_id, audit.audit_id, audit.url, before or {}, after)
