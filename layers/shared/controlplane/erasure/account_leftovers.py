"""Cleanup of what a deleted account leaves, step by step, like that of other deletions in `leftovers`.

The deletion's transaction has removed the account with its memberships and identities, and the request that made it has
erased the credentials. So these steps find what a crash left, what concurrent requests have just written, and what
grants no access.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from controlplane.feedback import store as feedback
from controlplane.notify import mail_addresses, mail_choices, mails
from controlplane.organizations import invitees, members
from controlplane.organizations import store as organizations
from controlplane.people import credential_index, identities, revocations
from controlplane.platform.core import acting
from controlplane.platform.core.acting import Actor
from controlplane.platform.table import keys
from controlplane.platform.table.table import table

_PAGE = 25


class FormerAccount(NamedTuple):
    """A deleted account. `address`: None while everything is removed again, for late writers."""

    user_id: str
    address: str | None


type Step = Callable[[FormerAccount, str | None], str | None]


def erase_credentials(account: FormerAccount, after: str | None) -> str | None:
    """Erases a page of the credentials."""
    page = credential_index.list_credentials(account.user_id, _PAGE, after)
    revocations.erase_all(page.items)
    return page.next_sk


def end_memberships(account: FormerAccount, after: str | None) -> str | None:
    """Ends memberships that began while the account was deleted, on behalf of the person."""
    del after
    with acting.on_behalf(Actor("person", account.user_id, "page")):
        for held in organizations.get_account(account.user_id).memberships:
            with suppress(members.UnknownMember):
                members.remove_member(held.organization_id, account.user_id)
    return None


def remove_identities(account: FormerAccount, after: str | None) -> str | None:
    """Deletes the identities, so that none leads to the account."""
    del after
    identities.delete_all(account.user_id)
    return None


def remove_reports(account: FormerAccount, after: str | None) -> str | None:
    """Deletes a page of the person's feedback."""
    return feedback.delete_reports_of(account.user_id, after)


def remove_choices(account: FormerAccount, after: str | None) -> str | None:
    """Deletes the organizations that the person blocked, the emails to the person, and the choice of emails."""
    del after
    invitees.forget_blocks(account.user_id)
    mails.forget(account.user_id)
    mail_choices.forget(account.user_id)
    return None


def release_address(account: FormerAccount, after: str | None) -> str | None:
    """Declines the invitations to the address, on behalf of the person, and deletes everything stored about it.

    Does nothing if another account has the address by now.
    """
    del after
    if account.address is None or table.get(keys.user_email(account.address)) is not None:
        return None
    with acting.on_behalf(Actor("person", account.user_id, "page")):
        invitees.decline_all(account.address)
    invitees.forget_address(account.address)
    mail_addresses.forget(account.address)
    return None


STEPS: tuple[Step, ...] = (
    erase_credentials,
    end_memberships,
    remove_identities,
    remove_reports,
    remove_choices,
    release_address,
)
