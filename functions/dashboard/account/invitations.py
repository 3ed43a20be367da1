"""The home page, and the pages on which a user answers invitations and blocks organizations.

IDs come from forms and URLs. A malformed one is treated like an unknown one.
"""

from typing import Annotated

from fastapi import Path, Response

from controlplane.access.web_session import WebSession
from controlplane.code_host.github.app_pages import is_configured
from controlplane.organizations import invitees
from controlplane.organizations.invitees import AlreadyMember, InvitationGone, InvitationVoid, NotBlocked, OwnsTooMany
from controlplane.platform.core import ids
from controlplane.platform.core.errors import ApiError, known
from controlplane.platform.core.ids import InvitationId
from controlplane.platform.core.settings import settings
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.pagination import CursorCodec
from dashboard.pages import page, redirect, redirect_within
from dashboard.parameters import Anyone, SignedIn, Submits
from dashboard.visitors.pages import welcome

router = ControlRouter(tags=["Pages"], include_in_schema=False)

BLOCKED_PER_PAGE = 50
# The overview shows only the number of invitations. The second limit keeps a page far below Lambda's 6 MB.
ON_OVERVIEW, ON_PAGE = 20, 50
_DONE = {
    "declined": "You declined the invitation.",
    "blocked": "You declined the invitation and blocked the organization.",
}


@router.get("/")
async def show_overview(session: Anyone) -> Response:
    """Leads to the user's only organization, or shows all of them, or a welcome page if signed out.

    Also shows pending invitations.
    """
    if session.access is None:
        return welcome(session)
    received = invitees.list_received(session.profile, ON_OVERVIEW)
    if len(session.account.memberships) == 1 and not received.pending:
        return redirect_within(session.account.memberships[0], "")
    return page("overview", session, current="/", received=received, is_github_offered=is_configured())


@router.get("/invitations")
async def show_invitations(session: SignedIn) -> Response:
    """Shows the pending invitations for the account's verified email address."""
    return _invitations(session)


@router.post("/invitations/accept")
async def accept_invitation(session: Submits) -> Response:
    """Accepts an invitation: makes the user a member of the organization, and leads to it."""
    try:
        joined = invitees.accept_invitation(_read_id(session), session.user_id, settings.organizations_per_person)
    except (InvitationGone, AlreadyMember, InvitationVoid, OwnsTooMany) as failure:
        return _invitations(session, failure)
    return redirect(f"/organizations/{joined.slug}?done=joined")


@router.post("/invitations/decline")
async def decline_invitation(session: Submits) -> Response:
    """Declines an invitation."""
    try:
        invitees.decline_invitation(_read_id(session), session.profile)
    except InvitationGone as failure:
        return _invitations(session, failure)
    return redirect("/invitations?done=declined")


@router.post("/invitations/block")
async def block_organization(session: Submits) -> Response:
    """Declines an invitation and hides future invitations from its organization."""
    try:
        invitees.block_organization(_read_id(session), session.profile)
    except InvitationGone as failure:
        return _invitations(session, failure)
    return redirect("/invitations?done=blocked")


@router.get("/invitations/blocked")
async def show_blocked_organizations(session: SignedIn) -> Response:
    """Lists the organizations that the user has blocked."""
    return _blocked(session)


@router.get("/invitations/{invitationId}")
async def show_invitation(session: SignedIn, invitation_id: Annotated[str, Path(alias="invitationId")]) -> Response:
    """Shows one invitation. The link of its email leads here, and has no secret: the account's address is verified."""
    profile, parsed = session.profile, InvitationId.parse(invitation_id)
    received = invitees.find_received(parsed, profile) if parsed else None
    return page("invitation", session, current="/invitations", profile=profile, received=received)


@router.post("/invitations/unblock")
async def unblock_organization(session: Submits) -> Response:
    """Unblocks an organization, so that its invitations are shown again."""
    organization_id = session.form.get("organization_id", "")
    if not ids.is_root(ids.ORGANIZATION, organization_id):
        return _blocked(session, NotBlocked())
    try:
        name = invitees.unblock_organization(session.user_id, organization_id)
    except NotBlocked as failure:
        return _blocked(session, failure)
    return _blocked(session, done=f"You unblocked {name}.")


def _read_id(session: WebSession) -> InvitationId:
    return known(InvitationId.parse(session.form.get("invitation_id", "")), InvitationGone)


def _invitations(session: WebSession, failure: ApiError | None = None) -> Response:
    received = invitees.list_received(session.profile, ON_PAGE)
    return page("invitations", session, failure, done=_DONE, current="/invitations", received=received)


def _blocked(session: WebSession, failure: ApiError | None = None, done: str | None = None) -> Response:
    codec = CursorCodec(session.parameters.get("after"), "showBlockedOrganizations", session.user_id)
    blocked = invitees.list_blocked(session.user_id, BLOCKED_PER_PAGE, codec.after)
    return page(
        "blocked",
        session,
        failure,
        done=done,
        current="/invitations",
        blocked=blocked.items,
        next_cursor=codec.cursor(blocked.next_sk),
    )
