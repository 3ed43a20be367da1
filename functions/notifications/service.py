"""The rules of `notifications`: which endpoints and people are told about an event, and the attempts at each delivery.

A message may be delivered more than once. Each consumer recognizes an event that it has handled by its ID.

Each delivery is a message of its own, so an endpoint that is slow or fails delays nothing but itself. An endpoint has
two attempts at the same time, and none for some time after it has timed out: `notify.webhook_deliveries`.
"""

from controlplane.notify import mail_messages, webhook_deliveries, webhooks
from controlplane.notify.webhook_deliveries import Begun, EndpointBusy
from controlplane.notify.webhooks import Attempt
from controlplane.platform.core import clock, keyring
from controlplane.platform.core.ids import EventId, WebhookId
from controlplane.platform.core.keyring import Unsealable
from controlplane.platform.core.settings import settings
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import DeliverWebhook, Message, OrganizationEvent
from controlplane.platform.queues.worker import Delayed, Postponed
from controlplane.platform.table.leases import Held
from notifications import formats, payloads, transport
from notifications.transport import NotDelivered


def process(message: Message) -> None:
    """Makes the attempt at a delivery, or tells the webhooks and `emails` about an event.

    Raises Postponed and Delayed. If a part of it fails, the message is redelivered to all.
    """
    if isinstance(message, DeliverWebhook):
        _deliver(message)
        return
    if isinstance(message, OrganizationEvent):
        _fan_out(message)
    # An event, or a token that was found in public. Without a sender, the queue of `emails` isn't read.
    if settings.email_sender is not None:
        mail_messages.post(message)


def _fan_out(event: OrganizationEvent) -> None:
    """Creates a delivery for each endpoint that wants the event. Without one, it costs one read.

    Can be repeated: what is sent is stored first, and each delivery exists once.
    """
    event_id = EventId.stored(event.event_id)
    endpoints = webhooks.list_webhooks(event_id.organization_id)
    # A message may be late: an endpoint gets no events from before its creation.
    wanting = [it for it in endpoints if it.is_enabled and event.event in it.events and event.at >= it.created_at]
    if not wanting:
        return
    body = payloads.build(event, event_id.organization_id, wanting[0].pages_url)
    if body is None:
        return
    webhook_deliveries.keep_body(event_id, event.event, body)
    for endpoint in wanting:
        webhooks.seal_again(endpoint)
        messages.dispatch(*webhook_deliveries.create_delivery(endpoint, event_id, event.event))


def _deliver(message: DeliverWebhook) -> None:
    """Makes the attempt, unless it was made. Raises Postponed while another worker makes it, and Delayed."""
    try:
        begun = webhook_deliveries.begin_attempt(
            WebhookId.stored(message.webhook_id), EventId.stored(message.event_id), message.attempt
        )
    except Held as held:
        raise Postponed(held.seconds, "another attempt is in progress") from None
    except EndpointBusy as busy:
        raise Delayed(busy.seconds, "the endpoint is busy") from None
    if begun is not None:
        messages.dispatch(*(webhook_deliveries.finish_attempt(begun, _attempt(begun)) or []))


def _attempt(begun: Begun) -> Attempt:
    at, started = clock.timestamp(), clock.monotonic()
    status, error = None, None
    try:
        status = _send(begun)
        if not 200 <= status < 300:
            error = "redirect" if 300 <= status < 400 else "status"
    except NotDelivered as failure:
        error = failure.reason
    except Unsealable:
        error = "secret"
    return Attempt(at, status, error, round((clock.monotonic() - started) * 1000))


def _send(begun: Begun) -> int:
    """Returns the status of the response. Raises NotDelivered and Unsealable."""
    webhook, body = begun.webhook, formats.render(begun.webhook.format, begun.body)
    secrets = [keyring.unseal(webhook.webhook_id, sealed).text for sealed in webhook.sealed_secrets]
    headers = formats.signed_headers(begun.delivery.event_id, int(clock.now()), body, secrets)
    return transport.post(webhook.url, body, headers)
