"""The pages on which a user answers invitations and blocks organizations."""

from fastapi import Response

from controlplane.access.web_session import WebSession
from controlplane.organizations.invitees import AlreadyMember, InvitationGone, InvitationVoid, NotBlocked, OwnsTooMany
from controlplane.platform.core.errors import ApiError
from controlplane.platform.http.app import ControlRouter
from dashboard import invitations
from dashboard.page_parameters import Done, InvitationPath, SignedIn, Submits, Text
from dashboard.pages import address, page, redirect

router = ControlRouter(tags=["Pages"], include_in_schema=False)

# Errors that are shown above the remaining invitations.
_NOT_ANSWERABLE = (InvitationGone, AlreadyMember, InvitationVoid, OwnsTooMany)
_DONE = {
    "declined": "You declined the invitation.",
    "blocked": "You declined the invitation and blocked the organization.",
}


@router.get("/invitations", operation_id="showInvitations")
async def show_invitations(session: SignedIn, done: Done = "") -> Response:
    """Shows the pending invitations for the account's verified email address."""
    return _invitations(session, done=_DONE.get(done))


@router.post("/invitations/accept", operation_id="acceptInvitation")
async def accept_invitation(session: Submits) -> Response:
    """Accepts an invitation: makes the user a member of the organization, and leads to it."""
    try:
        joined = invitations.accept_invitation(_chosen(session), session.user_id)
    except _NOT_ANSWERABLE as failure:
        return _invitations(session, failure)
    return redirect(address(f"/organizations/{joined.slug}?done=joined"))


@router.post("/invitations/decline", operation_id="declineInvitation")
async def decline_invitation(session: Submits) -> Response:
    """Declines an invitation."""
    try:
        invitations.decline_invitation(_chosen(session), session.account)
    except InvitationGone as failure:
        return _invitations(session, failure)
    return redirect(address("/invitations?done=declined"))


@router.post("/invitations/block", operation_id="blockOrganization")
async def block_organization(session: Submits) -> Response:
    """Declines an invitation and hides future invitations from its organization."""
    try:
        invitations.block_organization(_chosen(session), session.account)
    except InvitationGone as failure:
        return _invitations(session, failure)
    return redirect(address("/invitations?done=blocked"))


@router.get("/invitations/blocked", operation_id="showBlockedOrganizations")
async def show_blocked_organizations(session: SignedIn, after: Text = None) -> Response:
    """Lists the organizations that the user has blocked."""
    return _blocked(session, after)


@router.get("/invitations/{invitationId}", operation_id="showInvitation")
async def show_invitation(session: SignedIn, invitation_id: InvitationPath) -> Response:
    """Shows one invitation. The link of its email leads here, and has no secret: the account's address is verified."""
    profile, invitation = invitations.find_invitation(invitation_id, session.account)
    return page("invitation", session, current="/invitations", profile=profile, invitation=invitation)


@router.post("/invitations/unblock", operation_id="unblockOrganization")
async def unblock_organization(session: Submits) -> Response:
    """Unblocks an organization, so that its invitations are shown again."""
    try:
        name = invitations.unblock_organization(session.form.get("organization_id", ""), session.user_id)
    except NotBlocked as failure:
        return _blocked(session, failure=failure)
    return _blocked(session, done=f"You unblocked {name}.")


def _chosen(session: WebSession) -> str:
    return session.form.get("invitation_id", "")


def _invitations(session: WebSession, failure: ApiError | None = None, done: str | None = None) -> Response:
    received = invitations.list_received(session.account, invitations.ON_PAGE)
    return page("invitations", session, failure=failure, done=done, current="/invitations", received=received)


def _blocked(
    session: WebSession, after: str | None = None, failure: ApiError | None = None, done: str | None = None
) -> Response:
    blocked = invitations.list_blocked(session.user_id, after)
    return page(
        "blocked",
        session,
        failure=failure,
        done=done,
        current="/invitations",
        blocked=blocked.blocks,
        next_after=blocked.next_sk,
    )
