"""Helpers that create projects for tests, and inspect their stored items."""

import gzip
import json
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from controlplane.audits import store as audits
from controlplane.audits.items import ReportItem, RunItem
from controlplane.findings.discoveries import finding_item_id
from controlplane.platform.table import keys
from controlplane.platform.table.table import Put, table
from controlplane.projects import changes
from controlplane.projects import store as projects
from controlplane.projects.items import Address, ProjectItem
from tests.support.api import Api, Reply
from tests.support.table import PREPARED
from tests.support.world import Company, table_dump


def make_project(
    company: Company, name: str = "Shop", origins: Iterable[str] = ("example.com",), branding: str = "assent"
) -> ProjectItem:
    """Creates a project whose websites have these origins as domains."""
    addresses = [Address(origin, "domain") for origin in origins]
    return projects.create_project(
        company.organization_id, name, region="eu-central", addresses=addresses, branding=branding
    )


def add_audits(project: ProjectItem, position: int = 0, count: int = 1) -> list[str]:
    """Creates audits of the website at that position. Returns their IDs."""
    website_id = project.websites[position].website_id
    current = projects.get_project(project.project_id)
    return [audits.create_audit(current, website_id, "weekly").audit_id for _ in range(count)]


def add_run(project: ProjectItem, audit_id: str, **fields: Any) -> RunItem:
    """Stores a completed run of the audit, with a report."""
    started = audits.new_run(audits.get_audit(project.project_id, audit_id), "manual")
    run = replace(started, **{"status": "completed", "outcome": "passed", "finished_at": started.created_at, **fields})
    visits = b64encode(gzip.compress(json.dumps({"visits": [{"choice": "refused"}], "pages": [run.url]}).encode()))
    report = ReportItem(
        run_id=run.run_id, audit_id=audit_id, project_id=run.project_id, visits=visits.decode(), picture="/9j/"
    )
    table.put_all([run.to_item(), report.to_item()], PREPARED)
    return run


def without_consent(project: ProjectItem) -> ProjectItem:
    """Returns the project after removing its consent instance."""
    changed = replace(project, consent=None).with_new_version()
    table.put(changes.put_changed(project, changed), PREPARED)
    return changed


def add_finding(project: ProjectItem, vendor_id: str) -> str:
    """Stores an open runtime finding for the vendor, with few attributes. Returns the finding's ID."""
    organization_id, project_local = project.project_id.location
    finding = finding_item_id(organization_id, "runtime", project.project_id, vendor_id)
    of_vendor = {"projectId": project.project_id, "vendorId": vendor_id}
    found = {**of_vendor, "inboxItemId": finding, "revision": 1}
    table.put(Put({**keys.vendor(organization_id, project_local, vendor_id)._asdict(), **found}), PREPARED)
    item = {
        **keys.inbox_item(*finding.location)._asdict(),
        "itemId": finding,
        "title": "Segment loads before consent",
        "status": "open",
        "source": "runtime",
        "version": "first",
        "updatedAt": "2026-01-01T00:00:00.000Z",
        "runtimeVendor": {**of_vendor, "name": "Segment", "domain": "segment.com"},
    }
    table.put(Put(item), PREPARED)
    return finding


def stored(kind: str) -> list[dict[str, Any]]:
    """Returns the items whose sort key has this prefix."""
    return [item for item in table_dump() if item["sk"]["S"].startswith(kind)]


def entries(kind: str) -> list[str]:
    """Returns the audits that the sweep's entries of that kind are about."""
    return [item["auditId"]["S"] for item in table_dump() if item["pk"]["S"].startswith(f"{kind}#")]


def projects_counted(company: Company) -> int:
    return int((table.get(keys.organization(company.organization_id)) or {})["projects"])


def fill(company: Company, count: int) -> None:
    """Sets the organization's project count without creating projects."""
    organization = table.get(keys.organization(company.organization_id))
    assert organization is not None
    table.put(Put({**organization, "projects": count}), PREPARED)


def create(api: Api, token: str, query: str = "", **fields: Any) -> Reply:
    """Sends a create request in the shape that the fields imply."""
    body = {"name": "Shop", "region": "eu-central", **fields}
    return api.post(f"/v1/projects{query}", token, json_body=body)
