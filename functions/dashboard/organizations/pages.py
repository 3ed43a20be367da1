"""The pages of organizations: the list, creating one, and the settings of one."""

from collections.abc import Mapping

from fastapi import Response

from controlplane.access.web_session import WebSession
from controlplane.code_host.github.app_pages import is_configured
from controlplane.organizations import rules
from controlplane.organizations import store as organizations
from controlplane.organizations.store import NotMember, OwnsTooMany, SlugTaken
from controlplane.platform.core.errors import ApiError
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.table.table import Leg
from dashboard import once
from dashboard.forms import NotAcceptable, StillRunning, read_name
from dashboard.once import AlreadySent
from dashboard.pages import page, redirect, redirect_within
from dashboard.parameters import MemberSees, MemberSubmits, SignedIn, Submits

router = ControlRouter(tags=["Pages"], include_in_schema=False)

_DONE = {
    "default": "This is now your default organization.",
    "deleted": "The organization is deleted.",
}


@router.get("/organizations")
async def show_organizations(session: SignedIn) -> Response:
    """Lists the user's organizations and marks the default one."""
    active = session.account.active
    saved = {"default": f"{active.name} is saved as your default organization."} if active else {}
    return page("organizations", session, done=_DONE | saved, current="/organizations")


@router.post("/organizations")
async def save_organization(session: Submits) -> Response:
    """Saves the default organization, which is used for requests without `organizationId`."""
    organization_id = session.form.get("organization_id", "")
    if organization_id not in {held.organization_id for held in session.account.memberships}:
        return page("organizations", session, NotMember(), current="/organizations")
    organizations.save_default(session.user_id, organization_id)
    return redirect("/organizations?done=default")


@router.get("/organizations/new")
async def show_organization_form(session: SignedIn) -> Response:
    """Asks for the name of a new organization."""
    return _form(session)


@router.post("/organizations/new")
async def create_organization_of_form(session: Submits) -> Response:
    """Creates an organization, and leads to it or, with `github`, to its installation of our App.

    An empty slug is derived from the name. If that one is taken, it gets a number.
    """
    try:
        name, slug = read_name(session.form), _read_slug(session.form)
        made = once.create_once(
            session, "createOrganizationOnPage", lambda legs: _create(session.user_id, name, slug, legs)
        )
    except (NotAcceptable, SlugTaken, OwnsTooMany, StillRunning, AlreadySent) as failure:
        return _form(session, failure)
    is_next = "github" in session.form and is_configured()
    return redirect(f"/organizations/{made}/github?new=yes" if is_next else f"/organizations/{made}?done=created")


@router.get("/organizations/{organizationSlug}/settings")
async def show_organization_settings(session: MemberSees) -> Response:
    """Shows the organization's names and IDs, and what its members can change."""
    active = session.account.active
    is_default = active is not None and active.organization_id == session.organization.organization_id
    return page("organization_settings", session, done=_DONE, is_default=is_default)


@router.post("/organizations/{organizationSlug}/settings")
async def make_organization_default(session: MemberSubmits) -> Response:
    """Makes the organization the person's default."""
    organizations.save_default(session.user_id, session.organization.organization_id)
    return redirect_within(session.organization, "/settings?done=default")


def _read_slug(form: Mapping[str, str]) -> str | None:
    slug = form.get("slug", "").strip()
    if slug and not rules.is_slug(slug):
        raise NotAcceptable("A slug has 3 to 20 lowercase letters, digits, and single hyphens between them.")
    return slug or None


def _create(user_id: str, name: str, slug: str | None, legs: Mapping[str, Leg]) -> str:
    """Returns the slug of a new organization. Raises SlugTaken, OwnsTooMany."""
    try:
        created = rules.create_organization(user_id, name, slug, legs)
    except SlugTaken as taken:
        if slug is not None:
            raise
        created = rules.create_organization(user_id, name, taken.details["suggestions"][0], legs)
    return created.slug


def _form(session: WebSession, failure: ApiError | None = None) -> Response:
    suggestions = failure.details["suggestions"] if isinstance(failure, SlugTaken) else []
    return page("organization_new", session, failure, current="/organizations/new", suggestions=suggestions)
