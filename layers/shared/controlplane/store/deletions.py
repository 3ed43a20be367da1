"""The committing part of deletions: one transaction deletes the subject and writes a work item for the rest.

`cleanup` finishes the deletion in the background.
"""

from collections.abc import Mapping
from typing import Any

from controlplane.core import clock
from controlplane.core.retention import expiry
from controlplane.store import api_keys, keys, organizations
from controlplane.store.organizations import UnknownOrganization
from controlplane.store.table import Delete, Leg, LegFailed, Put, StoreError, Throttled, table

# How long the slug of a deleted organization stays reserved: links to it must not lead to another organization.
SLUG_RESERVED_DAYS = 90

_PAGE = 100
_TRIES = 8
# Together with 50 keys and 4 other legs, this stays below the transaction limit of 100 items.
_MEMBERS_AT_ONCE = 40


class NotOwner(StoreError):
    """The caller isn't an owner of the organization, or is no longer one."""


def work_item(subject_id: str) -> Put:
    """Returns the leg that schedules the cleanup of a deleted project, repository, or organization.

    For a completed scan, it schedules the expiry of the findings of the scans it supersedes.
    """
    return Put({**keys.deletion(subject_id)._asdict(), "deletedAt": clock.timestamp()})


def delete_organization(organization_id: str, caller_id: str | None = None) -> dict[str, Any]:
    """Deletes the organization and returns its previous item. Raises UnknownOrganization, NotOwner.

    One transaction removes the organization, every key's secret, and up to 40 memberships, which authorize user
    tokens. The other memberships are removed right after it. After the transaction, nothing can be created in the
    organization, because creations check that it exists. Everything else is removed in the background. The slug stays
    reserved for SLUG_RESERVED_DAYS.

    caller_id: the user who must be an owner at commit; None for the operator.
    """
    for _ in range(_TRIES):
        organization = organizations.find_organization(organization_id)
        if organization is None:
            raise UnknownOrganization
        roster = table.query(
            keys.organization_pk(organization_id), prefix=keys.MEMBER_PREFIX, limit=_MEMBERS_AT_ONCE, consistent=True
        )
        try:
            table.transact(_deciding_legs(organization, roster.items, caller_id))
        except LegFailed as refusal:
            if refusal.leg == "caller":
                raise NotOwner from None
            if refusal.leg != "organization":
                raise
            continue  # deleted by another call, or a key was added or removed: retry
        if roster.next_sk is not None:
            _end_memberships(organization_id, roster.next_sk)
        return organization
    raise Throttled("the set of keys keeps changing")


def _deciding_legs(
    organization: Mapping[str, Any], roster: list[dict[str, Any]], caller_id: str | None
) -> dict[str, Leg]:
    organization_id = organization["organizationId"]
    legs: dict[str, Leg] = {}
    if caller_id is not None:
        owns = {"owner": "owner"}
        legs["caller"] = Delete(keys.membership(caller_id, organization_id), "#role = :owner", owns)
    reserved = {
        **keys.organization_slug(organization["slug"])._asdict(),
        "organizationId": organization_id,
        **expiry(SLUG_RESERVED_DAYS),
    }
    legs |= {
        # Fails if a key was added since the keys were read.
        "organization": Delete(
            keys.organization(organization_id), "#keyVersion = :seen", {"seen": organization["keyVersion"]}
        ),
        "deletion": work_item(organization_id),
        "slug": Put(reserved),
    }
    for number, secret in enumerate(api_keys.key_secrets(organization_id)):
        legs[f"secret{number}"] = Delete(secret)
    for member in roster:
        if member["userId"] != caller_id:
            legs[member["userId"]] = Delete(keys.membership(member["userId"], organization_id))
    return legs


def _end_memberships(organization_id: str, after: str | None) -> None:
    """Removes the memberships of members after that roster position. The roster itself is removed in the background."""
    while after is not None:
        page = table.query(
            keys.organization_pk(organization_id),
            prefix=keys.MEMBER_PREFIX,
            after=after,
            limit=_PAGE,
            consistent=True,
        )
        if page.items:
            table.transact({it["userId"]: Delete(keys.membership(it["userId"], organization_id)) for it in page.items})
        after = page.next_sk
