"""A transactional outbox: a message is written in the transaction of its data, and deleted once it is sent.

So no data is written without its message, even if the process crashes before sending. Delivery is at least once.
"""

import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple

from controlplane.platform.core import clock, ids
from controlplane.platform.table import keys, shards
from controlplane.platform.table.keys import Key
from controlplane.platform.table.table import Delete, Put, Unrecorded, table

# How long a queue keeps a message that no worker receives: MessageRetentionPeriod in template.yaml.
RETENTION_SECONDS = 345_600
# A function sends its own messages within this time, unless it crashes.
RESEND_AFTER_SECONDS = 60


class Entry(NamedTuple):
    """A message for a queue, with its key in the outbox."""

    key: Key
    queue: str
    message: dict[str, Any]

    @property
    def leg(self) -> Put:
        """Returns the leg that writes the entry, for the transaction that writes the message's data."""
        return Put({**self.key._asdict(), "queue": self.queue, "message": self.message}, "attribute_not_exists(pk)")


def new_entry(queue: str, message: Mapping[str, Any], after_seconds: int = RESEND_AFTER_SECONDS) -> Entry:
    """Returns an entry for the message without writing it. The sweep sends it `after_seconds`, if no function did."""
    # Not `random`: instances restored from one snapshot would all choose the same shards.
    shard = secrets.randbelow(shards.ENTRIES)
    at = clock.timestamp(clock.now() + after_seconds - RESEND_AFTER_SECONDS)
    return Entry(keys.outbox_message(shard, at, ids.new_local()), queue, dict(message))


def write(entry: Entry) -> None:
    """Writes an entry without a transaction. The sweep sends its message."""
    table.put(entry.leg, Unrecorded.MESSAGE)


def delete_entry(entry: Entry) -> None:
    """Deletes the entry of a message that was sent."""
    table.delete(Delete(entry.key), Unrecorded.MESSAGE)
