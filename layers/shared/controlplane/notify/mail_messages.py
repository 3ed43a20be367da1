"""Messages of `emails`. They contain IDs, never an address: the worker reads it from the table when it sends.

Two emails to an organization's members are due later: new P0 findings of a few minutes, and the weekly digest. The
message that sends one is an outbox entry with a time, written in the transaction of its subject.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, TypeAdapter

from controlplane.notify.subscriptions import Choice
from controlplane.platform.core import clock
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import Message, OrganizationEvent, Queue, send
from controlplane.platform.table import keys
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.table import Leg, LegFailed, Put, Unrecorded, Update, table

_ORGANIZATION = r"^org_[0-9a-hjkmnp-tv-z]{16}$"
_USER = r"^usr_[0-9a-hjkmnp-tv-z]{16}$"
_INVITATION = r"^inv_[0-9a-hjkmnp-tv-z]{34}$"
# A window of time, a day, or the ID of an event.
_SUBJECT = r"^[0-9a-z_-]{1,64}$"
# Findings of this time go into one email.
WINDOW_SECONDS = 300
# Events of the window may still be in progress when it ends: a worker takes at most 30 seconds.
_MARGIN_SECONDS = 60
# The email names this many findings and gives the number of all.
_MOST_ITEMS = 20
# An event is redelivered for at most this long.
_KEPT_SECONDS = 15 * 86_400


class SendInvitation(Message):
    """Send the email of an invitation. number: how often it was sent before. `organizations.sending` writes the
    message."""

    kind: Literal["send-invitation"] = "send-invitation"
    invitation_id: str = Field(pattern=_INVITATION)
    number: int = Field(ge=0)


class NotifyMembers(Message):
    """Send an email to the members who want it. after: the user after whom to continue."""

    kind: Literal["notify-members"] = "notify-members"
    organization_id: str = Field(pattern=_ORGANIZATION)
    about: Choice
    subject: str = Field(pattern=_SUBJECT)
    after: str | None = Field(None, pattern=_USER)


class SendNotification(Message):
    """Send the email to one member."""

    kind: Literal["send-notification"] = "send-notification"
    organization_id: str = Field(pattern=_ORGANIZATION)
    about: Choice
    subject: str = Field(pattern=_SUBJECT)
    user_id: str = Field(pattern=_USER)


class SendLeakNotice(Message):
    """Tell a person that a token was found in public. `api_keys.leaked` writes the message."""

    kind: Literal["send-leak-notice"] = "send-leak-notice"
    user_id: str = Field(pattern=_USER)
    leak: str = Field(pattern=_SUBJECT)


class MailReport(Message):
    """SES reports the outcome of an email. The template's rules make the message from SES's event."""

    kind: Literal["mail-report"] = "mail-report"
    event: Literal["sent", "bounced", "complained"]
    # The values of the email's tag: always one.
    mail: tuple[str, ...] = Field(max_length=5)
    bounce_type: str = ""


EmailMessage = OrganizationEvent | SendInvitation | NotifyMembers | SendNotification | SendLeakNotice | MailReport

EMAIL_MESSAGES: TypeAdapter[EmailMessage] = TypeAdapter(Annotated[EmailMessage, Field(discriminator="kind")])


def post(message: Message) -> None:
    """Sends the message to `emails`. Raises Unreachable."""
    send(Queue.EMAILS, message.model_dump(by_alias=True))


class Batch(NamedTuple):
    """The findings of one email: how many there are, and the IDs of the first."""

    size: int
    item_ids: list[str]


def add_findings(organization_id: str, event_id: str, added: Sequence[str]) -> None:
    """Adds the findings of an event to the email of this window, once."""
    window = str(int(clock.now() // WINDOW_SECONDS))
    key = keys.mail_batch(organization_id, window)
    expires_at = int(clock.now()) + _KEPT_SECONDS
    seen_event = Put(
        {**keys.mail_event(organization_id, event_id)._asdict(), "expiresAt": expires_at}, "attribute_not_exists(pk)"
    )

    def add() -> None:
        batch = find_batch(organization_id, window)
        items = [*(batch.item_ids if batch else []), *added][:_MOST_ITEMS]
        values: dict[str, Any] = {"items": items, "count": (batch.size if batch else 0) + len(added)}
        legs: dict[str, Leg] = {"event": seen_event}
        if batch is None:
            ends_in = int((int(window) + 1) * WINDOW_SECONDS - clock.now())
            legs["batch"] = Put({**key._asdict(), **values, "expiresAt": expires_at}, "attribute_not_exists(pk)")
            notify = NotifyMembers(organization_id=organization_id, about="finding", subject=window)
            legs["message"] = messages.entry(Queue.EMAILS, notify, ends_in + _MARGIN_SECONDS).leg
        else:
            unchanged = {**values, "seen": batch.size}
            legs["batch"] = Update(key, "SET #items = :items, #count = :count", "#count = :seen", unchanged)
        try:
            table.transact(legs, Unrecorded.MESSAGE)
        except LegFailed as failure:
            if failure.leg != "event":
                raise WriteConflict from None

    retry_on_conflict(add, "the email of new findings")


def find_batch(organization_id: str, window: str) -> Batch | None:
    """Returns the findings of the window's email."""
    item = table.get(keys.mail_batch(organization_id, window))
    return Batch(item["count"], item["items"]) if item else None


def schedule_digest(organization_id: str, day: str, seconds: int) -> None:
    """Schedules the day's digest, once. The sweep sends its message after that many seconds."""
    key = keys.digest(organization_id, day)
    if table.get(key) is not None:
        return
    marker = {**key._asdict(), "expiresAt": int(clock.now()) + _KEPT_SECONDS}
    notify = NotifyMembers(organization_id=organization_id, about="digest", subject=day)
    message = messages.entry(Queue.EMAILS, notify, seconds)
    try:
        table.transact({"digest": Put(marker, "attribute_not_exists(pk)"), "message": message.leg}, Unrecorded.MESSAGE)
    except LegFailed as failure:
        if failure.leg != "digest":
            raise
