"""Signing in: OAuth device authorization, configured from the service's metadata."""

import os
import platform
import sys
import webbrowser
from collections.abc import Callable
from urllib.parse import urlsplit

from openassent import Assent
from openassent._settings import is_web_address
from openassent.errors import AccessDenied, DeviceCodeExpired
from openassent.models import DeviceCode, Token
from openassent_cli.problems import Exit, NotSignedIn, Problem

_LONGEST_DEVICE_NAME = 100


def sign_in(client: Assent, base_url: str, scopes: list[str] | None, show: Callable[[DeviceCode], None]) -> Token:
    """Lets a person approve this device, and returns its tokens. Raises Problem, AssentError.

    scopes: all that the service supports, if None. show: shows the code and the page to enter it on.
    """
    metadata = client.device.metadata()
    _check_origin(base_url, metadata.token_endpoint, metadata.device_authorization_endpoint)
    supported = list(metadata.scopes_supported)
    if unknown := sorted(set(scopes or ()) - set(supported)):
        raise Problem(f"There is no scope {unknown[0]}.", f"The scopes are {', '.join(sorted(supported))}.", Exit.USAGE)
    name = platform.node()[:_LONGEST_DEVICE_NAME] or None
    login = client.device.start(scopes=scopes or supported, device_name=name, metadata=metadata)
    show(login.code)
    try:
        return client.device.poll(login, metadata=metadata)
    except AccessDenied:
        raise NotSignedIn("The request was denied in the browser.") from None
    except DeviceCodeExpired:
        raise NotSignedIn("The code has expired before anyone approved it.") from None


def open_browser(url: str) -> bool:
    """Opens the page in a browser, if this machine has one with a window.

    Over SSH, a browser for text would take over the terminal.
    """
    if sys.platform == "linux" and not any(os.environ.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")):
        return False
    try:
        return webbrowser.open(url)
    except webbrowser.Error:
        return False


def _check_origin(base_url: str, *endpoints: str) -> None:
    """Refuses metadata that would send the codes elsewhere."""
    for endpoint in filter(is_web_address, endpoints):  # the SDK refuses others
        if urlsplit(endpoint)[:2] != urlsplit(base_url)[:2]:
            message = f"The metadata of {base_url} names another service: {endpoint}"
            raise Problem(message, "Sign in with that address, if you trust it: --base-url.")
