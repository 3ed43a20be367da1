"""Advisories: external notices, published to the inbox of an existing organization.

They are stored only as inbox items.
"""

from controlplane.core import ids
from controlplane.store import inbox, keys
from controlplane.store.inbox import Discovery
from controlplane.store.organizations import UnknownOrganization
from controlplane.store.projects import UnknownProject
from controlplane.store.table import Check, Leg, LegFailed, Throttled, table

_TRIES = 8
_EXISTS = "attribute_exists(pk)"


def publish_advisory(discovery: Discovery) -> None:
    """Publishes an advisory as a new item, or replaces its earlier edition.

    Duplicates and editions older than the stored one change nothing. Raises UnknownOrganization, and UnknownProject
    if the advisory's project no longer exists.
    """
    key = keys.inbox_item(discovery.organization_id, discovery.local)
    around: dict[str, Leg] = {"organization": Check(keys.organization(discovery.organization_id), _EXISTS)}
    if discovery.project_id is not None:
        located = ids.locate(ids.PROJECT, discovery.project_id)
        if located is None:
            raise UnknownProject
        around["project"] = Check(keys.project(*located), _EXISTS)
    for _ in range(_TRIES):
        stands = table.get(key)
        write = inbox.publication(discovery, stands)
        if write is None:
            return
        try:
            table.transact({**around, "finding": write})
        except LegFailed as refusal:
            if refusal.leg == "organization":
                raise UnknownOrganization from None
            if refusal.leg == "project":
                raise UnknownProject from None
            # The item was changed concurrently: retry.
        else:
            return
    raise Throttled("the item keeps changing")
