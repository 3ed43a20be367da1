"""The links in emails with which a person stops further ones, without signing in.

A link names what it stops, with a MAC of the signing secret, so it works until that key is gone. It has no address.
"""

from typing import NamedTuple

from controlplane.notify import mail_addresses, mail_choices, mails
from controlplane.notify.mail_choices import CHOICES, Choice
from controlplane.notify.mails import MailId
from controlplane.platform.core import ids, keyring
from controlplane.platform.core.errors import InvalidPayload, NotFound
from controlplane.platform.core.urls import dashboard_base_url
from controlplane.platform.table import keys
from controlplane.platform.table.table import table

_BINDING = ("unsubscribe",)


class UnknownLink(NotFound):
    title = "This link can't be used"
    message = (
        "The link is incomplete or too old. Copy all of it, or sign in and choose your emails under Notifications."
    )


class Subscription(NamedTuple):
    """The subject of a link: emails of a kind about an organization, or else all emails to an invited address."""

    user_id: str | None
    organization_id: str | None
    choice: Choice | None
    mail_id: MailId | None = None


def link_of_choice(user_id: str, organization_id: str, choice: Choice) -> str:
    """Returns the link that stops emails of this kind about the organization."""
    return _link(f"{user_id}:{organization_id}:{choice}")


def link_of_mail(mail_id: MailId) -> str:
    """Returns the link that stops all emails to the address of this email."""
    return _link(str(mail_id))


def read_link(token: str) -> Subscription:
    """Returns the subscription that the link ends. Raises UnknownLink."""
    try:
        text = keyring.open_cursor(_BINDING, token)
    except InvalidPayload:
        raise UnknownLink from None
    parts = text.split(":")
    if len(parts) == 3 and parts[2] in CHOICES and ids.is_root(ids.USER, parts[0]):
        return Subscription(parts[0], parts[1], parts[2])
    mail_id = MailId.parse(text)
    if mail_id is None:
        raise UnknownLink
    return Subscription(None, None, None, mail_id)


def unsubscribe(token: str, *, everything: bool) -> Subscription:
    """Stops the link's subscription or, if `everything`, all emails to the person's address. Raises UnknownLink."""
    subscription = read_link(token)
    user_id, organization_id, choice = subscription.user_id, subscription.organization_id, subscription.choice
    if user_id is not None and organization_id is not None and choice is not None and not everything:
        mail_choices.turn_off(user_id, organization_id, choice)
        return subscription
    address = _find_address(subscription)
    if address is not None:
        mail_addresses.stop(address, "stopped")
    elif subscription.mail_id is not None:
        raise UnknownLink
    return subscription


def _find_address(subscription: Subscription) -> str | None:
    """Returns the address that the link's email went to, or None if its account or its record is gone."""
    if subscription.mail_id is not None:
        mail = mails.find_mail(subscription.mail_id)
        return mail.address if mail else None
    profile = table.get(keys.user(subscription.user_id or ""))
    return str(profile["email"]) if profile else None


def _link(text: str) -> str:
    return f"{dashboard_base_url()}/account/unsubscribe/{keyring.seal_cursor(_BINDING, text)}"
