"""Limits on how many items that expire may exist at once, enforced by the write that creates another one.

Nothing decrements a counter when an item expires, so a counter of existing items would drift. A counter of items ever
created can't drift, and is never less than the number that exist. So while the counter is below the limit, there is
room. After that, read the counter, count the existing items, and create another one only if fewer were created since
the read than there was room for.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from controlplane.store.keys import Key
from controlplane.store.table import Update


class Room(NamedTuple):
    """The counter as read (None if it doesn't exist), an upper bound for how many items exist, and the limit."""

    made: int | None
    current: int
    limit: int | None

    @property
    def is_full(self) -> bool:
        return self.limit is not None and self.current >= self.limit


def look(item: Mapping[str, Any] | None, counter: str, limit: int | None, count: Callable[[], int]) -> Room:
    """Returns how much room is left.

    item: the item with the counter, as read; None if it doesn't exist.
    limit: None means no limit.
    count: counts the existing items by consistent reads. Called only if the counter alone doesn't show that there is
        room.
    """
    made = item.get(counter) if item else None
    if made is not None and (limit is None or made < limit):
        return Room(made, made, limit)
    return Room(made, count(), limit)


def make_one(key: Key, counter: str, room: Room, change: str = "", **values: Any) -> Update:
    """Returns the leg that counts another item and fails if there is no room. `change`: further assignments."""
    setting = f"SET #{counter} = if_not_exists(#{counter}, :before) + :one{change}"
    values |= {"before": room.current, "one": 1}
    if room.limit is None:
        return Update(key, setting, None, values)
    when = f"#{counter} < :most"
    if room.made is None and not room.is_full:
        when = f"(attribute_not_exists(#{counter}) OR {when})"
    # A new counter starts at the number of existing items.
    most = room.limit if room.made is None else room.made + room.limit - room.current
    return Update(key, setting, when, {**values, "most": most})
