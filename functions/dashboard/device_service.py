"""Business rules of approving devices in the dashboard: what a user is shown, and what their decision can grant.

A decision includes a seal (HMAC) over what the session was shown, so users can only decide on requests they have seen.
"""

from collections.abc import Callable
from typing import NamedTuple

from controlplane.core import clock, keyring, tokens
from controlplane.core.errors import Conflict, Forbidden, InvalidPayload, NotFound, RateLimited
from controlplane.core.scopes import SCOPES
from controlplane.store import device, organizations
from controlplane.store.device import DeviceRequest
from controlplane.store.organizations import Account

# The purpose of the key ring's digest.
_REVIEW = "review of a device"


class UnknownCode(NotFound):
    message = "No request has this code. Check the letters, or request a new code on your device."


class CodeExpired(Conflict):
    message = "This code has expired. Request a new one on your device."


class CodeDecided(Conflict):
    message = "This request was already approved or denied. Request a new code on your device if you need one."


class TooManyCodes(RateLimited):
    message = "You entered too many wrong codes. Wait 15 minutes, then try again."


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
    words: str
    mark: str | None


class Review(NamedTuple):
    """A device request to decide on, and the seal that the decision must include.

    `account` is the account that the device would act as, with the organizations that the device could access.
    """

    request: DeviceRequest
    permissions: list[Permission]
    age: str
    seal: str
    account: Account


def review_device(code: str, user_id: str, secret: str) -> Review:
    """Returns the device request with this user code. Too many attempts with unknown codes are throttled.

    Raises UnknownCode, CodeExpired, CodeDecided, TooManyCodes.
    """
    try:
        request = device.find_by_user_code(code, user_id)
    except device.UnknownUserCode:
        raise UnknownCode from None
    except device.TooManyTries as refusal:
        raise TooManyCodes(refusal.retry_after_seconds) from None
    if request.status == "expired":
        raise CodeExpired
    if request.status != "pending":
        raise CodeDecided
    permissions = [Permission(scope, SCOPES.get(scope, scope), _mark(scope)) for scope in request.scopes]
    age = _age(int(clock.now()) - request.created_at)
    reviewed = _review(secret, request.user_code, request.expires_at, request.scopes)
    seal = tokens.keyed_digest(_REVIEW, reviewed)
    return Review(request, permissions, age, seal, organizations.get_account(user_id))


def approve_device(form: dict[str, str], user_id: str, secret: str) -> None:
    """Approves the device of a reviewed request, with the scopes that the user left checked.

    Raises NothingGranted, NotReviewed, CodeExpired, CodeDecided, UnknownCode, TooManyCodes.
    """
    code, shown = _reviewed(form, secret)
    granted = [scope for scope in shown if f"grant.{scope}" in form]
    if not granted:
        raise NothingGranted
    _decide(lambda: device.approve(code, user_id, granted))


def deny_device(form: dict[str, str], user_id: str, secret: str) -> None:
    """Denies the device of a reviewed request. Raises the same errors, except NothingGranted."""
    code, _ = _reviewed(form, secret)
    _decide(lambda: device.deny(code, user_id))


def _decide(decision: Callable[[], None]) -> None:
    try:
        decision()
    except device.UnknownUserCode:
        raise UnknownCode from None
    except device.TooManyTries as refusal:
        raise TooManyCodes(refusal.retry_after_seconds) from None
    except device.RequestExpired:
        raise CodeExpired from None
    except device.AlreadyDecided:
        raise CodeDecided from None


def _reviewed(form: dict[str, str], secret: str) -> tuple[str, list[str]]:
    """Returns the code and scopes that this session was shown. Raises NotReviewed, CodeExpired."""
    code, until, scopes = (form.get(name, "") for name in ("user_code", "until", "scopes"))
    if not until.isascii() or not until.isdigit() or len(until) > 12:
        raise NotReviewed
    reviewed = _review(secret, code, int(until), scopes.split())
    if keyring.signer_of(_REVIEW, reviewed, form.get("seal", "")) is None:
        raise NotReviewed
    # Until then, no other request can get the same code.
    if int(until) <= clock.now():
        raise CodeExpired
    return code, scopes.split()


def _review(secret: str, code: str, until: int, scopes: list[str]) -> str:
    return f"{tokens.digest(secret)} {code} {until} {' '.join(scopes)}"


def _mark(scope: str) -> str | None:
    """Returns the warning to show next to the scope, or None."""
    if scope == "members.write":
        return "Manages people"
    return None if scope.endswith(".read") else "Makes changes"


def _age(seconds: int) -> str:
    if seconds < 60:
        return "less than a minute ago"
    minutes = seconds // 60
    return f"{minutes} minute{'s' if minutes > 1 else ''} ago"
