"""Wiring of `issue_creation`, the worker of its queue."""

from pydantic import TypeAdapter

from controlplane.platform.core.ids import InboxItemId
from controlplane.platform.queues.messages import CreateIssue, Queue
from controlplane.platform.queues.worker import create_worker
from issue_creation.service import settle_attempt

handler = create_worker(
    Queue.ISSUE_CREATION,
    TypeAdapter(CreateIssue),
    lambda message: settle_attempt(InboxItemId.stored(message.item_id)),
)
