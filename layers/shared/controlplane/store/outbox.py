"""Messages that are to be sent: written in the transaction of what they speak of, removed once they are sent.

So nothing is ever written without its message, whatever dies between the two. Messages may be sent more than once.
"""

import secrets
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from controlplane import clock, ids
from controlplane.store import keys, shards
from controlplane.store.keys import Key
from controlplane.store.sweep_runs import SweepRun
from controlplane.store.table import Delete, Put, table

# A message that no worker takes stays in its queue for so long: MessageRetentionPeriod in template.yaml.
RETENTION_SECONDS = 345_600
# A function sends its own messages within this time, or has died.
RESEND_AFTER_SECONDS = 60


class Entry(NamedTuple):
    """A message for a queue, and where it waits."""

    key: Key
    queue: str
    message: dict[str, Any]

    @property
    def leg(self) -> Put:
        """Writes the entry, in the transaction of what the message speaks of."""
        return Put({**self.key._asdict(), "queue": self.queue, "message": self.message}, "attribute_not_exists(pk)")


def new_entry(queue: str, message: Mapping[str, Any]) -> Entry:
    """An entry for the message, not written yet."""
    # Not `random`: copies of one snapshot would all choose the same shards.
    shard = secrets.randbelow(shards.OUTBOX)
    return Entry(keys.outbox_message(shard, clock.timestamp(), ids.new_local()), queue, dict(message))


def delete_entry(entry: Entry) -> None:
    """The message is sent."""
    table.delete(Delete(entry.key))


def resend(
    run: SweepRun, send: Callable[[str, dict[str, Any]], None], older_than_seconds: int = RESEND_AFTER_SECONDS
) -> None:
    """A step of the sweep: sends the messages that have waited longer than that, and removes their entries.

    send: takes a queue's name and a message, and raises if the queue doesn't take it; the entry then stays.
    """
    before = clock.timestamp(clock.now() - older_than_seconds)
    for item in run.entries(keys.OUTBOX_PKS, before=before):
        with run.isolating(item):
            send(item["queue"], item["message"])
            table.delete(Delete(Key(item["pk"], item["sk"])))
            run.finished += 1
