"""Wiring of `issue_creation`, the worker of its queue."""

from pydantic import TypeAdapter

from controlplane.queues.messages import CreateIssue, Queue
from controlplane.queues.worker import create_worker
from issue_creation.service import settle_attempt

handler = create_worker(Queue.ISSUE_CREATION, TypeAdapter(CreateIssue), lambda message: settle_attempt(message.item_id))
