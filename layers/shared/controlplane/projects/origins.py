"""Parses and normalizes the address of a website or trusted origin.

All spellings of an address give the same string, so callers can compare and store `Address.origin` directly.
This module makes no DNS lookups and no connections. The tables of public suffixes and international names take about
40 ms each to load, so they are loaded when the first address needs them.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import TYPE_CHECKING, Final

from controlplane.projects.items import Address, AddressKind

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList


MAX_ADDRESS_LENGTH: Final = 2048
MAX_HOST_LENGTH: Final = 253  # RFC 1035 section 2.3.4, without the root's trailing dot
MAX_PORT: Final = 65535

# The stored form has no scheme, so the default ports of both web schemes are dropped.
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}

_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]{0,252}")
# Browsers accept underscores, and hyphens at either end (URL Standard). Registries don't.
_LABEL: Final = re.compile(r"[a-z0-9_-]{1,63}")
_REGISTERED_LABEL: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_PORT: Final = re.compile(r"[0-9]{1,5}")
_APP_HOST: Final = re.compile(r"[a-z0-9._-]{0,253}")
_CHROME_EXTENSION_ID: Final = re.compile(r"[a-p]{32}")
# `htps`, `htttp`, `ttps`: with a missing or doubled letter, these would otherwise be accepted as app schemes.
_MISSPELLED_WEB_SCHEME: Final = re.compile(r"h*t+p+s*")
# A browser parses a host that ends in a number as an IPv4 address (URL Standard, "ends in a number checker").
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")

# Schemes that can't serve an app.
_UNSUPPORTED_SCHEMES: Final = frozenset(
    {
        # The address carries the code or the content itself.
        *("about", "blob", "cid", "data", "javascript", "jar", "livescript", "mocha", "vbscript"),
        # Files, the browser's own pages, and links that open another program.
        *("chrome", "content", "devtools", "edge", "file", "filesystem", "geo", "intent", "magnet", "mailto"),
        *("resource", "sip", "sips", "sms", "tel", "urn", "view-source"),
        # Protocols that don't serve pages.
        *("feed", "ftp", "ftps", "git", "gopher", "imap", "irc", "ldap", "ldaps", "news", "nntp", "pop", "rtsp"),
        *("sftp", "smb", "ssh", "stun", "telnet", "turn", "ws", "wss"),
    }
)

# RFC 6761 (localhost, test), RFC 6762 (local), RFC 8375 (home.arpa); `internal` is reserved by ICANN for private
# use. Names below them never resolve in public DNS.
_RESERVED_SUFFIXES: Final = ("localhost", "test", "local", "internal", "home.arpa")
# Domains that private networks use as well (RFC 6762, appendix G; a default of resolvers). ICANN has no such domains.
_PRIVATE_SUFFIXES: Final = ("corp", "home", "intranet", "lan", "localdomain", "private")
_DEVELOPMENT_ENDINGS: Final = tuple(f".{suffix}" for suffix in _RESERVED_SUFFIXES + _PRIVATE_SUFFIXES)
_PRIVATE_NAMES: Final = (
    "For a host on your machine or network, use localhost, its IP address, or a name that ends in .localhost, .test, "
    ".local, or .internal."
)

_DEVELOPMENT_IPV4: Final = tuple(
    IPv4Network(block)
    for block in (
        "10.0.0.0/8",
        "100.64.0.0/10",  # shared address space (RFC 6598), used by overlay networks
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.168.0.0/16",
    )
)
_DEVELOPMENT_IPV6: Final = (IPv6Network("fe80::/10"), IPv6Network("fc00::/7"))
# Development servers that listen on all interfaces print this as the address to open.
_UNSPECIFIED: Final = (IPv4Address(0), IPv6Address(0))

_GLOBAL_UNICAST_IPV6: Final = IPv6Network("2000::/3")
# Teredo and 6to4 embed an IPv4 address, possibly a private one, which would then count as public.
_TUNNELLED_IPV6: Final = (IPv6Network("2001::/32"), IPv6Network("2002::/16"))


_RESERVED: Final = "No website can have this IP address: it is reserved. Use the website's own address."


class InvalidOrigin(ValueError):
    """`value` isn't a valid website address. `reason` is a sentence that is safe to show to the client."""

    def __init__(self, value: str, reason: str) -> None:
        super().__init__(value, reason)
        self.value = value
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class _Invalid(Exception):
    """Carries the reason to `parse_origin`, which adds the value as the client sent it."""


def parse_origin(value: str) -> Address:
    """Parses an address (contract, Website `origin`).

    Accepts `*`, an app origin such as `capacitor://localhost`, and hosts: `example.com`, `*.example.com`,
    `203.0.113.7`, `[2001:db8::1]`, `localhost:3000`. The prefixes `http://` and `https://` are dropped, because a
    website is the same before and after its redirect to https. So are the ports 80 and 443, but with the prefix of the
    other one, they are rejected, because the stored form would mean another website.
    The function is idempotent: `parse_origin(parse_origin(x).origin)` equals `parse_origin(x)`.

    A public IP address is a `domain`, because a scanner can reach it. An address that is only valid on the client's
    own machine or network is `development` in every spelling, so it is never scanned. So is a name without a dot, such
    as that of a container: no public website has one.

    Raises only InvalidOrigin, for any text.
    """
    try:
        return _parse(_checked_text(value))
    except _Invalid as error:
        raise InvalidOrigin(value, str(error)) from None


def _parse(text: str) -> Address:
    if text == "*":
        return Address("*", "any")
    scheme, separator, rest = text.partition("://")
    if not separator:
        return _parse_website(text, tuple(_DEFAULT_PORTS.values()))
    if port := _DEFAULT_PORTS.get(scheme.lower()):
        return _parse_website(rest, (port,))
    return _parse_app(scheme, rest)


def _checked_text(value: str) -> str:
    """Returns the trimmed value. Rejects whitespace, control, and invisible characters, and ambiguous syntax."""
    if len(value) > MAX_ADDRESS_LENGTH:
        raise _Invalid(f"An address may have at most {MAX_ADDRESS_LENGTH} characters.")
    text = value.strip(" \t\r\n")
    if not text:
        raise _Invalid("An address must not be empty. Write a host, as in example.com.")
    if text.isascii():
        hidden = not text.isprintable() or " " in text
    else:
        hidden = any(_is_hidden(character) for character in text)
    if hidden:
        raise _Invalid(
            "An address must not contain spaces, control characters, or invisible characters. Remove them, and send "
            "each address as an item of its own."
        )
    if "\\" in text:
        raise _Invalid("An address must not contain a backslash. Write slashes, as in https://example.com.")
    if "%" in text:
        raise _Invalid("An address must be written without percent-encoding and without an IPv6 zone.")
    return text


def _is_hidden(character: str) -> bool:
    # Names in Persian and several Indic scripts use the two joiners; IDNA checks their context.
    if character in "\u200c\u200d":
        return False
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp", "Zs")


def _parse_website(text: str, default_ports: tuple[int, ...]) -> Address:
    authority = _without_path(text)
    if "@" in authority:
        raise _Invalid("An address must not contain a user name or password. Leave out everything up to the @.")
    if authority.startswith("["):
        return _parse_ipv6(authority, default_ports)
    host, port = _split_port(authority, default_ports)
    if "*" in host:
        return _parse_wildcard(host, port)
    name = _normalised_name(host)
    if _ends_in_number(name):
        return _parse_ipv4(name, port)
    if _is_development_name(name) or _is_local_name(name, port):
        return Address(name + port, "development")
    _check_public_name(name)
    return Address(name + port, "domain")


def _parse_wildcard(host: str, port: str) -> Address:
    star, _, parent = host.partition(".")
    if star != "*" or "*" in parent or not parent:
        raise _Invalid("A * must be the whole address or the whole first label, as in *.example.com.")
    name = _normalised_name(parent)
    if _ends_in_number(name):
        raise _Invalid("A * can't precede an IP address. Name each address.")
    if len(name) + len("*.") > MAX_HOST_LENGTH:
        raise _Invalid(f"A host name may have at most {MAX_HOST_LENGTH} characters.")
    if not _is_development_name(name):
        _check_public_name(name)
    return Address(f"*.{name}{port}", "wildcard")


def _parse_ipv4(name: str, port: str) -> Address:
    try:
        # Rejects octal, hexadecimal, and short forms, which programs parse as different addresses.
        address = IPv4Address(name)
    except AddressValueError:
        raise _Invalid(
            "A host whose last part is a number is an IPv4 address. Write four decimal numbers from 0 to 255, as in "
            "203.0.113.7."
        ) from None
    return Address(f"{address}{port}", _kind_of_ipv4(address))


def _parse_ipv6(authority: str, default_ports: tuple[int, ...]) -> Address:
    literal, bracket, after = authority[1:].partition("]")
    if not bracket or (after and not after.startswith(":")):
        raise _Invalid("An IPv6 address must be in brackets, as in [2001:db8::1].")
    try:
        address = IPv6Address(literal)
    except AddressValueError:
        raise _Invalid("The text in brackets is not an IPv6 address. Write one, as in [2001:db8::1].") from None
    port = _normalised_port(after[1:], default_ports) if after else ""
    mapped = address.ipv4_mapped
    if mapped is None:
        return Address(f"[{address}]{port}", _kind_of_ipv6(address))
    # Browsers write the embedded address in hexadecimal; `ipaddress` writes it in dotted form.
    high, low = divmod(int(mapped), 0x10000)
    return Address(f"[::ffff:{high:x}:{low:x}]{port}", _kind_of_ipv4(mapped))


def _kind_of_ipv4(address: IPv4Address) -> AddressKind:
    if address in _UNSPECIFIED or any(address in block for block in _DEVELOPMENT_IPV4):
        return "development"
    first_octet = int(address) >> 24
    if first_octet == 0 or first_octet >= 224:  # "this network"; multicast, reserved and broadcast
        raise _Invalid(_RESERVED)
    return "domain"


def _kind_of_ipv6(address: IPv6Address) -> AddressKind:
    if address.is_loopback or address in _UNSPECIFIED or any(address in block for block in _DEVELOPMENT_IPV6):
        return "development"
    if address not in _GLOBAL_UNICAST_IPV6 or any(address in block for block in _TUNNELLED_IPV6):
        raise _Invalid(_RESERVED)
    return "domain"


def _without_path(text: str) -> str:
    authority = text.removesuffix("/")
    if not authority or "/" in authority or "?" in authority or "#" in authority:
        raise _Invalid(
            "An address must be a host with an optional port, without a path, query or fragment. Write it as in "
            "https://example.com or localhost:3000."
        )
    return authority


def _split_port(authority: str, default_ports: tuple[int, ...]) -> tuple[str, str]:
    host, colon, port = authority.partition(":")
    if ":" in port:
        raise _Invalid("A host has at most one port. An IPv6 address must be in brackets, as in [2001:db8::1].")
    return host, _normalised_port(port, default_ports) if colon else ""


def _normalised_port(text: str, default_ports: tuple[int, ...]) -> str:
    """Returns `:8443`, for example, or an empty string for a default port, of which a website has at least one."""
    port = _port(text)
    if port in default_ports:
        return ""
    if port in _DEFAULT_PORTS.values():
        raise _Invalid(f"Port {port} is the one of the other scheme. Leave it out, or write the other scheme.")
    return f":{port}"


def _port(text: str) -> int:
    if not _PORT.fullmatch(text) or not 1 <= int(text) <= MAX_PORT:
        raise _Invalid(f"What follows the host and a colon must be a port from 1 to {MAX_PORT}, as in localhost:3000.")
    return int(text)


def _normalised_name(host: str) -> str:
    """Returns the host in lowercase A-labels (RFC 5890), mapped as in browsers (UTS 46), without the trailing dot."""
    name = (host.lower() if host.isascii() else _mapped(host)).removesuffix(".")
    labels = [_normalised_label(label) for label in name.split(".")]
    name = ".".join(labels)
    if len(name) > MAX_HOST_LENGTH:
        raise _Invalid(f"A host name may have at most {MAX_HOST_LENGTH} characters.")
    return name


def _normalised_label(label: str) -> str:
    # Only international labels go through IDNA. Its rule against `--` in the third position would reject `v2--site`,
    # the kind of name that hosting services give to previews.
    if not label.isascii() or label.startswith("xn--"):
        label = _a_label(label)
    if not _LABEL.fullmatch(label):
        raise _Invalid(
            "Each part of a host name must have 1 to 63 letters, digits, hyphens, or underscores, with a dot between "
            "two parts."
        )
    return label


def _mapped(host: str) -> str:
    import idna  # noqa: PLC0415 (loaded by the first name that needs it)

    try:
        return idna.uts46_remap(host, std3_rules=True)
    except idna.IDNAError:
        raise _Invalid(
            "The host name has a character that no internationalized domain name may have. Copy the name from a "
            "browser's address bar."
        ) from None


def _a_label(label: str) -> str:
    import idna  # noqa: PLC0415 (loaded by the first name that needs it)

    try:
        return idna.alabel(label).decode("ascii")
    except idna.IDNAError:
        raise _Invalid(
            "The host name is not a valid internationalized domain name: a part of it is too long, or has a character "
            "that such names can't have, for example an emoji. Use another name of the website."
        ) from None


def _ends_in_number(name: str) -> bool:
    return _NUMBER.fullmatch(name.rpartition(".")[2]) is not None


def _is_development_name(name: str) -> bool:
    return name == "localhost" or name.endswith(_DEVELOPMENT_ENDINGS)


def _is_local_name(name: str, port: str) -> bool:
    """Returns whether the name has no dot, and isn't a top-level domain at a port where one could have a website."""
    if "." in name:
        return False
    if name == "null":
        raise _Invalid(f"Browsers send null for pages of no website, such as files. {_PRIVATE_NAMES}")
    return bool(port) or not _is_suffix(name)


def _is_suffix(name: str) -> bool:
    return name in _RESERVED_SUFFIXES or _public_suffixes().is_public(name)


def _check_public_name(name: str) -> None:
    """Rejects a suffix shared by many owners (`com`, `co.uk`, `github.io`) and a name without a known suffix."""
    if _is_suffix(name):
        raise _Invalid(f"This is a suffix that many owners share; name a host below it. {_PRIVATE_NAMES}")
    if not _public_suffixes().is_private(name):
        raise _Invalid(f"The host name does not end in a known top-level domain. {_PRIVATE_NAMES}")
    if not all(map(_REGISTERED_LABEL.fullmatch, name.split(".")[-2:])):
        raise _Invalid("The last two parts of a host name can't have an underscore, or a hyphen at either end.")


@cache
def _public_suffixes() -> PublicSuffixList:
    from publicsuffixlist import PublicSuffixList  # noqa: PLC0415 (loaded by the first name that needs it)

    return PublicSuffixList(accept_unknown=False)


def _parse_app(scheme: str, rest: str) -> Address:
    # Before lowercasing, which would turn the Kelvin sign into a plain k.
    if not (scheme + rest).isascii():
        raise _Invalid("The address of an app must be written in ASCII: unaccented letters, digits, and punctuation.")
    scheme, rest = scheme.lower(), rest.lower()
    if not _SCHEME.fullmatch(scheme):
        raise _Invalid("The scheme must start with a letter and have only letters, digits, +, - and dots.")
    if scheme in _UNSUPPORTED_SCHEMES:
        raise _Invalid(
            "No app is served from this scheme. Use https:// or http:// for a website, or the app's own scheme."
        )
    if _MISSPELLED_WEB_SCHEME.fullmatch(scheme):
        raise _Invalid("The scheme looks like a misspelled https. Write https://.")
    host, colon, port_text = rest.removesuffix("/").partition(":")
    if not _APP_HOST.fullmatch(host) or (colon and not host):
        raise _Invalid(
            "The address of an app must be a scheme, ://, an optional host of letters, digits, dots, hyphens and "
            "underscores, and an optional port."
        )
    if scheme == "chrome-extension" and not _CHROME_EXTENSION_ID.fullmatch(host):
        raise _Invalid("The ID of a Chrome extension must be 32 letters from a to p.")
    # A custom scheme has no default port, so no port is dropped.
    port = f":{_port(port_text)}" if colon else ""
    return Address(f"{scheme}://{host}{port}", "app")
