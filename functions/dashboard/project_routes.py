"""The pages of projects: list, create, look at, change, and delete them, and decide on their vendors."""

from typing import Any
from urllib.parse import quote

from fastapi import Response

from controlplane.access.web_session import WebSession
from controlplane.organizations.store import Membership
from controlplane.platform.core.errors import ApiError
from controlplane.platform.core.urls import consent_runtime_url
from controlplane.platform.http.app import ControlRouter
from controlplane.projects.changes import MAX_WEBSITES
from controlplane.projects.items import NO_BRANDING, ProjectItem
from controlplane.projects.rules import BRANDINGS
from controlplane.projects.store import UnknownProject
from dashboard import once, project_changes, projects
from dashboard.organizations import get_organization, is_admin, require_admin
from dashboard.page_parameters import Done, OrganizationSlug, ProjectSlug, SignedIn, Submits, Text
from dashboard.pages import address, page, redirect
from dashboard.projects import FoundProject, NoProject
from dashboard.snippets import list_snippets

router = ControlRouter(tags=["Pages"], include_in_schema=False)

# Every character that a URL's query can contain without being encoded, and the percent sign.
_OF_QUERY = "!$%&'()*+,-./:;=?@_~"
_DONE = {
    "created": "The project is created. Add the consent library to your site, and connect a repository to scan it.",
    "deleted": "The project is deleted.",
    "described": "The name and the description are saved.",
    "branded": "The branding is saved.",
    "websites-added": "The websites are saved.",
    "website-removed": "The website is removed.",
    "primary-changed": "The website comes first now.",
    "approved": "The vendor is approved. Its finding in the inbox is resolved.",
    "ignored": "The vendor is ignored. Its finding in the inbox is resolved.",
}


@router.get("/organizations/{organizationSlug}/projects", operation_id="showProjects")
async def show_projects(
    session: SignedIn, organization_slug: OrganizationSlug, after: Text = None, done: Done = ""
) -> Response:
    """Lists the organization's projects."""
    shown = projects.get_projects(organization_slug, session.account, after)
    return page(
        "projects",
        session,
        done=_DONE.get(done),
        **shown.quota._asdict(),
        is_full=shown.quota.is_full,
        projects=shown.projects,
        next_after=shown.next_after,
    )


@router.get("/organizations/{organizationSlug}/projects/new", operation_id="showNewProject")
async def show_new_project(session: SignedIn, organization_slug: OrganizationSlug) -> Response:
    """Shows the form that creates a project."""
    return _new_project(session, organization_slug)


@router.post("/organizations/{organizationSlug}/projects/new", operation_id="submitNewProject")
async def submit_new_project(session: Submits, organization_slug: OrganizationSlug) -> Response:
    """Creates a project, and leads to its page."""
    organization = get_organization(organization_slug, session.account)
    try:
        slug = once.create_once(
            session,
            organization,
            "createProjectOnPage",
            lambda legs: project_changes.create_project(organization, session.form, legs),
        )
    except ApiError as failure:
        return _new_project(session, organization_slug, failure)
    return redirect(address(f"/organizations/{organization.slug}/projects/{slug}?done=created"))


@router.get("/organizations/{organizationSlug}/projects/{projectSlug}", operation_id="showProject")
async def show_project(
    session: SignedIn, organization_slug: OrganizationSlug, project_slug: ProjectSlug, done: Done = ""
) -> Response:
    """Shows a project with its websites, repositories, and latest scans. `dashboardUrl` links to this page."""
    shown = projects.get_project_with_scans(organization_slug, project_slug, session.account)
    return _project("project", session, project_slug, done=_DONE.get(done), **shown._asdict())


@router.get("/organizations/{organizationSlug}/projects/{projectSlug}/consent", operation_id="showProjectConsent")
async def show_project_consent(
    session: SignedIn, organization_slug: OrganizationSlug, project_slug: ProjectSlug
) -> Response:
    """Shows the project's consent instance: trusted origins, branding, and the code that installs the library."""
    found = projects.get_project(organization_slug, project_slug, session.account)
    consent = found.project.consent
    snippets = list_snippets(consent_runtime_url(consent.instance_id)) if consent else []
    return _project(
        "project_consent",
        session,
        project_slug,
        below="/consent",
        organization=found.organization,
        project=found.served,
        plan=found.plan,
        snippets=snippets,
    )


@router.get("/organizations/{organizationSlug}/projects/{projectSlug}/settings", operation_id="showProjectSettings")
async def show_project_settings(
    session: SignedIn, organization_slug: OrganizationSlug, project_slug: ProjectSlug, done: Done = ""
) -> Response:
    """Shows the forms that change the project: name, description, websites, and branding."""
    found = projects.get_project(organization_slug, project_slug, session.account)
    return _settings(session, project_slug, found, done=_DONE.get(done))


@router.post("/organizations/{organizationSlug}/projects/{projectSlug}/settings", operation_id="changeProject")
async def change_project(session: Submits, organization_slug: OrganizationSlug, project_slug: ProjectSlug) -> Response:
    """Applies one of the settings' forms."""
    found = projects.get_project(organization_slug, project_slug, session.account)
    try:
        slug, done = project_changes.change_project(found.organization, found.project, session.form, session.user_id)
    except UnknownProject:
        raise NoProject from None
    except ApiError as failure:
        return _settings(session, found.project.slug, found, failure=failure)
    return redirect(address(f"/organizations/{found.organization.slug}/projects/{slug}/settings?done={done}"))


@router.get("/organizations/{organizationSlug}/projects/{projectSlug}/delete", operation_id="showProjectDeletion")
async def show_project_deletion(
    session: SignedIn, organization_slug: OrganizationSlug, project_slug: ProjectSlug
) -> Response:
    """Explains what deleting the project removes, and asks an admin or owner to type its name or slug."""
    found = projects.get_project(organization_slug, project_slug, session.account)
    require_admin(found.organization, project_changes.NotProjectAdmin)
    return page("project_delete", session, organization=found.organization, project=found.project, typed="")


@router.post("/organizations/{organizationSlug}/projects/{projectSlug}/delete", operation_id="deleteProjectOnPage")
async def delete_project(session: Submits, organization_slug: OrganizationSlug, project_slug: ProjectSlug) -> Response:
    """Deletes the project if the user typed its name or slug."""
    organization, project, _ = projects.get_project(organization_slug, project_slug, session.account)
    typed = session.form.get("confirmation", "")[:200]
    try:
        project_changes.delete_project(organization, project, typed, session.user_id)
    except UnknownProject:
        raise NoProject from None
    except project_changes.NotConfirmed as failure:
        return page("project_delete", session, failure=failure, organization=organization, project=project, typed=typed)
    return redirect(address(f"/organizations/{organization.slug}/projects?done=deleted"))


@router.get("/organizations/{organizationSlug}/projects/{projectSlug}/vendors", operation_id="showProjectVendors")
async def show_project_vendors(
    session: SignedIn,
    organization_slug: OrganizationSlug,
    project_slug: ProjectSlug,
    after: Text = None,
    done: Done = "",
) -> Response:
    """Lists the vendors that were detected on the project or decided on, with the decisions."""
    return _vendors(session, organization_slug, project_slug, after, done=_DONE.get(done))


@router.post("/organizations/{organizationSlug}/projects/{projectSlug}/vendors", operation_id="decideVendorOnPage")
async def decide_vendor(session: Submits, organization_slug: OrganizationSlug, project_slug: ProjectSlug) -> Response:
    """Approves or ignores a vendor."""
    vendor_id = session.form.get("vendor_id", "").strip().lower()
    found = projects.get_project_with_vendor(organization_slug, project_slug, session.account, vendor_id)
    decision, slug = session.form.get("decision", ""), found.project.slug
    try:
        done = project_changes.decide_vendor(found, vendor_id, decision, session.user_id)
    except UnknownProject:
        raise NoProject from None
    except ApiError as failure:
        return _vendors(session, organization_slug, slug, None, failure=failure)
    return redirect(address(f"/organizations/{found.organization.slug}/projects/{slug}/vendors?done={done}"))


def _new_project(session: WebSession, organization_slug: str, failure: ApiError | None = None) -> Response:
    quota = projects.get_quota(organization_slug, session.account)
    return page(
        "project_new",
        session,
        failure=failure,
        organization=quota.organization,
        plan=quota.plan,
        is_full=quota.is_full,
        entered=session.form,
        most_websites=MAX_WEBSITES,
        **once.form_content(session, failure),
    )


def _settings(
    session: WebSession,
    project_slug: str,
    found: FoundProject,
    *,
    failure: ApiError | None = None,
    done: str | None = None,
) -> Response:
    return _project(
        "project_settings",
        session,
        project_slug,
        below="/settings",
        organization=found.organization,
        project=found.served,
        failure=failure,
        done=done,
        plan=found.plan,
        entered=session.form if failure else {},
        brandings=BRANDINGS,
        no_branding=NO_BRANDING,
        is_admin=is_admin(found.organization),
    )


def _vendors(
    session: WebSession,
    organization_slug: str,
    project_slug: str,
    after: str | None,
    *,
    failure: ApiError | None = None,
    done: str | None = None,
) -> Response:
    shown = projects.get_project_with_vendors(organization_slug, project_slug, session.account, after)
    return _project(
        "project_vendors",
        session,
        project_slug,
        below="/vendors",
        failure=failure,
        done=done,
        **shown._asdict(),
        entered=session.form if failure else {},
        is_admin=is_admin(shown.organization),
    )


def _project(
    template: str,
    session: WebSession,
    slug: str,
    *,
    organization: Membership,
    project: ProjectItem,
    below: str = "",
    **content: Any,
) -> Response:
    """Returns the page, or redirects from a former slug to the current one.

    The redirect is temporary and isn't cached, because another project can claim the former slug.
    """
    if project.slug != slug:
        path = f"/organizations/{organization.slug}/projects/{project.slug}{below}"
        query = f"?{quote(session.query, safe=_OF_QUERY)}" if session.query else ""
        return redirect(address(path) + query, status=307)
    return page(template, session, organization=organization, project=project, **content)
