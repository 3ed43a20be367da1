"""Business rules of signing in to the dashboard, and out of it.

A sign-in in progress isn't stored on the server. The browser keeps a signed note of it in a cookie; the PKCE verifier
and the nonce are derived from the note's state and the signing key.
"""

import hmac
import re
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from controlplane.access import sign_in as accounts
from controlplane.people import sessions, users
from controlplane.platform.core import clock, keyring
from controlplane.platform.core.errors import InvalidPayload, NotFound, ServiceUnavailable, known
from controlplane.platform.core.keyring import SigningKey
from controlplane.platform.core.settings import settings
from controlplane.platform.core.urls import dashboard_base_url, sign_in_client_id
from dashboard.navigation import own_page

if TYPE_CHECKING:
    from dashboard.access.provider import Provider

SIGN_IN_SECONDS = 600
_STATE_LENGTH = 43
_STATE = re.compile(r"[A-Za-z0-9_-]{43}")
# The purpose of the key ring's digest.
_NOTE = "note of a sign-in"


class SignInOff(NotFound):
    message = "Sign-in isn't available: no sign-in service is configured."


class SignInLost(InvalidPayload):
    """The sign-in was started in another browser, or has expired."""

    title = "This sign-in has expired"
    message = "This sign-in wasn't started in this browser, or took longer than ten minutes. Start again."


class SignInCanceled(InvalidPayload):
    title = "You aren't signed in"
    message = "The sign-in wasn't completed. You can try again."


class SignInRejected(InvalidPayload):
    """The provider rejected the code, or its response can't be trusted. `reason` is only logged."""

    title = "The sign-in failed"
    message = "Sign-in failed. Try again."


class ProviderUnavailable(ServiceUnavailable):
    title = "You can't sign in at the moment"
    message = "The sign-in service is unavailable. Try again in a minute."


class SignInRedirect(NamedTuple):
    """A sign-in in progress: the URL to redirect to, and the purpose and value of the cookie with the note."""

    url: str
    purpose: str
    note: str


class Browser(NamedTuple):
    """The browser that signs in: `note_of` returns its note by purpose. The list of sessions shows the others."""

    note_of: Callable[[str], str]
    address: str | None
    name: str | None


class SignedIn(NamedTuple):
    """A new session: its secret, whose it is, and the page to redirect to."""

    secret: str
    user_id: str
    return_to: str


_providers: dict[tuple[str, str | None], "Provider"] = {}


def _provider() -> tuple["Provider", str]:
    """Returns the provider and our client ID there. Raises SignInOff."""
    client_id = sign_in_client_id()
    if settings.sign_in_issuer is None or client_id is None:
        raise SignInOff
    from dashboard.access.provider import Provider  # noqa: PLC0415 (70 ms that only a sign-in needs)

    addresses = settings.sign_in_issuer, settings.sign_in_metadata_url
    return _providers.setdefault(addresses, Provider(*addresses)), client_id


def _callback() -> str:
    return f"{dashboard_base_url()}/sign-in/callback"


def begin_sign_in(return_to: str | None, *, creates_account: bool = False) -> SignInRedirect:
    """Starts a sign-in, with creates_account at the form for a new account. Raises SignInOff, ProviderUnavailable."""
    provider, client_id = _provider()
    state = secrets.token_urlsafe(32)[:_STATE_LENGTH]
    key = keyring.current()
    url = provider.authorization_url(
        client_id, _callback(), state, _nonce(key, state), _verifier(key, state), creates_account=creates_account
    )
    until = int(clock.now()) + SIGN_IN_SECONDS
    return SignInRedirect(url, _note_purpose(state), _seal_note(key, state, until, own_page(return_to)))


def finish_sign_in(state: str, code: str, issuer: str | None, browser: Browser) -> SignedIn:
    """Completes a sign-in, and returns the new session.

    Raises SignInLost, SignInRejected, AddressNotVerified, AddressNotAccepted, AnotherIdentity, ProviderUnavailable,
    SignInOff.
    """
    provider, client_id = _provider()
    return_to, key = _open_note(state, browser.note_of)
    # RFC 9207: if the response has an issuer, it must be the expected one.
    if issuer is not None and not provider.is_named(issuer):
        raise SignInRejected(reason="another issuer answered")
    claims = provider.redeem(client_id, _callback(), code, _verifier(key, state), _nonce(key, state))
    profile = accounts.sign_in(claims)
    try:
        secret = sessions.create(profile.user_id, browser.address, browser.name)
        return SignedIn(secret, profile.user_id, return_to)
    except users.UnknownUser:
        raise SignInRejected(reason="the account was deleted during the sign-in") from None


def note_purpose(state: str) -> str | None:
    """Returns the cookie purpose for this sign-in's note, or None if the state isn't ours."""
    return _note_purpose(state) if _STATE.fullmatch(state) else None


def provider_sign_out_url() -> str | None:
    """Returns the URL that ends the provider's session, or None if it has no such URL or is unavailable."""
    try:
        provider, client_id = _provider()
        return provider.end_session_url(client_id, f"{dashboard_base_url()}/signed-out")
    except (SignInOff, ProviderUnavailable):
        return None


def _note_purpose(state: str) -> str:
    # One cookie per sign-in, so that two tabs don't overwrite each other's.
    return f"sign-in-{state[:8]}"


def _verifier(key: SigningKey, state: str) -> str:
    return key.digest("proof key of a sign-in", state)


def _nonce(key: SigningKey, state: str) -> str:
    return key.digest("nonce of a sign-in", state)


def _seal_note(key: SigningKey, state: str, until: int, return_to: str) -> str:
    text = f"{state}.{until}.{return_to.encode().hex()}"
    return f"{text}.{key.digest(_NOTE, text)}"


def _open_note(state: str, note_of: Callable[[str], str]) -> tuple[str, SigningKey]:
    """Returns the page to return to and the signing key with which the sign-in was started. Raises SignInLost."""
    purpose = note_purpose(state)
    note = note_of(purpose) if purpose else ""
    text, _, seal = note.rpartition(".")
    key = known(keyring.signer_of(_NOTE, text, seal), SignInLost)
    noted_state, until, return_to = text.split(".")
    if not hmac.compare_digest(noted_state, state) or int(until) <= clock.now():
        raise SignInLost
    return own_page(bytes.fromhex(return_to).decode()), key
