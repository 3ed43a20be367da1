"""Rules of API keys: which key an ID names, what a key can be limited to, and that a change never widens it.

A program that was given a limited key must be able to rely on its limits, so not even an admin can widen one.

The store's writes check the plan, the limits, and the admin's role.
"""

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from controlplane.api_keys.items import ApiKeyItem
from controlplane.platform.core import clock
from controlplane.platform.core.errors import InvalidPayload
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.core.scopes import API_KEY_SCOPES
from controlplane.platform.table import keys
from controlplane.platform.table.table import QueryPage, table
from controlplane.projects.items import ProjectItem

# A request writes the key's item, whose price depends on its size: without restrictions, it is below 1 KB.
MOST_PROJECTS = 20
MOST_NETWORKS = 20
LONGEST_DESCRIPTION = 512
LONGEST_GRACE_SECONDS = 7 * 86_400

UNKNOWN_PROJECT = "The organization has no such project."

type Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NETWORK = re.compile(r"[0-9A-Fa-f:.]{2,45}(?:/[0-9]{1,3})?")
_MAPPED_BITS = 96


def read_scopes(texts: Iterable[str]) -> tuple[str, ...]:
    """Returns the scopes once each, sorted. Raises InvalidPayload for one that no key can have."""
    scopes = tuple(sorted({*texts}))
    if unknown := [it for it in scopes if it not in API_KEY_SCOPES]:
        message = f"An API key can't have the scope {unknown[0]}. It can have {', '.join(API_KEY_SCOPES)}."
        raise InvalidPayload.at(["scopes"], message, "invalid")
    return scopes


def read_projects(organization_id: str, texts: Sequence[str]) -> tuple[ProjectId, ...]:
    """Returns the IDs of the organization's projects, once each. Raises InvalidPayload for others."""
    distinct = list(dict.fromkeys(texts))
    parsed = [it for text in distinct if (it := ProjectId.parse(text)) is not None]
    unknown = {*distinct} - {*parsed} | {*find_unknown(organization_id, parsed)}
    problem = {"code": "unknown_project", "message": UNKNOWN_PROJECT}
    if unknown:
        places = [str(place) for place, text in enumerate(texts) if text in unknown]
        raise InvalidPayload(details=[{**problem, "path": ["projectIds", place]} for place in places])
    return tuple(parsed)


def list_projects(project_ids: Sequence[ProjectId], limit: int, after: str | None) -> QueryPage[ProjectItem]:
    """Returns one page of the given projects that still exist, in the order of `projects.list_projects`."""
    wanted = sorted((keys.project(*it.location) for it in project_ids), reverse=True)
    items = table.batch_get([key for key in wanted if after is None or key.sk < after])
    found = [ProjectItem.from_item(item) for item in items if item is not None]
    if len(found) <= limit:
        return QueryPage(found, None)
    return QueryPage(found[:limit], found[limit - 1].key.sk)


def find_unknown(organization_id: str, project_ids: Sequence[ProjectId]) -> list[ProjectId]:
    """Returns the given IDs that aren't projects of the organization."""
    own = [it for it in project_ids if it.organization_id == organization_id]
    found = table.batch_get([keys.project(*it.location) for it in own])
    existing = {it for it, item in zip(own, found, strict=True) if item is not None}
    return [it for it in project_ids if it not in existing]


def read_allowed_ips(texts: Sequence[str]) -> tuple[str, ...]:
    """Returns the networks in their normal form, once each. An address is a network of its own. Raises InvalidPayload.

    An IPv4-mapped IPv6 network becomes the IPv4 network that clients' addresses are compared with.
    """
    return tuple(dict.fromkeys(read_network(text, place) for place, text in enumerate(texts)))


def read_network(text: str, place: int = 0) -> str:
    """Returns an entry of `read_allowed_ips`."""
    return str(_read_network(text.strip(), ["allowedIps", str(place)]))


def _read_network(text: str, path: list[str]) -> Network:
    try:
        # Python also reads a mask after the slash.
        network = ipaddress.ip_network(text if _NETWORK.fullmatch(text) else "", strict=False)
    except ValueError:
        message = "Send an address or a network, such as 203.0.113.7, 203.0.113.0/24, or 2001:db8::/32."
        raise InvalidPayload.at(path, message, "invalid_network") from None
    if ipaddress.ip_address(text.partition("/")[0]) != network.network_address:
        raise InvalidPayload.at(path, f"This is an address in the network {network}. Send {network}.", "host_bits")
    if isinstance(network, ipaddress.IPv6Network):
        # Networks with a shorter prefix have no mapped address, because its 96th bit is set.
        mapped = network.network_address.ipv4_mapped
        if mapped is not None:
            return ipaddress.IPv4Network((mapped, network.prefixlen - _MAPPED_BITS))
    return network


def read_expiry(seconds: float) -> int:
    """Returns the time in whole seconds. Raises InvalidPayload if it isn't in the future."""
    if int(seconds) <= clock.now():
        message = "Send a time in the future. To end a key now, revoke it."
        raise InvalidPayload.at(["expiresAt"], message, "in_the_past")
    return int(seconds)


def narrowed(key: ApiKeyItem, texts: Mapping[str, Any], limits: Mapping[str, Any]) -> ApiKeyItem:
    """Returns the changed key. Raises InvalidPayload, which names the fields, if the change would widen it.

    texts, limits: the attributes of the key, and of its restrictions, that are given. Others stay as they are.
    """
    problems = []
    for name, wanted in limits.items():
        field, find = _WIDENINGS[name]
        if (message := _widening(getattr(key.restrictions, name), wanted, find)) is not None:
            problems.append({"code": "widens", "message": message, "path": [field]})
    if problems:
        raise InvalidPayload(details=problems)
    return replace(key, **texts, restrictions=replace(key.restrictions, **limits))


def _widening(current: Any, wanted: Any, find: Callable[[Any, Any], str | None]) -> str | None:
    """Returns why the change of a restriction widens the key, or None."""
    if current is None:
        return None
    return "This restriction can't be removed. Create another key." if wanted is None else find(current, wanted)


def _more_scopes(current: tuple[str, ...], wanted: tuple[str, ...]) -> str | None:
    more = sorted({*wanted} - {*current})
    return f"The key doesn't have the scope {more[0]}. A change can only remove scopes." if more else None


def _more_projects(current: tuple[str, ...], wanted: tuple[str, ...]) -> str | None:
    if {*wanted} <= {*current}:
        return None
    return "The key is limited to other projects. A change can only remove projects."


def _more_networks(current: tuple[str, ...], wanted: tuple[str, ...]) -> str | None:
    accepted = [ipaddress.ip_network(it) for it in current]
    outside = [it for it in wanted if not _is_inside(ipaddress.ip_network(it), accepted)]
    return f"The key doesn't accept requests from {outside[0]}. A change can only remove networks." if outside else None


def _is_inside(network: Network, accepted: Iterable[Network]) -> bool:
    """Returns whether one of the accepted networks contains the whole network."""
    return any(network.version == it.version and network.subnet_of(it) for it in accepted)  # type: ignore[arg-type]


def _later(current: int, wanted: int) -> str | None:
    if wanted <= current:
        return None
    return f"The key expires at {clock.timestamp(current)}. A change can only bring that forward."


_WIDENINGS: dict[str, tuple[str, Callable[[Any, Any], str | None]]] = {
    "scopes": ("scopes", _more_scopes),
    "project_ids": ("projectIds", _more_projects),
    "allowed_ips": ("allowedIps", _more_networks),
    "expires_at": ("expiresAt", _later),
}
