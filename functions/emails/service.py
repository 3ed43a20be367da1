"""The rules of `emails`: the handling of each message, which may be delivered more than once."""

from collections.abc import Callable
from typing import Any

from controlplane.notify.mail_messages import (
    MailReport,
    NotifyMembers,
    SendInvitation,
    SendLeakNotice,
    SendNotification,
)
from controlplane.platform.queues.messages import Message, OrganizationEvent
from emails import events, invitations, notices, reports

_PROCESSORS: dict[type, Callable[[Any], None]] = {
    OrganizationEvent: events.fan_out,
    SendInvitation: invitations.send_invitation,
    NotifyMembers: events.notify_members,
    SendNotification: notices.send_notification,
    SendLeakNotice: notices.send_leak_notice,
    MailReport: reports.record,
}


def process(message: Message) -> None:
    """Handles the message. Raises Postponed, Delayed, Rejected."""
    _PROCESSORS[type(message)](message)
