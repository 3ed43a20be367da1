"""The pages on which a user signs in and out."""

from typing import Annotated

from fastapi import Header, Response

from controlplane.access import web_session
from controlplane.people import sessions
from controlplane.platform.core.settings import settings
from controlplane.platform.http.app import ControlRouter
from dashboard.access import browsers, sign_in
from dashboard.pages import page, redirect
from dashboard.parameters import Anyone, SignsIn, Submits

router = ControlRouter(tags=["Pages"], include_in_schema=False)


@router.get("/sign-in")
async def begin_sign_in(session: SignsIn) -> Response:
    """Redirects to the sign-in provider. `return_to` is ignored unless it is a dashboard page."""
    begun = sign_in.begin_sign_in(session.parameters.get("return_to"))
    return redirect(begun.url, [web_session.cookie(begun.purpose, begun.note, sign_in.SIGN_IN_SECONDS)])


@router.get("/sign-up")
async def begin_sign_up(session: SignsIn) -> Response:
    """Redirects to the sign-in provider's form for a new account, if it has one, or else to its sign-in."""
    begun = sign_in.begin_sign_in(session.parameters.get("return_to"), creates_account=settings.self_sign_up)
    return redirect(begun.url, [web_session.cookie(begun.purpose, begun.note, sign_in.SIGN_IN_SECONDS)])


@router.get("/login")
async def redirect_login(session: Anyone) -> Response:  # noqa: ARG001
    """Redirects people who guess the address of the sign-in."""
    return redirect("/sign-in")


@router.get("/sign-in/callback")
async def finish_sign_in(session: SignsIn, user_agent: Annotated[str, Header()] = "") -> Response:
    """Completes the sign-in when the provider redirects back. The first sign-in creates the account."""
    code, state, error, issuer = (session.parameters.get(name) for name in ("code", "state", "error", "iss"))
    purpose = sign_in.note_purpose(state or "")
    if error is not None or code is None or state is None or purpose is None:
        raise sign_in.SignInCanceled(reason=(error or "incomplete")[:100])
    browser = sign_in.Browser(
        lambda purpose: session.cookies.get(web_session.cookie_name(purpose), ""),
        session.address or None,
        browsers.describe(user_agent),
    )
    signed_in = sign_in.finish_sign_in(state, code, issuer, browser)
    # Revokes the browser's previous session, if any.
    sessions.revoke(session.secret)
    cookies = web_session.session_cookies(signed_in.secret, signed_in.user_id, sessions.LIFE_SECONDS)
    return redirect(signed_in.return_to, [*cookies, web_session.cookie(purpose, "", 0)])


@router.post("/sign-out")
async def sign_out(session: Submits) -> Response:
    """Revokes the session, both as a cookie and as a bearer token."""
    sessions.revoke(session.secret)
    return redirect("/signed-out", web_session.ended_cookies())


@router.get("/signed-out")
async def show_signed_out(session: SignsIn) -> Response:
    """Confirms the sign-out or the deletion of the account, and links to the sign-out of the provider."""
    is_deleted = session.parameters.get("done") == "deleted"
    return page("signed_out", session, provider=sign_in.provider_sign_out_url(), is_deleted=is_deleted)
