"""Business rules of approving devices in the dashboard: what a user is shown, and what their decision can grant.

A decision includes a seal (HMAC) over what the session was shown, so users can only decide on requests they have seen.
"""

from typing import NamedTuple

from controlplane.people import device_approvals
from controlplane.people.device_approvals import AlreadyDecided, DeviceRequest, RequestExpired
from controlplane.platform.core import clock, keyring, tokens
from controlplane.platform.core.errors import Forbidden, InvalidPayload
from controlplane.platform.core.scopes import SCOPES

# The purpose of the key ring's digest.
_REVIEW = "review of a device"


class CodeMissing(InvalidPayload):
    message = "Enter the code that your device shows."

    def __init__(self) -> None:
        super().__init__(details=[])


class NothingGranted(InvalidPayload):
    message = "Select at least one permission, or deny the device."

    def __init__(self) -> None:
        super().__init__(details=[])


class NotReviewed(Forbidden):
    """The decision wasn't submitted from the page that shows the request."""

    message = "This page has expired. Enter the code again."


class Permission(NamedTuple):
    """A requested scope, its description, and an optional warning."""

    scope: str
    description: str
    warning: str | None


class Review(NamedTuple):
    """A device request to decide on, and the seal that the decision must include."""

    request: DeviceRequest
    permissions: list[Permission]
    age: str
    seal: str


def review_device(code: str, user_id: str, secret: str) -> Review:
    """Returns the device request with this user code. Too many attempts with unknown codes are throttled.

    Raises UnknownUserCode, TooManyTries, RequestExpired, AlreadyDecided.
    """
    request = device_approvals.find_by_user_code(code, user_id)
    if request.status == "expired":
        raise RequestExpired
    if request.status != "pending":
        raise AlreadyDecided(request.status)
    permissions = [Permission(scope, SCOPES.get(scope, scope), _warning(scope)) for scope in request.scopes]
    age = _age(int(clock.now()) - request.created_at)
    reviewed = _sealed_text(secret, request.user_code, request.expires_at, request.scopes)
    seal = tokens.keyed_digest(_REVIEW, reviewed)
    return Review(request, permissions, age, seal)


def approve_device(form: dict[str, str], user_id: str, secret: str) -> None:
    """Approves the device of a reviewed request, with the scopes that the user left checked.

    Raises NothingGranted, NotReviewed, RequestExpired, AlreadyDecided, UnknownUserCode, TooManyTries.
    """
    code, shown = _verify_review(form, secret)
    granted = [scope for scope in shown if f"grant.{scope}" in form]
    if not granted:
        raise NothingGranted
    device_approvals.approve(code, user_id, granted)


def deny_device(form: dict[str, str], user_id: str, secret: str) -> None:
    """Denies the device of a reviewed request. Raises the same errors, except NothingGranted."""
    code, _ = _verify_review(form, secret)
    device_approvals.deny(code, user_id)


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


def _age(seconds: int) -> str:
    if seconds < 60:
        return "less than a minute ago"
    minutes = seconds // 60
    return f"{minutes} minute{'s' if minutes > 1 else ''} ago"
