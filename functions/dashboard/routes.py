"""Routes of `dashboard`: HTML pages that work without scripts. Errors are HTML pages, too.

A GET changes nothing except during sign-in. Every change is a POST of a form with the session's CSRF token.
"""

from typing import Annotated

from fastapi import Path, Query, Response

from controlplane import visitors
from controlplane.anonymous import Anonymous
from controlplane.app import ControlRouter
from controlplane.errors import ApiError, RouteNotFound
from controlplane.pagination import Cursor, Walk
from controlplane.settings import settings
from controlplane.store.sessions import LIFE_SECONDS
from controlplane.visitors import Visitor, Visits
from dashboard import device_service, invitations, service, session_service
from dashboard.pages import PageLook, address, page, redirect, style, style_sheet

router = ControlRouter(tags=["Pages"], include_in_schema=False)

_LOOK = PageLook()

Anyone = Annotated[Visitor, Visits(_LOOK, signed_in=False)]
# Rate-limited, because each request may call the provider.
_SIGN_INS = Anonymous("pages.sign-in", settings.sign_in_requests_per_minute)
SignsIn = Annotated[Visitor, Visits(_LOOK, signed_in=False, counted=_SIGN_INS)]
SignedIn = Annotated[Visitor, Visits(_LOOK)]
Submits = Annotated[Visitor, Visits(_LOOK, form=True)]
OrganizationSlug = Annotated[str, Path(alias="organizationSlug")]
ProjectSlug = Annotated[str, Path(alias="projectSlug")]
Text = Annotated[str | None, Query(max_length=4096)]


@router.get("/", operation_id="showOverview")
async def show_overview(visitor: Anyone) -> Response:
    """Shows the user's organizations and pending invitations, or a welcome page if signed out."""
    if visitor.access is None:
        return page("welcome", visitor)
    standing = service.get_standing(visitor.user_id, service.OVERVIEW_INVITATIONS)
    return page("overview", visitor, current="/", **standing._asdict())


@router.get("/sign-in", operation_id="beginSignIn")
async def begin_sign_in(_visitor: SignsIn, return_to: Text = None) -> Response:
    """Redirects to the sign-in provider. `return_to` is ignored unless it is a dashboard page."""
    begun = service.begin_sign_in(return_to)
    return redirect(begun.url, [visitors.cookie(begun.purpose, begun.note, service.SIGN_IN_SECONDS)])


@router.get("/sign-in/callback", operation_id="finishSignIn")
async def finish_sign_in(
    visitor: SignsIn, code: Text = None, state: Text = None, error: Text = None, iss: Text = None
) -> Response:
    """Completes the sign-in when the provider redirects back. The first sign-in creates the account."""
    purpose = service.note_purpose(state or "")
    if error is not None or code is None or state is None or purpose is None:
        raise service.SignInCanceled((error or "incomplete")[:100])
    secret, return_to = service.finish_sign_in(
        state, code, iss, lambda purpose: visitor.cookies.get(visitors.cookie_name(purpose), ""), visitor.address
    )
    # Revokes the browser's previous session, if any.
    service.sign_out(visitor.secret)
    session = visitors.cookie("session", secret, LIFE_SECONDS)
    return redirect(address(return_to), [session, visitors.cookie(purpose, "", 0)])


@router.post("/sign-out", operation_id="signOut")
async def sign_out(visitor: Submits) -> Response:
    """Revokes the session, both as a cookie and as a bearer token."""
    service.sign_out(visitor.secret)
    return redirect(address("/signed-out"), [visitors.cookie("session", "", 0)])


@router.get("/signed-out", operation_id="showSignedOut")
async def show_signed_out(visitor: SignsIn) -> Response:
    """Confirms the sign-out and links to the sign-out of the provider."""
    return page("signed_out", visitor, provider=service.provider_sign_out_url())


@router.get("/device", operation_id="showDevice")
async def show_device(visitor: SignedIn, user_code: Text = None) -> Response:
    """Asks for the user code that a device shows. A link can prefill the code but not submit it."""
    _check_devices()
    return _device_form(visitor, user_code or "")


@router.post("/device", operation_id="reviewDevice")
async def review_device(visitor: Submits) -> Response:
    """Shows the device request for review. An unknown code counts as a failed attempt."""
    _check_devices()
    code = visitor.form.get("user_code", "")[:100]
    if not code.strip():
        return _device_form(visitor, "", "Enter the code that your device shows.", 400)
    try:
        review = device_service.review_device(code, visitor.user_id, visitor.secret)
    except _REFUSED_DEVICE as refusal:
        return _device_form(visitor, code, refusal.public, refusal.status, refusal.headers)
    return _device_review(visitor, review)


@router.post("/device/approve", operation_id="approveDevice")
async def approve_device(visitor: Submits) -> Response:
    """Approves the device with the scopes that were left checked."""
    return _decide(visitor, approves=True)


@router.post("/device/deny", operation_id="denyDevice")
async def deny_device(visitor: Submits) -> Response:
    """Denies the device."""
    return _decide(visitor, approves=False)


@router.get("/invitations", operation_id="showInvitations")
async def show_invitations(visitor: SignedIn) -> Response:
    """Shows the pending invitations for the account's verified email address."""
    return _invitations(visitor)


@router.post("/invitations/accept", operation_id="acceptInvitation")
async def accept_invitation(visitor: Submits) -> Response:
    """Accepts an invitation: makes the user a member of the organization."""
    try:
        joined = invitations.accept_invitation(visitor.form.get("invitation_id", ""), visitor.user_id)
    except _REFUSED_INVITATION as refusal:
        return _invitations(visitor, refusal)
    return _invitations(visitor, done=f"You are now a member of {joined.name}, as {joined.role}.")


@router.post("/invitations/decline", operation_id="declineInvitation")
async def decline_invitation(visitor: Submits) -> Response:
    """Declines an invitation."""
    try:
        name = invitations.decline_invitation(visitor.form.get("invitation_id", ""), visitor.user_id)
    except _REFUSED_INVITATION as refusal:
        return _invitations(visitor, refusal)
    return _invitations(visitor, done=f"You declined the invitation to {name}.")


@router.post("/invitations/block", operation_id="blockOrganization")
async def block_organization(visitor: Submits) -> Response:
    """Declines an invitation and hides future invitations from its organization."""
    try:
        name = invitations.block_organization(visitor.form.get("invitation_id", ""), visitor.user_id)
    except _REFUSED_INVITATION as refusal:
        return _invitations(visitor, refusal)
    return _invitations(visitor, done=f"You declined the invitation to {name} and blocked the organization.")


@router.get("/invitations/blocked", operation_id="showBlockedOrganizations")
async def show_blocked_organizations(visitor: SignedIn, after: Text = None) -> Response:
    """Lists the organizations that the user has blocked."""
    return _blocked(visitor, after)


@router.post("/invitations/unblock", operation_id="unblockOrganization")
async def unblock_organization(visitor: Submits) -> Response:
    """Unblocks an organization, so that its invitations are shown again."""
    try:
        name = invitations.unblock_organization(visitor.form.get("organization_id", ""), visitor.user_id)
    except invitations.NotBlocked as refusal:
        return _blocked(visitor, refusal=refusal)
    return _blocked(visitor, done=f"You unblocked {name}.")


@router.get("/sessions", operation_id="showSessions")
async def show_sessions(visitor: SignedIn, cursor: Cursor = None) -> Response:
    """Lists the user's sessions, devices, and tokens, with a button to revoke each."""
    return _sessions(visitor, cursor)


@router.post("/sessions/revoke", operation_id="endSession")
async def end_session(visitor: Submits) -> Response:
    """Revokes a session, device, or token. Revoking the current session signs the user out."""
    try:
        revoked = session_service.revoke_session(visitor.form.get("session_id", ""), visitor.user_id)
    except session_service.UnknownSession as refusal:
        return _sessions(visitor, refusal=refusal)
    if revoked == _current_session(visitor):
        return redirect(address("/signed-out"), [visitors.cookie("session", "", 0)])
    return _sessions(visitor, done="Revoked. It no longer has access.")


@router.post("/sessions/revoke-others", operation_id="endOtherSessions")
async def end_other_sessions(visitor: Submits) -> Response:
    """Revokes all sessions, devices, and tokens except the current session."""
    ended, more = session_service.revoke_others(visitor.user_id, _current_session(visitor))
    counted = f"{ended} {'entry' if ended == 1 else 'entries'}"
    rest = " There are more: press the button again." if more else " Only this session has access now."
    return _sessions(visitor, done=f"Revoked {counted}.{rest}")


@router.get("/organizations", operation_id="showOrganizations")
async def show_organizations(visitor: SignedIn) -> Response:
    """Lists the user's organizations and marks the default one."""
    return _organizations(visitor)


@router.post("/organizations", operation_id="saveOrganization")
async def save_organization(visitor: Submits) -> Response:
    """Saves the default organization, which is used for requests without `organizationId`."""
    try:
        saved = service.save_organization(visitor.form.get("organization_id", ""), visitor.user_id)
    except service.NoMembership as refusal:
        return _organizations(visitor, refusal)
    return _organizations(visitor, done=f"{saved.name} is saved as your default organization.")


@router.get("/organizations/{organizationSlug}/delete", operation_id="showOrganizationDeletion")
async def show_organization_deletion(visitor: SignedIn, organization_slug: OrganizationSlug) -> Response:
    """Explains what deleting the organization removes, and asks an owner to type its name or slug."""
    organization = service.get_own_organization(organization_slug, visitor.user_id)
    return page("organization_delete", visitor, organization=organization, typed="", problem=None)


@router.post("/organizations/{organizationSlug}/delete", operation_id="deleteOrganization")
async def delete_organization(visitor: Submits, organization_slug: OrganizationSlug) -> Response:
    """Deletes the organization if the user typed its name or slug."""
    organization = service.get_own_organization(organization_slug, visitor.user_id)
    typed = visitor.form.get("confirmation", "")[:200]
    try:
        service.delete_organization(organization, typed, visitor.user_id)
    except service.NotConfirmed as refusal:
        return page(
            "organization_delete",
            visitor,
            status=refusal.status,
            organization=organization,
            typed=typed,
            problem=refusal.public,
        )
    return _organizations(visitor, done=f"{organization.name} is deleted.")


@router.get("/organizations/{organizationSlug}/projects/{projectSlug}", operation_id="showProject")
async def show_project(visitor: SignedIn, organization_slug: OrganizationSlug, project_slug: ProjectSlug) -> Response:
    """Shows a project with its websites. `dashboardUrl` links to this page."""
    return _project("project", visitor, organization_slug, project_slug)


@router.get("/organizations/{organizationSlug}/projects/{projectSlug}/consent", operation_id="showProjectConsent")
async def show_project_consent(
    visitor: SignedIn, organization_slug: OrganizationSlug, project_slug: ProjectSlug
) -> Response:
    """Shows the project's consent instance: trusted origins, branding, and runtime."""
    return _project("project_consent", visitor, organization_slug, project_slug)


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
    invitations.InvitationGone,
    invitations.AlreadyThere,
    invitations.InviterGone,
    invitations.OwnsTooMany,
)


class _NoDevices(RouteNotFound):
    message = "Signing in devices is turned off here."


def _check_devices() -> None:
    if not service.devices_are_offered():
        raise _NoDevices


def _device_form(
    visitor: Visitor, code: str, problem: str | None = None, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    return page("device", visitor, status=status, headers=headers, current="/device", code=code[:100], problem=problem)


def _device_review(visitor: Visitor, review: device_service.Review, refusal: ApiError | None = None) -> Response:
    problem, status = (refusal.public, refusal.status) if refusal else (None, 200)
    return page("device_review", visitor, status=status, current="/device", problem=problem, **review._asdict())


def _decide(visitor: Visitor, *, approves: bool) -> Response:
    _check_devices()
    decide = device_service.approve_device if approves else device_service.deny_device
    try:
        try:
            decide(visitor.form, visitor.user_id, visitor.secret)
        except device_service.NothingGranted as refusal:
            review = device_service.review_device(visitor.form["user_code"], visitor.user_id, visitor.secret)
            return _device_review(visitor, review, refusal)
    except _REFUSED_DEVICE as refusal:
        return _device_form(visitor, "", refusal.public, refusal.status, refusal.headers)
    return page("device_decided", visitor, current="/device", approved=approves)


def _invitations(visitor: Visitor, refusal: ApiError | None = None, done: str | None = None) -> Response:
    return _standing("invitations", visitor, refusal, done)


def _blocked(
    visitor: Visitor, after: str | None = None, refusal: ApiError | None = None, done: str | None = None
) -> Response:
    blocked = invitations.list_blocked(visitor.user_id, after)
    problem, status = (refusal.public, refusal.status) if refusal else (None, 200)
    return page(
        "blocked",
        visitor,
        status=status,
        current="/invitations",
        problem=problem,
        done=done,
        blocked=blocked.items,
        next_after=blocked.next_sk,
    )


def _organizations(visitor: Visitor, refusal: ApiError | None = None, done: str | None = None) -> Response:
    return _standing("organizations", visitor, refusal, done)


def _current_session(visitor: Visitor) -> str | None:
    return session_service.current_session(visitor.access.principal.token if visitor.access else None)


def _sessions(
    visitor: Visitor, cursor: str | None = None, refusal: ApiError | None = None, done: str | None = None
) -> Response:
    walk = Walk(cursor, "showSessions", visitor.user_id)
    shown = session_service.list_sessions(visitor.user_id, _current_session(visitor), walk.after)
    problem, status = (refusal.public, refusal.status) if refusal else (None, 200)
    return page(
        "sessions",
        visitor,
        status=status,
        current="/sessions",
        problem=problem,
        done=done,
        sessions=shown.sessions,
        next_cursor=walk.cursor(shown.next_sk),
    )


def _project(name: str, visitor: Visitor, organization_slug: str, project_slug: str) -> Response:
    organization, project = service.get_project(organization_slug, project_slug, visitor.user_id)
    return page(name, visitor, organization=organization, project=project)


def _standing(name: str, visitor: Visitor, refusal: ApiError | None, done: str | None) -> Response:
    standing = service.get_standing(visitor.user_id, service.PAGE_INVITATIONS)
    problem, status = (refusal.public, refusal.status) if refusal else (None, 200)
    return page(name, visitor, status=status, current=f"/{name}", problem=problem, done=done, **standing._asdict())
