"""Scheduled website audits and their runs.

An audit belongs to a website, which lists it in the project's item, and is deleted with it. Runs are kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from controlplane.platform.core import clock, ids
from controlplane.platform.core.actions import Action
from controlplane.platform.core.clock import expiry
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.stored import Derived, StoredItem
from controlplane.platform.table.table import Check, Leg, LegFailed, Put, Recorded, StoreError, table
from controlplane.projects.changes import UnknownWebsite, change_until_written
from controlplane.projects.items import AUDITABLE_KIND, ProjectItem
from controlplane.projects.store import MAX_AUDITS, get_project

MAX_AUDITS_PER_WEBSITE = 5


class NotAuditable(StoreError):
    """Only a website of the kind `domain` can be audited."""


class AuditLimitReached(StoreError):
    """The website or its project has reached its limit of audits."""


class UnknownAudit(StoreError):
    """The audit doesn't exist, or was deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditItem(StoredItem):
    """An audit of a website. Its schedule is a separate item."""

    audit_id: str
    project_id: ProjectId
    website_id: str
    created_at: str

    @property
    def key(self) -> Key:
        return keys.audit(*self.project_id.location, self.audit_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRunItem(StoredItem):
    """A run of an audit, with its result. It expires after `audit_run_retention_days`. The product only writes it."""

    audit_id: str
    project_id: ProjectId
    started_at: str
    result: str
    local: Annotated[str, Derived(lambda item: item["sk"].rpartition("#")[2])] = field(default_factory=ids.new_local)

    @property
    def key(self) -> Key:
        return keys.audit_run(*self.project_id.location, self.audit_id, self.local)

    def to_item(self) -> dict[str, Any]:
        return {**StoredItem.to_item(self), **expiry(settings.audit_run_retention_days)}


def create_audit(project_id: ProjectId, website_id: str, every_days: int) -> AuditItem:
    """Creates an audit of the website and its schedule: at most 5 per website and 40 per project.

    Raises UnknownProject, UnknownWebsite, NotAuditable, AuditLimitReached.
    """
    audit_id = ids.within(ids.AUDIT)
    project = get_project(project_id)
    audit = AuditItem(audit_id=audit_id, project_id=project_id, website_id=website_id, created_at=clock.timestamp())
    schedule = {**keys.audit_schedule(*project_id.location, audit_id)._asdict(), "everyDays": every_days}

    def with_audit(before: ProjectItem) -> tuple[ProjectItem, Mapping[str, Leg]]:
        website = before.find_website(website_id)
        if website is None:
            raise UnknownWebsite
        if website.kind != AUDITABLE_KIND:
            raise NotAuditable
        if len(website.audits) >= MAX_AUDITS_PER_WEBSITE or before.audit_count >= MAX_AUDITS:
            raise AuditLimitReached
        after = before.with_website(website._replace(audits=(*website.audits, audit_id)))
        return after.with_new_version(), {"audit": Put(audit.to_item()), "schedule": Put(schedule)}

    change_until_written(project, Action.AUDIT_CREATE, with_audit)
    return audit


def record_run(project_id: ProjectId, audit_id: str, result: str) -> AuditRunItem:
    """Stores a run of an audit and its result. Raises UnknownAudit."""
    run = AuditRunItem(audit_id=audit_id, project_id=project_id, started_at=clock.timestamp(), result=result)
    audit = Check(keys.audit(*project_id.location, audit_id), "attribute_exists(pk)")
    record = Recorded(Action.AUDIT_RUN, project_id.organization_id, audit_id, after={"result": result})
    try:
        table.transact({"audit": audit, "run": Put(run.to_item())}, record)
    except LegFailed as failure:
        if failure.leg != "audit":
            raise
        raise UnknownAudit from None
    return run
