"""Business rules of `device_auth`: requesting codes, polling, and refreshing and revoking tokens.

Each error has an OAuth error code (`oauth_error`) in addition to the API's code: RFC 6749 section 5.2, RFC 8628
section 3.5, RFC 7009 section 2.2.1.
"""

import base64
import hashlib
import hmac
from typing import ClassVar

from controlplane.people import device, token_families
from controlplane.people.device import DeviceRequestItem, Issued
from controlplane.people.token_families import Pair
from controlplane.platform.core import tokens
from controlplane.platform.core.errors import Conflict, Forbidden, InvalidPayload, Unauthorized, did_you_mean
from controlplane.platform.core.scopes import READ_SCOPES, SCOPES
from controlplane.platform.core.settings import settings
from controlplane.platform.table.retry import retry_on_conflict
from device_auth.schemas import DEVICE_GRANT, REFRESH_GRANT


class AuthorizationPending(Conflict):
    oauth_error: ClassVar[str] = "authorization_pending"
    message = "The request hasn't been approved or denied yet. Poll again after the interval."
    fixed_details: ClassVar = {"status": "authorization_pending"}


class PolledTooSoon(Conflict):
    oauth_error: ClassVar[str] = "slow_down"
    message = "You polled too early. Wait 5 seconds longer between polls from now on."
    fixed_details: ClassVar = {"status": "slow_down"}


class CodeUsed(Conflict):
    oauth_error: ClassVar[str] = "invalid_grant"
    message = "This device code was already redeemed. Its tokens have been revoked. Request a new code."
    fixed_details: ClassVar = {"status": "used"}


class CodeExpired(Unauthorized):
    """Also raised for a code that was never issued."""

    oauth_error: ClassVar[str] = "expired_token"
    message = "This device code is unknown or has expired. Request a new one."
    fixed_details: ClassVar = {"status": "expired"}


class AccessDenied(Forbidden):
    oauth_error: ClassVar[str] = "access_denied"
    message = "The user denied this device."
    fixed_details: ClassVar = {"status": "access_denied"}


class WrongVerifier(Unauthorized):
    oauth_error: ClassVar[str] = "invalid_grant"
    message = "The code verifier doesn't match the code challenge."


class UnknownClient(InvalidPayload):
    message = f"There is no such client. Send {settings.device_clients[0]}."
    problem = oauth_error = "invalid_client"
    path = ("clientId",)


class InvalidScope(InvalidPayload):
    problem = oauth_error = "invalid_scope"
    path = ("scope",)


class UnsupportedGrant(InvalidPayload):
    message = f"Send {DEVICE_GRANT} or {REFRESH_GRANT}."
    problem = oauth_error = "unsupported_grant_type"
    path = ("grantType",)


class UnsupportedToken(InvalidPayload):
    message = "Only access tokens and refresh tokens can be revoked here. Sign out, or delete the API key."
    problem = oauth_error = "unsupported_token_type"
    path = ("token",)


def request_code(client_id: str, challenge: str, scope: str | None, device_name: str | None, address: str) -> Issued:
    """Creates a device request. Raises UnknownClient, InvalidScope.

    Without `scope`, it requests only the read scopes: a client must request write scopes explicitly.
    """
    _check_client(client_id)
    scopes = [*READ_SCOPES] if scope is None else _parse_scope(scope)
    return device.create(client_id, challenge, scopes, device_name, address)


def redeem(device_code: str, code_verifier: str, client_id: str) -> Pair:
    """Redeems an approved device code, once, and returns its tokens.

    Raises UnknownClient, CodeExpired, WrongVerifier, CodeUsed (after revoking the tokens of the first redemption),
    AccessDenied, AuthorizationPending, PolledTooSoon.
    """
    _check_client(client_id)

    def attempt() -> Pair:
        request = device.find(device_code)
        if request is None or request.client_id != client_id:
            raise CodeExpired
        if not hmac.compare_digest(_challenge(code_verifier), request.challenge):
            raise WrongVerifier
        return _redeem(request)

    return retry_on_conflict(attempt, "the device request")


def _redeem(request: DeviceRequestItem) -> Pair:
    """Redeems the request if its status allows it. Raises WriteConflict if it was decided or redeemed since."""
    if request.status == "redeemed":
        # One of the two clients that sent the code isn't the device (as in fosite; ASVS 10.4.2 for other codes).
        if request.family_id is not None:
            token_families.revoke(request.family_id, "the device code was presented again")
        raise CodeUsed
    if request.is_expired:
        raise CodeExpired
    if request.status == "denied":
        raise AccessDenied
    if request.status == "approved":
        return device.redeem(request)
    raise PolledTooSoon if device.note_poll(request) else AuthorizationPending


def refresh(refresh_token: str, client_id: str | None, scope: str | None) -> Pair:
    """Exchanges the refresh token for a new pair. Raises UnknownClient, InvalidScope, RefreshRefused."""
    if client_id is not None:
        _check_client(client_id)
    scopes = None if scope is None else _parse_scope(scope)
    try:
        return token_families.rotate(refresh_token, client_id, scopes)
    except token_families.ScopeNotGranted:
        raise InvalidScope(
            "This is more than was approved. Request only approved scopes, or none for all of them."
        ) from None


def revoke(token: str, client_id: str | None) -> None:
    """Revokes all tokens of the approval that the token belongs to. Ignores unknown tokens.

    Also ignores a token of a client other than `client_id`. Raises UnknownClient, UnsupportedToken.
    """
    if client_id is not None:
        _check_client(client_id)
    prefix = tokens.prefix_of(token)
    if prefix == settings.service_brand + tokens.ACCESS:
        token_families.revoke_access_token(token, client_id)
    elif prefix is not None:
        raise UnsupportedToken
    else:
        token_families.revoke_refresh_token(token, client_id)


def _check_client(client_id: str) -> None:
    if client_id not in settings.device_clients:
        raise UnknownClient


def _parse_scope(scope: str) -> list[str]:
    """Parses a space-separated list of scopes (RFC 6749 section 3.3). Raises InvalidScope."""
    scopes = sorted(set(scope.split(" ")) - {""})
    unknown = [name for name in scopes if name not in SCOPES]
    if unknown:
        raise InvalidScope(f"There is no scope named {unknown[0][:50]}.{did_you_mean(unknown[0], SCOPES)}")
    if not scopes:
        raise InvalidScope("Name at least one scope.")
    return scopes


def _challenge(code_verifier: str) -> str:
    """Returns the S256 code challenge (RFC 7636 section 4.6)."""
    return base64.urlsafe_b64encode(hashlib.sha256(code_verifier.encode()).digest()).rstrip(b"=").decode()
