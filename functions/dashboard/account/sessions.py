"""The page that lists a user's sessions, devices, and tokens, and revokes them."""

from fastapi import Response

from controlplane.access import web_session
from controlplane.access.web_session import WebSession
from controlplane.people import credential_index, revocations
from controlplane.platform.core.errors import ApiError, NotFound
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.pagination import CursorCodec
from dashboard.pages import page, redirect
from dashboard.parameters import SignedIn, Submits

router = ControlRouter(tags=["Pages"], include_in_schema=False)

PER_PAGE = 50
# The maximum per request. Each needs a read and a transaction; the total stays far below the function's timeout.
_REVOKED_AT_ONCE = 100
_KINDS = {"session": "Web session", "device": "Device", "token": "Token made by the operator"}  # nosec B105


class EntryGone(NotFound):
    """Also shown for another user's session."""

    message = "This entry is no longer there: it has expired or was revoked."


@router.get("/sessions")
async def show_sessions(session: SignedIn) -> Response:
    """Lists the user's sessions, devices, and tokens, with a button to revoke each."""
    return _sessions(session)


@router.post("/sessions/revoke")
async def end_session(session: Submits) -> Response:
    """Revokes a session, device, or token. Revoking the current session signs the user out."""
    try:
        revoked = revocations.revoke_session(session.user_id, session.form.get("session_id", ""))
    except revocations.UnknownSession:
        return _sessions(session, EntryGone())
    if revoked == session.entry_local:
        return redirect("/signed-out", web_session.ended_cookies())
    return _sessions(session, done="Revoked. It no longer has access.")


@router.post("/sessions/revoke-others")
async def end_other_sessions(session: Submits) -> Response:
    """Revokes all sessions, devices, and tokens except the current session."""
    revoked, has_more = revocations.revoke_others(session.user_id, session.entry_local, _REVOKED_AT_ONCE)
    counted = f"{revoked} {'entry' if revoked == 1 else 'entries'}"
    rest = " There are more: press the button again." if has_more else " Only this session has access now."
    return _sessions(session, done=f"Revoked {counted}.{rest}")


def _sessions(session: WebSession, failure: ApiError | None = None, done: str | None = None) -> Response:
    codec = CursorCodec(session.parameters.get("cursor"), "showSessions", session.user_id)
    listed = credential_index.list_credentials(session.user_id, PER_PAGE, codec.after)
    return page(
        "sessions",
        session,
        failure,
        done=done,
        current="/sessions",
        sessions=[it for it in listed.items if it.is_live],
        current_local=session.entry_local,
        kinds=_KINDS,
        next_cursor=codec.cursor(listed.next_sk),
    )
