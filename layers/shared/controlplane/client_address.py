"""The address of the client that a request comes from, and what of it counts as one caller.

The gateway's own source address is all that nobody can choose. Only if it belongs to the trusted proxy of the settings,
the proxy's header names the client.
"""

import ipaddress
from collections.abc import Callable

from controlplane.settings import settings

type Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# One subscriber has as many addresses as he likes within it (RFC 6177).
_IPV6_PREFIX = 64


def client_address(seen: str, read_header: Callable[[str], list[str]]) -> str:
    """The client's address: the one that the gateway saw, or the one that a trusted proxy names in its header.

    Proxies append to the header, and what is left of their part is the client's own text. So it is read from the right,
    past the addresses of the proxy, up to the first that isn't one of them. If that isn't an address, the gateway's
    counts.
    """
    if settings.trusted_proxy_header is None or not _is_trusted(_parse(seen)):
        return seen
    found = None
    for text in reversed(",".join(read_header(settings.trusted_proxy_header)).split(",")):
        found = _parse(text.strip(" \t"))
        if not _is_trusted(found):
            break
    return seen if found is None else str(found)


def network_of(address: str) -> str:
    """What is counted as one caller: an IPv4 address, or the /64 of an IPv6 address."""
    parsed = _parse(address)
    if parsed is None:
        return "unknown"  # all such share one limit
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    return str(ipaddress.IPv6Network((int(parsed), _IPV6_PREFIX), strict=False))


def _parse(text: str) -> Address | None:
    """The address, an IPv4 address also if it is written as an IPv6 one; None for anything else."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv4Address):
        return address
    # Without a zone ("%eth0"), which is any text.
    return address.ipv4_mapped or ipaddress.IPv6Address(int(address))


def _is_trusted(address: Address | None) -> bool:
    return address is not None and any(address in network for network in settings.trusted_proxy_addresses)
