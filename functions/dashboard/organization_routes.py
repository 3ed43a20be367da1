"""The pages of organizations: choosing the default one, the projects of one, and deleting one."""

from collections.abc import Mapping

from fastapi import Response

from controlplane.access.web_session import WebSession
from controlplane.organizations.defaults import NotMember
from controlplane.organizations.store import Membership, OwnsTooMany, SlugTaken
from controlplane.platform.core.errors import ApiError
from controlplane.platform.http.app import ControlRouter
from dashboard import organizations, summaries
from dashboard.page_parameters import Done, OrganizationSlug, SignedIn, Submits
from dashboard.pages import address, page, redirect

router = ControlRouter(tags=["Pages"], include_in_schema=False)

_DONE = {
    "created": "Your organization is ready.",
    "default": "This is now your default organization.",
    "deleted": "The organization is deleted.",
}


@router.get("/organizations", operation_id="showOrganizations")
async def show_organizations(session: SignedIn, done: Done = "") -> Response:
    """Lists the user's organizations and marks the default one."""
    active = session.account.active
    saved = f"{active.name} is saved as your default organization." if active and done == "default" else None
    return _organizations(session, done=saved or _DONE.get(done))


@router.post("/organizations", operation_id="saveOrganization")
async def save_organization(session: Submits) -> Response:
    """Saves the default organization, which is used for requests without `organizationId`."""
    try:
        organizations.save_organization(session.form.get("organization_id", ""), session.user_id)
    except NotMember as failure:
        return _organizations(session, failure)
    return redirect(address("/organizations?done=default"))


@router.get("/organizations/new", operation_id="showOrganizationForm")
async def show_organization_form(session: SignedIn) -> Response:
    """Asks for the name of a new organization."""
    return _form(session)


@router.post("/organizations/new", operation_id="createOrganizationOfForm")
async def create_organization(session: Submits) -> Response:
    """Creates an organization, and leads to it."""
    try:
        created = organizations.create_organization(session.form, session.user_id)
    except (organizations.NotNamed, organizations.NotSlug, SlugTaken, OwnsTooMany) as failure:
        return _form(session, session.form, failure)
    return redirect(address(f"/organizations/{created.slug}?done=created"))


@router.get("/organizations/{organizationSlug}", operation_id="showOrganization")
async def show_organization(session: SignedIn, organization_slug: OrganizationSlug, done: Done = "") -> Response:
    """Shows what is left to set up, the open findings, and the latest scans and projects."""
    organization = organizations.get_organization(organization_slug, session.account)
    joined = f"You are now a member of {organization.name}, as {organization.role}." if done == "joined" else None
    state = summaries.get_summary(organization)
    return page("organization", session, organization=organization, done=joined or _DONE.get(done), **state._asdict())


@router.get("/organizations/{organizationSlug}/settings", operation_id="showOrganizationSettings")
async def show_settings(session: SignedIn, organization_slug: OrganizationSlug, done: Done = "") -> Response:
    """Shows the organization's names and IDs, and what its members can change."""
    organization = organizations.get_organization(organization_slug, session.account)
    active = session.account.active
    is_default = active is not None and active.organization_id == organization.organization_id
    return page(
        "organization_settings", session, organization=organization, is_default=is_default, done=_DONE.get(done)
    )


@router.post("/organizations/{organizationSlug}/settings", operation_id="makeOrganizationDefault")
async def make_default(session: Submits, organization_slug: OrganizationSlug) -> Response:
    """Makes the organization the person's default."""
    organization = organizations.get_organization(organization_slug, session.account)
    organizations.save_organization(organization.organization_id, session.user_id)
    return redirect(address(f"/organizations/{organization.slug}/settings?done=default"))


@router.get("/organizations/{organizationSlug}/delete", operation_id="showOrganizationDeletion")
async def show_organization_deletion(session: SignedIn, organization_slug: OrganizationSlug) -> Response:
    """Explains what deleting the organization removes, and asks an owner to type its name or slug."""
    return _deletion(session, organizations.get_own_organization(organization_slug, session.account))


@router.post("/organizations/{organizationSlug}/delete", operation_id="deleteOrganization")
async def delete_organization(session: Submits, organization_slug: OrganizationSlug) -> Response:
    """Deletes the organization if the user typed its name or slug."""
    organization = organizations.get_own_organization(organization_slug, session.account)
    typed = session.form.get("confirmation", "")[:200]
    try:
        organizations.delete_organization(organization, typed, session.user_id)
    except organizations.NotConfirmed as failure:
        return _deletion(session, organization, typed, failure)
    return redirect(address("/organizations?done=deleted"))


def _organizations(session: WebSession, failure: ApiError | None = None, done: str | None = None) -> Response:
    return page("organizations", session, failure=failure, done=done, current="/organizations")


def _form(session: WebSession, entered: Mapping[str, str] | None = None, failure: ApiError | None = None) -> Response:
    suggestions = failure.details["suggestions"] if isinstance(failure, SlugTaken) else []
    return page(
        "organization_new",
        session,
        failure=failure,
        current="/organizations/new",
        entered=entered or {},
        suggestions=suggestions,
    )


def _deletion(
    session: WebSession, organization: Membership, typed: str = "", failure: ApiError | None = None
) -> Response:
    return page("organization_delete", session, failure=failure, organization=organization, typed=typed)
