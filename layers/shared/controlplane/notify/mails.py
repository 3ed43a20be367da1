"""Emails that are being sent or were sent: an item for each, so that a repeated message doesn't send it again.

A worker claims an email in a transaction, sends it, and records that it was sent. If the outcome is unknown, the claim
holds for two minutes, in which SES's report usually settles it. After that, the email is sent again. So an email is
never lost, and arrives twice only if SES accepts it and neither its response nor its report comes in that time.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple, Self

from controlplane.platform.core import clock
from controlplane.platform.core.naming import normalize_email
from controlplane.platform.table import keys
from controlplane.platform.table.legs import set_expression
from controlplane.platform.table.stored import Derived, StoredMap
from controlplane.platform.table.table import ConditionFailed, Leg, LegFailed, StoreError, Unrecorded, Update, table

# How long an email of unknown outcome isn't sent again.
UNSETTLED_SECONDS = 120
# Reports of spam, and uses of the link in an email, come late.
_KEPT_SECONDS = 90 * 86_400

State = Literal["sending", "sent", "failed"]


class MailId(NamedTuple):
    """An email's location: the person or invitation that it goes to, and its subject, as a digest."""

    recipient_id: str
    local: str

    def __str__(self) -> str:
        return f"{self.recipient_id}-{self.local}"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        recipient_id, mark, local = text.partition("-")
        return cls(recipient_id, local) if mark and recipient_id and local else None

    @property
    def key(self) -> keys.Key:
        return keys.mail(*self)


@dataclass(frozen=True, slots=True, kw_only=True)
class MailItem(StoredMap):
    """An email. address: whom it went to. about: its kind. until: when it may be sent again, while it is `sending`."""

    mail_id: Annotated[MailId, Derived(lambda item: MailId(item["pk"].partition("#")[2], item["sk"]))]
    address: str
    about: str
    organization_id: str
    state: State
    until: int


class AlreadySent(StoreError):
    """The email was sent."""


class Unsettled(StoreError):
    """The email may have been sent, or another worker is sending it. Try again after `seconds`."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds


class NotClaimed(StoreError):
    """A condition of the email wasn't true anymore: the leg of that name failed. Nothing was written."""

    def __init__(self, leg: str) -> None:
        self.leg = leg


def claim(mail_id: MailId, address: str, about: str, organization_id: str, legs: Mapping[str, Leg]) -> None:
    """Claims the email, if no other worker has and all of the legs hold at commit.

    Raises AlreadySent, Unsettled, NotClaimed.
    """
    now = int(clock.now())
    changed = {
        "address": normalize_email(address),
        "about": about,
        "organizationId": organization_id,
        "state": "sending",
        "until": now + UNSETTLED_SECONDS,
        "at": clock.timestamp(),
        "expiresAt": now + _KEPT_SECONDS,
    }
    when = "attribute_not_exists(pk) OR #state = :failed OR (#state = :state AND #until <= :now)"
    mail = Update(mail_id.key, set_expression(changed), when, {**changed, "failed": "failed", "now": now})
    try:
        table.transact({"mail": mail, **legs}, Unrecorded.MESSAGE)
    except LegFailed as failure:
        stored = failure.items.get("mail")
        if stored is None:
            raise NotClaimed(failure.leg) from None
        if stored["state"] == "sent":
            raise AlreadySent from None
        raise Unsettled(stored["until"] - now) from None


def settle(mail_id: MailId, state: State) -> None:
    """Records the outcome of an email that is being sent. Does nothing if that is known, or the email is unknown."""
    change, when = "SET #state = :state", "#state = :sending"
    with suppress(ConditionFailed):
        table.update(Update(mail_id.key, change, when, {"state": state, "sending": "sending"}), Unrecorded.MESSAGE)


def find_mail(mail_id: MailId) -> MailItem | None:
    """Returns the email, or None if it was sent more than 90 days ago, or never."""
    return table.find(mail_id.key, MailItem.from_item)
