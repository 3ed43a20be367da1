"""The pages of a project."""

from typing import Any
from urllib.parse import quote

from fastapi import Response

from controlplane.http.app import ControlRouter
from controlplane.http.web_session import WebSession
from controlplane.store.organizations import Membership
from controlplane.store.project_items import ProjectItem
from dashboard.page_parameters import OrganizationSlug, ProjectSlug, SignedIn
from dashboard.pages import address, page, redirect
from dashboard.projects import get_project, get_project_with_scans

router = ControlRouter(tags=["Pages"], include_in_schema=False)

# Every character that a URL's query can contain without being encoded, and the percent sign.
_OF_QUERY = "!$%&'()*+,-./:;=?@_~"


@router.get("/organizations/{organizationSlug}/projects/{projectSlug}", operation_id="showProject")
async def show_project(session: SignedIn, organization_slug: OrganizationSlug, project_slug: ProjectSlug) -> Response:
    """Shows a project with its websites and latest scans. `dashboardUrl` links to this page."""
    shown = get_project_with_scans(organization_slug, project_slug, session.user_id)
    return _project("project", session, project_slug, **shown._asdict())


@router.get("/organizations/{organizationSlug}/projects/{projectSlug}/consent", operation_id="showProjectConsent")
async def show_project_consent(
    session: SignedIn, organization_slug: OrganizationSlug, project_slug: ProjectSlug
) -> Response:
    """Shows the project's consent instance: trusted origins, branding, and runtime."""
    organization, project = get_project(organization_slug, project_slug, session.user_id)
    return _project(
        "project_consent", session, project_slug, below="/consent", organization=organization, project=project
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
