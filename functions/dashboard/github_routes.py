"""The pages that connect repositories: to GitHub, back from it, and the choice of repositories."""

from typing import Annotated

from fastapi import Query, Response

from controlplane.access.web_session import WebSession
from controlplane.code_host.installations import InstallationTaken
from controlplane.platform.core.errors import ApiError
from controlplane.platform.http.app import ControlRouter
from dashboard import connecting, organizations, repositories
from dashboard.connecting import Offers
from dashboard.page_parameters import OrganizationSlug, SignedIn, Submits, Text
from dashboard.pages import page, redirect

router = ControlRouter(tags=["Pages"], include_in_schema=False)

InstallationNumber = Annotated[int | None, Query(alias="installation_id", ge=1, le=2**53)]


@router.get("/organizations/{organizationSlug}/github", operation_id="connectGithub")
async def connect_github(session: SignedIn, organization_slug: OrganizationSlug, installed: Text = None) -> Response:
    """Redirects to the installation of our GitHub App or, with `installed`, to the person's identity on GitHub."""
    organization = organizations.get_organization(organization_slug, session.account)
    return redirect(connecting.begin(organization, session.secret, is_installed=installed is not None))


@router.get("/github/callback", operation_id="finishGithub")
async def finish_github(
    session: SignedIn,
    state: Text = None,
    code: Text = None,
    installation_id: InstallationNumber = None,
) -> Response:
    """Offers the repositories that the person may connect.

    Without a code, GitHub wasn't asked who the person is: redirects there, and back to this page.
    """
    outcome = connecting.finish(state or "", code or None, installation_id, session.user_id, session.secret)
    return redirect(outcome) if isinstance(outcome, str) else _offers(session, outcome)


@router.post("/organizations/{organizationSlug}/repositories", operation_id="connectRepository")
async def connect_repository(session: Submits, organization_slug: OrganizationSlug) -> Response:
    """Connects one of the repositories that the callback offered."""
    organization = organizations.get_organization(organization_slug, session.account)
    offers = connecting.open_offers(organization, session.form.get("offers", ""), session.secret)
    try:
        connected = connecting.connect(offers, session.form.get("repository", ""), session.user_id)
    except InstallationTaken as failure:
        return _offers(session, offers, failure)
    return _offers(session, offers, done=f"{connected.owner}/{connected.name} is connected.")


def _offers(session: WebSession, offers: Offers, failure: ApiError | None = None, done: str | None = None) -> Response:
    connected = repositories.list_choices(offers.organization.organization_id)
    by_name = {f"{it.owner}/{it.name}".lower(): it for it in connected}
    entries = [(it, by_name.get(f"{it.owner}/{it.name}".lower())) for it in offers.repositories]
    return page(
        "github",
        session,
        failure=failure,
        done=done,
        organization=offers.organization,
        entries=entries,
        offers=offers.sealed,
    )
