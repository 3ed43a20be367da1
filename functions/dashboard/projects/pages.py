"""The pages of projects: list, create, look at, change, and delete them, and decide on their vendors."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from fastapi import Response

from controlplane.access.web_session import WebSession
from controlplane.findings import vendors
from controlplane.organizations import store as organizations
from controlplane.platform.core.errors import ApiError
from controlplane.platform.core.plans import PLANS, Plan
from controlplane.platform.core.urls import consent_runtime_url
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.pagination import CursorCodec
from controlplane.platform.table.parallel import read_both
from controlplane.projects import store as projects
from controlplane.projects.changes import MAX_WEBSITES
from controlplane.projects.items import NO_BRANDING, ProjectItem
from controlplane.projects.rules import BRANDINGS
from controlplane.projects.store import UnknownProject
from dashboard import once
from dashboard.code_host.forms import list_choices
from dashboard.forms import NotAcceptable, require_confirmed
from dashboard.pages import page, redirect, redirect_within
from dashboard.parameters import AdminSees, AdminSubmits, MemberSees, MemberSubmits, ProjectSlug
from dashboard.projects import forms
from dashboard.projects.badge import badge_url
from dashboard.projects.snippets import list_snippets
from dashboard.scans import latest

router = ControlRouter(tags=["Pages"], include_in_schema=False)

PROJECTS_PER_PAGE = VENDORS_PER_PAGE = 50
_SLUG = re.compile(r"[a-z0-9-]{1,64}")
# Every character that a URL's query can contain without being encoded, and the percent sign.
_OF_QUERY = "!$%&'()*+,-./:;=?@_~"
_DONE = {
    "created": "The project is created. Add the consent library to your site, and connect a repository to scan it.",
    "not-linked": "The project is created, but its repository isn't linked: it changed at the same time. Link it on "
    "its own page.",
    "deleted": "The project is deleted.",
    "described": "The name and the description are saved.",
    "branded": "The branding is saved.",
    "badge-created": "The badge has an address. Everyone who knows it can see the badge.",
    "badge-revoked": "The badge is gone from its address.",
    "websites-added": "The websites are saved.",
    "website-removed": "The website is removed.",
    "primary-changed": "The website comes first now.",
    "approved": "The vendor is approved. Findings in the code that it loads before consent stay open.",
    "ignored": "The vendor is ignored. The next scan resolves the open findings in the code about loading it, unless "
    "they involve a vendor that you don't ignore.",
}


@router.get("/organizations/{organizationSlug}/projects")
async def show_projects(session: MemberSees) -> Response:
    """Lists the organization's projects."""
    organization_id = session.organization.organization_id
    codec = CursorCodec(session.parameters.get("after"), "showProjects", organization_id)
    listed, organization = read_both(
        lambda: projects.list_projects(organization_id, PROJECTS_PER_PAGE, codec.after, consistent=True),
        lambda: organizations.get_organization(organization_id),
    )
    return page(
        "projects",
        session,
        done=_DONE,
        plan=PLANS[organization.plan],
        total=organization.projects,
        projects=listed.items,
        next_cursor=codec.cursor(listed.next_sk),
    )


@router.get("/organizations/{organizationSlug}/projects/new")
async def show_new_project(session: MemberSees) -> Response:
    """Shows the form that creates a project."""
    return _new_project(session)


@router.post("/organizations/{organizationSlug}/projects/new")
async def submit_new_project(session: MemberSubmits) -> Response:
    """Creates a project, and leads to its page."""
    try:
        new, organization_id = forms.read_new_project(session.form), session.organization.organization_id
        slug = once.create_once(
            session, "createProjectOnPage", lambda legs: forms.create_project(organization_id, new, legs).slug
        )
    except ApiError as failure:
        return _new_project(session, failure)
    return redirect_within(session.organization, f"/projects/{slug}?done=created")


@router.get("/organizations/{organizationSlug}/projects/{projectSlug}")
async def show_project(session: MemberSees, project_slug: ProjectSlug) -> Response:
    """Shows a project with its websites, repositories, and latest scans. `dashboardUrl` links to this page."""
    organization_id = session.organization.organization_id
    (project_id, plan), connected = read_both(
        lambda: projects.resolve_slug(organization_id, read_slug(project_slug)),
        lambda: list_choices(organization_id),
    )
    linked = [repository for repository in connected if repository.find_link(project_id)]
    project, scanned = read_both(
        lambda: projects.get_project(project_id),
        lambda: latest.list_latest(project_id, [repository.repository_id for repository in linked]),
    )
    return project_page(
        "project",
        session,
        project_slug,
        project.served_on(plan),
        repositories=linked,
        scans=scanned[: latest.SHOWN],
        trend=latest.trend_of(scanned),
    )


@router.get("/organizations/{organizationSlug}/projects/{projectSlug}/consent")
async def show_project_consent(session: MemberSees, project_slug: ProjectSlug) -> Response:
    """Shows the project's consent instance: trusted origins, branding, and the code that installs the library."""
    project, plan = _get_project(session, project_slug)
    runtime = consent_runtime_url(project.region, project.consent.instance_id) if project.consent else None
    served = project.served_on(plan.id)
    return project_page(
        "project_consent",
        session,
        project_slug,
        served,
        below="/consent",
        plan=plan,
        runtime=runtime,
        snippets=list_snippets(runtime),
    )


@router.get("/organizations/{organizationSlug}/projects/{projectSlug}/settings")
async def show_project_settings(session: MemberSees, project_slug: ProjectSlug) -> Response:
    """Shows the forms that change the project: name, description, websites, and branding."""
    return _settings(session, project_slug, *_get_project(session, project_slug))


@router.post("/organizations/{organizationSlug}/projects/{projectSlug}/settings")
async def change_project(session: MemberSubmits, project_slug: ProjectSlug) -> Response:
    """Applies one of the settings' forms."""
    project, plan = _get_project(session, project_slug)
    try:
        slug, done = forms.change_project(session, project)
    except UnknownProject:
        raise
    except ApiError as failure:
        return _settings(session, project.slug, project, plan, failure)
    return redirect_within(session.organization, f"/projects/{slug}/settings?done={done}")


@router.get("/organizations/{organizationSlug}/projects/{projectSlug}/delete")
async def show_project_deletion(session: AdminSees, project_slug: ProjectSlug) -> Response:
    """Explains what deleting the project removes, and asks an admin or owner to type its name or slug."""
    return page("project_delete", session, project=_get_project(session, project_slug)[0])


@router.post("/organizations/{organizationSlug}/projects/{projectSlug}/delete")
async def delete_project_on_page(session: AdminSubmits, project_slug: ProjectSlug) -> Response:
    """Deletes the project if the user typed its name or slug."""
    project, _ = _get_project(session, project_slug)
    try:
        require_confirmed(session.form, (project.name, project.slug), "the project's name or slug")
    except NotAcceptable as failure:
        return page("project_delete", session, failure, project=project)
    projects.delete_project(project, session.user_id)
    return redirect_within(session.organization, "/projects?done=deleted")


@router.get("/organizations/{organizationSlug}/projects/{projectSlug}/vendors")
async def show_project_vendors(session: MemberSees, project_slug: ProjectSlug) -> Response:
    """Lists the vendors that were seen on the project or decided on, with their places and the decisions."""
    return _vendors(session, project_slug)


@router.post("/organizations/{organizationSlug}/projects/{projectSlug}/vendors")
async def decide_vendor_on_page(session: AdminSubmits, project_slug: ProjectSlug) -> Response:
    """Approves or ignores a vendor."""
    project_id, _ = projects.resolve_slug(session.organization.organization_id, read_slug(project_slug))
    try:
        vendor_id = forms.read_vendor(session.form)
        project, seen = read_both(
            lambda: projects.get_project(project_id), lambda: vendors.see_vendor(project_id, vendor_id)
        )
        done = forms.decide_vendor(session, project, vendor_id, seen)
    except UnknownProject:
        raise
    except ApiError as failure:
        return _vendors(session, project_slug, failure)
    return redirect_within(session.organization, f"/projects/{project.slug}/vendors?done={done}")


def read_slug(text: str) -> str:
    """Returns the slug of the path. Raises UnknownProject if no project can have it."""
    if not _SLUG.fullmatch(text):
        raise UnknownProject
    return text


def _get_project(session: WebSession, slug: str) -> tuple[ProjectItem, Plan]:
    """Returns the project with that current or former slug, and the organization's plan. Raises UnknownProject."""
    project, plan = projects.get_project_by_slug(session.organization.organization_id, read_slug(slug))
    return project, PLANS[plan]


def _new_project(session: WebSession, failure: ApiError | None = None) -> Response:
    organization = organizations.get_organization(session.organization.organization_id)
    return page(
        "project_new",
        session,
        failure,
        plan=PLANS[organization.plan],
        total=organization.projects,
        most_websites=MAX_WEBSITES,
    )


def _settings(
    session: WebSession, slug: str, project: ProjectItem, plan: Plan, failure: ApiError | None = None
) -> Response:
    return project_page(
        "project_settings",
        session,
        slug,
        project.served_on(plan.id),
        failure,
        below="/settings",
        plan=plan,
        brandings=BRANDINGS,
        badge=badge_url(project),
        no_branding=NO_BRANDING,
    )


def _vendors(session: WebSession, slug: str, failure: ApiError | None = None) -> Response:
    project_id, _ = projects.resolve_slug(session.organization.organization_id, read_slug(slug))
    codec = CursorCodec(session.parameters.get("after"), "showProjectVendors", project_id)
    project, listed = read_both(
        lambda: projects.get_project(project_id),
        lambda: vendors.list_vendors(project_id, VENDORS_PER_PAGE, codec.after, consistent=True),
    )
    # After a form, the page is at the address that the form was sent to.
    own = slug if failure is None else project.slug
    return project_page(
        "project_vendors",
        session,
        own,
        project,
        failure,
        below="/vendors",
        vendors=listed.items,
        next_cursor=codec.cursor(listed.next_sk),
    )


def project_page(
    template: str,
    session: WebSession,
    slug: str,
    project: ProjectItem,
    failure: ApiError | None = None,
    *,
    below: str = "",
    done: Mapping[str, str] = _DONE,
    **content: Any,
) -> Response:
    """Returns the page, or redirects from a former slug to the current one.

    The redirect is temporary and isn't cached, because another project can claim the former slug.
    """
    if project.slug != slug:
        path = f"/organizations/{session.organization.slug}/projects/{project.slug}{below}"
        query = f"?{quote(session.query, safe=_OF_QUERY)}" if session.query else ""
        return redirect(path + query, status=307)
    return page(template, session, failure, done=done, project=project, **content)
