"""Writes of findings, and the events that they are: each is written with the messages about it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from controlplane.platform.core.ids import InboxItemId
from controlplane.platform.queues import events
from controlplane.platform.queues.events import EventName
from controlplane.platform.queues.outbox import Entry
from controlplane.platform.table.legs import Record
from controlplane.platform.table.retry import Errors
from controlplane.platform.table.table import Leg, Put, Update, table


class Change(NamedTuple):
    """A write that publishes or changes an item, and the status of the item as it was read, or None if it was new."""

    item_id: InboxItemId
    leg: Put | Update
    former: str | None

    @property
    def event(self) -> EventName | None:
        """The event that the write is."""
        status = (self.leg.item if isinstance(self.leg, Put) else self.leg.values).get("status")
        if status in {None, self.former}:
            return None
        if status == "open":
            return "finding.opened"
        return "finding.resolved" if status == "resolved" and self.former is not None else None


def told_by(changes: Iterable[Change]) -> list[Entry]:
    """Returns the messages about findings of one organization that the changes open or resolve, at most 25 of them."""
    found: dict[EventName, list[InboxItemId]] = {}
    for change in changes:
        if change.event is not None:
            found.setdefault(change.event, []).append(change.item_id)
    return [events.entry(item_ids[0].organization_id, event, *item_ids) for event, item_ids in found.items()]


def transact_and_tell(
    changes: Sequence[Change],
    legs: Mapping[str, Leg],
    record: Record,
    errors: Errors | None = None,
    otherwise: type[Exception] | None = None,
) -> list[Entry]:
    """Writes the changes, in a transaction with `legs`, which come first, and with the messages about them.

    At most 25 changes. The leg of a change has the item's id as its name. Returns the messages, which the caller can
    send, or leave to the sweep. Raises the errors of `Table.transact`.
    """
    entries = told_by(changes)
    told = {entry.key.sk: entry.leg for entry in entries}
    table.transact({**legs, **{it.item_id: it.leg for it in changes}, **told}, record, errors, otherwise)
    return entries
