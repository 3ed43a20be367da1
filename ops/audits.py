"""Operator actions on website audits that the store doesn't provide."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from controlplane.platform.core.actions import Action
from controlplane.platform.table import keys
from controlplane.platform.table.table import Leg, table
from controlplane.projects.audits import AuditItem, UnknownAudit
from controlplane.projects.changes import change_until_written
from controlplane.projects.items import ProjectItem
from controlplane.projects.store import audit_deletions


def list_audits(project: ProjectItem) -> list[dict[str, Any]]:
    """Returns the project's audits by website, with their schedules. At most 40, so one round trip reads them all."""
    audits = [(website, audit_id) for website in project.websites for audit_id in website.audits]
    location = project.project_id.location
    wanted = [key(*location, audit_id) for key in (keys.audit, keys.audit_schedule) for _, audit_id in audits]
    items = table.batch_get(wanted)
    return [
        {
            "auditId": audit_id,
            "websiteId": website.website_id,
            "origin": website.origin,
            "everyDays": schedule["everyDays"],
            "createdAt": AuditItem.from_item(item).created_at,
        }
        for (website, audit_id), item, schedule in zip(audits, items[: len(audits)], items[len(audits) :], strict=True)
        if item and schedule
    ]


def delete_audit(project: ProjectItem, audit_id: str) -> str | None:
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
        after = before.with_website(replace(website, audits=tuple(it for it in website.audits if it != audit_id)))
        return after.with_new_version(), audit_deletions(before, [replace(website, audits=(audit_id,))])

    after = change_until_written(project, Action.AUDIT_DELETE, without_audit)
    return None if after.find_website(website_id) else website_id
