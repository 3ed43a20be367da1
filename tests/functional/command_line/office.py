"""An organization with one of everything that the command line shows."""

from dataclasses import dataclass

from controlplane.findings import intake
from controlplane.projects import changes as project_changes
from controlplane.projects import store as projects
from controlplane.projects.items import Address
from controlplane.scans import findings
from tests.support.audits import make_issue, make_scan
from tests.support.endpoints import delivered
from tests.support.populated_organization import detection
from tests.support.published import publish_finding
from tests.support.world import Company, World


@dataclass(frozen=True)
class Office:
    """names: what commands are given, such as the ID of the `scan`."""

    company: Company
    names: dict[str, str]

    @classmethod
    def create(cls, world: World) -> "Office":
        company = world.company(owner=world.person("ada@example.com"))
        world.credits(company, 500)
        world.member(company, person=world.person("grace@example.com", "Grace Hopper"))
        world.key(company, "deploy")
        second = world.company(owner=company.owner, name="Bakery")
        repository = world.connected_repository(company, name="shop")
        world.connected_repository(company, name="blog", linked=False)
        project = projects.get_project(repository.links[0].project_id)
        change = project_changes.ProjectChange(added_websites=[Address("www.example.com", "domain")])
        project_changes.update_project(project, change, may_remove_websites=False)
        intake.record_detection(detection(project.project_id))
        issues = [make_issue(number, priority="P0" if number == 5 else "P2") for number in range(1, 6)]
        preview = make_scan(repository, issues=issues)
        scan = make_scan(repository, issues=issues, access="full")
        item = publish_finding(findings.as_discovery(scan, issues[4]))
        delivery = delivered(company)
        world.invitation(company, "mary@example.com")
        names = {
            "org": company.slug,
            "second": second.slug,
            "project": project.project_id,
            "scan": scan.scan_id,
            "preview": preview.scan_id,
            "item": item.item_id,
            "other": world.finding(company, title="Outdated script").item_id,
            "webhook": delivery.webhook_id,
            "event": delivery.event_id,
        }
        return cls(company, names)
