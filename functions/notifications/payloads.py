"""The content of webhooks: ids, kinds, titles, and links to the pages.

No code, no evidence, no secret, and no personal data: a receiver that needs more reads it from the API.
"""

import json
from typing import Any

from controlplane.api_keys import leaked
from controlplane.api_keys import store as api_keys
from controlplane.audits import runs
from controlplane.billing import store as billing
from controlplane.findings import inbox
from controlplane.findings.items import InboxItem
from controlplane.organizations import members
from controlplane.organizations import store as organizations
from controlplane.organizations.items import OrganizationItem
from controlplane.organizations.members import UnknownMember
from controlplane.platform.core.errors import NotFound
from controlplane.platform.core.ids import InboxItemId, KeyId, MemberId, ProjectId, RunId, ScanId
from controlplane.platform.core.plans import LOW_CREDITS
from controlplane.platform.queues.messages import OrganizationEvent
from controlplane.projects import store as projects
from controlplane.scans import reads


def build(event: OrganizationEvent, organization_id: str, pages_url: str) -> str | None:
    """Returns the event as JSON, or None if its subject doesn't exist anymore."""
    organization = organizations.find_organization(organization_id)
    if organization is None:
        return None
    page = f"{pages_url}/organizations/{organization.slug}"
    try:
        data = _data(event, organization, page)
    except (NotFound, UnknownMember):
        return None
    if data is None:
        return None
    owner = {"id": organization_id, "name": organization.name, "slug": organization.slug}
    return json.dumps(
        {"type": event.event, "timestamp": event.at, "data": {"organization": owner, **data}}, ensure_ascii=False
    )


def _data(event: OrganizationEvent, organization: OrganizationItem, page: str) -> dict[str, Any] | None:
    match event.event:
        case "finding.opened" | "finding.resolved":
            found = inbox.find_items([InboxItemId.stored(it) for it in event.subjects]).values()
            return {"findings": [_finding(it, page) for it in found]} if found else None
        case "scan.completed":
            return _scan(ScanId.stored(event.subjects[0]), page)
        case "audit.completed":
            return _audit_run(*event.subjects, page=page)
        case "key.created":
            return _key(KeyId.stored(event.subjects[0]), page)
        case "key.leaked":
            return _leaked_key(KeyId.stored(event.subjects[0]), page)
        case "member.joined":
            return _member(MemberId.stored(event.subjects[0]), page)
        case "credits.low":
            _, account = billing.get_billing(organization.organization_id)
            return {"credits": account.credits, "threshold": LOW_CREDITS, "url": f"{page}/billing"}
        case _:
            return None


def _finding(item: InboxItem, page: str) -> dict[str, Any]:
    return {
        "id": item.item_id,
        "title": item.title,
        "status": item.status,
        "priority": item.priority,
        "source": item.source,
        "ruleId": item.rule_id,
        "projectId": item.project_id,
        "repository": item.repository_name,
        "url": f"{page}/inbox/{item.item_id}",
    }


def _scan(scan_id: ScanId, page: str) -> dict[str, Any]:
    scan = reads.get_scan(scan_id)
    return {
        "scan": {
            "id": scan.scan_id,
            "repositoryId": scan.repository_id,
            "repository": scan.repository_name,
            "projectId": scan.project_id,
            "branch": scan.branch,
            "commitSha": scan.head_commit_sha,
            "pullRequest": scan.cause.pull_request_number,
            "issueCount": scan.issue_count,
            "url": f"{page}/scans/{scan.scan_id}",
        }
    }


def _audit_run(run_id: str, project_id: str, audit_id: str, *, page: str) -> dict[str, Any] | None:
    project = projects.get_project(ProjectId.stored(project_id))
    run = runs.find_run(project.project_id, audit_id, RunId.stored(run_id))
    if run is None:
        return None
    return {
        "auditRun": {
            "id": run.run_id,
            "auditId": run.audit_id,
            "projectId": run.project_id,
            "websiteId": run.website_id,
            "website": run.url,
            "trigger": run.trigger,
            "outcome": run.outcome,
            "reason": run.reason.code if run.reason else None,
            "findingCount": len(run.findings),
            "newFindingCount": len(run.changes.new_findings) if run.changes else len(run.findings),
            "url": f"{page}/projects/{project.slug}/audits/{run.audit_id}/runs/{run.run_id}",
        }
    }


def _key(key_id: KeyId, page: str) -> dict[str, Any]:
    _, key = api_keys.get_key(key_id)
    return {"apiKey": {"id": key.key_id, "name": key.name, "url": f"{page}/keys/{key.key_id}"}}


def _leaked_key(key_id: KeyId, page: str) -> dict[str, Any] | None:
    known = leaked.find_leaked_key(key_id)
    if known is None:
        return None
    key = {"id": key_id, "name": known.name, "url": f"{page}/keys"}
    return {"apiKey": key, "leak": {"source": known.leak.source, "url": known.leak.url}}


def _member(member_id: MemberId, page: str) -> dict[str, Any]:
    member = members.get_member(member_id.organization_id, f"usr_{member_id.local}")
    return {"member": {"id": member_id, "role": member.role, "url": f"{page}/members"}}
