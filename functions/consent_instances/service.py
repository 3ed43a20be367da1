"""Reads of a consent instance's configuration: one read each, limited by instance.

A write for each visitor would cost more than the read, so an environment reserves a block of the instance's requests
with one write, and serves it from memory. Once the limit is reached, it refuses from memory, before the read. A flood
of requests for one instance thus writes at most once for each block and environment in a minute, and one for unknown
instances never writes.
"""

from controlplane.platform.core import clock
from controlplane.platform.core.errors import NotFound, RateLimited
from controlplane.platform.core.ids import InstanceId
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys, rate
from controlplane.platform.table.table import table
from controlplane.projects.items import ProjectItem

_MINUTE_SECONDS = 60
_BLOCKS = 100
# Instances kept in memory, some 100 KB.
_MAX_INSTANCES = 1_000

# The last minute of each instance, and how many requests are left of the block. -1: the limit is reached.
_reserved: dict[str, tuple[int, int]] = {}


class UnknownInstance(NotFound):
    message = "There is no such consent instance, or its project was deleted."


def get_configured(instance_id: str) -> ProjectItem:
    """Returns the project of the consent instance, as it is served on its plan.

    Consistent, so it never shows a deleted project. Raises UnknownInstance, RateLimited, Throttled.
    """
    parsed = InstanceId.parse(instance_id)
    if parsed is None:
        raise UnknownInstance
    _, left = _reservation(instance_id)
    _require(left)
    item, organization = table.batch_get([keys.project(*parsed.location), keys.organization(parsed.organization_id)])
    if item is None or organization is None:
        raise UnknownInstance
    project = ProjectItem.from_item(item)
    if project.consent is None or project.consent.instance_id != instance_id:
        raise UnknownInstance
    _count(instance_id)
    return project.served_on(organization["plan"])


def allows(project: ProjectItem, origin: str) -> bool:
    """Returns whether a browser's Origin header names a website of the project. A website has no scheme but an app."""
    scheme, separator, host = origin.partition("://")
    address = host if scheme in {"http", "https"} else origin
    return bool(separator) and origin.isascii() and any(_matches(it.origin, address) for it in project.websites)


def _matches(website: str, address: str) -> bool:
    return website in {"*", address} or (website.startswith("*.") and address.endswith(website[1:]))


def _reservation(instance_id: str) -> tuple[int, int]:
    """Returns the current minute, and how many requests are left of the instance's block in it."""
    minute = int(clock.now()) // _MINUTE_SECONDS
    reserved_in, left = _reserved.get(instance_id, (minute, 0))
    return minute, left if reserved_in == minute else 0


def _count(instance_id: str) -> None:
    minute, left = _reservation(instance_id)
    if left == 0:
        limit = settings.configuration_requests_per_minute
        block = limit // _BLOCKS
        left = block if rate.reserve_requests(instance_id, minute, block) <= limit else -1
        if len(_reserved) >= _MAX_INSTANCES:
            _reserved.clear()
    _reserved[instance_id] = minute, max(-1, left - 1)
    _require(left)


def _require(left: int) -> None:
    """Raises RateLimited if the limit is reached."""
    if left < 0:
        raise RateLimited(_MINUTE_SECONDS - int(clock.now()) % _MINUTE_SECONDS)
