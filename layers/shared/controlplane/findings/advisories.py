"""Advisories: external notices, published to the inbox of an existing organization.

They are stored only as inbox items.
"""

from controlplane.findings import inbox, publications
from controlplane.findings.inbox import Change
from controlplane.findings.items import Discovery
from controlplane.organizations.store import UnknownOrganization
from controlplane.platform.core.actions import Action
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.queues.outbox import Entry
from controlplane.platform.table import keys
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.table import Check, Leg, LegFailed, Recorded, table
from controlplane.projects.store import UnknownProject

_EXISTS = "attribute_exists(pk)"


def publish_advisory(discovery: Discovery) -> list[Entry]:
    """Publishes an advisory as a new item, or replaces its earlier edition. Returns the messages to send.

    Duplicates and editions older than the stored one change nothing. Raises UnknownOrganization, and UnknownProject
    if the advisory's project no longer exists.
    """
    key = keys.inbox_item(*discovery.item_id.location)
    around: dict[str, Leg] = {"organization": Check(keys.organization(discovery.organization_id), _EXISTS)}
    if discovery.project_id is not None:
        project_id = ProjectId.parse(discovery.project_id)
        if project_id is None:
            raise UnknownProject
        around["project"] = Check(keys.project(*project_id.location), _EXISTS)

    def publish() -> list[Entry]:
        existing = table.get(key)
        finding = publications.publish_leg(discovery, existing)
        if finding is None:
            return []
        change = Change(discovery.item_id, finding, existing["status"] if existing else None)
        record = Recorded(
            Action.ADVISORY_PUBLISH,
            discovery.organization_id,
            discovery.item_id,
            discovery.title,
            after={"edition": discovery.observed_at},
        )
        try:
            return inbox.transact_and_tell([change], around, record)
        except LegFailed as failure:
            if failure.leg == "organization":
                raise UnknownOrganization from None
            if failure.leg == "project":
                raise UnknownProject from None
            raise WriteConflict from None

    return retry_on_conflict(publish, "the item")
