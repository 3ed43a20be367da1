"""Limits on how many items that expire may exist at once, enforced by the write that creates another one.

Nothing decrements a counter when an item expires, so a counter of existing items would drift. A counter of items ever
created can't drift, and is never less than the number that exist. So while the counter is below the limit, another item
is allowed. After that, read the counter, count the existing items, and create another one only if fewer were created
since the read than the limit still allowed.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from controlplane.platform.table.keys import Key
from controlplane.platform.table.table import Update


class Capacity(NamedTuple):
    """The counter as read (None if it doesn't exist), an upper bound for how many items exist, and the limit."""

    created: int | None
    current: int
    limit: int | None

    @property
    def is_full(self) -> bool:
        return self.limit is not None and self.current >= self.limit


def read_capacity(created: int | None, limit: int | None, count: Callable[[], int]) -> Capacity:
    """Returns how many items exist, and how many may.

    created: the counter as read; None if it doesn't exist.
    limit: None means no limit.
    count: counts the existing items by consistent reads. Called only if the counter alone doesn't show that another
        item is allowed.
    """
    if created is not None and (limit is None or created < limit):
        return Capacity(created, created, limit)
    return Capacity(created, count(), limit)


def count_creation(key: Key, counter: str, capacity: Capacity, change: str = "", **values: Any) -> Update:
    """Returns the leg that counts another item and fails if the limit is reached. `change`: further assignments."""
    setting = f"SET #{counter} = if_not_exists(#{counter}, :before) + :one{change}"
    values |= {"before": capacity.current, "one": 1}
    if capacity.limit is None:
        return Update(key, setting, None, values)
    when = f"#{counter} < :most"
    if capacity.created is None and not capacity.is_full:
        when = f"(attribute_not_exists(#{counter}) OR {when})"
    # A new counter starts at the number of existing items.
    allowed = capacity.limit if capacity.created is None else capacity.created + capacity.limit - capacity.current
    return Update(key, setting, when, {**values, "most": allowed})
