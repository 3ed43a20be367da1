"""The rules of `notifications`: who is told about an event.

A message may be delivered more than once. Each consumer recognizes an event that it has handled by its id.
"""

from controlplane.notify import mail_messages
from controlplane.platform.core.settings import settings
from controlplane.platform.queues.messages import DeliverWebhook, Message, OrganizationEvent
from notifications import webhooks


def process(message: Message) -> None:
    """Makes the attempt at a delivery, or tells the webhooks and `emails` about an event.

    Raises Postponed and Delayed. If a part of it fails, the message is redelivered to all.
    """
    if isinstance(message, DeliverWebhook):
        webhooks.deliver(message)
        return
    if isinstance(message, OrganizationEvent):
        webhooks.fan_out(message)
    # An event, or a token that was found in public. Without a sender, the queue of `emails` isn't read.
    if settings.email_sender is not None:
        mail_messages.post(message)
