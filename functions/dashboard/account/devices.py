"""The pages on which a user approves or denies a device: what a user is shown, and what their decision can grant.

A decision includes a seal (HMAC) over what the session was shown, so users can only decide on requests they have seen.
"""

from fastapi import Response

from controlplane.access.web_session import WebSession
from controlplane.people import device_approvals
from controlplane.people.device_approvals import AlreadyDecided, RequestExpired, TooManyTries, UnknownUserCode
from controlplane.platform.core import clock, keyring, tokens
from controlplane.platform.core.errors import ApiError, Forbidden, RouteNotFound
from controlplane.platform.core.scopes import SCOPES
from controlplane.platform.core.settings import settings
from controlplane.platform.http.app import ControlRouter
from dashboard.forms import NotAcceptable
from dashboard.pages import page
from dashboard.parameters import SignedIn, Submits

router = ControlRouter(tags=["Pages"], include_in_schema=False)

# The purpose of the key ring's digest.
_REVIEW = "review of a device"
_CODE_LENGTH = 100


class DevicesOff(RouteNotFound):
    message = "Signing in devices is turned off here."


class NotReviewed(Forbidden):
    """The decision wasn't submitted from the page that shows the request."""

    message = "This page has expired. Enter the code again."


class NothingGranted(NotAcceptable):
    message = "Select at least one permission, or deny the device."


# Errors that are shown above the form for the code.
_NOT_DECIDABLE = (UnknownUserCode, RequestExpired, AlreadyDecided, TooManyTries, NotReviewed)


@router.get("/device")
async def show_device(session: SignedIn) -> Response:
    """Asks for the user code that a device shows. A link can prefill the code but not submit it."""
    _require_devices()
    return _form(session, session.parameters.get("user_code", ""))


@router.post("/device")
async def review_device(session: Submits) -> Response:
    """Shows the device request for review. An unknown code counts as a failed attempt."""
    _require_devices()
    code = session.form.get("user_code", "")[:_CODE_LENGTH]
    if not code.strip():
        return _form(session, failure=NotAcceptable("Enter the code that your device shows."))
    try:
        return _review(session, code)
    except _NOT_DECIDABLE as failure:
        return _form(session, code, failure)


@router.post("/device/approve")
async def approve_device(session: Submits) -> Response:
    """Approves the device with the scopes that were left checked."""
    return _decide(session, approves=True)


@router.post("/device/deny")
async def deny_device(session: Submits) -> Response:
    """Denies the device."""
    return _decide(session, approves=False)


def _require_devices() -> None:
    if not settings.device_authorization_enabled:
        raise DevicesOff


def _decide(session: WebSession, *, approves: bool) -> Response:
    _require_devices()
    try:
        code, shown = _verify_review(session.form, session.secret)
        granted = [scope for scope in shown if f"grant.{scope}" in session.form]
        if not approves:
            device_approvals.deny(code, session.user_id)
        elif granted:
            device_approvals.approve(code, session.user_id, granted)
        else:
            return _review(session, code, NothingGranted())
    except _NOT_DECIDABLE as failure:
        return _form(session, failure=failure)
    return page("device_decided", session, current="/device", approved=approves)


def _form(session: WebSession, code: str = "", failure: ApiError | None = None) -> Response:
    return page("device", session, failure, current="/device", code=code[:_CODE_LENGTH])


def _review(session: WebSession, code: str, failure: ApiError | None = None) -> Response:
    """Shows the device request with this user code. Too many attempts with unknown codes are throttled.

    Raises UnknownUserCode, TooManyTries, RequestExpired, AlreadyDecided.
    """
    request = device_approvals.find_by_user_code(code, session.user_id)
    if request.shown_status == "expired":
        raise RequestExpired
    if request.status != "pending":
        raise AlreadyDecided(request.status)
    user_code = device_approvals.normalize_user_code(code) or ""
    reviewed = _sealed_text(session.secret, user_code, request.valid_until, request.scopes)
    return page(
        "device_review",
        session,
        failure,
        current="/device",
        request=request,
        user_code=user_code,
        permissions=[(scope, SCOPES.get(scope, scope), _warning(scope)) for scope in request.scopes],
        minutes=int(clock.now() - request.created_at) // 60,
        seal=tokens.keyed_digest(_REVIEW, reviewed),
    )


def _verify_review(form: dict[str, str], secret: str) -> tuple[str, list[str]]:
    """Returns the code and scopes that this session was shown. Raises NotReviewed, RequestExpired."""
    code, until, scopes = (form.get(name, "") for name in ("user_code", "until", "scopes"))
    if not until.isascii() or not until.isdigit() or len(until) > 12:
        raise NotReviewed
    reviewed = _sealed_text(secret, code, int(until), scopes.split())
    if keyring.signer_of(_REVIEW, reviewed, form.get("seal", "")) is None:
        raise NotReviewed
    # Until then, no other request can get the same code.
    if int(until) <= clock.now():
        raise RequestExpired
    return code, scopes.split()


def _sealed_text(secret: str, code: str, until: int, scopes: list[str]) -> str:
    return f"{tokens.digest(secret)} {code} {until} {' '.join(scopes)}"


def _warning(scope: str) -> str | None:
    """Returns the warning to show next to the scope, or None."""
    if scope == "members.write":
        return "Manages people"
    return None if scope.endswith(".read") else "Makes changes"
