"""Creates, changes, deletes, and lists audits, and starts their runs.

A run starts with its message in the same transaction. An audit has at most one active run, and its item names it. The
runs that people start are counted by website, in all projects of the organization, so no deletion resets the count.
"""

import secrets
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from controlplane.audits.items import AuditItem, RunItem, Trigger, UnknownAudit
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
from controlplane.platform.table.table import Delete, Leg, LegFailed, Put, QueryPage, Recorded, Update, table
from controlplane.projects.changes import UnknownWebsite, change_until_written
from controlplane.projects.items import AUDITABLE_KIND, ProjectItem, WebsiteItem
from controlplane.projects.store import MAX_AUDITS, audit_deletions

MAX_AUDITS_PER_WEBSITE = 5
RUNS_PER_DAY = 6
# A count isn't read after its day, in UTC.
_COUNTED_DAYS = 2
_STARTS = "starts"


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


class AlreadyAudited(Conflict):
    message = "The website has an audit. Start a run of it."

    def __init__(self, audit_id: str) -> None:
        super().__init__(details={"reason": "already_audited", "auditId": audit_id})
        self.audit_id = audit_id


class RunInProgress(Conflict):
    message = "A run of this audit is in progress. Wait until it ends."

    def __init__(self, run_id: str) -> None:
        super().__init__(details={"reason": "run_in_progress", "runId": run_id})


class DailyRunsUsed(RateLimited):
    message = (
        f"{RUNS_PER_DAY} runs of a website can be started a day. Start the next one after the time in Retry-After."
    )

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
    project: ProjectItem,
    website_id: str,
    schedule: Schedule | None,
    extra_legs: Mapping[str, Leg] | None = None,
    *,
    starts: bool = False,
) -> AuditItem:
    """Creates an audit of the website: at most 5 per website and 40 per project.

    starts: the website must have no audit, and the first run, which `active_run_id` names, starts with the audit, or
    neither. Raises UnknownProject, UnknownWebsite, NotAuditable, AuditLimitReached, AlreadyAudited, DailyRunsUsed.
    """
    audit_id, token = ids.within(ids.AUDIT), secrets.token_hex(16)
    created: AuditItem | None = None
    sent: tuple[Entry, ...] = ()

    def with_audit(before: ProjectItem) -> tuple[ProjectItem, Mapping[str, Leg]]:
        nonlocal created, sent
        website = _auditable(before, website_id)
        if starts and website.audits:
            raise AlreadyAudited(website.audits[0])
        audit = created = _new_audit(before, website, audit_id, token, schedule)
        legs: dict[str, Leg] = {**(extra_legs or {}), **audit.schedule_legs()}
        if starts:
            run = new_run(audit, "manual")
            created = replace(audit, active_run_id=run.run_id)
            of_run, message, record = _run_legs(audit, run)
            legs, sent = {**legs, **of_run, **_count_start(audit), "run's entry": record.leg()}, (message,)
        after = before.with_website(website._replace(audits=(*website.audits, audit_id)))
        return after.with_new_version(), {**legs, "audit": Put(created.to_item())}

    def refuse(failed_leg: str) -> bool:
        if failed_leg == _STARTS:
            raise DailyRunsUsed
        return False

    change_until_written(project, Action.AUDIT_CREATE, with_audit, refuse)
    messages.dispatch(*sent)
    if created is None:
        raise LookupError("the change wasn't made")
    return created


def _auditable(project: ProjectItem, website_id: str) -> WebsiteItem:
    """Returns the website if it can have another audit. Raises UnknownWebsite, NotAuditable, AuditLimitReached."""
    website = project.find_website(website_id)
    if website is None:
        raise UnknownWebsite
    if website.kind != AUDITABLE_KIND:
        raise NotAuditable(website.kind)
    if len(website.audits) >= MAX_AUDITS_PER_WEBSITE or project.audit_count >= MAX_AUDITS:
        raise AuditLimitReached
    return website


def _new_audit(
    project: ProjectItem, website: WebsiteItem, audit_id: str, token: str, schedule: Schedule | None
) -> AuditItem:
    consent = project.consent
    return AuditItem(
        audit_id=audit_id,
        project_id=project.project_id,
        website_id=website.website_id,
        url=f"https://{website.origin}/",
        schedule=schedule,
        token=token,
        created_at=clock.timestamp(),
        consent_url=consent_backend_url(project.region, consent.instance_id) if consent else None,
    )


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
        legs, message, record = starting(audit, run)
        try:
            table.transact({**(extra_legs or {}), **legs, **_count_start(audit)}, record)
        except LegFailed as failure:
            if failure.leg == _STARTS:
                raise DailyRunsUsed from None
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


def _count_start(audit: AuditItem) -> dict[str, Leg]:
    """Returns the leg that counts a run that a person starts today. It fails if there have been 6 of the website."""
    key = keys.audit_starts(audit.project_id.organization_id, audit.host, clock.timestamp()[:10])
    values = {"zero": 0, "one": 1, "most": RUNS_PER_DAY, **clock.expiry(_COUNTED_DAYS)}
    change = "SET #started = if_not_exists(#started, :zero) + :one, #expiresAt = :expiresAt"
    return {_STARTS: Update(key, change, "attribute_not_exists(#started) OR #started < :most", values)}


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


def starting(audit: AuditItem, run: RunItem) -> tuple[dict[str, Leg], Entry, Recorded]:
    """Returns the legs that start the run, its message, which the caller sends, and the entry in the audit log.

    The leg `audit` fails if the audit was deleted, or has an active run.
    """
    legs, message, record = _run_legs(audit, run)
    when = "attribute_exists(pk) AND attribute_not_exists(#activeRunId)"
    active = Update(audit.key, "SET #activeRunId = :run", when, {"run": run.run_id})
    return {"audit": active, **legs}, message, record


def _run_legs(audit: AuditItem, run: RunItem) -> tuple[dict[str, Leg], Entry, Recorded]:
    """Returns the legs of `starting` except `audit`, its message, and its entry in the audit log."""
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
    watch = {"runId": run.run_id, "auditId": run.audit_id, "projectId": run.project_id}
    legs: dict[str, Leg] = {
        "run": Put(run.to_item()),
        "watch": Put({**run.watch_key._asdict(), **watch}),
        "message": message.leg,
    }
    return legs, message, _recorded(Action.AUDIT_RUN, audit, after={"runId": run.run_id, "trigger": run.trigger})


def _recorded(
    action: Action, audit: AuditItem, *, before: Mapping[str, object] | None = None, after: Mapping[str, object]
) -> Recorded:
    return Recorded(action, audit.project_id.organization_id, audit.audit_id, audit.url, before or {}, after)
