"""The history of a finding: its statuses, its issue, and the decision about its vendor."""

from collections.abc import Mapping
from typing import NamedTuple

from controlplane.findings.items import InboxItem, StatusChange
from controlplane.findings.vendors import VendorItem

# The name of a person who isn't a member anymore.
FORMER_MEMBER = "A former member"
_DECIDED = {
    "open": "reopened this finding",
    "accepted": "accepted this finding",
    "dismissed": "dismissed this finding",
    "resolved": "resolved this finding",
}


class Event(NamedTuple):
    """Something that happened to an item. who: the name of the person who did it, or None if no person did."""

    at: str
    what: str
    who: str | None = None
    reason: str | None = None
    scan_id: str | None = None


def list_events(item: InboxItem, vendor: VendorItem | None, names: Mapping[str, str]) -> list[Event]:
    """Returns the item's history, newest first. vendor: that of a runtime finding. names: of members, by user ID."""
    events = [_event_of(change, names, is_first=position == 0) for position, change in enumerate(item.history)]
    if item.github_issue is not None:
        events.append(Event(item.github_issue.created_at, f"Issue #{item.github_issue.number} was opened"))
    if vendor is not None and vendor.state is not None and vendor.decided_at is not None:
        who = names.get(vendor.decided_by or "")
        what = f"{vendor.state} the vendor" if who else f"The vendor was {vendor.state}"
        events.append(Event(vendor.decided_at, what, who))
    return sorted(events, key=lambda event: event.at, reverse=True)


def _event_of(change: StatusChange, names: Mapping[str, str], *, is_first: bool) -> Event:
    if change.by is not None:
        until = f" until {change.until[:10]}" if change.until else ""
        return Event(change.at, _DECIDED[change.status] + until, names.get(change.by, FORMER_MEMBER), change.reason)
    if change.status == "resolved":
        return Event(change.at, f"{change.resolver} resolved this finding", None, change.reason, change.scan_id)
    if change.reason:
        return Event(change.at, "The finding is open again", None, change.reason)
    return Event(change.at, "Found" if is_first else "Found again")
