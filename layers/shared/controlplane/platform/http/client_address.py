"""The address of the client that sent a request, and the network that rate limits count as one caller.

The source address, which the gateway saw, is the only one that a client can't choose. A header is
used only if the request came through the front door, or if that address belongs to the trusted proxy of the settings.
The front door is an optional CloudFront distribution, which proves itself to the functions by a secret header.
"""

import hmac
import ipaddress
from collections.abc import Callable, Iterable

from controlplane.platform.core.settings import settings

type Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# A subscriber gets at least a /64 and can use any address in it (RFC 6177).
_IPV6_PREFIX = 64
# CloudFront overwrites both if the client sends them: the first with the origin's header, the second in a function.
SECRET_HEADER = "x-front-door"  # nosec B105  # noqa: S105 (a header's name)
ADDRESS_HEADER = "true-client-ip"


def client_address(source_address: str, read_header: Callable[[str], list[str]]) -> str:
    """Returns the client's address: the one that the gateway, the front door, or a trusted proxy saw.

    The front door overwrites its header, which contains one address. A proxy appends to its own, and the client
    controls everything to the left of the proxy's entries. So that one is read from the right, up to the first entry
    that isn't an address of the proxy. If there is no address at that place, returns `source_address`.
    """
    if used_front_door(read_header):
        address = _parse(",".join(read_header(ADDRESS_HEADER)))
        return source_address if address is None else str(address)
    if settings.trusted_proxy_header is None or not _is_trusted(_parse(source_address)):
        return source_address
    address = None
    for text in reversed(",".join(read_header(settings.trusted_proxy_header)).split(",")):
        address = _parse(text.strip(" \t"))
        if not _is_trusted(address):
            break
    return source_address if address is None else str(address)


def used_front_door(read_header: Callable[[str], list[str]]) -> bool:
    """Returns True if the request came through the front door. `read_header` returns every value of a header."""
    if settings.front_door_secret is None:
        return False
    given = read_header(SECRET_HEADER)
    return len(given) == 1 and any(
        hmac.compare_digest(given[0].encode(), secret.encode()) for secret in settings.front_door_secret.keys
    )


def network_of(address: str) -> str:
    """Returns the network that counts as one caller: an IPv4 address, or the /64 of an IPv6 address."""
    parsed = _parse(address)
    if parsed is None:
        return "unknown"  # all of these share one limit
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    return str(ipaddress.IPv6Network((int(parsed), _IPV6_PREFIX), strict=False))


def is_within(address: str, networks: Iterable[str]) -> bool:
    """Returns whether the address is in one of the networks (CIDR). An IPv4-mapped IPv6 address is an IPv4 address."""
    parsed = _parse(address)
    return parsed is not None and any(parsed in ipaddress.ip_network(network) for network in networks)


def _parse(text: str) -> Address | None:
    """Returns the address, or None if the text is invalid. An IPv4-mapped IPv6 address becomes an IPv4 address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv4Address):
        return address
    # Drops the zone ("%eth0"), which may be any text.
    return address.ipv4_mapped or ipaddress.IPv6Address(int(address))


def _is_trusted(address: Address | None) -> bool:
    return address is not None and any(address in network for network in settings.trusted_proxy_addresses)
