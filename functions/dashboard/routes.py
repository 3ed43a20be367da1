"""Routes of `dashboard`: HTML pages that work without scripts. Errors are HTML pages, too.

A GET changes nothing except during sign-in. Every change is a POST of a form with the session's CSRF token.
"""

from typing import Annotated

from fastapi import Path, Query, Response

from controlplane.core.errors import ApiError, RouteNotFound
from controlplane.core.settings import settings
from controlplane.http import web_session
from controlplane.http.anonymous import Anonymous
from controlplane.http.app import ControlRouter
from controlplane.http.pagination import Cursor, CursorCodec
from controlplane.http.web_session import RequiresSession, WebSession
from controlplane.store import invitees
from controlplane.store.organizations import NotMember
from controlplane.store.sessions import LIFE_SECONDS
from dashboard import device_service, invitations, service, session_service
from dashboard.pages import PageLook, address, page, redirect, style, style_sheet

router = ControlRouter(tags=["Pages"], include_in_schema=False)

_LOOK = PageLook()

Anyone = Annotated[WebSession, RequiresSession(_LOOK, signed_in=False)]
# Rate-limited, because each request may call the provider.
_SIGN_INS = Anonymous("pages.sign-in", settings.sign_in_requests_per_minute)
SignsIn = Annotated[WebSession, RequiresSession(_LOOK, signed_in=False, counted=_SIGN_INS)]
SignedIn = Annotated[WebSession, RequiresSession(_LOOK)]
Submits = Annotated[WebSession, RequiresSession(_LOOK, form=True)]
OrganizationSlug = Annotated[str, Path(alias="organizationSlug")]
ProjectSlug = Annotated[str, Path(alias="projectSlug")]
Text = Annotated[str | None, Query(max_length=4096)]


@router.get("/", operation_id="showOverview")
async def show_overview(session: Anyone) -> Response:
    """Shows the user's organizations and pending invitations, or a welcome page if signed out."""
    if session.access is None:
        return page("welcome", session)
    standing = service.get_standing(session.user_id, service.OVERVIEW_INVITATIONS)
    return page("overview", session, current="/", **standing._asdict())


@router.get("/sign-in", operation_id="beginSignIn")
async def begin_sign_in(_session: SignsIn, return_to: Text = None) -> Response:
    """Redirects to the sign-in provider. `return_to` is ignored unless it is a dashboard page."""
    begun = service.begin_sign_in(return_to)
    return redirect(begun.url, [web_session.cookie(begun.purpose, begun.note, service.SIGN_IN_SECONDS)])


@router.get("/sign-in/callback", operation_id="finishSignIn")
async def finish_sign_in(
    session: SignsIn, code: Text = None, state: Text = None, error: Text = None, iss: Text = None
) -> Response:
    """Completes the sign-in when the provider redirects back. The first sign-in creates the account."""
    purpose = service.note_purpose(state or "")
    if error is not None or code is None or state is None or purpose is None:
        raise service.SignInCanceled((error or "incomplete")[:100])
    secret, return_to = service.finish_sign_in(
        state, code, iss, lambda purpose: session.cookies.get(web_session.cookie_name(purpose), ""), session.address
    )
    # Revokes the browser's previous session, if any.
    service.sign_out(session.secret)
    signed_in = web_session.cookie("session", secret, LIFE_SECONDS)
    return redirect(address(return_to), [signed_in, web_session.cookie(purpose, "", 0)])


@router.post("/sign-out", operation_id="signOut")
async def sign_out(session: Submits) -> Response:
    """Revokes the session, both as a cookie and as a bearer token."""
    service.sign_out(session.secret)
    return redirect(address("/signed-out"), [web_session.cookie("session", "", 0)])


@router.get("/signed-out", operation_id="showSignedOut")
async def show_signed_out(session: SignsIn) -> Response:
    """Confirms the sign-out and links to the sign-out of the provider."""
    return page("signed_out", session, provider=service.provider_sign_out_url())


@router.get("/device", operation_id="showDevice")
async def show_device(session: SignedIn, user_code: Text = None) -> Response:
    """Asks for the user code that a device shows. A link can prefill the code but not submit it."""
    _check_devices()
    return _device_form(session, user_code or "")


@router.post("/device", operation_id="reviewDevice")
async def review_device(session: Submits) -> Response:
    """Shows the device request for review. An unknown code counts as a failed attempt."""
    _check_devices()
    code = session.form.get("user_code", "")[:100]
    if not code.strip():
        return _device_form(session, "", "Enter the code that your device shows.", 400)
    try:
        review = device_service.review_device(code, session.user_id, session.secret)
    except _REFUSED_DEVICE as refusal:
        return _device_form(session, code, refusal.public, refusal.status, refusal.headers)
    return _device_review(session, review)


@router.post("/device/approve", operation_id="approveDevice")
async def approve_device(session: Submits) -> Response:
    """Approves the device with the scopes that were left checked."""
    return _decide(session, approves=True)


@router.post("/device/deny", operation_id="denyDevice")
async def deny_device(session: Submits) -> Response:
    """Denies the device."""
    return _decide(session, approves=False)


@router.get("/invitations", operation_id="showInvitations")
async def show_invitations(session: SignedIn) -> Response:
    """Shows the pending invitations for the account's verified email address."""
    return _invitations(session)


@router.post("/invitations/accept", operation_id="acceptInvitation")
async def accept_invitation(session: Submits) -> Response:
    """Accepts an invitation: makes the user a member of the organization."""
    try:
        joined = invitations.accept_invitation(session.form.get("invitation_id", ""), session.user_id)
    except _REFUSED_INVITATION as refusal:
        return _invitations(session, refusal)
    return _invitations(session, done=f"You are now a member of {joined.name}, as {joined.role}.")


@router.post("/invitations/decline", operation_id="declineInvitation")
async def decline_invitation(session: Submits) -> Response:
    """Declines an invitation."""
    try:
        name = invitations.decline_invitation(session.form.get("invitation_id", ""), session.user_id)
    except _REFUSED_INVITATION as refusal:
        return _invitations(session, refusal)
    return _invitations(session, done=f"You declined the invitation to {name}.")


@router.post("/invitations/block", operation_id="blockOrganization")
async def block_organization(session: Submits) -> Response:
    """Declines an invitation and hides future invitations from its organization."""
    try:
        name = invitations.block_organization(session.form.get("invitation_id", ""), session.user_id)
    except _REFUSED_INVITATION as refusal:
        return _invitations(session, refusal)
    return _invitations(session, done=f"You declined the invitation to {name} and blocked the organization.")


@router.get("/invitations/blocked", operation_id="showBlockedOrganizations")
async def show_blocked_organizations(session: SignedIn, after: Text = None) -> Response:
    """Lists the organizations that the user has blocked."""
    return _blocked(session, after)


@router.post("/invitations/unblock", operation_id="unblockOrganization")
async def unblock_organization(session: Submits) -> Response:
    """Unblocks an organization, so that its invitations are shown again."""
    try:
        name = invitations.unblock_organization(session.form.get("organization_id", ""), session.user_id)
    except invitees.NotBlocked as refusal:
        return _blocked(session, refusal=refusal)
    return _blocked(session, done=f"You unblocked {name}.")


@router.get("/sessions", operation_id="showSessions")
async def show_sessions(session: SignedIn, cursor: Cursor = None) -> Response:
    """Lists the user's sessions, devices, and tokens, with a button to revoke each."""
    return _sessions(session, cursor)


@router.post("/sessions/revoke", operation_id="endSession")
async def end_session(session: Submits) -> Response:
    """Revokes a session, device, or token. Revoking the current session signs the user out."""
    try:
        revoked = session_service.revoke_session(session.form.get("session_id", ""), session.user_id)
    except session_service.UnknownSession as refusal:
        return _sessions(session, refusal=refusal)
    if revoked == _current_session(session):
        return redirect(address("/signed-out"), [web_session.cookie("session", "", 0)])
    return _sessions(session, done="Revoked. It no longer has access.")


@router.post("/sessions/revoke-others", operation_id="endOtherSessions")
async def end_other_sessions(session: Submits) -> Response:
    """Revokes all sessions, devices, and tokens except the current session."""
    ended, more = session_service.revoke_others(session.user_id, _current_session(session))
    counted = f"{ended} {'entry' if ended == 1 else 'entries'}"
    rest = " There are more: press the button again." if more else " Only this session has access now."
    return _sessions(session, done=f"Revoked {counted}.{rest}")


@router.get("/organizations", operation_id="showOrganizations")
async def show_organizations(session: SignedIn) -> Response:
    """Lists the user's organizations and marks the default one."""
    return _organizations(session)


@router.post("/organizations", operation_id="saveOrganization")
async def save_organization(session: Submits) -> Response:
    """Saves the default organization, which is used for requests without `organizationId`."""
    try:
        saved = service.save_organization(session.form.get("organization_id", ""), session.user_id)
    except NotMember as refusal:
        return _organizations(session, refusal)
    return _organizations(session, done=f"{saved.name} is saved as your default organization.")


@router.get("/organizations/{organizationSlug}/delete", operation_id="showOrganizationDeletion")
async def show_organization_deletion(session: SignedIn, organization_slug: OrganizationSlug) -> Response:
    """Explains what deleting the organization removes, and asks an owner to type its name or slug."""
    organization = service.get_own_organization(organization_slug, session.user_id)
    return page("organization_delete", session, organization=organization, typed="", problem=None)


@router.post("/organizations/{organizationSlug}/delete", operation_id="deleteOrganization")
async def delete_organization(session: Submits, organization_slug: OrganizationSlug) -> Response:
    """Deletes the organization if the user typed its name or slug."""
    organization = service.get_own_organization(organization_slug, session.user_id)
    typed = session.form.get("confirmation", "")[:200]
    try:
        service.delete_organization(organization, typed, session.user_id)
    except service.NotConfirmed as refusal:
        return page(
            "organization_delete",
            session,
            status=refusal.status,
            organization=organization,
            typed=typed,
            problem=refusal.public,
        )
    return _organizations(session, done=f"{organization.name} is deleted.")


@router.get("/organizations/{organizationSlug}/projects/{projectSlug}", operation_id="showProject")
async def show_project(session: SignedIn, organization_slug: OrganizationSlug, project_slug: ProjectSlug) -> Response:
    """Shows a project with its websites. `dashboardUrl` links to this page."""
    return _project("project", session, organization_slug, project_slug)


@router.get("/organizations/{organizationSlug}/projects/{projectSlug}/consent", operation_id="showProjectConsent")
async def show_project_consent(
    session: SignedIn, organization_slug: OrganizationSlug, project_slug: ProjectSlug
) -> Response:
    """Shows the project's consent instance: trusted origins, branding, and runtime."""
    return _project("project_consent", session, organization_slug, project_slug)


@router.get("/assets/{fileName}", operation_id="getAsset")
async def get_asset(file_name: Annotated[str, Path(alias="fileName")]) -> Response:
    """Returns the style sheet. The name must be that of the current version."""
    if file_name != style()[0]:
        raise RouteNotFound
    return style_sheet()


_REFUSED_DEVICE = (
    device_service.UnknownCode,
    device_service.CodeExpired,
    device_service.CodeDecided,
    device_service.TooManyCodes,
    device_service.NotReviewed,
)
_REFUSED_INVITATION = (
    invitees.InvitationGone,
    invitees.AlreadyMember,
    invitees.InvitationVoid,
    invitees.OwnsTooMany,
)


class _NoDevices(RouteNotFound):
    message = "Signing in devices is turned off here."


def _check_devices() -> None:
    if not service.devices_are_offered():
        raise _NoDevices


def _device_form(
    session: WebSession, code: str, problem: str | None = None, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    return page("device", session, status=status, headers=headers, current="/device", code=code[:100], problem=problem)


def _device_review(session: WebSession, review: device_service.Review, refusal: ApiError | None = None) -> Response:
    problem, status = (refusal.public, refusal.status) if refusal else (None, 200)
    return page("device_review", session, status=status, current="/device", problem=problem, **review._asdict())


def _decide(session: WebSession, *, approves: bool) -> Response:
    _check_devices()
    decide = device_service.approve_device if approves else device_service.deny_device
    try:
        try:
            decide(session.form, session.user_id, session.secret)
        except device_service.NothingGranted as refusal:
            review = device_service.review_device(session.form["user_code"], session.user_id, session.secret)
            return _device_review(session, review, refusal)
    except _REFUSED_DEVICE as refusal:
        return _device_form(session, "", refusal.public, refusal.status, refusal.headers)
    return page("device_decided", session, current="/device", approved=approves)


def _invitations(session: WebSession, refusal: ApiError | None = None, done: str | None = None) -> Response:
    return _standing("invitations", session, refusal, done)


def _blocked(
    session: WebSession, after: str | None = None, refusal: ApiError | None = None, done: str | None = None
) -> Response:
    blocked = invitations.list_blocked(session.user_id, after)
    problem, status = (refusal.public, refusal.status) if refusal else (None, 200)
    return page(
        "blocked",
        session,
        status=status,
        current="/invitations",
        problem=problem,
        done=done,
        blocked=blocked.blocks,
        next_after=blocked.next_sk,
    )


def _organizations(session: WebSession, refusal: ApiError | None = None, done: str | None = None) -> Response:
    return _standing("organizations", session, refusal, done)


def _current_session(session: WebSession) -> str | None:
    return session_service.current_session(session.access.principal.token if session.access else None)


def _sessions(
    session: WebSession, cursor: str | None = None, refusal: ApiError | None = None, done: str | None = None
) -> Response:
    codec = CursorCodec(cursor, "showSessions", session.user_id)
    shown = session_service.list_sessions(session.user_id, _current_session(session), codec.after)
    problem, status = (refusal.public, refusal.status) if refusal else (None, 200)
    return page(
        "sessions",
        session,
        status=status,
        current="/sessions",
        problem=problem,
        done=done,
        sessions=shown.sessions,
        next_cursor=codec.cursor(shown.next_sk),
    )


def _project(name: str, session: WebSession, organization_slug: str, project_slug: str) -> Response:
    organization, project = service.get_project(organization_slug, project_slug, session.user_id)
    return page(name, session, organization=organization, project=project)


def _standing(name: str, session: WebSession, refusal: ApiError | None, done: str | None) -> Response:
    standing = service.get_standing(session.user_id, service.PAGE_INVITATIONS)
    problem, status = (refusal.public, refusal.status) if refusal else (None, 200)
    return page(name, session, status=status, current=f"/{name}", problem=problem, done=done, **standing._asdict())
