"""Business rules of the pages of webhooks: endpoints, which only admins and owners see, and their deliveries."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from controlplane.notify import webhook_deliveries, webhooks
from controlplane.notify.webhook_items import DeliveryItem, WebhookItem
from controlplane.notify.webhook_rules import FORMATS, check_events, check_url, own_event
from controlplane.notify.webhooks import UnknownWebhook
from controlplane.organizations.store import Account, Membership
from controlplane.platform.core.errors import Forbidden, InvalidPayload
from controlplane.platform.core.ids import WebhookId
from controlplane.platform.core.keyring import open_cursor, seal_cursor
from controlplane.platform.core.urls import dashboard_base_url
from controlplane.platform.queues import messages
from controlplane.platform.queues.events import WEBHOOK_EVENTS
from controlplane.platform.table.parallel import read_both
from controlplane.platform.table.table import Leg
from dashboard.forms import NotAcceptable, read_name
from dashboard.organizations import get_organization, is_admin, require_admin

# The events by the checkboxes of the form, and what each means.
EVENTS = {
    "finding.opened": "A finding is new, or open again",
    "finding.resolved": "A finding is resolved",
    "scan.completed": "A scan is completed",
    "key.created": "An API key is created or rolled",
    "key.leaked": "An API key is found in public, and revoked",
    "member.joined": "A member has joined",
    "credits.low": "Credits are low",
}
_PAGE = 25


class NotWebhookAdmin(Forbidden):
    message = "Only admins and owners can see and change webhooks. Ask one of them."


class ShownWebhooks(NamedTuple):
    """The endpoints of an organization, oldest first. None for a member, who may not see them."""

    organization: Membership
    webhooks: list[WebhookItem] | None


class ShownWebhook(NamedTuple):
    """An endpoint, a page of its deliveries, and the cursor of the next page."""

    organization: Membership
    webhook: WebhookItem
    deliveries: list[DeliveryItem]
    next_cursor: str | None


class ShownDelivery(NamedTuple):
    """A delivery, its endpoint, and the body, indented. body: None if it has expired."""

    organization: Membership
    webhook: WebhookItem
    delivery: DeliveryItem
    body: str | None


def get_webhooks(organization_slug: str, account: Account) -> ShownWebhooks:
    """Returns the endpoints of one of the account's organizations. Raises NotMember."""
    organization = get_organization(organization_slug, account)
    if not is_admin(organization):
        return ShownWebhooks(organization, None)
    return ShownWebhooks(organization, webhooks.list_webhooks(organization.organization_id))


def get_webhook(organization_slug: str, webhook_id: str, account: Account, after: str | None) -> ShownWebhook:
    """Returns an endpoint with a page of its deliveries. Raises NotMember, NotWebhookAdmin, UnknownWebhook."""
    organization, own_id = _own(organization_slug, webhook_id, account)
    position = open_cursor(_binding(own_id), after) if after else None
    webhook, page = read_both(
        lambda: webhooks.get_webhook(own_id), lambda: webhook_deliveries.list_deliveries(own_id, _PAGE, position)
    )
    cursor = seal_cursor(_binding(own_id), page.next_sk) if page.next_sk else None
    return ShownWebhook(organization, webhook, page.deliveries, cursor)


def get_delivery(organization_slug: str, webhook_id: str, event_id: str, account: Account) -> ShownDelivery:
    """Returns a delivery. Raises NotMember, NotWebhookAdmin, UnknownWebhook, UnknownDelivery."""
    organization, own_id = _own(organization_slug, webhook_id, account)
    event = own_event(organization.organization_id, event_id)
    webhook, (delivery, body) = read_both(
        lambda: webhooks.get_webhook(own_id), lambda: webhook_deliveries.get_delivery(own_id, event)
    )
    shown = json.dumps(json.loads(body), indent=2, ensure_ascii=False) if body else None
    return ShownDelivery(organization, webhook, delivery, shown)


def create_webhook(
    organization: Membership, form: Mapping[str, str], user_id: str, legs: Mapping[str, Leg], secret: str
) -> WebhookItem:
    """Creates the endpoint that the form describes. Raises NotWebhookAdmin, NotAcceptable, WebhookLimitReached."""
    require_admin(organization, NotWebhookAdmin)
    return webhooks.create_webhook(
        organization.organization_id,
        **_read(form),
        secret=secret,
        created_by=user_id,
        pages_url=dashboard_base_url(),
        extra_legs=legs,
    )


def update_webhook(
    organization_slug: str, webhook_id: str, account: Account, user_id: str, form: Mapping[str, str]
) -> WebhookItem:
    """Changes the endpoint as the form says. Raises the errors of `create_webhook`, and UnknownWebhook."""
    _, own_id = _own(organization_slug, webhook_id, account)
    changes = _read(form)
    return webhooks.update_webhook(
        webhooks.get_webhook(own_id), {**changes, "events": list(changes["events"])}, user_id
    )


def change_status(organization_slug: str, webhook_id: str, account: Account, user_id: str, status: str) -> WebhookItem:
    """Enables or disables the endpoint. Raises NotMember, NotWebhookAdmin, UnknownWebhook, NotAcceptable."""
    _, own_id = _own(organization_slug, webhook_id, account)
    if status not in {"enabled", "disabled"}:
        raise NotAcceptable("Choose whether the endpoint is enabled.")
    return webhooks.update_webhook(webhooks.get_webhook(own_id), {"status": status}, user_id)


def own_webhook(organization: Membership, webhook_id: str) -> WebhookItem:
    """Returns an endpoint of the organization. Raises NotWebhookAdmin, UnknownWebhook."""
    return webhooks.get_webhook(_id(organization, webhook_id))


def rotate_secret(webhook: WebhookItem, user_id: str, legs: Mapping[str, Leg], secret: str) -> WebhookItem:
    """Replaces the endpoint's secret. Raises UnknownWebhook, Forbidden."""
    webhooks.rotate_secret(webhook, secret, user_id, legs)
    return webhook


def delete_webhook(organization_slug: str, webhook_id: str, account: Account, user_id: str) -> None:
    """Deletes the endpoint. Raises NotMember, NotWebhookAdmin, UnknownWebhook."""
    _, own_id = _own(organization_slug, webhook_id, account)
    webhooks.delete_webhook(webhooks.get_webhook(own_id), user_id)


def replay_delivery(organization_slug: str, webhook_id: str, event_id: str, account: Account, user_id: str) -> None:
    """Sends the event to the endpoint again. Raises the errors of `get_delivery`, and EndpointDisabled."""
    organization, own_id = _own(organization_slug, webhook_id, account)
    event = own_event(organization.organization_id, event_id)
    webhook, found = read_both(
        lambda: webhooks.get_webhook(own_id), lambda: webhook_deliveries.get_delivery(own_id, event)
    )
    _, message = webhook_deliveries.replay_delivery(webhook, event, user_id, found)
    messages.dispatch(message)


def to_form(webhook: WebhookItem) -> dict[str, str]:
    """Returns the fields of the form that describes the endpoint."""
    fields = {"name": webhook.name, "url": webhook.url, "format": webhook.format}
    return {**fields, **dict.fromkeys(webhook.events, "yes")}


def _own(organization_slug: str, webhook_id: str, account: Account) -> tuple[Membership, WebhookId]:
    organization = get_organization(organization_slug, account)
    return organization, _id(organization, webhook_id)


def _id(organization: Membership, webhook_id: str) -> WebhookId:
    require_admin(organization, NotWebhookAdmin)
    parsed = WebhookId.parse(webhook_id)
    if parsed is None or parsed.organization_id != organization.organization_id:
        raise UnknownWebhook
    return parsed


def _binding(webhook_id: WebhookId) -> tuple[str, ...]:
    return "showWebhook", webhook_id


def _read(form: Mapping[str, str]) -> dict[str, Any]:
    """Returns the endpoint of the form. Raises NotAcceptable, which says which field is wrong."""
    name, format_ = read_name(form, "name"), form.get("format", "")
    if format_ not in FORMATS:
        raise NotAcceptable("Choose a format.")
    try:
        url = check_url(form.get("url", ""))
        events = check_events(event for event in WEBHOOK_EVENTS if form.get(event))
    except InvalidPayload as problem:
        raise NotAcceptable(str(problem.details[0]["message"])) from None
    return {"name": name, "url": url, "format": format_, "events": events}
