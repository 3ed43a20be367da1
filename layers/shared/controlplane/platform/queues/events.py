"""Events that an organization's webhooks and emails tell about, written in the transaction of the change.

An event's message is an outbox entry that is due immediately. The write of the change returns it. Workers send it
themselves. Requests leave it to the next run of the sweep, which is at most a minute away, because sending would make
their response wait for two more calls.
"""

from typing import Literal, get_args

from controlplane.platform.core import clock, ids
from controlplane.platform.core.ids import EventId
from controlplane.platform.queues import outbox
from controlplane.platform.queues.outbox import Entry

# The queue of `notifications`, and the kind of its message about an event.
QUEUE, KIND = "notifications", "organization-event"
# A transaction has at most 100 legs, and a change of one finding takes up to two of them.
MOST_SUBJECTS = 25

# Events that webhooks can subscribe to, in the order of the documentation.
WebhookEvent = Literal[
    "finding.opened",
    "finding.resolved",
    "scan.completed",
    "audit.completed",
    "key.created",
    "key.leaked",
    "member.joined",
    "credits.low",
]
WEBHOOK_EVENTS: tuple[WebhookEvent, ...] = get_args(WebhookEvent)
# An endpoint was disabled because its deliveries failed for a day. Only emails tell about it.
EventName = Literal[WebhookEvent, "webhook.disabled"]


def entry(organization_id: str, event: EventName, *subjects: str) -> Entry:
    """Returns the message of a new event about these items, at most 25. Add its leg to the items' transaction."""
    message = {
        "kind": KIND,
        "version": 1,
        "eventId": EventId.of(organization_id, ids.new_local()),
        "event": event,
        "at": clock.timestamp(),
        "subjects": list(subjects),
    }
    return outbox.new_entry(QUEUE, message, after_seconds=0)
