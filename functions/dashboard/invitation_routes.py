"""The pages on which a user answers invitations and blocks organizations."""

from collections.abc import Callable

from fastapi import Response

from controlplane.core.errors import ApiError
from controlplane.http.app import ControlRouter
from controlplane.http.web_session import WebSession
from controlplane.store.invitees import AlreadyMember, InvitationGone, InvitationVoid, NotBlocked, OwnsTooMany
from dashboard import invitations
from dashboard.organizations import PAGE_INVITATIONS, get_overview
from dashboard.page_parameters import SignedIn, Submits, Text
from dashboard.pages import page

router = ControlRouter(tags=["Pages"], include_in_schema=False)

# Errors that are shown above the remaining invitations.
_NOT_ANSWERABLE = (InvitationGone, AlreadyMember, InvitationVoid, OwnsTooMany)


@router.get("/invitations", operation_id="showInvitations")
async def show_invitations(session: SignedIn) -> Response:
    """Shows the pending invitations for the account's verified email address."""
    return _invitations(session)


@router.post("/invitations/accept", operation_id="acceptInvitation")
async def accept_invitation(session: Submits) -> Response:
    """Accepts an invitation: makes the user a member of the organization."""
    return _answer(
        session,
        invitations.accept_invitation,
        lambda joined: f"You are now a member of {joined.name}, as {joined.role}.",
    )


@router.post("/invitations/decline", operation_id="declineInvitation")
async def decline_invitation(session: Submits) -> Response:
    """Declines an invitation."""
    return _answer(session, invitations.decline_invitation, lambda name: f"You declined the invitation to {name}.")


@router.post("/invitations/block", operation_id="blockOrganization")
async def block_organization(session: Submits) -> Response:
    """Declines an invitation and hides future invitations from its organization."""
    return _answer(
        session,
        invitations.block_organization,
        lambda name: f"You declined the invitation to {name} and blocked the organization.",
    )


@router.get("/invitations/blocked", operation_id="showBlockedOrganizations")
async def show_blocked_organizations(session: SignedIn, after: Text = None) -> Response:
    """Lists the organizations that the user has blocked."""
    return _blocked(session, after)


@router.post("/invitations/unblock", operation_id="unblockOrganization")
async def unblock_organization(session: Submits) -> Response:
    """Unblocks an organization, so that its invitations are shown again."""
    try:
        name = invitations.unblock_organization(session.form.get("organization_id", ""), session.user_id)
    except NotBlocked as failure:
        return _blocked(session, failure=failure)
    return _blocked(session, done=f"You unblocked {name}.")


def _answer[T](session: WebSession, answer: Callable[[str, str], T], describe: Callable[[T], str]) -> Response:
    """Answers the invitation in the form. Returns the remaining invitations, with the outcome or the error."""
    try:
        outcome = answer(session.form.get("invitation_id", ""), session.user_id)
    except _NOT_ANSWERABLE as failure:
        return _invitations(session, failure)
    return _invitations(session, done=describe(outcome))


def _invitations(session: WebSession, failure: ApiError | None = None, done: str | None = None) -> Response:
    overview = get_overview(session.user_id, PAGE_INVITATIONS)
    return page("invitations", session, failure=failure, done=done, current="/invitations", **overview._asdict())


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
