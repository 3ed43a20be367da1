"""Wiring of `notifications`, the worker of its queue."""

from typing import Annotated

from pydantic import Field, TypeAdapter

from controlplane.notify.mail_messages import SendLeakNotice
from controlplane.platform.queues.messages import DeliverWebhook, OrganizationEvent, Queue
from controlplane.platform.queues.worker import create_worker
from notifications.service import process

type Accepted = DeliverWebhook | OrganizationEvent | SendLeakNotice

ACCEPTED: TypeAdapter[Accepted] = TypeAdapter(Annotated[Accepted, Field(discriminator="kind")])

handler = create_worker(Queue.NOTIFICATIONS, ACCEPTED, process)
