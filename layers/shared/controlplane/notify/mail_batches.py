"""The emails to an organization's members that are due later: new P0 findings of a few minutes, and the weekly digest.

The message that sends one is an outbox entry with a time, written in the transaction of its subject.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from controlplane.platform.core import clock
from controlplane.platform.queues.outbox import Entry
from controlplane.platform.table import keys
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.table import Leg, LegFailed, Put, Unrecorded, Update, table

# Findings of this time go into one email.
WINDOW_SECONDS = 300
# Events of the window may still be in progress when it ends: a worker takes at most 30 seconds.
_MARGIN_SECONDS = 60
# Named in the email. The others are counted.
_MOST_ITEMS = 20
# An event is redelivered for at most this long.
_KEPT_SECONDS = 15 * 86_400


class Batch(NamedTuple):
    """The findings of one email: how many there are, and the IDs of the first."""

    size: int
    item_ids: list[str]


def add_findings(
    organization_id: str, event_id: str, item_ids: Iterable[str], message: Callable[[str, int], Entry]
) -> None:
    """Adds the findings of an event to the email of this window, once.

    message: returns the entry that sends the email of a window, named by its argument, after a number of seconds.
    """
    added = list(item_ids)
    window = str(int(clock.now() // WINDOW_SECONDS))
    key = keys.mail_batch(organization_id, window)
    expires_at = int(clock.now()) + _KEPT_SECONDS
    seen_event = Put(
        {**keys.mail_event(organization_id, event_id)._asdict(), "expiresAt": expires_at}, "attribute_not_exists(pk)"
    )

    def add() -> None:
        batch = find_batch(organization_id, window)
        items = [*(batch.item_ids if batch else []), *added][:_MOST_ITEMS]
        values: dict[str, Any] = {"items": items, "count": (batch.size if batch else 0) + len(added)}
        legs: dict[str, Leg] = {"event": seen_event}
        if batch is None:
            ends_in = int((int(window) + 1) * WINDOW_SECONDS - clock.now())
            legs["batch"] = Put({**key._asdict(), **values, "expiresAt": expires_at}, "attribute_not_exists(pk)")
            legs["message"] = message(window, ends_in + _MARGIN_SECONDS).leg
        else:
            unchanged = {**values, "seen": batch.size}
            legs["batch"] = Update(key, "SET #items = :items, #count = :count", "#count = :seen", unchanged)
        try:
            table.transact(legs, Unrecorded.MESSAGE)
        except LegFailed as failure:
            if failure.leg != "event":
                raise WriteConflict from None

    retry_on_conflict(add, "the email of new findings")


def find_batch(organization_id: str, window: str) -> Batch | None:
    """Returns the findings of the window's email."""
    item = table.get(keys.mail_batch(organization_id, window))
    return Batch(item["count"], item["items"]) if item else None


def schedule_digest(organization_id: str, day: str, message: Callable[[], Entry]) -> None:
    """Leaves the digest of this day to the sweep, once."""
    key = keys.digest(organization_id, day)
    if table.get(key) is not None:
        return
    marker = {**key._asdict(), "expiresAt": int(clock.now()) + _KEPT_SECONDS}
    try:
        table.transact(
            {"digest": Put(marker, "attribute_not_exists(pk)"), "message": message().leg}, Unrecorded.MESSAGE
        )
    except LegFailed as failure:
        if failure.leg != "digest":
            raise
