"""Keeps the statuses that an inbox item has had, and who or what set them."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from controlplane.platform.table.stored import read_map, to_map

Status = Literal["open", "accepted", "dismissed", "resolved"]

# A reason has up to 1,000 characters, and each former status keeps its own.
MOST_FORMER = 10


class StatusChange(NamedTuple):
    """A status of an item, its time, and who or what set it: a person, a scan, or neither if it was found."""

    status: Status
    at: str
    by: str | None = None
    reason: str | None = None
    scan_id: str | None = None


def to_former(history: Sequence[StatusChange]) -> list[dict[str, Any]]:
    """Returns the former statuses to store with a change of the item's status: the latest ten, oldest first."""
    return [to_map(change) for change in history[-MOST_FORMER:]]


def resolving_scan(item: Mapping[str, Any]) -> str | None:
    """Returns the ID of the scan that resolved the item, if one did."""
    resolution = item.get("resolvedBy")
    return resolution["scanId"] if resolution else None


def history_of(item: Mapping[str, Any]) -> tuple[StatusChange, ...]:
    """Returns the item's former statuses, oldest first, and its current one last. Empty for an item of a list."""
    if "statusAt" not in item:  # listed
        return ()
    current = StatusChange(
        status=item["status"],
        at=item["statusAt"],
        by=item.get("statusBy"),
        reason=item.get("statusReason"),
        scan_id=resolving_scan(item),
    )
    return (*(read_map(StatusChange, former) for former in item.get("history") or ()), current)
