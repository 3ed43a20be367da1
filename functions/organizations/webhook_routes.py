"""Routes of webhook endpoints: what an organization's webhooks are sent to, and the deliveries."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Path

from controlplane.access.access import Access, Requires, Resource
from controlplane.access.idempotency import IdempotencyKey, idempotent_secret
from controlplane.notify import webhook_deliveries, webhooks
from controlplane.notify.webhook_deliveries import EndpointDisabled, UnknownDelivery
from controlplane.notify.webhooks import (
    DeliveryItem,
    UnknownWebhook,
    WebhookItem,
    WebhookLimitReached,
    check_events,
)
from controlplane.platform.core.ids import EventId, WebhookId
from controlplane.platform.core.urls import dashboard_base_url
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.envelope import Answer, Page
from controlplane.platform.http.pagination import Cursor, CursorCodec, Limit
from controlplane.platform.http.route import refuses
from controlplane.platform.queues import messages
from controlplane.platform.table import keys
from controlplane.platform.table.table import Leg, QueryPage
from organizations.webhook_schemas import (
    DeletedWebhookEndpoint,
    SecretRotation,
    WebhookDelivery,
    WebhookEndpoint,
    WebhookEndpointCreate,
    WebhookEndpointUpdate,
    WebhookEndpointWithSecret,
)

router = ControlRouter(tags=["Webhooks"])

_WEBHOOK = Resource("webhookId", WebhookId, keys.webhook, WebhookItem.from_item)
ListsWebhooks = Annotated[Access[None], Requires("webhooks.read", role="admin", organization="query")]
CreatesWebhook = Annotated[
    Access[None], Requires("webhooks.write", role="admin", organization="query", user_token=True)
]
ReadsWebhook = Annotated[Access[WebhookItem], Requires("webhooks.read", role="admin", resource=_WEBHOOK)]
ListsDeliveries = Annotated[Access[WebhookItem], Requires("webhooks.read", role="admin", resource=_WEBHOOK, late=True)]
WritesWebhook = Annotated[
    Access[WebhookItem], Requires("webhooks.write", role="admin", resource=_WEBHOOK, user_token=True)
]
ReplaysDelivery = Annotated[
    Access[WebhookItem],
    Requires("webhooks.write", role="admin", resource=_WEBHOOK, user_token=True, late=True),
]
PathEventId = Annotated[str, Path(alias="eventId")]

_SECRET_HEADERS = {"Cache-Control": "no-store"}
_SECRET = {"prefix": "whsec", "field": "secret"}


@router.get("/v1/webhook-endpoints", summary="List webhook endpoints")
async def list_webhook_endpoints(access: ListsWebhooks) -> Page[WebhookEndpoint]:
    """Lists the organization's webhook endpoints, oldest first: at most 10, on one page. Requires the role admin."""
    return Page([WebhookEndpoint.of(it) for it in webhooks.list_webhooks(access.organization_id)], None)


@router.post("/v1/webhook-endpoints", summary="Create a webhook endpoint", status_code=201)
@refuses(WebhookLimitReached)
async def create_webhook_endpoint(
    access: CreatesWebhook, body: WebhookEndpointCreate, idempotency_key: IdempotencyKey = None
) -> Answer[WebhookEndpointWithSecret]:
    """Creates an endpoint that the organization's events are sent to. Its secret is returned only in this response.

    Deliveries are signed as Standard Webhooks defines. An organization can have up to 10 endpoints.
    """
    events = check_events(body.events)

    def create(legs: Mapping[str, Leg], secret: str) -> Answer[WebhookEndpointWithSecret]:
        made = webhooks.create_webhook(
            access.organization_id,
            name=body.name,
            url=body.url,
            format=body.format,
            events=events,
            secret=secret,
            created_by=access.user_id,
            pages_url=dashboard_base_url(),
            extra_legs=legs,
        )
        return Answer(WebhookEndpointWithSecret.of(made, secret=secret), headers=_SECRET_HEADERS)

    return idempotent_secret(access, "createWebhookEndpoint", idempotency_key, body, create, **_SECRET)


@router.get("/v1/webhook-endpoints/{webhookId}", summary="Get a webhook endpoint")
async def get_webhook_endpoint(access: ReadsWebhook) -> WebhookEndpoint:
    """Returns an endpoint, without its secret. Requires the role admin."""
    return WebhookEndpoint.of(access.resource)


@router.patch("/v1/webhook-endpoints/{webhookId}", summary="Update a webhook endpoint")
@refuses(UnknownWebhook)
async def update_webhook_endpoint(access: WritesWebhook, body: WebhookEndpointUpdate) -> WebhookEndpoint:
    """Changes an endpoint. Pending deliveries are sent to the new URL, or fail if the endpoint is disabled."""
    changes: dict[str, Any] = body.model_dump(exclude_unset=True)
    if "events" in changes:
        changes["events"] = list(check_events(body.events))
    return WebhookEndpoint.of(webhooks.update_webhook(access.resource, changes, access.user_id))


@router.delete("/v1/webhook-endpoints/{webhookId}", summary="Delete a webhook endpoint")
@refuses(UnknownWebhook)
async def delete_webhook_endpoint(access: WritesWebhook) -> DeletedWebhookEndpoint:
    """Deletes an endpoint with its deliveries. Pending ones aren't sent."""
    webhooks.delete_webhook(access.resource, access.user_id)
    return DeletedWebhookEndpoint(deleted=True)


@router.post("/v1/webhook-endpoints/{webhookId}/rotate-secret", summary="Rotate a webhook endpoint's secret")
@refuses(UnknownWebhook)
async def rotate_webhook_secret(
    access: WritesWebhook, _body: SecretRotation | None = None, idempotency_key: IdempotencyKey = None
) -> Answer[WebhookEndpointWithSecret]:
    """Replaces the secret of an endpoint. The new one is returned only in this response. Needs no body.

    For 24 hours, deliveries have a signature for each of the two, so that the receiver can change over in that time.
    """
    webhook = access.resource

    def rotate(legs: Mapping[str, Leg], secret: str) -> Answer[WebhookEndpointWithSecret]:
        webhooks.rotate_secret(webhook, secret, access.user_id, legs)
        return Answer(WebhookEndpointWithSecret.of(webhook, secret=secret), headers=_SECRET_HEADERS)

    payload = {"webhookId": webhook.webhook_id}
    return idempotent_secret(access, "rotateWebhookSecret", idempotency_key, payload, rotate, **_SECRET)


@router.get("/v1/webhook-endpoints/{webhookId}/deliveries", summary="List webhook deliveries")
async def list_webhook_deliveries(
    access: ListsDeliveries, limit: Limit = 50, cursor: Cursor = None
) -> Page[WebhookDelivery]:
    """Lists the deliveries to an endpoint in the last 30 days, those of the latest events first."""

    def read(webhook_id: WebhookId) -> tuple[CursorCodec, QueryPage[DeliveryItem]]:
        codec = CursorCodec(cursor, "listWebhookDeliveries", webhook_id.organization_id, webhook_id)
        return codec, webhook_deliveries.list_deliveries(webhook_id, limit, codec.after)

    codec, page = access.enter_while(read)
    return Page([WebhookDelivery.of(it) for it in page.items], codec.cursor(page.next_sk))


@router.post("/v1/webhook-endpoints/{webhookId}/deliveries/{eventId}/replay", summary="Replay a webhook delivery")
@refuses(UnknownDelivery, EndpointDisabled)
async def replay_webhook_delivery(access: ReplaysDelivery, event_id: PathEventId) -> WebhookDelivery:
    """Sends an event to the endpoint again, with the same ID and body, and retries it for a day if that fails."""

    def read(webhook_id: WebhookId) -> tuple[DeliveryItem, str | None] | None:
        try:
            event = EventId.parse_own(webhook_id.organization_id, event_id, UnknownDelivery)
            return webhook_deliveries.get_delivery(webhook_id, event)
        except UnknownDelivery:
            return None  # unless the endpoint is disabled, which is said first

    seen = access.enter_while(read)
    event = EventId.parse_own(access.organization_id, event_id, UnknownDelivery)
    delivery, message = webhook_deliveries.replay_delivery(access.resource, event, access.user_id, seen)
    messages.dispatch(message)
    return WebhookDelivery.of(delivery)
