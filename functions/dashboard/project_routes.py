"""The pages of a project."""

from fastapi import Response

from controlplane.http.app import ControlRouter
from dashboard.page_parameters import OrganizationSlug, ProjectSlug, SignedIn
from dashboard.pages import page
from dashboard.projects import get_project

router = ControlRouter(tags=["Pages"], include_in_schema=False)


@router.get("/organizations/{organizationSlug}/projects/{projectSlug}", operation_id="showProject")
async def show_project(session: SignedIn, organization_slug: OrganizationSlug, project_slug: ProjectSlug) -> Response:
    """Shows a project with its websites. `dashboardUrl` links to this page."""
    organization, project = get_project(organization_slug, project_slug, session.user_id)
    return page("project", session, organization=organization, project=project)


@router.get("/organizations/{organizationSlug}/projects/{projectSlug}/consent", operation_id="showProjectConsent")
async def show_project_consent(
    session: SignedIn, organization_slug: OrganizationSlug, project_slug: ProjectSlug
) -> Response:
    """Shows the project's consent instance: trusted origins, branding, and runtime."""
    organization, project = get_project(organization_slug, project_slug, session.user_id)
    return page("project_consent", session, organization=organization, project=project)
