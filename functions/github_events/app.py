"""Wiring of `github_events`, the worker of its queue."""

from pydantic import TypeAdapter

from controlplane.queues.messages import HostEvent, Queue
from controlplane.queues.worker import create_worker
from github_events.service import process_event

handler = create_worker(Queue.GITHUB_EVENTS, TypeAdapter(HostEvent), process_event)
