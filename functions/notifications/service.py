"""The rules of `notifications`: who is told about an event, and when.

A message may be delivered more than once. Each consumer recognizes an event that it has handled by its id.
"""

from collections.abc import Callable
from typing import Any

from controlplane.queues.messages import DeliverWebhook, Message, OrganizationEvent
from notifications import mail_events, mail_invitations, mail_leaks, mail_notices, mail_reports, webhooks
from notifications.mail_messages import MailReport, NotifyMembers, SendInvitation, SendLeakNotice, SendNotification

# Each is called with every event. If one fails, the message is redelivered to all of them.
CONSUMERS: tuple[Callable[[OrganizationEvent], None], ...] = (webhooks.fan_out, mail_events.fan_out)

_PROCESSORS: dict[type, Callable[[Any], None]] = {
    DeliverWebhook: webhooks.deliver,
    SendInvitation: mail_invitations.send_invitation,
    NotifyMembers: mail_events.notify_members,
    SendNotification: mail_notices.send_notification,
    SendLeakNotice: mail_leaks.send_leak_notice,
    MailReport: mail_reports.record,
}


def process(message: Message) -> None:
    """Tells each consumer about an event, or does what another message asks for.

    Raises Postponed, Delayed, Rejected.
    """
    if isinstance(message, OrganizationEvent):
        for tell in CONSUMERS:
            tell(message)
    else:
        _PROCESSORS[type(message)](message)
