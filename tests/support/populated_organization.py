"""An organization with every kind of item, and checks of what remains after its deletion."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from controlplane.audits import store as audits
from controlplane.audits.items import ReportItem
from controlplane.code_host import repositories
from controlplane.code_host.items import RepositoryItem
from controlplane.feedback import store as feedback
from controlplane.findings import conversations, inbox, intake, issue_attempts, vendors
from controlplane.findings.intake import RuntimeVendorDetection
from controlplane.organizations import store as organizations
from controlplane.platform.core import ids
from controlplane.platform.queues.outbox import delete_entry, new_entry
from controlplane.platform.table.table import table
from controlplane.projects import store as projects
from controlplane.projects.items import ProjectItem
from controlplane.scans import findings, unlocks
from controlplane.scans.items import ScanItem
from tests.support.audits import history_of, make_issue, make_request, make_scan
from tests.support.cleanup import clean_up
from tests.support.table import PREPARED
from tests.support.world import Company, World, publish_finding, table_dump

OBSERVED_AT = "2026-03-04T05:00:00.000Z"


@dataclass
class PopulatedOrganization:
    """`scan` is completed, unlocked, and paid for. Another scan of the repository is requested."""

    company: Company
    keys: list[str]
    project: ProjectItem
    repository: RepositoryItem
    scan: ScanItem
    request_id: str
    audit_id: str


def populate_organization(world: World, company: Company | None = None) -> PopulatedOrganization:
    company = company or world.company()
    organization_id, owner = company.organization_id, company.owner.user_id
    secrets = [world.key(company), world.key(company)]
    repository = world.connected_repository(company)
    project = projects.get_project(repository.links[0].project_id)
    audit = audits.create_audit(project, project.websites[0].website_id, "weekly")
    run = audits.start_run(audit)
    report = ReportItem(run_id=run.run_id, audit_id=run.audit_id, project_id=run.project_id)
    table.put_all([report.to_item()], PREPARED)
    vendors.decide_vendor(project, "mixpanel", "approved", owner)
    intake.record_detection(detection(project.project_id))
    issues = [make_issue(number) for number in range(1, 6)]
    scan = make_scan(repository, issues=issues)
    table.put_all((history_of(scan, issue).to_item() for issue in issues), PREPARED)
    found = [publish_finding(findings.as_discovery(scan, issue)) for issue in issues]
    issue_attempts.begin_attempt(found[0].item_id, owner)
    inbox.change_status(found[1], "dismissed", found[1].version, owner, "Not ours")
    world.credits(company, 60)
    message = new_entry("scan-execution", {})
    unlocks.charge(scan, owner, message)
    delete_entry(message)
    conversations.add_comment(world.finding(company), "Ours?", owner, {})
    world.invitation(company, f"invited-{project.slug}@example.com")
    organizations.save_default(owner, organization_id)
    feedback.submit_report(organization_id, {"category": "bug", "message": "It is slow."})
    clean_up()  # deletes what the completed scan supersedes
    request_id = make_request(repositories.get_repository(repository.repository_id))
    return PopulatedOrganization(company, secrets, project, repository, scan, request_id, audit.audit_id)


def detection(project_id: str, vendor_id: str = "segment", **fields: Any) -> RuntimeVendorDetection:
    """Returns the message of a detection. fields: as senders name them."""
    usual = {"name": "Segment", "domain": "segment.com", "category": "analytics", "observedAt": OBSERVED_AT}
    found = {"projectId": project_id, "vendorId": vendor_id, **usual, **fields}
    return RuntimeVendorDetection.model_validate_json(json.dumps(found))


def kinds_containing(*texts: str) -> set[str]:
    """Returns the kinds, as key prefixes, of the items that contain one of the texts."""
    return kinds_of(item for item in table_dump() if any(text in str(item) for text in texts))


def kinds_of(items: Iterable[dict[str, Any]]) -> set[str]:
    """Returns the kinds of the items, as key prefixes."""
    places = [(item["pk"]["S"], item["sk"]["S"]) for item in items]
    return {(sk if pk.startswith("ORG#") else pk).partition("#")[0] for pk, sk in places}


def id_part(organization_id: str) -> str:
    """Returns the part that all ids in an organization contain."""
    return organization_id.removeprefix(f"{ids.ORGANIZATION}_")
