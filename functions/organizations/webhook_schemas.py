"""Request and response models of webhook endpoints and their deliveries."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field

from controlplane.notify.webhooks import DeliveryItem, WebhookItem, check_url
from controlplane.platform.core.naming import Name
from controlplane.platform.http.envelope import StrictWire, Wire
from controlplane.platform.http.fields import OptionalTimestamp, Timestamp
from controlplane.platform.http.validation import checked
from controlplane.platform.queues.events import WEBHOOK_EVENTS, WebhookEvent

Url = Annotated[
    str,
    checked(check_url),
    Field(
        min_length=1,
        max_length=1_000,
        description="An `https` URL with a public host name and port 443 or 8443. Redirects aren't followed.",
        examples=["https://hooks.example.com/assent"],
        json_schema_extra={"format": "uri"},
    ),
]
Events = Annotated[
    list[WebhookEvent],
    Field(
        min_length=1,
        max_length=len(WEBHOOK_EVENTS),
        description="The events that are sent to the endpoint.",
        examples=[["finding.opened", "finding.resolved"]],
    ),
]
WebhookFormat = Annotated[
    Literal["standard", "slack"],
    Field(
        description="What is sent: `standard` is the event as JSON, `slack` a text for Slack's incoming webhooks.",
        examples=["standard"],
    ),
]
Status = Annotated[
    Literal["enabled", "disabled"],
    Field(description="Whether events are sent to the endpoint.", examples=["enabled"]),
]


class WebhookEndpointCreate(StrictWire):
    """An endpoint to create."""

    name: Name = Field(description="The endpoint's display name. Trimmed.", examples=["Alerts"])
    url: Url
    events: Events
    format: WebhookFormat = "standard"


class WebhookEndpointUpdate(StrictWire):
    """The fields to change. Omitted fields stay as they are."""

    name: Name = Field(default_factory=str, description="The endpoint's display name. Trimmed.", examples=["Alerts"])
    url: Url = Field(default_factory=str)
    events: Events = Field(default_factory=list)
    format: WebhookFormat = "standard"
    status: Status = Field("enabled", description="Enabling an endpoint forgets its failures.")


class SecretRotation(StrictWire):
    """The body of a rotation, which has no fields yet. Unknown fields are rejected."""


class WebhookEndpoint(Wire):
    """An endpoint that an organization's webhooks are sent to, without its secret."""

    id: str = Field(description="The endpoint's ID.", examples=["whk_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v"])
    name: str = Field(description="The endpoint's display name.", examples=["Alerts"])
    url: str = Field(
        description="Where events are sent.",
        examples=["https://hooks.example.com/assent"],
        json_schema_extra={"format": "uri"},
    )
    events: Events
    format: WebhookFormat
    status: Status
    disabled_reason: Literal["person", "failing"] | None = Field(
        description="Why it is disabled: a `person` did it, or it was `failing` for a day.", examples=[None]
    )
    disabled_at: OptionalTimestamp = Field(description="When it was disabled.", examples=[None])
    failing_since: OptionalTimestamp = Field(
        description="When the first delivery failed since the last one that succeeded. After a day, it is disabled.",
        examples=[None],
    )
    created_at: Timestamp = Field(description="The time the endpoint was created.")

    @classmethod
    def of(cls, webhook: WebhookItem, **more: Any) -> Self:
        return cls.showing(webhook, id=webhook.webhook_id, failing_since=webhook.failing_since_at, **more)


class WebhookEndpointWithSecret(WebhookEndpoint):
    """An endpoint with its new secret, which no other response includes."""

    secret: str = Field(
        description="The secret that deliveries are signed with. Save it now: it can't be shown again.",
        examples=["whsec_…"],
    )


class DeletedWebhookEndpoint(Wire):
    """The result of deleting an endpoint."""

    deleted: bool = Field(description="True: nothing is sent to it anymore.")


class DeliveryAttempt(Wire):
    """One attempt at a delivery."""

    at: Timestamp = Field(description="The time of the attempt.")
    response_status: int | None = Field(
        ge=100, description="The status of the response, if there was one.", examples=[500]
    )
    error: str | None = Field(
        description=(
            "Why it failed: `status` (not 2xx), `redirect`, `timeout`, `connection`, `tls`, `dns`, `address` (not "
            "public), `secret` (unreadable; rotate it), or, without an attempt, `disabled` or `expired`. Null if it "
            "succeeded."
        ),
        examples=["status"],
    )
    duration_ms: int = Field(ge=0, description="How long it took, in milliseconds.", examples=[120])


class WebhookDelivery(Wire):
    """The delivery of an event to an endpoint. It is kept for 30 days."""

    event_id: str = Field(
        description="The event's ID, which deliveries have in the header `webhook-id`.",
        examples=["evt_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v"],
    )
    event: str = Field(description="The name of the event.", examples=["finding.opened"])
    status: Literal["pending", "succeeded", "failed"] = Field(
        description="`pending` until an attempt succeeds, or all attempts of a day have failed.", examples=["pending"]
    )
    attempts: int = Field(ge=0, description="The number of attempts that were made.", examples=[1])
    next_attempt_at: OptionalTimestamp = Field(
        description="When the next attempt is due, give or take a minute.", examples=["2026-03-04T06:00:00.000Z"]
    )
    latest: list[DeliveryAttempt] = Field(max_length=20, description="The latest attempts, oldest first.")
    created_at: Timestamp = Field(description="The time the delivery was created.")

    @classmethod
    def of(cls, delivery: DeliveryItem) -> Self:
        latest = [
            DeliveryAttempt.showing(it, response_status=it.status, duration_ms=it.milliseconds) for it in delivery.log
        ]
        return cls.showing(delivery, latest=latest)
