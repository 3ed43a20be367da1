"""The requests of an API key by day, in attributes of the item that counts its requests.

The write that opens a minute adds the minute before to its day, so counting by day takes no further write. A day is a
number of days since 1970, in UTC.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from controlplane.api_keys.items import ApiKeyItem
from controlplane.platform.core import clock
from controlplane.platform.table import keys
from controlplane.platform.table.table import table

KEPT_DAYS = 14
_MINUTES_A_DAY = 24 * 60
# Followed by the day.
_REQUESTS, _REFUSED = "requests", "refused"


class DayUsage(NamedTuple):
    """The requests of a day, and how many of them were over the key's limit per minute and therefore refused."""

    day: int
    requests: int
    refused: int


class Closing(NamedTuple):
    """The part of an update that adds a minute that has ended to its day, and removes days that aren't kept."""

    set_part: str
    remove_part: str
    values: dict[str, Any]


NOTHING = Closing("", "", {})


def closing(previous: Mapping[str, Any]) -> Closing:
    """Returns how to count the open minute of the item, which the update must still find open."""
    if not previous["win"]:
        return NOTHING
    day = previous["win"] // _MINUTES_A_DAY
    counted = f", #{_REQUESTS}{day} = if_not_exists(#{_REQUESTS}{day}, :none) + #hits"
    values = {"none": 0}
    if over := _over(previous):
        counted += f", #{_REFUSED}{day} = if_not_exists(#{_REFUSED}{day}, :none) + :over"
        values["over"] = over
    expired = [name for name in previous if (kept := _day_of(name)) is not None and kept <= day - KEPT_DAYS]
    return Closing(counted, " REMOVE " + ", ".join(f"#{name}" for name in expired) if expired else "", values)


def find_usage(listed: Iterable[ApiKeyItem]) -> dict[str, list[DayUsage]]:
    """Returns the usage of each key that exists, by its id: the last 14 days, today last."""
    wanted = {key.key_id: keys.key_secret(key.digest) for key in listed}
    items = table.batch_get(list(wanted.values()))
    return {key_id: usage_of(item) for key_id, item in zip(wanted, items, strict=True) if item is not None}


def find_previous_uses(listed: Iterable[ApiKeyItem]) -> dict[str, str]:
    """Returns when the old secrets in a grace period were last used since the roll, by the IDs of the listed keys.

    Accurate to the minute, because each request is counted in its minute. Consistent, and one round trip if one of the
    keys has an old secret that works.
    """
    rolled = [(key, keys.key_secret(it.digest)) for key in listed if (it := key.working_previous) is not None]
    items = table.batch_get([secret for _, secret in rolled]) if rolled else []
    return {
        key.key_id: max(key.created_at, clock.timestamp(item["win"] * 60))
        for (key, _), item in zip(rolled, items, strict=True)
        if item is not None and (item["win"], item["hits"]) != (item.get("rolledWin"), item.get("rolledHits"))
    }


def usage_of(item: Mapping[str, Any]) -> list[DayUsage]:
    """Returns the usage in the key's authenticating item, with the minute that is being counted."""
    today, open_day = int(clock.now()) // 60 // _MINUTES_A_DAY, item["win"] // _MINUTES_A_DAY
    return [
        DayUsage(
            day,
            item.get(f"{_REQUESTS}{day}", 0) + (item["hits"] if day == open_day else 0),
            item.get(f"{_REFUSED}{day}", 0) + (_over(item) if day == open_day else 0),
        )
        for day in range(today - KEPT_DAYS + 1, today + 1)
    ]


def _over(item: Mapping[str, Any]) -> int:
    return max(0, int(item["hits"]) - int(item["rateLimit"]))


def _day_of(name: str) -> int | None:
    day = name.removeprefix(_REQUESTS).removeprefix(_REFUSED)
    return int(day) if day.isdecimal() else None
