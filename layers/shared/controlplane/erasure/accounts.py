"""How an account is deleted: by its person on the pages, or by the operator.

A person's own deletion is one transaction, and the sweep removes the rest, step by step as in `leftovers`: what a crash
left, what concurrent requests have just written, and what grants no access. The operator's is made of steps that can
be repeated, because it also searches the whole table.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from controlplane.erasure import deletions
from controlplane.erasure.deletions import LastOwnerOf
from controlplane.feedback import store as feedback
from controlplane.notify import mails, subscriptions
from controlplane.organizations import invitees, members
from controlplane.organizations import store as organizations
from controlplane.organizations.items import OrganizationItem
from controlplane.organizations.members import LastOwner
from controlplane.organizations.store import Account, Membership
from controlplane.people import credential_index, identities, revocations
from controlplane.people.identities import Listing
from controlplane.people.revocations import StoredCredential
from controlplane.platform.core import acting
from controlplane.platform.core.acting import Actor
from controlplane.platform.core.observability import logger
from controlplane.platform.table import keys
from controlplane.platform.table.parallel import read_both, read_each
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.table import table

_PAGE = 25
_PAGE = 25


def delete_own_account(account: Account, user_id: str) -> None:
    """Deletes the person's account on their own request. Raises LastOwnerOf before any change; Throttled.

    Access has ended when it returns: the account, its memberships, and its identities are deleted in one transaction,
    and every credential right after it, also one that was created at the same time. The rest that keys find (feedback,
    blocks, emails, and invitations to the person) is removed in the background, which also ends what a crash left. The
    words that the person left in records of organizations take a search of the whole table: `assent-ops user delete`
    with the ID erases those, too.
    """
    known: Account | None = account

    def delete() -> list[StoredCredential]:
        nonlocal known
        current, known = known or organizations.get_account(user_id), None
        (last, listings), entries = read_both(
            lambda: read_both(lambda: list_last_owned(current.memberships), lambda: identities.list_listings(user_id)),
            lambda: credential_index.list_all_credentials(user_id),
        )
        if last:
            # A concurrent run may have ended the memberships before the owners were counted.
            if organizations.get_account(user_id).memberships != current.memberships:
                raise WriteConflict
            raise LastOwnerOf(last)
        _, credentials = read_both(
            lambda: _delete_account(current, user_id, listings), lambda: revocations.find_stored(entries)
        )
        return credentials

    _end_access(user_id, retry_on_conflict(delete, "the account"))
    logger.info("account deleted", extra={"userId": user_id})


def _delete_account(account: Account, user_id: str, listings: list[Listing]) -> None:
    """Deletes the account in one transaction, after all memberships that don't fit into it."""
    if account.profile is None:
        return  # a concurrent run was faster
    held = sorted(account.memberships, key=lambda it: it.role != "owner")
    kept, others = held[: deletions.MEMBERSHIPS_OF_ACCOUNT], held[deletions.MEMBERSHIPS_OF_ACCOUNT :]
    read_each(partial(_leave, user_id), others)
    deletions.delete_account(account.profile, kept, listings)


def _leave(user_id: str, membership: Membership) -> None:
    """Ends a membership. Raises LastOwnerOf."""
    try:
        members.remove_member(membership.organization_id, user_id)
    except members.UnknownMember:
        return  # a concurrent run was faster
    except LastOwner:
        raise LastOwnerOf([membership.slug]) from None


def _end_access(user_id: str, credentials: list[StoredCredential]) -> None:
    """Erases a deleted account's credentials, and the ones and the memberships that concurrent requests create."""
    (entries, account), _ = read_both(
        lambda: read_both(
            lambda: credential_index.list_all_credentials(user_id), lambda: organizations.get_account(user_id)
        ),
        lambda: read_each(revocations.erase, credentials),
    )
    erased = {credential.entry.local for credential in credentials}
    revocations.erase_all(entry for entry in entries if entry.local not in erased)
    for membership in account.memberships:
        _leave(user_id, membership)


def list_last_owned(memberships: Iterable[Membership]) -> list[str]:
    """Returns the slugs of the organizations without another owner, sorted."""
    owned = [it for it in memberships if it.role == "owner"]
    items = table.batch_get([keys.organization(membership.organization_id) for membership in owned]) if owned else []
    found = [OrganizationItem.from_item(item) for item in items if item is not None]
    return sorted(organization.slug for organization in found if organization.owners < 2)


class FormerAccount(NamedTuple):
    """A deleted account. `address`: None while everything is removed again, for late writers."""

    user_id: str
    address: str | None


type Step = Callable[[FormerAccount, str | None], str | None]


def erase_credentials(account: FormerAccount, after: str | None) -> str | None:
    """Erases a page of the credentials."""
    page = credential_index.list_credentials(account.user_id, _PAGE, after)
    revocations.erase_all(page.credentials)
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
    subscriptions.forget_choices(account.user_id)
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
    subscriptions.forget_address(account.address)
    return None


STEPS: tuple[Step, ...] = (
    erase_credentials,
    end_memberships,
    remove_identities,
    remove_reports,
    remove_choices,
    release_address,
)
