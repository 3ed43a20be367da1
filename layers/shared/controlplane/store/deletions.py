"""The committing part of deletions: one transaction deletes the subject and writes a work item for the rest.

`cleanup` finishes the deletion in the background.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from controlplane.core import clock
from controlplane.core.actions import Action
from controlplane.core.errors import Forbidden
from controlplane.core.retention import expiry
from controlplane.store import api_keys, keys, members, organizations
from controlplane.store.codec import present
from controlplane.store.keys import Key
from controlplane.store.organization_items import OrganizationItem
from controlplane.store.organizations import MemberItem, UnknownOrganization
from controlplane.store.retry import WriteConflict, retry_on_conflict
from controlplane.store.table import Delete, Leg, LegFailed, Put, Recorded, Unrecorded, table

# How long the slug of a deleted organization stays reserved: links to it must not lead to another organization.
SLUG_RESERVED_DAYS = 90

_PAGE = 100
# Together with the secrets of 50 keys, 20 of them with another one in a grace period, and 5 other legs, this stays
# within the transaction limit of 100 items.
_MEMBERS_IN_TRANSACTION = 25


class NotOwner(Forbidden):
    """The caller isn't an owner of the organization, or is no longer one."""

    message = "Only an owner can delete an organization. Ask one of its owners."


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionItem:
    """Cleanup that is left to do after a deletion, or after a scan that supersedes others.

    subject_id: the deleted project, repository, or organization, or the completed scan.
    step: how many kinds of items are removed; None before the first page. `after` is the position in the next kind.
    final: True if everything was removed once, and is removed again for late writers.
    created_at: when the organization was created, if it is one; its audit log began then.
    """

    key: Key
    subject_id: str
    deleted_at: str
    step: int | None = None
    after: str | None = None
    final: bool = False
    created_at: str | None = None

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        return cls(
            key=Key(item["pk"], item["sk"]),
            subject_id=item["sk"],
            deleted_at=item["deletedAt"],
            step=item.get("step"),
            after=item.get("after"),
            final=item.get("final", False),
            created_at=item.get("createdAt"),
        )


def work_item(subject_id: str, created_at: str | None = None) -> Put:
    """Returns the leg that schedules the cleanup of a deleted project, repository, or organization.

    For a completed scan, it schedules the expiry of the findings of the scans it supersedes.
    """
    return Put({**keys.deletion(subject_id)._asdict(), "deletedAt": clock.timestamp(), **present(createdAt=created_at)})


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
        roster = members.list_members(organization_id, _MEMBERS_IN_TRANSACTION, None, consistent=True)
        record = Recorded(
            Action.ORGANIZATION_DELETE,
            organization_id,
            organization_id,
            organization.name,
            before={"name": organization.name, "slug": organization.slug, "plan": organization.plan},
        )
        try:
            table.transact(_deletion(organization, roster.members, caller_id), record)
        except LegFailed as failure:
            if failure.leg == "caller":
                raise NotOwner from None
            if failure.leg != "organization":
                raise
            raise WriteConflict from None  # deleted by another call, or a key was added or removed
        if roster.next_sk is not None:
            _delete_memberships(organization_id, roster.next_sk)
        return organization

    return retry_on_conflict(delete, "the set of keys")


def _deletion(organization: OrganizationItem, roster: list[MemberItem], caller_id: str | None) -> dict[str, Leg]:
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
    for number, secret in enumerate(api_keys.key_secrets(organization_id)):
        legs[f"secret{number}"] = Delete(secret)
    for member in roster:
        if member.user_id != caller_id:
            legs[member.user_id] = Delete(member.membership_key)
    return legs


def _delete_memberships(organization_id: str, after: str | None) -> None:
    """Removes the memberships of members after that roster position. The roster itself is removed in the background."""
    while after is not None:
        page = members.list_members(organization_id, _PAGE, after, consistent=True)
        if page.members:
            table.transact(
                {member.user_id: Delete(member.membership_key) for member in page.members}, Unrecorded.CLEANUP
            )
        after = page.next_sk
