"""Scheduled website audits and their runs.

An audit belongs to a website, which lists it in the project's item, and is deleted with it. Runs are kept.
"""

from collections.abc import Mapping
from typing import Any

from controlplane.core import clock, ids
from controlplane.core.retention import expiry
from controlplane.core.settings import settings
from controlplane.store import keys
from controlplane.store.project_items import AUDITABLE_KIND, ProjectItem
from controlplane.store.projects import MAX_AUDITS, UnknownProject, UnknownWebsite, change_until_written, get_project
from controlplane.store.table import Check, Leg, LegFailed, Put, StoreError, table

MAX_AUDITS_PER_WEBSITE = 5


class NotAuditable(StoreError):
    """Only a website of the kind `domain` can be audited."""


class AuditLimitReached(StoreError):
    """The website or its project has reached its limit of audits."""


class UnknownAudit(StoreError):
    """The audit doesn't exist, or was deleted."""


def create_audit(project_id: str, website_id: str, every_days: int) -> dict[str, Any]:
    """Creates an audit of the website and its schedule: at most 5 per website and 40 per project.

    Raises UnknownProject, UnknownWebsite, NotAuditable, AuditLimitReached.
    """
    audit_id = ids.within(ids.AUDIT)
    project = get_project(project_id)
    location = project.location
    item = {
        **keys.audit(*location, audit_id)._asdict(),
        "auditId": audit_id,
        "projectId": project_id,
        "websiteId": website_id,
        "createdAt": clock.timestamp(),
    }
    schedule = {**keys.audit_schedule(*location, audit_id)._asdict(), "everyDays": every_days}

    def audited(before: ProjectItem) -> tuple[ProjectItem, Mapping[str, Leg]]:
        website = before.find_website(website_id)
        if website is None:
            raise UnknownWebsite
        if website.kind != AUDITABLE_KIND:
            raise NotAuditable
        if len(website.audits) >= MAX_AUDITS_PER_WEBSITE or before.audit_count >= MAX_AUDITS:
            raise AuditLimitReached
        with_audit = website._replace(audits=(*website.audits, audit_id))
        websites = tuple(with_audit if other is website else other for other in before.websites)
        return before._replace(websites=websites).rewritten(), {"audit": Put(item), "schedule": Put(schedule)}

    change_until_written(project, audited)
    return item


def record_run(project_id: str, audit_id: str, result: str) -> dict[str, Any]:
    """Stores a run of an audit and its result. Raises UnknownProject, UnknownAudit."""
    located = ids.locate(ids.PROJECT, project_id)
    if located is None:
        raise UnknownProject
    run = ids.new_local()
    item = {
        **keys.audit_run(*located, audit_id, run)._asdict(),
        "auditId": audit_id,
        "projectId": project_id,
        "startedAt": clock.timestamp(),
        "result": result,
        **expiry(settings.audit_run_retention_days),
    }
    try:
        table.transact({"audit": Check(keys.audit(*located, audit_id), "attribute_exists(pk)"), "run": Put(item)})
    except LegFailed as refusal:
        if refusal.leg != "audit":
            raise
        raise UnknownAudit from None
    return item
