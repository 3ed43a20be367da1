"""A backfill: a single pass over the table that completes items of older releases.

It saves its position after each page, so an interrupted run resumes.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from controlplane.core import clock
from controlplane.store import keys
from controlplane.store.table import Put, Unrecorded, table
from ops.table_scan import scan_pages


class Outcome(NamedTuple):
    """The numbers of items read and changed in this run, and the time the backfill was completed."""

    completed_at: str
    read: int
    changed: int


def run(
    progress: keys.Key,
    condition: str,
    values: Mapping[str, Any],
    change: Callable[[dict[str, Any]], bool],
    *,
    again: bool,
) -> Outcome:
    """Calls `change` with every item that meets the condition, unless the backfill was completed before.

    progress: the item with the position. condition, values: see `table_scan.scan_pages`. change: returns True if it
    changed the item. again: starts over.
    """
    saved = table.get(progress) or {}
    if saved.get("completedAt") and not again:
        return Outcome(saved["completedAt"], 0, 0)
    start = None if again else saved.get("position")
    read = changed = 0
    _save(progress, start, None)
    for page in scan_pages(condition, values, after=start):
        read += len(page.items)
        changed += sum(change(item) for item in page.items)
        _save(progress, page.position, None)
    completed_at = clock.timestamp()
    _save(progress, None, completed_at)
    return Outcome(completed_at, read, changed)


def _save(progress: keys.Key, position: dict[str, str] | None, completed_at: str | None) -> None:
    table.put(Put({**progress._asdict(), "position": position, "completedAt": completed_at}), Unrecorded.BACKFILL)
