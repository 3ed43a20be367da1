"""Which addresses webhooks may be sent to.

Names are checked when they are entered, and what they resolve to when a connection is opened. Deployed, an endpoint is
an https URL of a public host. In local runs, it may be http and on this machine.
"""

import ipaddress
import re
from typing import NamedTuple
from urllib.parse import urlsplit

from controlplane.platform.core.settings import settings

MAX_LENGTH = 1_000
_PORTS = frozenset({443, 8443})
_HOST = re.compile(r"(?=.{1,253}\Z)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
# Names that only mean something inside of a network.
_INTERNAL = ("localhost", "local", "internal", "intranet", "lan", "home", "corp", "arpa", "onion", "test", "invalid")
# IPv6 addresses that contain an IPv4 address, which a router may translate (6to4, Teredo, NAT64, IPv4-mapped), and some
# that are documentation's.
_TRANSLATED = tuple(
    ipaddress.ip_network(text)
    for text in ("2002::/16", "2001::/23", "64:ff9b::/96", "64:ff9b:1::/48", "::ffff:0:0/96", "::/96", "3fff::/20")
)
_NO_URL = "This isn't a URL. Send one such as https://hooks.example.com/assent."
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")


class UnacceptableUrl(ValueError):
    """Webhooks can't be sent to the URL. The text says what is wrong, for the person who entered it."""


class Target(NamedTuple):
    """Where a request goes. path: with the query."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == {"https": 443, "http": 80}[self.scheme] else f"{host}:{self.port}"


def parse(url: str) -> Target:
    """Returns the URL's parts. Raises UnacceptableUrl."""
    if len(url) > MAX_LENGTH:
        raise UnacceptableUrl(f"The URL is longer than {MAX_LENGTH:,} characters.")
    if not url.isascii() or any(character <= " " or character in '"<>\\^`{|}\x7f' for character in url):
        raise UnacceptableUrl(
            "The URL has a space, a quote, or a non-ASCII character. Percent-encode it, or in a host name, use xn--…."
        )
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise UnacceptableUrl(_NO_URL) from None
    local = settings.webhooks_to_this_machine
    if parts.scheme != "https" and not (local and parts.scheme == "http"):
        raise UnacceptableUrl("The URL must start with https://.")
    if "@" in parts.netloc:
        raise UnacceptableUrl("The URL must not contain a user name or a password. Verify the signature instead.")
    if "#" in url:
        raise UnacceptableUrl("The URL must not contain a fragment. Remove the # and what follows.")
    host = (parts.hostname or "").rstrip(".")
    if not local:
        _check_host(host)
        if port not in {None, *_PORTS}:
            raise UnacceptableUrl("The URL's port must be 443 or 8443.")
    if not host or port == 0:
        raise UnacceptableUrl(_NO_URL)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, host, port or (443 if parts.scheme == "https" else 80), path)


def _check_host(host: str) -> None:
    if not _HOST.fullmatch(host):
        raise UnacceptableUrl("The URL must have a public host name such as hooks.example.com, not an IP address.")
    if host.rpartition(".")[2] in _INTERNAL:
        raise UnacceptableUrl("The URL must have a public host name, not one of an internal network.")


def is_public(address: str) -> bool:
    """Returns whether an IP address, and any IPv4 address that it contains, is on the public internet."""
    if settings.webhooks_to_this_machine:
        return True
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if parsed.is_multicast or not parsed.is_global:
        return False
    if isinstance(parsed, ipaddress.IPv4Address):
        return True
    return parsed in _GLOBAL_UNICAST and not any(parsed in network for network in _TRANSLATED)
