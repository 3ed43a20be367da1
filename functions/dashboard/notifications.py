"""Business rules of the page on which a person chooses emails."""

from collections.abc import Mapping
from typing import NamedTuple

from controlplane.notify import mail_addresses, mail_choices
from controlplane.notify.mail_addresses import Stop
from controlplane.notify.mail_choices import CHOICES, FOR_ADMINS, Choice
from controlplane.organizations.defaults import NotMember
from controlplane.organizations.store import Account, Membership
from controlplane.platform.core.naming import normalize_email
from controlplane.platform.core.roles import RANK
from controlplane.platform.table.parallel import read_both
from dashboard.organizations import get_profile


class OrganizationChoices(NamedTuple):
    """An organization, the kinds of emails that the person's role gets, and which of them are on."""

    organization: Membership
    offered: list[Choice]
    on: set[Choice]


class Notifications(NamedTuple):
    """A person's account, why their address gets no emails (None: it does), and their choices by organization."""

    account: Account
    stop: Stop | None
    choices: list[OrganizationChoices]


def get_notifications(account: Account) -> Notifications:
    """Reads the person's email choices, and why their address gets no emails."""
    profile = get_profile(account)
    held = sorted(account.memberships, key=lambda membership: membership.name.lower())
    found, stops = read_both(
        lambda: mail_choices.find_choices(profile.user_id, [it.organization_id for it in held]),
        lambda: mail_addresses.find_stops([profile.email]),
    )
    choices = [OrganizationChoices(it, offered_to(it), found[it.organization_id]) for it in held]
    return Notifications(account, stops.get(normalize_email(profile.email)), choices)


def offered_to(membership: Membership) -> list[Choice]:
    """Returns the kinds of emails that a member with this role gets."""
    return [it for it in CHOICES if it not in FOR_ADMINS or RANK[membership.role] >= RANK["admin"]]


def save(account: Account, form: Mapping[str, str]) -> None:
    """Stores the choices of the form for its organization. Raises NotMember."""
    organization_id = form.get("organization_id", "")
    membership = next((it for it in account.memberships if it.organization_id == organization_id), None)
    if membership is None:
        raise NotMember
    offered = offered_to(membership)
    # Hidden choices keep their default, in case the role changes.
    on = [it for it in CHOICES if it not in offered or form.get(it) == "on"]
    mail_choices.save_choices(get_profile(account).user_id, {organization_id: on})


def resume(account: Account) -> None:
    """Lets the person's address receive emails again."""
    mail_addresses.resume(get_profile(account).email)
