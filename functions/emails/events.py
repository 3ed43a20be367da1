"""Which members get an email about an event, and when. Each of them gets a message of its own."""

import zlib
from datetime import UTC, datetime, timedelta

from controlplane.findings import inbox
from controlplane.notify import mail_messages, subscriptions
from controlplane.notify.mail_messages import NotifyMembers, SendNotification, post
from controlplane.notify.subscriptions import FOR_ADMINS, Choice
from controlplane.organizations import members
from controlplane.platform.core import clock
from controlplane.platform.core.ids import EventId, InboxItemId
from controlplane.platform.queues.messages import OrganizationEvent
from controlplane.platform.table import keys

# Members per message. Another message continues after them.
_PAGE = 50
_MONDAY_HOUR = 8
# Digests are spread over this time, because all are due on Monday morning.
_SPREAD_SECONDS = 2 * 3600
# The subject of an event's email, for events that get one at once.
_TOLD_AT_ONCE: dict[str, Choice] = {"credits.low": "credits", "webhook.disabled": "webhook", "key.leaked": "key"}
# Events that make a week worth a digest.
_ACTIVITY = {"finding.opened", "finding.resolved", "scan.completed"}


def fan_out(event: OrganizationEvent) -> None:
    """Leaves the emails about an event to later messages. Can be repeated: each email has an ID of its own."""
    event_id = EventId.stored(event.event_id)
    organization_id = event_id.organization_id
    if event.event == "finding.opened":
        _add_findings(event_id, event.subjects)
    elif about := _TOLD_AT_ONCE.get(event.event):
        subject = event.subjects[0] if about == "key" else event_id.local
        post(NotifyMembers(organization_id=organization_id, about=about, subject=subject))
    if event.event in _ACTIVITY:
        _schedule_digest(organization_id)


def notify_members(message: NotifyMembers) -> None:
    """Sends a message for each member who wants the email, for up to 50 members, and one for those after them."""
    organization_id, about = message.organization_id, message.about
    after = keys.member(organization_id, message.after).sk if message.after else None
    page = members.list_members(organization_id, _PAGE, after, consistent=True)
    asked = [it.user_id for it in page.items if about not in FOR_ADMINS or it.role in {"admin", "owner"}]
    for user_id in subscriptions.find_receivers(organization_id, asked, about):
        post(SendNotification(organization_id=organization_id, about=about, subject=message.subject, user_id=user_id))
    if page.next_sk is not None:
        post(message.model_copy(update={"after": page.items[-1].user_id}))


def _add_findings(event_id: EventId, subjects: tuple[str, ...]) -> None:
    found = inbox.find_items(map(InboxItemId.stored, subjects))
    urgent = [it.item_id for it in found.values() if it.priority == "P0" and it.status == "open"]
    if urgent:
        mail_messages.add_findings(event_id.organization_id, event_id, urgent)


def _schedule_digest(organization_id: str) -> None:
    now = datetime.fromtimestamp(clock.now(), UTC)
    spread = timedelta(seconds=zlib.crc32(organization_id.encode()) % _SPREAD_SECONDS)
    monday = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=7 - now.weekday())
    due = monday + timedelta(hours=_MONDAY_HOUR) + spread
    mail_messages.schedule_digest(organization_id, f"{monday:%Y-%m-%d}", int((due - now).total_seconds()))
