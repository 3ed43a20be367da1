"""The pages on which a user approves or denies a device."""

from fastapi import Response

from controlplane.access.web_session import WebSession
from controlplane.people.device_approvals import AlreadyDecided, RequestExpired, TooManyTries, UnknownUserCode
from controlplane.platform.core.errors import ApiError, RouteNotFound
from controlplane.platform.core.settings import settings
from controlplane.platform.http.app import ControlRouter
from dashboard import devices
from dashboard.devices import CodeMissing, NothingGranted, NotReviewed, Review
from dashboard.page_parameters import SignedIn, Submits, Text
from dashboard.pages import page

router = ControlRouter(tags=["Pages"], include_in_schema=False)

# Errors that are shown above the form for the code.
_NOT_DECIDABLE = (UnknownUserCode, RequestExpired, AlreadyDecided, TooManyTries, NotReviewed)


class DevicesOff(RouteNotFound):
    message = "Signing in devices is turned off here."


@router.get("/device", operation_id="showDevice")
async def show_device(session: SignedIn, user_code: Text = None) -> Response:
    """Asks for the user code that a device shows. A link can prefill the code but not submit it."""
    _require_devices()
    return _form(session, user_code or "")


@router.post("/device", operation_id="reviewDevice")
async def review_device(session: Submits) -> Response:
    """Shows the device request for review. An unknown code counts as a failed attempt."""
    _require_devices()
    code = session.form.get("user_code", "")[:100]
    if not code.strip():
        return _form(session, failure=CodeMissing())
    try:
        review = devices.review_device(code, session.user_id, session.secret)
    except _NOT_DECIDABLE as failure:
        return _form(session, code, failure)
    return _review(session, review)


@router.post("/device/approve", operation_id="approveDevice")
async def approve_device(session: Submits) -> Response:
    """Approves the device with the scopes that were left checked."""
    return _decide(session, approves=True)


@router.post("/device/deny", operation_id="denyDevice")
async def deny_device(session: Submits) -> Response:
    """Denies the device."""
    return _decide(session, approves=False)


def _require_devices() -> None:
    if not settings.device_authorization_enabled:
        raise DevicesOff


def _decide(session: WebSession, *, approves: bool) -> Response:
    _require_devices()
    decide = devices.approve_device if approves else devices.deny_device
    try:
        try:
            decide(session.form, session.user_id, session.secret)
        except NothingGranted as failure:
            review = devices.review_device(session.form["user_code"], session.user_id, session.secret)
            return _review(session, review, failure)
    except _NOT_DECIDABLE as failure:
        return _form(session, failure=failure)
    return page("device_decided", session, current="/device", approved=approves)


def _form(session: WebSession, code: str = "", failure: ApiError | None = None) -> Response:
    return page("device", session, failure=failure, current="/device", code=code[:100])


def _review(session: WebSession, review: Review, failure: ApiError | None = None) -> Response:
    return page("device_review", session, failure=failure, current="/device", **review._asdict())
