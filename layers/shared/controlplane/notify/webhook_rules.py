"""Rules of webhook endpoints: which URLs and events are acceptable. The store checks the limit and the admin's role."""

from collections.abc import Iterable
from typing import Final

from controlplane.notify.webhook_deliveries import UnknownDelivery
from controlplane.notify.webhook_items import Format
from controlplane.platform.core import webhook_urls
from controlplane.platform.core.errors import InvalidPayload
from controlplane.platform.core.ids import EventId
from controlplane.platform.core.webhook_urls import UnacceptableUrl
from controlplane.platform.queues.events import WEBHOOK_EVENTS

FORMATS: Final[tuple[Format, ...]] = ("standard", "slack")


def check_url(url: str) -> str:
    """Returns the URL without spaces around it. Raises InvalidPayload if webhooks can't be sent to it."""
    text = url.strip()
    try:
        webhook_urls.parse(text)
    except UnacceptableUrl as problem:
        raise InvalidPayload.at(["url"], str(problem), "invalid_url") from None
    return text


def check_events(events: Iterable[str]) -> tuple[str, ...]:
    """Returns the events in the order of the documentation, each once. Raises InvalidPayload."""
    chosen = {*events}
    if not chosen:
        raise InvalidPayload.at(["events"], "Select at least one event.", "missing")
    if not chosen <= {*WEBHOOK_EVENTS}:
        raise InvalidPayload.at(["events"], f"Choose from these events: {', '.join(WEBHOOK_EVENTS)}.", "unknown_event")
    return tuple(event for event in WEBHOOK_EVENTS if event in chosen)


def own_event(organization_id: str, event_id: str) -> EventId:
    """Returns the ID of an event of the organization. Raises UnknownDelivery, also for text that isn't such an ID."""
    parsed = EventId.parse(event_id)
    if parsed is None or parsed.organization_id != organization_id:
        raise UnknownDelivery
    return parsed
