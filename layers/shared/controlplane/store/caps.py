"""Caps on things that end by themselves: how many may exist at once, decided by the write that makes another one.

Nothing counts down when something expires, so a counter of what exists would drift. A counter of what was ever made
cannot, and nothing exists that was not made. So the counter decides while it is below the limit. After that, read it,
count what exists, and make another one only if fewer were made since than there was room.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from controlplane.store.keys import Key
from controlplane.store.table import Update


class Room(NamedTuple):
    """What the leg rests on: the counter that was read (None if there was none), and how many exist, at most."""

    made: int | None
    current: int
    limit: int | None

    @property
    def is_full(self) -> bool:
        return self.limit is not None and self.current >= self.limit


def look(item: Mapping[str, Any] | None, counter: str, limit: int | None, count: Callable[[], int]) -> Room:
    """Returns the room there is.

    item: the one with the counter, as it was read; None if there is none.
    limit: None is no limit.
    count: counts what exists, by consistent reads. Called only if the counter does not decide.
    """
    made = item.get(counter) if item else None
    if made is not None and (limit is None or made < limit):
        return Room(made, made, limit)
    return Room(made, count(), limit)


def make_one(key: Key, counter: str, room: Room, change: str = "", **values: Any) -> Update:
    """Returns the leg that counts another one, refused unless there is room. `change` is what else to set."""
    setting = f"SET #{counter} = if_not_exists(#{counter}, :before) + :one{change}"
    values |= {"before": room.current, "one": 1}
    if room.limit is None:
        return Update(key, setting, None, values)
    when = f"#{counter} < :most"
    if room.made is None and not room.is_full:
        when = f"(attribute_not_exists(#{counter}) OR {when})"
    # A counter that did not exist starts at what exists.
    most = room.limit if room.made is None else room.made + room.limit - room.current
    return Update(key, setting, when, {**values, "most": most})
