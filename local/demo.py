"""Demo data for trying out a stack: two organizations with users, a key, projects, and an audit.

Every function is idempotent: it creates what is missing and corrects what differs. So a demo survives restarts, and the
next run completes an interrupted one.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from controlplane.api_keys import store as api_keys
from controlplane.api_keys.items import KeySecretItem
from controlplane.billing import store as billing
from controlplane.code_host import repositories
from controlplane.code_host.items import HostedRepository, Link
from controlplane.organizations import invitations
from controlplane.organizations import store as organizations
from controlplane.organizations.store import Role
from controlplane.people import tokens as user_tokens
from controlplane.people import users
from controlplane.people.users import UserItem
from controlplane.platform.core import clock, tokens
from controlplane.platform.core.plans import API_KEYS_PER_ORGANIZATION, REGIONS
from controlplane.platform.core.scopes import SCOPES
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from controlplane.projects import audits
from controlplane.projects import store as projects
from controlplane.projects.items import AUDITABLE_KIND, Address, ProjectItem
from controlplane.projects.origins import parse_origin
from finding_intake.service import process_finding
from local.demo_scans import ensure_scans
from ops import members
from ops.intake import read_message
from ops.lookup import find_organization

_DAY_SECONDS = 86_400
_TOKEN_LIFE_SECONDS = 3650 * _DAY_SECONDS
_KEY_NAME = "Demo"
_CREATED_FROM = "demo"
_GUEST = "guest@acme.example"


class DemoUser(NamedTuple):
    """A user and their one organization."""

    email: str
    name: str
    organization: str
    role: Role


class DemoOrganization(NamedTuple):
    """An organization with one project. Its first user is the owner."""

    slug: str
    name: str
    plan: str
    credits: int
    has_key: bool
    project: str
    websites: tuple[str, ...]


ORGANIZATIONS = (
    DemoOrganization(
        "acme", "Acme", "pro", 500, True, "Acme Shop", ("shop.example.com", "*.shop.example.com", "localhost:5173")
    ),
    DemoOrganization("birch", "Birch", "free", 0, False, "Birch Blog", ("blog.example.org",)),
)

USERS = (
    DemoUser("owner@acme.example", "Olivia Owner", "acme", "owner"),
    DemoUser("admin@acme.example", "Ada Admin", "acme", "admin"),
    DemoUser("member@acme.example", "Max Member", "acme", "member"),
    DemoUser("outsider@birch.example", "Otto Outsider", "birch", "owner"),
)


def ensure_demo(known: Mapping[str, Any] | None = None, hosted: HostedRepository | None = None) -> dict[str, Any]:
    """Creates or updates the demo data, and returns its ids and credentials.

    known: the result of an earlier call. Its tokens and keys are kept while they work.
    hosted: a repository on the code host, which is connected to the first organization, linked to its project, and
        scanned. The scans, runtime detections, and an advisory fill the organization's inbox.
    Returns {organizations: [{organizationId, slug, plan}], users: [{email, userId, accessToken, role,
    organizationId}], apiKeys: [{organizationId, key, keyId}], repositories: [{repositoryId, organizationId}]}.
    """
    known = known or {}
    profiles = {user.email: ensure_user(user.email, user.name) for user in USERS}
    ids_by_slug = {}
    api_key_entries = []
    repository_entries = []
    for demo in ORGANIZATIONS:
        people = [user for user in USERS if user.organization == demo.slug]
        owner = profiles[people[0].email]
        organization_id = ensure_organization(demo.slug, demo.name, owner, demo.plan, demo.credits)
        ids_by_slug[demo.slug] = organization_id
        for user in people:
            ensure_member(organization_id, profiles[user.email], user.role)
        project = ensure_project(organization_id, demo.project, demo.websites)
        ensure_audit(project)
        if demo is ORGANIZATIONS[0]:
            ensure_findings(project)
            ensure_invitation(organization_id, owner.user_id)
            billing.enable_top_up(organization_id, threshold=50, amount=200, monthly_limit=3)
        if hosted is not None and demo is ORGANIZATIONS[0]:
            entry = ensure_repository(project, hosted)
            ensure_scans(entry["repositoryId"], project.project_id, owner.user_id)
            repository_entries.append(entry)
        if demo.has_key:
            api_key_entries.append(ensure_key(organization_id, owner.user_id, known.get("apiKeys", [])))
    known_tokens = {user["userId"]: user["accessToken"] for user in known.get("users", [])}
    return {
        "organizations": [
            {"organizationId": ids_by_slug[demo.slug], "slug": demo.slug, "plan": demo.plan} for demo in ORGANIZATIONS
        ],
        "users": [
            {
                "email": user.email,
                "userId": profiles[user.email].user_id,
                "accessToken": ensure_token(
                    profiles[user.email].user_id, known_tokens.get(profiles[user.email].user_id)
                ),
                "role": user.role,
                "organizationId": ids_by_slug[user.organization],
            }
            for user in USERS
        ],
        "apiKeys": api_key_entries,
        "repositories": repository_entries,
    }


def ensure_user(email: str, name: str) -> UserItem:
    """Returns the profile of the account with the address."""
    return users.find_user_by_email(email) or users.create_user(email, name)


def ensure_organization(slug: str, name: str, owner: UserItem, plan: str, least_credits: int) -> str:
    """Returns the id of the organization, on the given plan and with at least `least_credits`."""
    organization = find_organization(slug)
    if organization is None:
        organization_id = organizations.create_organization(name, slug, owner.user_id).organization_id
    else:
        organization_id = organization.organization_id
    stored, account = billing.get_billing(organization_id)
    if stored.plan != plan:
        billing.change_plan(organization_id, plan)
    if account.credits < least_credits:
        billing.add_credits(organization_id, least_credits - account.credits)
    return organization_id


def ensure_member(organization_id: str, profile: UserItem, role: Role) -> None:
    """Ensures that the user is a member of the organization with that role."""
    membership = organizations.find_membership(profile.user_id, organization_id)
    if membership is None:
        organization = organizations.find_organization(organization_id)
        if organization is None:
            raise LookupError("the organization was just deleted")
        members.add_member(organization, profile.user_id, role)
    elif membership.role != role:
        members.change_role(organization_id, profile.user_id, role)


def ensure_invitation(organization_id: str, inviter_id: str) -> None:
    """Ensures a pending invitation to the organization."""
    limits = invitations.Limits(settings.invitations_per_organization, settings.invitations_per_address)
    with suppress(invitations.AlreadyInvited, invitations.AlreadyMember):
        invitations.create_invitation(
            organization_id, _GUEST, "member", inviter_id=inviter_id, limits=limits, extra_legs={}
        )


def ensure_project(organization_id: str, name: str, websites: Iterable[str]) -> ProjectItem:
    """Returns the organization's project with the slug of this name. A new project gets the websites."""
    slug = projects.slug_of(name)
    with suppress(projects.UnknownProject):
        found, _ = projects.get_project_by_slug(organization_id, slug)
        if found.slug == slug:
            return found
    parsed = [parse_origin(website) for website in websites]
    return projects.create_project(
        organization_id,
        name,
        region=next(iter(REGIONS)),
        addresses=[Address(origin.origin, origin.kind) for origin in parsed],
        branding=settings.service_brand,
    )


def ensure_repository(project: ProjectItem, hosted: HostedRepository) -> dict[str, str]:
    """Ensures that the repository is connected to the project's organization and linked to the project."""
    organization_id = project.project_id.organization_id
    repository = repositories.connect_repository(organization_id, hosted)
    if repository.find_link(project.project_id) is None:
        repositories.link_project(repository.repository_id, Link(project.project_id, None, None, False))
    return {"repositoryId": repository.repository_id, "organizationId": organization_id}


def ensure_audit(project: ProjectItem) -> None:
    """Ensures an audit of the project's first domain, if it has one. A new audit gets one run."""
    domain = next((it for it in project.websites if it.kind == AUDITABLE_KIND), None)
    if domain is None or project.audit_count:
        return
    audit = audits.create_audit(project.project_id, domain.website_id, every_days=7)
    audits.record_run(project.project_id, audit.audit_id, "passed")


def ensure_findings(project: ProjectItem) -> None:
    """Ensures that the project's inbox has runtime detections and an advisory, written as the intake does.

    They are as old as the project, so a later call changes nothing, whatever has been decided on them since.
    """
    at, organization_id = project.created_at, project.project_id.organization_id
    seen = {"kind": "runtime-vendor-detection", "projectId": project.project_id, "observedAt": at}
    reports = (
        read_message(
            **seen,
            vendorId="segment",
            name="Segment",
            domain="cdn.segment.com",
            category="analytics",
            beforeConsent=True,
            seenOn=["https://shop.example.com/", "https://shop.example.com/checkout"],
        ),
        read_message(
            **seen,
            vendorId="widgets.example.net",
            name="widgets.example.net",
            domain="widgets.example.net",
            seenOn=["https://shop.example.com/"],
        ),
        read_message(
            kind="advisory",
            organizationId=organization_id,
            projectId=project.project_id,
            advisoryId="ADV-2026-014",
            title="Consent records of runtime 2.0 lack the version of the policy",
            summary="Records do not say which policy visitors agreed to.",
            priority="P2",
            description="To prove consent, you need the version of the policy that was shown.",
            remediation="Update the runtime to 2.1, which asks again where the version is missing.",
            references=["https://docs.example.com/advisories/ADV-2026-014"],
            publishedAt=at,
        ),
    )
    for report in reports:
        process_finding(report)


def ensure_token(user_id: str, known: str | None) -> str:
    """Returns a token of the user with every scope: the known one if it is valid for another day, else a new one."""
    token = user_tokens.find_token(known) if known else None
    if (
        known is not None
        and token is not None
        and token.user_id == user_id
        and token.expires_at > clock.now() + _DAY_SECONDS
        and set(token.scopes) >= set(SCOPES)
    ):
        return known
    return user_tokens.create_token(user_id, list(SCOPES), _TOKEN_LIFE_SECONDS)


def ensure_key(organization_id: str, created_by: str, known: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Returns a key of the organization: a known one that works, else a new one that replaces the demo's former key."""
    for entry in known:
        item = table.get(keys.key_secret(tokens.digest(entry["key"])))
        key = KeySecretItem.from_item(item) if item else None
        if key is not None and key.organization_id == organization_id:
            return {"organizationId": organization_id, "key": entry["key"], "keyId": key.key_id}
    page = api_keys.list_keys(organization_id, API_KEYS_PER_ORGANIZATION, None)
    former = next((it for it in page.keys if (it.name, it.created_from) == (_KEY_NAME, _CREATED_FROM)), None)
    if former is None:
        minted = api_keys.create_key(organization_id, _KEY_NAME, created_by, _CREATED_FROM)
    else:
        minted = api_keys.roll_key(former.key_id, created_by, _CREATED_FROM, grace_seconds=0)
    return {"organizationId": organization_id, "key": minted.secret, "keyId": minted.item.key_id}
