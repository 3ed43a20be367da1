"""Checks what a request is made from: credentials, headers, and addresses. No error here quotes what it refuses."""

import re
from urllib.parse import urlsplit

import httpx

from openassent.errors import InvalidArgument

# RFC 6750, section 2.1.
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
_VISIBLE = re.compile(r"[ -~]+")
# An API gateway's address can end with the name of a stage.
_PATH = re.compile(r"(/(?!v\d|docs|health)[a-z][a-z0-9]{0,19})?/?")


def bearer_token(text: str, name: str) -> str:
    """Returns a credential without white space around it. Raises InvalidArgument if it can't be one.

    name: what it is, for the message: `The API key`.
    """
    return _matching(_TOKEN, text, name)


def header_value(text: str, name: str) -> str:
    """Returns the value of a header without white space around it. Raises InvalidArgument if no header can have it."""
    return _matching(_VISIBLE, text, name)


def _matching(pattern: re.Pattern[str], text: str, name: str) -> str:
    value = text.strip()
    if not pattern.fullmatch(value):
        raise InvalidArgument(f"{name} is empty or has a character that can't be in it, such as a line break.")
    return value


def is_web_address(text: str) -> bool:
    """Returns whether the text is an absolute HTTP URL without a user or password."""
    try:
        httpx.URL(text)
        parts = urlsplit(text)
        has_host = bool(parts.hostname) and parts.port != 0  # raises ValueError above 65535
    except (httpx.InvalidURL, ValueError):
        return False
    clean = text.isprintable() and not re.search(r"[@\s\\]", text)
    return clean and has_host and parts.scheme in {"https", "http"}


def base_address(text: str) -> str:
    """Returns the base URL without white space around it. Raises InvalidArgument if it isn't valid.

    It has a scheme and a host, and neither a user nor a query nor a path, except the name of a gateway's stage.
    """
    address = text.strip()
    if not is_web_address(address):
        message = "The base URL must be an address such as https://api.example.com, without a user name or password."
        raise InvalidArgument(message)
    if "?" in address or "#" in address or not _PATH.fullmatch(httpx.URL(address).path):
        raise InvalidArgument("The base URL must not have a path: leave out what follows the host, such as /v1.")
    return address
