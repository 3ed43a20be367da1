"""Checks what a request is made from: credentials, headers, and addresses. No error here quotes what it refuses."""

import re
from urllib.parse import urlsplit

import httpx

from openassent.errors import InvalidArgument

# An API gateway's address can end with the name of a stage.
_PATH = re.compile(r"(/(?!v\d|docs|health)[a-z][a-z0-9]{0,19})?/?")


def header_value(text: str, name: str) -> str:
    """Returns the value of a header without white space around it. Raises InvalidArgument if no header can have it.

    name: what it is, for the message: `The API key`.
    """
    value = text.strip()
    if not value or not value.isascii() or not value.isprintable():
        raise InvalidArgument(f"{name} is empty or has a character that no header can have, such as a line break.")
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
    """Returns the base URL without white space around it. Raises InvalidArgument if it isn't one.

    It has a scheme and a host, and neither a user nor a query nor a path, except the name of a gateway's stage.
    """
    address = text.strip()
    if not is_web_address(address):
        message = "The base URL must be an address such as https://api.example.com, without a user name or password."
        raise InvalidArgument(message)
    if "?" in address or "#" in address or not _PATH.fullmatch(httpx.URL(address).path):
        raise InvalidArgument("The base URL has no path: leave out what follows the host, such as /v1.")
    return address
