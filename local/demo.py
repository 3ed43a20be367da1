"""Demo data for trying out a stack: two organizations with people, a key, projects, an audit, and an inbox.

Everything is created in an empty table, through the same code as the product's operations.
"""

from typing import Any, NamedTuple

from controlplane.api_keys import store as api_keys
from controlplane.billing import store as billing
from controlplane.code_host import repositories
from controlplane.code_host.items import HostedRepository, Link
from controlplane.organizations import invitations
from controlplane.organizations import store as organizations
from controlplane.people import tokens as user_tokens
from controlplane.people import users
from controlplane.people.users import UserItem
from controlplane.platform.core.regions import REGIONS
from controlplane.platform.core.roles import Role
from controlplane.platform.core.scopes import SCOPES
from controlplane.platform.core.settings import settings
from controlplane.projects import audits
from controlplane.projects import store as projects
from controlplane.projects.items import Address, ProjectItem
from controlplane.projects.origins import parse_origin
from finding_intake.service import process_finding
from local.demo_scans import create_scans
from local.github import setup
from ops import members
from ops.intake import read_message

_TOKEN_LIFE_SECONDS = 3650 * 86_400


class DemoOrganization(NamedTuple):
    """An organization with one project. Its first person is the owner. The first organization has all the rest."""

    slug: str
    name: str
    plan: str
    project: str
    websites: tuple[str, ...]
    people: tuple[tuple[str, str, Role], ...]


ORGANIZATIONS = (
    DemoOrganization(
        "acme",
        "Acme",
        "pro",
        "Acme Shop",
        ("shop.example.com", "*.shop.example.com", "localhost:5173"),
        (
            ("owner@acme.example", "Olivia Owner", "owner"),
            ("admin@acme.example", "Ada Admin", "admin"),
            ("member@acme.example", "Max Member", "member"),
        ),
    ),
    DemoOrganization(
        "birch",
        "Birch",
        "free",
        "Birch Blog",
        ("blog.example.org",),
        (("outsider@birch.example", "Otto Outsider", "owner"),),
    ),
)


def create_demo(base_url: str) -> dict[str, Any]:
    """Creates the demo data, and returns its ids and credentials.

    The GitHub stand-in's repository is connected to the first organization, linked to its project, and scanned. The
    scans, runtime detections, and an advisory fill the organization's inbox.

    Returns {organizations: [{organizationId, slug, plan}], users: [{email, name, userId, accessToken, role,
    organizationId}], apiKeys: [{organizationId, key, keyId}], repositories: [{repositoryId, organizationId}]}.
    """
    result: dict[str, Any] = {"organizations": [], "users": [], "apiKeys": [], "repositories": []}
    for demo in ORGANIZATIONS:
        people = [(users.create_user(email, name), role) for email, name, role in demo.people]
        owner, _ = people[0]
        organization_id = organizations.create_organization(demo.name, demo.slug, owner.user_id).organization_id
        for person, role in people[1:]:
            members.add_member(organizations.get_organization(organization_id), person.user_id, role)
        project = _create_project(organization_id, demo)
        result["organizations"].append({"organizationId": organization_id, "slug": demo.slug, "plan": demo.plan})
        result["users"] += [
            {
                "email": person.email,
                "name": person.name,
                "userId": person.user_id,
                "accessToken": user_tokens.create_token(person.user_id, list(SCOPES), _TOKEN_LIFE_SECONDS),
                "role": role,
                "organizationId": organization_id,
            }
            for person, role in people
        ]
        if demo is ORGANIZATIONS[0]:
            _fill(result, project, owner, _hosted(base_url))
    return result


def _create_project(organization_id: str, demo: DemoOrganization) -> ProjectItem:
    """Creates the project, with an audit of its first website that has passed once."""
    origins = [parse_origin(website) for website in demo.websites]
    project = projects.create_project(
        organization_id,
        demo.project,
        region=next(iter(REGIONS)),
        addresses=[Address(origin.origin, origin.kind) for origin in origins],
        branding=settings.service_brand,
    )
    audit = audits.create_audit(project.project_id, project.websites[0].website_id, every_days=7)
    audits.record_run(project.project_id, audit.audit_id, "passed")
    return project


def _fill(result: dict[str, Any], project: ProjectItem, owner: UserItem, hosted: HostedRepository) -> None:
    """Adds everything that only one organization has, and its credentials to the result."""
    organization_id = project.project_id.organization_id
    billing.change_plan(organization_id, ORGANIZATIONS[0].plan)
    billing.add_credits(organization_id, 500)
    billing.enable_top_up(organization_id, threshold=50, amount=200, monthly_limit=3)
    limits = invitations.Limits(settings.invitations_per_organization, settings.invitations_per_address)
    invitations.create_invitation(
        organization_id, "guest@acme.example", "member", inviter_id=owner.user_id, limits=limits, extra_legs={}
    )
    for report in _reports(project):
        process_finding(read_message(**report, projectId=project.project_id))
    repository = repositories.connect_repository(organization_id, hosted)
    repositories.link_project(repository.repository_id, Link(project.project_id, None, None, False))
    create_scans(repository.repository_id, project.project_id, owner.user_id)
    key = api_keys.create_key(organization_id, "Demo", owner.user_id, "demo")
    result["repositories"].append({"repositoryId": repository.repository_id, "organizationId": organization_id})
    result["apiKeys"].append({"organizationId": organization_id, "key": key.secret, "keyId": key.item.key_id})


def _hosted(base_url: str) -> HostedRepository:
    """Returns the demo repository of the GitHub stand-in."""
    owner, name = setup.DEMO_OWNER, setup.DEMO_NAME
    return HostedRepository(
        installation_id=setup.installation_id(owner),
        owner=owner,
        name=name,
        html_url=f"{base_url}{setup.PREFIX}/{owner}/{name}",
        default_branch=setup.DEMO_BRANCH,
        visibility="private",
    )


def _reports(project: ProjectItem) -> list[dict[str, Any]]:
    """Returns two runtime detections and an advisory for the project's inbox."""
    detection = {"kind": "runtime-vendor-detection", "observedAt": project.created_at}
    return [
        {
            **detection,
            "vendorId": "segment",
            "name": "Segment",
            "domain": "cdn.segment.com",
            "category": "analytics",
            "beforeConsent": True,
            "seenOn": ["https://shop.example.com/", "https://shop.example.com/checkout"],
        },
        {
            **detection,
            "vendorId": "widgets.example.net",
            "name": "widgets.example.net",
            "domain": "widgets.example.net",
            "seenOn": ["https://shop.example.com/"],
        },
        {
            "kind": "advisory",
            "organizationId": project.project_id.organization_id,
            "advisoryId": "ADV-2026-014",
            "title": "Consent records of runtime 2.0 lack the version of the policy",
            "summary": "Records do not say which policy visitors agreed to.",
            "priority": "P2",
            "description": "To prove consent, you need the version of the policy that was shown.",
            "remediation": "Update the runtime to 2.1, which asks again where the version is missing.",
            "references": ["https://docs.example.com/advisories/ADV-2026-014"],
            "publishedAt": project.created_at,
        },
    ]
