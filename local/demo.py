"""Demo data for trying out a stack, as demo.yaml describes it.

Everything is created in an empty table, through the same code as the product's operations.
"""

import gzip
import json
from base64 import b64encode
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import Any

import yaml

from controlplane.api_keys import store as api_keys
from controlplane.audits import store as audits
from controlplane.billing import store as billing
from controlplane.code_host import repositories
from controlplane.code_host.items import HostedRepository, Link, RepositoryItem
from controlplane.findings import publications
from controlplane.organizations import invitations
from controlplane.organizations import store as organizations
from controlplane.people import tokens as user_tokens
from controlplane.people import users
from controlplane.people.users import UserItem
from controlplane.platform.core.scopes import SCOPES
from controlplane.platform.core.settings import settings
from controlplane.platform.queues import outbox
from controlplane.platform.queues.sweep_runs import SweepRun
from controlplane.platform.table.leases import Lease
from controlplane.platform.table.table import table
from controlplane.projects import store as projects
from controlplane.projects.items import Address, ProjectItem
from controlplane.projects.origins import parse_origin
from controlplane.scans import execution, findings, requests
from controlplane.scans.findings import FindingItem, Location
from controlplane.scans.history import HistoryItem, put_history
from controlplane.scans.items import Coverage, CoveredKind, ScanItem
from controlplane.scans.reads import Inventory, UsedVendor, VendorPackage, stored_leg
from finding_intake.service import ACCEPTED, process_finding
from local.github import setup
from ops import members
from sweeper.advisories import match_advisories

_DATA = Path(__file__).with_name("demo.yaml")
_TOKEN_LIFE_SECONDS = 3650 * 86_400
_LEASE_SECONDS = 60
_COMMIT = "5e0d3a7c" * 5
# The fields that are the same for all cookies here.
_COOKIE = {"path": "/", "secure": True, "httpOnly": False, "sameSite": "Lax", "setBy": "", "identifies": False}
_FILE = "src/legacy/pixels.js"


def create_demo(base_url: str) -> dict[str, Any]:
    """Creates the demo data, and returns its ids and credentials.

    Returns {organizations: [{organizationId, slug, plan}], users: [{email, name, userId, accessToken, role,
    organizationId}], apiKeys: [{organizationId, key, keyId}], repositories: [{repositoryId, organizationId}]}.
    """
    data = yaml.safe_load(_DATA.read_text())
    result: dict[str, Any] = {"organizations": [], "users": [], "apiKeys": [], "repositories": []}
    for described in data["organizations"]:
        people = [(users.create_user(it["email"], it["name"]), it["role"]) for it in described["people"]]
        owner, _ = people[0]
        created = organizations.create_organization(described["name"], described["slug"], owner.user_id)
        named = {"organizationId": created.organization_id}
        for person, role in people[1:]:
            members.add_member(organizations.get_organization(created.organization_id), person.user_id, role)
        project = _create_project(created.organization_id, described)
        result["organizations"].append({**named, "slug": described["slug"], "plan": described["plan"]})
        for person, role in people:
            token = user_tokens.create_token(person.user_id, list(SCOPES), _TOKEN_LIFE_SECONDS)
            about = {"email": person.email, "name": person.name, "userId": person.user_id}
            result["users"].append({**about, "accessToken": token, "role": role, **named})
        if described["plan"] != "free":
            billing.change_plan(created.organization_id, described["plan"])
            key = api_keys.create_key(created.organization_id, "Demo", owner.user_id, "demo")
            result["apiKeys"].append({**named, "key": key.secret, "keyId": key.item.key_id})
            result["repositories"].append({**named, "repositoryId": _fill(data, project, owner, base_url)})
    return result


def _create_project(organization_id: str, described: dict[str, Any]) -> ProjectItem:
    """Creates the project, with an audit of its first website."""
    origins = [parse_origin(website) for website in described["websites"]]
    project = projects.create_project(
        organization_id,
        described["project"],
        region=settings.regions[0].id,
        addresses=[Address(origin.origin, origin.kind) for origin in origins],
        branding=settings.service_brand,
    )
    audits.create_audit(project, project.websites[0].website_id, "weekly")
    return projects.get_project(project.project_id)


def _fill(data: dict[str, Any], project: ProjectItem, owner: UserItem, base_url: str) -> str:
    """Adds credits, an invitation, an inbox, and a scanned repository. Returns the repository's id."""
    organization_id, project_id = project.project_id.organization_id, project.project_id
    billing.add_credits(organization_id, 500)
    billing.enable_top_up(organization_id, threshold=50, amount=200, monthly_limit=3)
    limits = invitations.Limits(settings.invitations_per_organization, settings.invitations_per_address)
    invitations.create_invitation(
        organization_id, "guest@acme.example", "member", inviter_id=owner.user_id, limits=limits, extra_legs={}
    )
    detected = {"kind": "runtime-vendor-detection", "projectId": project_id, "observedAt": project.created_at}
    for detection in data["detections"]:
        _receive({**detected, **detection})
    _run_audit(project, data["audit"])
    hosted = HostedRepository(
        installation_id=setup.installation_id(setup.DEMO_OWNER),
        owner=setup.DEMO_OWNER,
        name=setup.DEMO_NAME,
        html_url=f"{base_url}{setup.PREFIX}/{setup.DEMO_OWNER}/{setup.DEMO_NAME}",
        default_branch=setup.DEMO_BRANCH,
        visibility="private",
    )
    repository = repositories.connect_repository(organization_id, hosted)
    linked = repositories.link_project(repository.repository_id, Link(project_id, None, None, False))
    _create_scans(linked, data["past_findings"], owner.user_id)
    return repository.repository_id


def _receive(message: dict[str, Any]) -> None:
    """Processes a message of the intake, without its queue."""
    process_finding(ACCEPTED.validate_json(json.dumps({"version": 1, **message})))


def _run_audit(project: ProjectItem, described: dict[str, Any]) -> None:
    """Writes a run of the project's audit with that report, without a message to the worker."""
    (audit,) = audits.list_audits(project.project_id, 1, None).items
    run = audits.new_run(audit, "manual")
    legs, message, record = audits.starting(audit, run)
    table.transact(legs, record)
    outbox.delete_entry(message)
    recorded = described.pop("recorded")
    for visit in recorded["visits"]:
        visit |= {"halted": None, "tcf": None, "refused": {}, "consentMode": [], "pages": recorded["pages"]}
        visit |= {"requestCount": len(visit["requests"])}
        usual = {"page": recorded["pages"][0], "at": 300}
        visit["requests"] = [{**usual, **it} for it in visit["requests"]]
        visit["cookies"] = [{**usual, **_COOKIE, "pattern": it["name"], **it} for it in visit["cookies"]]
    packed = b64encode(gzip.compress(json.dumps(recorded).encode())).decode()
    of_run = {"runId": run.run_id, "auditId": run.audit_id, "projectId": run.project_id, "claim": run.claim}
    _receive({"kind": "website-audit-report", **of_run, **described, "visits": packed, "finishedAt": run.created_at})


def _create_scans(repository: RepositoryItem, described: list[dict[str, str]], requested_by: str) -> None:
    """Writes a past scan of the repository, as the workers would have run it, and requests another for them to run.

    The past one found trackers that the repository doesn't have anymore, so there is something to compare with. Its
    findings go to the inbox, with an advisory about a package that the repository still has.

    described: priority, severity, and vendor of each finding of the past scan.
    """
    scan, running = _start_past_scan(repository, requested_by)
    found = [_finding(scan, line, **it) for line, it in enumerate(described, 1)]
    put_history(running, [_history(scan, finding) for finding in found])
    findings.put_findings(scan.scan_id, running.attempt, found)
    counts = Counter(finding.priority for finding in found)
    scan = replace(scan, issue_count=len(found), priority_counts=counts)
    publications.publish_findings([findings.as_discovery(scan, it) for it in found[: scan.visible_count]])
    coverage = Coverage(9, 8, {}, (CoveredKind("JavaScript and TypeScript", 8, 0), CoveredKind("Markdown", 0, 1)))
    package = VendorPackage("klaro", "~0.7.0", "package.json", "0.7.18")
    used = UsedVendor("klaro", "Klaro", "consent-management", (package,))
    stored = stored_leg(scan.scan_id, Inventory(files=9, vendors=(used,)))
    execution.report_stage(running, "publish", "running", inventory=stored)
    execution.complete_scan(scan, running, len(found), len(found), coverage)
    match_advisories(SweepRun("MatchedRepositories", inf))
    current = repositories.get_repository(repository.repository_id)
    requests.request_scan(current, repository.links[0].project_id, requested_by, {})


def _start_past_scan(repository: RepositoryItem, requested_by: str) -> tuple[ScanItem, Lease]:
    """Writes the same items as the workers, without messages."""
    (link,) = repository.links
    request, prepare = requests.create_request(repository, link, requested_by=requested_by)
    lease, request = requests.acquire_request(request.request_id, _LEASE_SECONDS)
    target = requests.Target(repository, link, repository.default_branch or "main", _COMMIT)
    scan, sent = requests.start_scan(request, lease, target, "free-preview")
    for message in (prepare, *sent):
        outbox.delete_entry(message)
    running, scan = execution.acquire_scan(scan.scan_id, _LEASE_SECONDS)
    return scan, running


def _finding(scan: ScanItem, line: int, priority: str, severity: str, vendor: str) -> FindingItem:
    return FindingItem(
        fingerprint=sha256(f"demo {vendor}".encode()).hexdigest(),
        rule_id="tracker-loaded",
        title=f"{vendor} is loaded before consent",
        description=f"{vendor} starts with the page, before the visitor has agreed.",
        category="trackers",
        severity=severity,
        priority=priority,
        location=Location(
            path=_FILE,
            start_line=line,
            end_line=line,
            start_column=1,
            end_column=19,
            snippet="loadScript(address)",
            permalink=f"{scan.repository_url}/blob/{scan.head_commit_sha}/{_FILE}#L{line}",
        ),
        remediation=f"Load {vendor} only after the visitor has agreed.",
        references=("https://eur-lex.europa.eu/eli/dir/2002/58/oj",),
        first_seen_at=scan.created_at,
    )


def _history(scan: ScanItem, finding: FindingItem) -> HistoryItem:
    return HistoryItem(
        repository_id=scan.repository_id,
        fingerprint=finding.fingerprint,
        first_seen_at=scan.created_at,
        rule_id=finding.rule_id,
        content=finding.fingerprint,
        shape="",
        path=_FILE,
        project_ids=(scan.project_id,),
    )
