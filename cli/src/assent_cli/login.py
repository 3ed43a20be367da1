"""Signing in: OAuth device authorization (RFC 8628) with PKCE, configured from the service's metadata."""

import base64
import hashlib
import platform
import secrets
import time
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from assent import ApiError, Assent
from assent.models import DeviceCode, Token

from assent_cli.exits import Exit
from assent_cli.problems import NotSignedIn, Problem

# RFC 8628, section 3.5: a client that is told to slow down waits this much longer between all further polls.
_SLOW_DOWN_SECONDS = 5


@dataclass(frozen=True)
class Proof:
    """A PKCE code verifier (RFC 7636). Only the one who made it can redeem the device code."""

    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48), repr=False)

    @property
    def challenge(self) -> str:
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def sign_in(
    client: Assent,
    base_url: str,
    scopes: list[str] | None,
    show: Callable[[DeviceCode], None],
    sleep: Callable[[float], None] = time.sleep,
) -> Token:
    """Lets a person approve this device, and returns its tokens. Raises Problem, AssentError.

    scopes: all that the service supports, if None. show: shows the code and the page to enter it on.
    """
    metadata = client.device.metadata()
    _check_origin(base_url, metadata.token_endpoint, metadata.device_authorization_endpoint)
    wanted = scopes or list(metadata.scopes_supported)
    if unknown := sorted(set(wanted) - set(metadata.scopes_supported)):
        supported = ", ".join(sorted(metadata.scopes_supported))
        raise Problem(f"There is no scope {unknown[0]}.", f"The scopes are {supported}.", Exit.USAGE)
    proof = Proof()
    code = client.device.start(
        code_challenge=proof.challenge, scope=" ".join(wanted), device_name=platform.node()[:100] or None
    )
    show(code)
    return _wait(client, code, proof, sleep)


def open_browser(url: str) -> bool:
    """Opens the page in a browser, if this machine has one."""
    try:
        return webbrowser.open(url)
    except webbrowser.Error:
        return False


def _wait(client: Assent, code: DeviceCode, proof: Proof, sleep: Callable[[float], None]) -> Token:
    interval = code.interval
    deadline = time.monotonic() + code.expires_in
    while time.monotonic() < deadline:
        sleep(interval)
        try:
            return client.device.poll(device_code=code.device_code, code_verifier=proof.verifier)
        except ApiError as error:
            state = error.details.get("status") if isinstance(error.details, dict) else None
            if state == "slow_down":
                interval += _SLOW_DOWN_SECONDS
            elif state == "access_denied":
                raise NotSignedIn("The request was denied in the browser.") from None
            elif state != "authorization_pending":
                raise
    raise NotSignedIn("The code has expired before anyone approved it.")


def _check_origin(base_url: str, *endpoints: str) -> None:
    """Refuses metadata that would send the codes elsewhere."""
    for endpoint in endpoints:
        if urlsplit(endpoint)[:2] != urlsplit(base_url)[:2]:
            message = f"The metadata of {base_url} names another service: {endpoint}"
            raise Problem(message, "Sign in with that address, if you trust it: --base-url.")
