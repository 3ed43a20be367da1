"""Advisories: notices from outside, published into the inbox of an organization that exists.

They stand as inbox items and nowhere else.
"""

from controlplane import ids
from controlplane.store import inbox, keys
from controlplane.store.inbox import Discovery
from controlplane.store.organizations import UnknownOrganization
from controlplane.store.projects import UnknownProject
from controlplane.store.table import Check, Leg, LegFailed, Throttled, table

_TRIES = 8
_EXISTS = "attribute_exists(pk)"


def publish_advisory(discovery: Discovery) -> None:
    """Publishes an advisory as a new item, or in the place of its earlier edition.

    One that comes twice, or after a later edition, changes nothing. Raises UnknownOrganization, and UnknownProject
    where the project it concerns is gone.
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
            # Somebody changed it meanwhile: look again.
        else:
            return
    raise Throttled("the item keeps changing")
