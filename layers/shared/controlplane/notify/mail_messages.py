"""Messages of `emails`. They contain IDs, never an address: the worker reads it from the table when it sends."""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from controlplane.notify.mail_choices import Choice
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import Message, OrganizationEvent, Queue, send
from controlplane.platform.queues.outbox import Entry

_ORGANIZATION = r"^org_[0-9a-hjkmnp-tv-z]{16}$"
_USER = r"^usr_[0-9a-hjkmnp-tv-z]{16}$"
_INVITATION = r"^inv_[0-9a-hjkmnp-tv-z]{34}$"
# A window of time, a day, or the ID of an event.
_SUBJECT = r"^[0-9a-z_-]{1,64}$"


class SendInvitation(Message):
    """Send the email of an invitation. number: how often it was sent before. `organizations.resends` writes the
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


def later(message: Message, seconds: int) -> Entry:
    """Returns the entry of a message that the sweep sends after this time."""
    return messages.entry(Queue.EMAILS, message, seconds)
