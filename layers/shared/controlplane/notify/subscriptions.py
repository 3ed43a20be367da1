"""The emails that people want, and those that must not be sent.

A person chooses kinds of emails for each of their organizations; a missing choice is on. An address receives no emails
if it doesn't exist, or if its owner reported an email or asked for no more. The links in emails stop further ones
without signing in: a link names what it stops, with a MAC of the signing secret, so it works until that key is gone.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, get_args

from controlplane.notify import mails
from controlplane.notify.mails import MailId
from controlplane.people import users
from controlplane.platform.core import clock, ids, keyring
from controlplane.platform.core.errors import InvalidPayload, NotFound, known
from controlplane.platform.core.naming import normalize_email
from controlplane.platform.core.urls import dashboard_base_url
from controlplane.platform.table import keys
from controlplane.platform.table.legs import set_expression
from controlplane.platform.table.table import Check, Delete, Leg, LegFailed, Put, Unrecorded, Update, table

StopReason = Literal["returned", "complained", "stopped"]

# A counter of a day is needed until the day is over everywhere.
_COUNT_SECONDS = 2 * 86_400
# New findings of priority P0, a finding that is assigned to the person or a comment that mentions them, low credits, a
# disabled webhook, a leaked API key, and the weekly digest.
Choice = Literal["finding", "mention", "credits", "webhook", "key", "digest"]
CHOICES: tuple[Choice, ...] = get_args(Choice)
# Only admins and owners get these, because only they can act on them.
FOR_ADMINS: frozenset[Choice] = frozenset({"credits", "webhook", "key"})

# Emails about assignments and mentions to an address on a day.
_MENTIONS_PER_DAY = 50
# Two legs fewer than a transaction takes.
_AT_ONCE = 98
_BINDING = ("unsubscribe",)


class Stop(NamedTuple):
    """Why and since when an address receives no emails."""

    reason: StopReason
    at: str


def find_stops(emails: Iterable[str]) -> dict[str, Stop]:
    """Returns the addresses among these that receive no emails, normalized. Consistent, and one round trip per 100."""
    wanted = list(dict.fromkeys(map(normalize_email, emails)))
    found = table.batch_get([keys.mail_stop(address) for address in wanted]) if wanted else []
    return {
        address: Stop(item["reason"], item["at"])
        for address, item in zip(wanted, found, strict=True)
        if item is not None
    }


def stop(email: str, reason: StopReason) -> None:
    """Stops all further emails to the address."""
    key = keys.mail_stop(normalize_email(email))
    table.put(Put({**key._asdict(), "reason": reason, "at": clock.timestamp()}), Unrecorded.ACCOUNT)


def resume(email: str) -> None:
    """Lets the address receive emails again."""
    table.delete(Delete(keys.mail_stop(normalize_email(email))), Unrecorded.ACCOUNT)


def open_check(email: str) -> Check:
    """Returns a leg that checks, at commit, that emails to the address aren't stopped."""
    return Check(keys.mail_stop(normalize_email(email)), "attribute_not_exists(pk)")


def count_invitation(
    organization_id: str, email: str, most_of_organization: int, most_to_address: int
) -> dict[str, Update]:
    """Returns the legs that count an invitation's email. They fail if there were enough today."""
    day = clock.timestamp()[:10]
    return {
        "organizationDay": _count("invitations", keys.mail_day(organization_id, day), most_of_organization),
        "addressDay": _count("invitations", keys.mail_day_of_address(normalize_email(email), day), most_to_address),
    }


def count_mention(email: str) -> Update:
    """Returns the leg that counts an email about an assignment or a mention. It fails if there were enough today."""
    key = keys.mail_day_of_address(normalize_email(email), clock.timestamp()[:10])
    return _count("mentions", key, _MENTIONS_PER_DAY)


def _count(counter: str, key: keys.Key, most: int) -> Update:
    return Update(
        key,
        f"SET #expiresAt = :until ADD #{counter} :one",
        f"attribute_not_exists(#{counter}) OR #{counter} < :most",
        {"until": int(clock.now()) + _COUNT_SECONDS, "one": 1, "most": most},
    )


# The kinds that are on, by organization.
type Chosen = Mapping[str, Iterable[Choice]]


def find_choices(user_id: str, organization_ids: Iterable[str]) -> dict[str, set[Choice]]:
    """Returns the kinds that are on for the person, by organization. Consistent."""
    wanted = list(organization_ids)
    found = table.batch_get([keys.mail_choice(user_id, it) for it in wanted]) if wanted else []
    return {it: _read(item) for it, item in zip(wanted, found, strict=True)}


def find_receivers(organization_id: str, user_ids: list[str], choice: Choice) -> list[str]:
    """Returns those of the people who want this kind of email about the organization. Consistent."""
    found = table.batch_get([keys.mail_choice(it, organization_id) for it in user_ids]) if user_ids else []
    return [it for it, item in zip(user_ids, found, strict=True) if choice in _read(item)]


def save_choices(user_id: str, chosen: Chosen) -> None:
    """Stores the kinds that are on for each of these organizations, unless the account was deleted."""
    legs = {
        it: Update(
            keys.mail_choice(user_id, it),
            set_expression(CHOICES),
            None,
            {choice: choice in kinds for choice in CHOICES},
        )
        for it, kinds in chosen.items()
    }
    names = list(legs)
    for start in range(0, len(names), _AT_ONCE):
        _write(user_id, {name: legs[name] for name in names[start : start + _AT_ONCE]})


def turn_off(user_id: str, organization_id: str, choice: Choice) -> None:
    """Turns one kind off, unless the account was deleted. Other kinds stay as they are."""
    key = keys.mail_choice(user_id, organization_id)
    _write(user_id, {"choice": Update(key, set_expression([choice]), None, {choice: False})})


def wanted_check(user_id: str, organization_id: str, choice: Choice) -> Check:
    """Returns a leg that checks, at commit, that the person hasn't turned this kind of email off."""
    key = keys.mail_choice(user_id, organization_id)
    return Check(key, f"attribute_not_exists(#{choice}) OR #{choice} = :on", {"on": True})


def _read(item: Mapping[str, Any] | None) -> set[Choice]:
    return {choice for choice in CHOICES if item is None or item.get(choice, True)}


def _write(user_id: str, legs: Mapping[str, Leg]) -> None:
    try:
        table.transact({"account": users.exists_check(user_id), **legs}, Unrecorded.ACCOUNT)
    except LegFailed as failure:
        if failure.leg != "account":
            raise


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
    return Subscription(None, None, None, known(MailId.parse(text), UnknownLink))


def unsubscribe(token: str, *, everything: bool) -> Subscription:
    """Stops the link's subscription or, if `everything`, all emails to the person's address. Raises UnknownLink."""
    subscription = read_link(token)
    user_id, organization_id, choice = subscription.user_id, subscription.organization_id, subscription.choice
    if user_id is not None and organization_id is not None and choice is not None and not everything:
        turn_off(user_id, organization_id, choice)
        return subscription
    address = _find_address(subscription)
    if address is not None:
        stop(address, "stopped")
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
