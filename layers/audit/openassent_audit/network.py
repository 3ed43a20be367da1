"""The network as the browser may use it: public addresses only.

The caller can replace the resolver and the connection, for example to serve websites of its own. The check of addresses
is between the two and can't be replaced.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]

PORTS: Final = frozenset({80, 443})
# Answers metadata and DNS to virtual machines of Azure, at an address that looks public.
_OF_CLOUDS: Final = frozenset({ipaddress.ip_address("168.63.129.16")})
# Addresses in these networks contain an IPv4 address, which may be private: NAT64 (RFC 6052) and IPv4-compatible ones.
_TRANSLATED: Final = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("::/96"))


@dataclass(frozen=True, slots=True)
class Resolution:
    """The addresses of a host, and the name that it is an alias of, or its own."""

    addresses: tuple[str, ...]
    canonical: str


async def resolve_name(host: str, port: int) -> Resolution:
    """Asks the system's resolver. Raises OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_CANONNAME)
    canonical = next((name for _, _, _, name, _ in found if name), host)
    addresses = dict.fromkeys(str(place[0]) for _, _, _, _, place in found)
    return Resolution(tuple(addresses), canonical.lower().rstrip("."))


@dataclass(frozen=True, slots=True)
class Network:
    """How names are resolved, and connections to IP addresses are made. Both raise OSError."""

    resolve: Callable[[str, int], Awaitable[Resolution]] = resolve_name
    connect: Callable[[str, int], Awaitable[Streams]] = asyncio.open_connection


def is_public(text: str) -> bool:
    """Returns whether an IP address is one of the public internet, also when it is written inside an IPv6 address."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if inner is None and any(address in network for network in _TRANSLATED):
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
    return address.is_global and not address.is_multicast and address not in _OF_CLOUDS


def literal(host: str) -> Resolution | None:
    """Returns the resolution of a host that is an IP address, or None."""
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None
    return Resolution((str(address),), str(address))
