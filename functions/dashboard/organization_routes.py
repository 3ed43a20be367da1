"""The pages of organizations: choosing the default one, the projects of one, and deleting one."""

from fastapi import Response

from controlplane.core.errors import ApiError
from controlplane.http.app import ControlRouter
from controlplane.http.web_session import WebSession
from controlplane.store.default_organizations import NotMember
from controlplane.store.organizations import Membership
from dashboard import organizations
from dashboard.page_parameters import OrganizationSlug, SignedIn, Submits, Text
from dashboard.pages import page
from dashboard.projects import list_projects

router = ControlRouter(tags=["Pages"], include_in_schema=False)


@router.get("/organizations", operation_id="showOrganizations")
async def show_organizations(session: SignedIn) -> Response:
    """Lists the user's organizations and marks the default one."""
    return _organizations(session)


@router.post("/organizations", operation_id="saveOrganization")
async def save_organization(session: Submits) -> Response:
    """Saves the default organization, which is used for requests without `organizationId`."""
    try:
        saved = organizations.save_organization(session.form.get("organization_id", ""), session.user_id)
    except NotMember as failure:
        return _organizations(session, failure)
    return _organizations(session, done=f"{saved.name} is saved as your default organization.")


@router.get("/organizations/{organizationSlug}", operation_id="showOrganization")
async def show_organization(session: SignedIn, organization_slug: OrganizationSlug, after: Text = None) -> Response:
    """Lists the organization's projects."""
    organization = organizations.get_organization(organization_slug, session.user_id)
    projects, next_sk = list_projects(organization.organization_id, after)
    next_after = projects[-1].project_id if next_sk is not None else None
    return page("organization", session, organization=organization, projects=projects, next_after=next_after)


@router.get("/organizations/{organizationSlug}/delete", operation_id="showOrganizationDeletion")
async def show_organization_deletion(session: SignedIn, organization_slug: OrganizationSlug) -> Response:
    """Explains what deleting the organization removes, and asks an owner to type its name or slug."""
    return _deletion(session, organizations.get_own_organization(organization_slug, session.user_id))


@router.post("/organizations/{organizationSlug}/delete", operation_id="deleteOrganization")
async def delete_organization(session: Submits, organization_slug: OrganizationSlug) -> Response:
    """Deletes the organization if the user typed its name or slug."""
    organization = organizations.get_own_organization(organization_slug, session.user_id)
    typed = session.form.get("confirmation", "")[:200]
    try:
        organizations.delete_organization(organization, typed, session.user_id)
    except organizations.NotConfirmed as failure:
        return _deletion(session, organization, typed, failure)
    return _organizations(session, done=f"{organization.name} is deleted.")


def _organizations(session: WebSession, failure: ApiError | None = None, done: str | None = None) -> Response:
    overview = organizations.get_overview(session.user_id, organizations.PAGE_INVITATIONS)
    return page("organizations", session, failure=failure, done=done, current="/organizations", **overview._asdict())


def _deletion(
    session: WebSession, organization: Membership, typed: str = "", failure: ApiError | None = None
) -> Response:
    return page("organization_delete", session, failure=failure, organization=organization, typed=typed)
