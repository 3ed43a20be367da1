"""Webhook endpoints. `openassent.webhooks` verifies what they receive."""

from collections.abc import Sequence

from openassent._async._pages import AsyncPages
from openassent._async._resource import AsyncResource
from openassent._calls import change, create, get, given, path
from openassent.models import DeletedWebhookEndpoint, WebhookDelivery, WebhookEndpoint, WebhookEndpointWithSecret
from openassent.values import EventName, WebhookFormat, WebhookStatus


class AsyncWebhookEndpoints(AsyncResource):
    """The endpoints that the organization's events are sent to."""

    def list(self, *, organization_id: str | None = None) -> AsyncPages[WebhookEndpoint]:
        """Lists the organization's webhook endpoints, oldest first."""
        query = {"organizationId": self._organization(organization_id)}
        return AsyncPages(self._core, "/v1/webhook-endpoints", WebhookEndpoint, None, query)

    async def create(
        self,
        *,
        name: str,
        url: str,
        events: Sequence[EventName],
        format: WebhookFormat | None = None,  # noqa: A002 (the field's name)
        organization_id: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> WebhookEndpointWithSecret:
        """Creates an endpoint. Its `secret` is in this response only.

        url: an `https` URL with a public host name and port 443 or 8443.
        """
        body = given(name=name, url=url, events=events, format=format)
        organization_id = self._organization(organization_id)
        call = create("/v1/webhook-endpoints", body, idempotency_key, dry_run=dry_run, organizationId=organization_id)
        return await self._core.result(call, WebhookEndpointWithSecret)

    async def get(self, webhook_id: str) -> WebhookEndpoint:
        """Returns an endpoint, without its secret."""
        return await self._core.result(get(path("/v1/webhook-endpoints/{}", webhook_id)), WebhookEndpoint)

    async def update(
        self,
        webhook_id: str,
        *,
        name: str | None = None,
        url: str | None = None,
        events: Sequence[EventName] | None = None,
        format: WebhookFormat | None = None,  # noqa: A002 (the field's name)
        status: WebhookStatus | None = None,
        dry_run: bool = False,
    ) -> WebhookEndpoint:
        """Changes an endpoint. Omitted fields stay as they are."""
        body = given(name=name, url=url, events=events, format=format, status=status)
        call = change("PATCH", path("/v1/webhook-endpoints/{}", webhook_id), body, dry_run=dry_run)
        return await self._core.result(call, WebhookEndpoint)

    async def delete(self, webhook_id: str, *, dry_run: bool = False) -> DeletedWebhookEndpoint:
        """Deletes an endpoint with its deliveries. Pending ones aren't sent."""
        call = change("DELETE", path("/v1/webhook-endpoints/{}", webhook_id), dry_run=dry_run)
        return await self._core.result(call, DeletedWebhookEndpoint)

    def deliveries(
        self, webhook_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> AsyncPages[WebhookDelivery]:
        """Lists the deliveries of the last 30 days, those of the latest events first."""
        url = path("/v1/webhook-endpoints/{}/deliveries", webhook_id)
        return AsyncPages(self._core, url, WebhookDelivery, cursor, {"limit": limit})

    async def replay(self, webhook_id: str, event_id: str, *, dry_run: bool = False) -> WebhookDelivery:
        """Sends an event to the endpoint again, with the same ID and body."""
        url = path("/v1/webhook-endpoints/{}/deliveries/{}/replay", webhook_id, event_id)
        return await self._core.result(change("POST", url, dry_run=dry_run), WebhookDelivery)

    async def rotate_secret(
        self, webhook_id: str, *, idempotency_key: str | None = None, dry_run: bool = False
    ) -> WebhookEndpointWithSecret:
        """Replaces the endpoint's secret. For 24 hours, deliveries are signed with the old one, too."""
        url = path("/v1/webhook-endpoints/{}/rotate-secret", webhook_id)
        return await self._core.result(create(url, None, idempotency_key, dry_run=dry_run), WebhookEndpointWithSecret)
