"""Reads an organization's audit log, newest first. `recording` writes it.

Each month is a partition, so a page reads all months that it may need in parallel. Filters apply to what was read:
a page may have few entries, or none, and still be followed by another one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from controlplane.platform.core import clock, ids
from controlplane.platform.core.acting import ActorKind, Source
from controlplane.platform.core.actions import Action
from controlplane.platform.core.ids import LONGEST_REQUEST_SECONDS
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.parallel import read_both, read_each
from controlplane.platform.table.stored import SPARSE, Derived, StoredMap
from controlplane.platform.table.table import QueryPage, table

# Entries that a page with filters reads of each month, and the months that a page reads.
_READ_WITH_FILTERS = 250
_MONTHS = 4
# Entries of an organization that are read to find those of one request: 30 changes a second.
_READ_OF_REQUEST = 1_000
# No entry is older.
_FIRST_MONTH = "2026-01"
_DAY_SECONDS = 86_400


class Changed(NamedTuple):
    """A field that a write changed. A value that isn't there, before or after, is None."""

    field: str
    before: Any
    after: Any


def _read_changes(item: Mapping[str, Any]) -> tuple[Changed, ...]:
    before, after = item["before"], item["after"]
    return tuple(Changed(name, before.get(name), after.get(name)) for name in sorted({**before, **after}))


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry(StoredMap):
    """An entry. action: a name that this release may not know. name: the resource's, as of then."""

    entry_id: str
    at: str
    action: str
    resource: str
    name: Annotated[str | None, SPARSE] = None
    actor_kind: ActorKind
    actor_id: str
    source: Source
    request_id: Annotated[str | None, SPARSE] = None
    changes: Annotated[tuple[Changed, ...], Derived(_read_changes)]


class Filters(NamedTuple):
    """The filters of a list. since, until: Unix times, both included."""

    actor_id: str | None = None
    action: Action | None = None
    resource: str | None = None
    since: float | None = None
    until: float | None = None

    @property
    def binding(self) -> tuple[str, ...]:
        """The filters as text. A cursor works only with the same ones."""
        return tuple("" if value is None else str(value) for value in self)

    @property
    def selects(self) -> bool:
        """Returns whether a month may have entries in the range that the filters exclude."""
        return any((self.actor_id, self.action, self.resource))

    def match(self, item: Mapping[str, Any]) -> bool:
        wanted = {"actorId": self.actor_id, "action": self.action, "resource": self.resource}
        # TTL deletes an expired entry within days.
        return item.get("expiresAt", clock.now()) >= clock.now() and all(
            value is None or item[name] == value for name, value in wanted.items()
        )


class LogPage(NamedTuple):
    """Entries, newest first, and the position after which the next page starts (None on the last page)."""

    entries: list[LogEntry]
    next_position: str | None


def list_entries(
    organization_id: str,
    limit: int,
    after: str | None = None,
    filters: Filters = Filters(),  # noqa: B008 (a tuple)
    *,
    consistent: bool = False,
) -> LogPage:
    """Returns one page of the organization's audit log, in one round trip."""
    floor = _floor(filters)
    newest, _, last = (after or f"{_month_of(_latest(filters))}#").partition("#")
    months, rest = _months(newest, floor)
    at_most = max(limit, _READ_WITH_FILTERS) if filters.selects else limit
    lowest = ids.local_at(filters.since) if filters.since is not None else None
    # A time has many local parts; the first one after it ends the range.
    highest = ids.local_at(filters.until + 0.001) if filters.until is not None else None

    def read(month: str) -> QueryPage[dict[str, Any]]:
        bounds = [bound for bound in (last if month == newest else None, highest) if bound]
        pk = keys.log_pk(organization_id, month)
        return table.query(
            pk, lowest=lowest, after=min(bounds, default=None), newest_first=True, limit=at_most, consistent=consistent
        )

    if not months:
        return LogPage([], None)
    latest, earlier = read_both(lambda: read(newest), lambda: read_each(read, months[1:]))
    found: list[LogEntry] = []
    position = ""
    for month, page in zip(months, [latest, *earlier], strict=True):
        for item in page.items:
            if len(found) == limit:
                return LogPage(found, position)
            position = f"{month}#{item['sk']}"
            if filters.match(item):
                found.append(LogEntry.from_item(item))
        if page.next_sk is not None:
            return LogPage(found, f"{month}#{page.next_sk}")
    return LogPage(found, f"{rest}#" if rest else None)


def list_of_request(organization_id: str, request_id: str, began: float) -> list[LogEntry]:
    """Returns the entries that a request wrote, in their order. Consistent. began: when it began, in Unix seconds.

    Reads what the organization wrote in the seconds that a request can take, but at most 1,000 entries.
    """
    ended = began + LONGEST_REQUEST_SECONDS
    found: list[LogEntry] = []
    for month in sorted({_month_of(began), _month_of(ended)}):
        page = table.query(
            keys.log_pk(organization_id, month),
            lowest=ids.local_at(began),
            after=ids.local_at(ended),
            newest_first=True,
            limit=_READ_OF_REQUEST,
            consistent=True,
        )
        found += [LogEntry.from_item(item) for item in page.items[::-1] if item.get("requestId") == request_id]
    return found


def _latest(filters: Filters) -> float:
    return clock.now() if filters.until is None else min(clock.now(), filters.until)


def _floor(filters: Filters) -> str:
    """Returns the earliest month that can have entries."""
    days = settings.audit_log_retention_days
    kept = _month_of(clock.now() - days * _DAY_SECONDS) if days else _FIRST_MONTH
    since = _month_of(filters.since) if filters.since is not None else _FIRST_MONTH
    return max(_FIRST_MONTH, kept, since)


def _month_of(seconds: float) -> str:
    return clock.timestamp(seconds)[:7]


def _months(newest: str, oldest: str) -> tuple[list[str], str | None]:
    """Returns the months that a page reads, from the newest, and the one after them (None on the last page)."""
    first, last = (int(month[:4]) * 12 + int(month[5:7]) - 1 for month in (oldest, newest))
    numbers = range(last, max(first - 1, last - _MONTHS - 1), -1)
    months = [f"{number // 12}-{number % 12 + 1:02d}" for number in numbers]
    return months[:_MONTHS], months[_MONTHS] if len(months) > _MONTHS else None
