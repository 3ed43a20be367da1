"""Deletions of organizations and accounts: one transaction deletes the subject and writes a work item for the rest.

`cleanup` finishes a deletion in the background. `leftovers` removes the rest of a deleted account step by
step: items that a crash left, that concurrent requests have just written, or that grant no access.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from controlplane.api_keys import store as api_keys
from controlplane.feedback import store as feedback
from controlplane.organizations import invitees, members
from controlplane.organizations import store as organizations
from controlplane.organizations.items import OrganizationItem
from controlplane.organizations.members import LastOwner
from controlplane.organizations.store import Account, MemberItem, Membership, UnknownOrganization
from controlplane.people import credential_index, identities, revocations
from controlplane.people.identities import Listing
from controlplane.people.revocations import StoredCredential
from controlplane.people.users import UserItem
from controlplane.platform.core import acting
from controlplane.platform.core.acting import Actor
from controlplane.platform.core.actions import Action
from controlplane.platform.core.clock import expiry
from controlplane.platform.core.errors import RoleRequired
from controlplane.platform.core.naming import normalize_email
from controlplane.platform.core.observability import logger
from controlplane.platform.queues.deletion_items import work_item
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.parallel import read_both, read_each
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.table import Delete, Leg, LegFailed, Put, Recorded, StoreError, Unrecorded, table

# How long the slug of a deleted organization stays reserved: links to it must not lead to another organization.
SLUG_RESERVED_DAYS = 90

_PAGE = 100
# Four items each, of the 100 of a transaction; an account has few identities.
MEMBERSHIPS_OF_ACCOUNT = 20
# Together with the secrets of 50 keys, 20 of them with another one in a grace period, and 5 other legs, this stays
# within the transaction limit of 100 items.
_MEMBERS_IN_TRANSACTION = 25
# Erasing a credential takes several calls.
_CREDENTIALS_PER_PAGE = 25


class NotOwner(RoleRequired):
    """The caller isn't an owner of the organization, or is no longer one."""

    def __init__(self) -> None:
        super().__init__("owner", message="Only an owner can delete an organization. Ask one of its owners.")


def delete_organization(organization_id: str, caller_id: str | None = None) -> OrganizationItem:
    """Deletes the organization and returns its previous item. Raises UnknownOrganization, NotOwner.

    One transaction removes the organization, every key's secret, and up to 25 memberships, which authorize user
    tokens. The other memberships are removed right after it. After the transaction, nothing can be created in the
    organization, because creations check that it exists. Everything else is removed in the background. The slug stays
    reserved for SLUG_RESERVED_DAYS.

    caller_id: the user who must be an owner at commit; None for the operator.
    """

    def delete() -> OrganizationItem:
        organization = organizations.find_organization(organization_id)
        if organization is None:
            raise UnknownOrganization
        # After the organization: its version says whether the keys have changed since.
        roster, secrets = read_both(
            lambda: members.list_members(organization_id, _MEMBERS_IN_TRANSACTION, None, consistent=True),
            lambda: api_keys.key_secrets(organization_id),
        )
        record = Recorded(
            Action.ORGANIZATION_DELETE,
            organization_id,
            organization_id,
            organization.name,
            before={"name": organization.name, "slug": organization.slug, "plan": organization.plan},
        )
        try:
            table.transact(_deletion(organization, roster.items, secrets, caller_id), record)
        except LegFailed as failure:
            if failure.leg == "caller":
                raise NotOwner from None
            raise WriteConflict from None  # deleted by another call, or a key was added or removed
        if roster.next_sk is not None:
            _delete_memberships(organization_id, roster.next_sk)
        return organization

    return retry_on_conflict(delete, "the set of keys")


def _deletion(
    organization: OrganizationItem, roster: list[MemberItem], secrets: Iterable[Key], caller_id: str | None
) -> dict[str, Leg]:
    organization_id = organization.organization_id
    legs: dict[str, Leg] = {}
    if caller_id is not None:
        owns = {"owner": "owner"}
        legs["caller"] = Delete(keys.membership(caller_id, organization_id), "#role = :owner", owns)
    reserved = {
        **keys.organization_slug(organization.slug)._asdict(),
        "organizationId": organization_id,
        **expiry(SLUG_RESERVED_DAYS),
    }
    legs |= {
        # Fails if a key was added since the keys were read.
        "organization": Delete(
            keys.organization(organization_id), "#keyVersion = :seen", {"seen": organization.key_version}
        ),
        "deletion": work_item(organization_id, organization.created_at),
        "slug": Put(reserved),
    }
    for number, secret in enumerate(secrets):
        legs[f"secret{number}"] = Delete(secret)
    for member in roster:
        if member.user_id != caller_id:
            legs[member.user_id] = Delete(member.membership_key)
    return legs


def _delete_memberships(organization_id: str, after: str | None) -> None:
    """Removes the memberships of members after that roster position. The roster itself is removed in the background."""
    while after is not None:
        page = members.list_members(organization_id, _PAGE, after, consistent=True)
        if page.items:
            table.transact({member.user_id: Delete(member.membership_key) for member in page.items}, Unrecorded.CLEANUP)
        after = page.next_sk


class LastOwnerOf(StoreError):
    """The user is the last owner of these organizations, listed by slug."""

    def __init__(self, slugs: list[str]) -> None:
        super().__init__(", ".join(slugs))
        self.slugs = slugs


def delete_account(profile: UserItem, memberships: Sequence[Membership], listings: Iterable[Listing]) -> None:
    """Deletes the account with its memberships, of which it takes MEMBERSHIPS_OF_ACCOUNT, and its identities.

    One transaction, with an entry in the audit log of each organization. Everything else is removed in the background.
    Raises LastOwnerOf if an organization would be left without an owner, and WriteConflict if the account has changed
    since it was read.
    """
    user_id, values = profile.user_id, dict[str, Any](email=profile.email)
    left = [members.leaving(held, user_id) for held in memberships]
    same = "#email = :email AND attribute_not_exists(#ownerships)"
    if profile.ownerships is not None:
        same, values = "#email = :email AND #ownerships = :owned", {**values, "owned": profile.ownerships}
    address = normalize_email(profile.email)
    legs: dict[str, Leg] = {
        # Each new ownership is counted here, so no organization is left with an owner that doesn't exist.
        "profile": Delete(keys.user(user_id), same, values),
        "email": Delete(keys.user_email(address), "#userId = :user", {"user": user_id}),
        "deletion": work_item(user_id, address=address),
        **identities.erasure(user_id, listings),
        **{name: leg for legs_of_one, _ in left for name, leg in legs_of_one.items()},
    }
    try:
        table.transact(legs, tuple(record for _, record in left) or Unrecorded.ACCOUNT)
    except LegFailed as failure:
        last = [held.slug for held in memberships if failure.items.get(f"owners {held.organization_id}") is not None]
        if len(last) == len(failure.items):
            raise LastOwnerOf(sorted(last)) from None
        raise WriteConflict from None


def delete_own_account(account: Account, user_id: str) -> int:
    """Deletes the person's account on their own request. Raises LastOwnerOf before any change; Throttled.

    Returns the number of memberships that it ended.

    Access has ended when it returns: the account, its memberships, and its identities are deleted in one transaction,
    and every credential right after it, also one that was created at the same time. The rest that keys find (feedback,
    blocks, emails, and invitations to the person) is removed in the background, which also ends what a crash left. The
    words that the person left in records of organizations take a search of the whole table: `assent-ops user delete`
    with the ID erases those, too.
    """
    known: Account | None = account

    def delete() -> tuple[int, list[StoredCredential]]:
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
        return read_both(lambda: _delete_account(current, user_id, listings), lambda: revocations.find_stored(entries))

    ended, credentials = retry_on_conflict(delete, "the account")
    logger.info("account deleted", extra={"userId": user_id})
    return ended + _end_access(user_id, credentials)


def _delete_account(account: Account, user_id: str, listings: list[Listing]) -> int:
    """Deletes the account in one transaction, after all memberships that don't fit into it. Returns their number."""
    if account.profile is None:
        return 0  # a concurrent run was faster
    held = sorted(account.memberships, key=lambda it: it.role != "owner")
    kept, others = held[:MEMBERSHIPS_OF_ACCOUNT], held[MEMBERSHIPS_OF_ACCOUNT:]
    read_each(partial(_leave, user_id), others)
    delete_account(account.profile, kept, listings)
    return len(held)


def _leave(user_id: str, membership: Membership) -> bool:
    """Ends a membership. Returns False if a concurrent run was faster. Raises LastOwnerOf."""
    try:
        members.remove_member(membership.organization_id, user_id)
    except members.UnknownMember:
        return False
    except LastOwner:
        raise LastOwnerOf([membership.slug]) from None
    return True


def _end_access(user_id: str, credentials: list[StoredCredential]) -> int:
    """Erases a deleted account's credentials, and the ones and the memberships that concurrent requests create.

    Returns the number of memberships.
    """
    (entries, account), _ = read_both(
        lambda: read_both(
            lambda: credential_index.list_all_credentials(user_id), lambda: organizations.get_account(user_id)
        ),
        lambda: read_each(revocations.erase, credentials),
    )
    erased = {credential.entry.local for credential in credentials}
    revocations.erase_all(entry for entry in entries if entry.local not in erased)
    return sum(_leave(user_id, membership) for membership in account.memberships)


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
    page = credential_index.list_credentials(account.user_id, _CREDENTIALS_PER_PAGE, after)
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
    """Deletes which organizations the person blocked or commented in, the emails to them, and the choice of emails."""
    del after
    for pk_of in (keys.blocks_pk, keys.mails_pk, keys.commented_pk):
        table.delete_partition(pk_of(account.user_id), Unrecorded.ERASURE)
    table.delete_partition(keys.user_pk(account.user_id), Unrecorded.ERASURE, keys.MAIL_CHOICE_PREFIX)
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
    table.delete_partition(keys.mail_address_pk(account.address), Unrecorded.ERASURE)
    return None


STEPS: tuple[Step, ...] = (
    erase_credentials,
    end_memberships,
    remove_identities,
    remove_reports,
    remove_choices,
    release_address,
)
