"""Reads of a consent instance's configuration: one read each, limited by client address and by instance.

A write for each visitor would cost more than the read, so an environment reserves a block of the instance's requests
with one write, and serves it from memory. Its first block in a minute is one request, and each further one twice as
many, up to 1% of the limit: many environments that get one request each use up no more than that. Once the limit is
reached, it refuses from memory, before the read. A flood of requests for one instance thus writes at most once for each
block and environment in a minute, and one for unknown instances never writes.

An environment counts the requests of an address in memory, whether or not the instance exists, so that a single client
neither uses up the limit of an instance nor causes unlimited reads.
"""

from typing import NamedTuple

from controlplane.platform.core import clock
from controlplane.platform.core.errors import NotFound, RateLimited, known
from controlplane.platform.core.ids import InstanceId
from controlplane.platform.core.settings import settings
from controlplane.platform.http.client_address import network_of
from controlplane.platform.table import keys, rate
from controlplane.platform.table.table import table
from controlplane.projects.items import ProjectItem

_MINUTE_SECONDS = 60
_BLOCKS = 100
# One address can use up a tenth of an instance's limit in an environment.
_ADDRESS_PART = 10
# Instances kept in memory, some 100 KB.
_MAX_INSTANCES = 1_000


class Reservation(NamedTuple):
    """An instance's latest block, and how many of its requests are left. -1: the limit is reached."""

    minute: int
    block: int = 0
    left: int = 0


_reserved: dict[str, Reservation] = {}
# The last minute of each address, and its requests in it.
_counts: dict[str, tuple[int, int]] = {}


class UnknownInstance(NotFound):
    message = "There is no such consent instance, or its project was deleted."


def count_address(address: str) -> None:
    """Counts a request in this environment only. Raises RateLimited."""
    limit = settings.configuration_requests_per_minute // _ADDRESS_PART
    counted = rate.count_in_memory(_counts, network_of(address), limit)
    _require(counted.limit - counted.hits)


def get_configured(instance_id: str) -> ProjectItem:
    """Returns the project of the consent instance, as it is served on its plan.

    Consistent, so it never shows a deleted project. Raises UnknownInstance, RateLimited, Throttled.
    """
    parsed = known(InstanceId.parse(instance_id), UnknownInstance)
    _require(_reservation(instance_id).left)
    item, organization = table.batch_get([keys.project(*parsed.location), keys.organization(parsed.organization_id)])
    if item is None or organization is None:
        raise UnknownInstance
    project = ProjectItem.from_item(item)
    if project.consent is None or project.consent.instance_id != instance_id:
        raise UnknownInstance
    _count(instance_id)
    return project.served_on(organization["plan"])


def allows(project: ProjectItem, origin: str) -> bool:
    """Returns whether a browser's Origin header names a website of the project.

    Websites are stored without a scheme, except for apps.
    """
    scheme, separator, host = origin.partition("://")
    address = host if scheme in {"http", "https"} else origin
    return bool(separator) and origin.isascii() and any(_matches(it.origin, address) for it in project.websites)


def _matches(website: str, address: str) -> bool:
    return website in {"*", address} or (website.startswith("*.") and address.endswith(website[1:]))


def _reservation(instance_id: str) -> Reservation:
    """Returns the instance's latest block of the current minute, or an empty one."""
    minute = int(clock.now()) // _MINUTE_SECONDS
    reserved = _reserved.get(instance_id)
    return reserved if reserved is not None and reserved.minute == minute else Reservation(minute)


def _count(instance_id: str) -> None:
    minute, block, left = _reservation(instance_id)
    if left == 0:
        limit = settings.configuration_requests_per_minute
        block = min(max(1, 2 * block), limit // _BLOCKS)
        beyond = max(0, rate.reserve_requests(instance_id, minute, block) - limit)
        left = block - beyond if beyond < block else -1
        if len(_reserved) >= _MAX_INSTANCES:
            _reserved.clear()
    _reserved[instance_id] = Reservation(minute, block, max(-1, left - 1))
    _require(left)


def _require(left: int) -> None:
    """Raises RateLimited if the limit is reached."""
    if left < 0:
        raise RateLimited(_MINUTE_SECONDS - int(clock.now()) % _MINUTE_SECONDS)
