"""Business rules of the projects' pages: which project a URL identifies, and what its pages show."""

import re
from typing import NamedTuple

from controlplane.code_host.items import RepositoryItem
from controlplane.findings import vendors
from controlplane.findings.vendors import Seen, VendorItem
from controlplane.organizations import store as organizations
from controlplane.organizations.store import Account, Membership
from controlplane.platform.core.errors import NotFound
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.core.plans import PLANS, Plan
from controlplane.platform.table import keys
from controlplane.platform.table.parallel import read_both
from controlplane.projects import store as projects
from controlplane.projects.items import ProjectItem
from controlplane.projects.store import ProjectPage
from controlplane.scans.items import ScanItem
from dashboard import scans
from dashboard.organizations import find_membership, get_organization
from dashboard.repositories import list_choices
from dashboard.trends import Trend, trend_of

PROJECTS_PER_PAGE = VENDORS_PER_PAGE = 50

_SLUG = re.compile(r"[a-z0-9-]{1,64}")
_VENDOR = re.compile(r"[a-z0-9._-]{1,100}")


class NoProject(NotFound):
    message = "This project doesn't exist, or you aren't a member of its organization."


class FoundProject(NamedTuple):
    """A project as it is stored, and the plan of its organization."""

    organization: Membership
    project: ProjectItem
    plan: Plan

    @property
    def served(self) -> ProjectItem:
        """Returns the project with the branding that the plan includes."""
        return self.project.served_on(self.plan.id)


class ShownProject(NamedTuple):
    """A project with its linked repositories and their latest scans."""

    organization: Membership
    project: ProjectItem
    repositories: list[RepositoryItem]
    scans: list[ScanItem]
    trend: Trend | None


class Quota(NamedTuple):
    """An organization, its plan, and how many projects it has."""

    organization: Membership
    plan: Plan
    total: int

    @property
    def is_full(self) -> bool:
        return self.total >= self.plan.projects


class ShownProjects(NamedTuple):
    """A page of an organization's projects, newest first. next_after: None on the last page."""

    quota: Quota
    projects: list[ProjectItem]
    next_after: ProjectId | None


class FoundVendor(NamedTuple):
    """A project, and one of its vendors with its finding as they were read."""

    organization: Membership
    project: ProjectItem
    seen: Seen | None


class ShownVendors(NamedTuple):
    """A page of a project's vendors, by ID. next_after: None on the last page."""

    organization: Membership
    project: ProjectItem
    vendors: list[VendorItem]
    next_after: str | None


def get_project(organization_slug: str, project_slug: str, account: Account) -> FoundProject:
    """Returns a project of one of the account's organizations, by its current or a former slug. Raises NoProject."""
    membership = _get_membership(organization_slug, project_slug, account)
    try:
        project, plan = projects.get_project_by_slug(membership.organization_id, project_slug)
    except projects.UnknownProject:
        raise NoProject from None
    return FoundProject(membership, project, PLANS[plan])


def get_project_with_scans(organization_slug: str, project_slug: str, account: Account) -> ShownProject:
    """Returns the project with its latest scans, in as many round trips as `get_project`. Raises NoProject."""
    membership = _get_membership(organization_slug, project_slug, account)
    organization_id = membership.organization_id
    try:
        (project_id, plan), connected = read_both(
            lambda: projects.resolve_slug(organization_id, project_slug),
            lambda: list_choices(organization_id),
        )
        linked = [repository for repository in connected if repository.find_link(project_id)]
        project, latest = read_both(
            lambda: projects.get_project(project_id),
            lambda: scans.list_latest(project_id, [repository.repository_id for repository in linked]),
        )
    except projects.UnknownProject:
        raise NoProject from None
    return ShownProject(membership, project.served_on(plan), linked, latest[: scans.LATEST], trend_of(latest))


def get_project_with_vendors(
    organization_slug: str, project_slug: str, account: Account, after: str | None
) -> ShownVendors:
    """Returns the project with a page of its vendors, after the one with this ID. Raises NoProject."""
    membership = _get_membership(organization_slug, project_slug, account)
    try:
        project_id, _ = projects.resolve_slug(membership.organization_id, project_slug)
        position = keys.vendor(*project_id.location, after).sk if after and is_vendor(after) else None
        project, page = read_both(
            lambda: projects.get_project(project_id),
            lambda: vendors.list_vendors(project_id, VENDORS_PER_PAGE, position, consistent=True),
        )
    except projects.UnknownProject:
        raise NoProject from None
    next_after = page.vendors[-1].vendor_id if page.next_sk is not None else None
    return ShownVendors(membership, project, page.vendors, next_after)


def get_project_with_vendor(organization_slug: str, project_slug: str, account: Account, vendor_id: str) -> FoundVendor:
    """Returns the project, and the vendor's records unless the text can't be a vendor's ID. Raises NoProject."""
    membership = _get_membership(organization_slug, project_slug, account)
    try:
        project_id, _ = projects.resolve_slug(membership.organization_id, project_slug)
        project, seen = read_both(
            lambda: projects.get_project(project_id),
            lambda: vendors.see_vendor(project_id, vendor_id) if is_vendor(vendor_id) else None,
        )
    except projects.UnknownProject:
        raise NoProject from None
    return FoundVendor(membership, project, seen)


def is_vendor(text: str) -> bool:
    """Returns whether the text can be the ID of a vendor."""
    return _VENDOR.fullmatch(text) is not None


def _get_membership(organization_slug: str, project_slug: str, account: Account) -> Membership:
    membership = find_membership(organization_slug, account)
    if membership is None or not _SLUG.fullmatch(project_slug):
        raise NoProject
    return membership


def get_quota(organization_slug: str, account: Account) -> Quota:
    """Returns one of the account's organizations with its number of projects and its limit. Raises NotMember."""
    membership = get_organization(organization_slug, account)
    organization = organizations.get_organization(membership.organization_id)
    return Quota(membership, PLANS[organization.plan], organization.projects)


def get_projects(organization_slug: str, account: Account, after: str | None) -> ShownProjects:
    """Returns a page of the projects of one of the account's organizations, with its plan's limit. Raises NotMember."""
    membership = get_organization(organization_slug, account)
    organization_id = membership.organization_id
    page, organization = read_both(
        lambda: list_projects(organization_id, after),
        lambda: organizations.get_organization(organization_id),
    )
    next_after = page.projects[-1].project_id if page.next_sk is not None else None
    return ShownProjects(Quota(membership, PLANS[organization.plan], organization.projects), page.projects, next_after)


def list_projects(organization_id: str, after: str | None) -> ProjectPage:
    """Returns a page of the organization's projects, newest first. `after` is the last ID of the previous page."""
    last = ProjectId.parse(after or "")
    is_own = last is not None and last.organization_id == organization_id
    position = keys.project(*last.location).sk if last is not None and is_own else None
    return projects.list_projects(organization_id, PROJECTS_PER_PAGE, position, consistent=True)
