"""The events of an organization that wait in the outbox."""

from typing import Any

from controlplane.platform.queues import events
from controlplane.platform.queues.messages import OrganizationEvent
from controlplane.platform.table.legs import decode_item
from tests.support.world import Company, table_dump


def told(company: Company) -> list[tuple[str, list[str]]]:
    """Returns the events in the outbox that are the company's, oldest first, and what they are about."""
    items: list[dict[str, Any]] = [decode_item(it) for it in table_dump()]
    found = [it["message"] for it in items if it["pk"].startswith("OUTBOX#") and it["queue"] == events.QUEUE]
    read = sorted(map(OrganizationEvent.model_validate, found), key=lambda event: event.event_id)
    return [(it.event, [*it.subjects]) for it in read if it.event_id[4:20] == company.organization_id[4:]]
