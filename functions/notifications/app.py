"""Wiring of `notifications`, the worker of its queue."""

from typing import Annotated

from pydantic import Field, TypeAdapter

from controlplane.queues.messages import DeliverWebhook, OrganizationEvent, Queue
from controlplane.queues.worker import create_worker
from notifications.mail_messages import MailReport, NotifyMembers, SendInvitation, SendLeakNotice, SendNotification
from notifications.service import process

type Accepted = (
    OrganizationEvent | DeliverWebhook | SendInvitation | NotifyMembers | SendNotification | SendLeakNotice | MailReport
)

ACCEPTED: TypeAdapter[Accepted] = TypeAdapter(
    Annotated[
        OrganizationEvent
        | DeliverWebhook
        | SendInvitation
        | NotifyMembers
        | SendNotification
        | SendLeakNotice
        | MailReport,
        Field(discriminator="kind"),
    ]
)

handler = create_worker(Queue.NOTIFICATIONS, ACCEPTED, process)
