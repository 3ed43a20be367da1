"""The committing part of deletions: one transaction deletes the subject and writes a work item for the rest.

`cleanup` finishes the deletion in the background.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from controlplane.api_keys import store as api_keys
from controlplane.organizations import members
from controlplane.organizations import store as organizations
from controlplane.organizations.items import OrganizationItem
from controlplane.organizations.store import MemberItem, Membership, UnknownOrganization
from controlplane.people import identities
from controlplane.people.identities import Listing
from controlplane.people.users import UserItem
from controlplane.platform.core.actions import Action
from controlplane.platform.core.clock import expiry
from controlplane.platform.core.errors import Forbidden
from controlplane.platform.core.naming import normalize_email
from controlplane.platform.queues.deletion_items import work_item
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.parallel import read_both
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


class NotOwner(Forbidden):
    """The caller isn't an owner of the organization, or is no longer one."""

    message = "Only an owner can delete an organization. Ask one of its owners."


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
