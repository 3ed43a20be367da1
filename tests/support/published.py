"""Findings in the inbox, published as the workers do."""

from controlplane.findings import inbox, publications
from controlplane.findings.discoveries import Discovery
from controlplane.findings.items import InboxItem


def publish_finding(discovery: Discovery) -> InboxItem:
    """Publishes the finding and returns its item."""
    publications.publish_findings([discovery])
    return inbox.get_item(discovery.item_id)
