"""Webhooks that were received: each takes effect once, however often GitHub delivers it."""

from controlplane.platform.core import clock
from controlplane.platform.queues.outbox import Entry
from controlplane.platform.table import keys
from controlplane.platform.table.table import LegFailed, Put, Unrecorded, table

# GitHub offers a delivery for redelivery for three days. Later copies can only come from someone who kept one.
_KNOWN_SECONDS = 7 * 86_400


def accept(delivery_id: str, message: Entry) -> bool:
    """Records the delivery with its message, in one write. Returns False if it was accepted in the last seven days."""
    now = int(clock.now())
    item = {**keys.delivery(delivery_id)._asdict(), "expiresAt": now + _KNOWN_SECONDS}
    unknown = "attribute_not_exists(pk) OR #expiresAt <= :now"
    try:
        table.transact({"delivery": Put(item, unknown, {"now": now}), "message": message.leg}, Unrecorded.MESSAGE)
    except LegFailed:
        return False
    return True
