"""The pages of webhooks: endpoints, their deliveries, and replays. A secret is only in the response that creates it."""

import json
from collections.abc import Mapping
from typing import Any

from fastapi import Response

from controlplane.access.web_session import WebSession
from controlplane.notify import webhook_deliveries, webhooks
from controlplane.notify.webhook_deliveries import EndpointDisabled, UnknownDelivery
from controlplane.notify.webhooks import (
    FORMATS,
    WEBHOOKS_PER_ORGANIZATION,
    DeliveryItem,
    UnknownWebhook,
    WebhookItem,
    check_events,
    check_url,
)
from controlplane.platform.core.errors import ApiError, InvalidPayload
from controlplane.platform.core.ids import EventId, WebhookId
from controlplane.platform.core.urls import dashboard_base_url
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.pagination import CursorCodec
from controlplane.platform.queues import messages
from controlplane.platform.queues.events import WEBHOOK_EVENTS
from controlplane.platform.table.parallel import read_both, reading
from dashboard import once
from dashboard.forms import NotAcceptable, read_choice, read_name
from dashboard.once import Created
from dashboard.pages import page, redirect_within
from dashboard.parameters import AdminSees, AdminSubmits, EventPath, MemberSees, WebhookPath

router = ControlRouter(tags=["Pages"], include_in_schema=False)

_PAGES = "/organizations/{organizationSlug}/webhooks"
_PER_PAGE = 25
# Of Standard Webhooks.
_PREFIX = "whsec"
# The events by the checkboxes of the form, and what each means.
EVENTS = {
    "finding.opened": "A finding is new, or open again",
    "finding.resolved": "A finding is resolved",
    "scan.completed": "A scan is completed",
    "audit.completed": "A website audit is completed",
    "key.created": "An API key is created or rolled",
    "key.leaked": "An API key is found in public, and revoked",
    "member.joined": "A member has joined",
    "credits.low": "Credits are low",
}
_DONE = {
    "deleted": "The endpoint is deleted. Nothing is sent to it anymore.",
    "saved": "The endpoint is saved.",
    "enabled": "The endpoint is enabled.",
    "disabled": "The endpoint is disabled. Pending deliveries fail and can be replayed once it is enabled.",
    "replayed": "The event is being sent again.",
}


@router.get(_PAGES)
async def show_webhooks(session: MemberSees) -> Response:
    """Lists the organization's endpoints to admins and owners, who can create others."""
    return _webhooks(session)


@router.post(_PAGES)
async def submit_webhook(session: AdminSubmits) -> Response:
    """Creates an endpoint and shows its secret. Sending the same form again shows the same secret."""
    try:
        created = once.create_secret_once(
            session,
            "createWebhookOnPage",
            lambda legs, secret: (
                webhooks.create_webhook(
                    session.organization.organization_id,
                    **_read(session.form),
                    secret=secret,
                    created_by=session.user_id,
                    pages_url=dashboard_base_url(),
                    extra_legs=legs,
                ).webhook_id
            ),
            prefix=_PREFIX,
        )
    except ApiError as failure:
        return _webhooks(session, failure)
    return _secret(session, created, is_new=True)


@router.get(_PAGES + "/{webhookId}")
async def show_webhook(session: AdminSees, webhook_id: WebhookPath) -> Response:
    """Shows an endpoint with its deliveries."""
    return _webhook(session, session.own(WebhookId, webhook_id, UnknownWebhook))


@router.post(_PAGES + "/{webhookId}")
async def submit_webhook_change(session: AdminSubmits, webhook_id: WebhookPath) -> Response:
    """Changes the endpoint's name, URL, format, and events."""
    own_id = session.own(WebhookId, webhook_id, UnknownWebhook)
    try:
        changes = _read(session.form)
    except NotAcceptable as failure:
        return _webhook(session, own_id, failure)
    changes["events"] = list(changes["events"])
    webhooks.update_webhook(webhooks.get_webhook(own_id), changes, session.user_id)
    return redirect_within(session.organization, f"/webhooks/{own_id}?done=saved")


@router.post(_PAGES + "/{webhookId}/status")
async def submit_webhook_status(session: AdminSubmits, webhook_id: WebhookPath) -> Response:
    """Enables or disables the endpoint."""
    own_id = session.own(WebhookId, webhook_id, UnknownWebhook)
    status = read_choice(session.form, "status", ("enabled", "disabled"), "Choose whether the endpoint is enabled.")
    webhooks.update_webhook(webhooks.get_webhook(own_id), {"status": status}, session.user_id)
    return redirect_within(session.organization, f"/webhooks/{own_id}?done={status}")


@router.post(_PAGES + "/{webhookId}/rotate")
async def submit_webhook_rotation(session: AdminSubmits, webhook_id: WebhookPath) -> Response:
    """Replaces the secret and shows the new one. Sending the same form again shows the same secret."""
    own_id = session.own(WebhookId, webhook_id, UnknownWebhook)

    def rotate(legs: Mapping[str, Any], secret: str) -> str:
        webhooks.rotate_secret(find(), secret, session.user_id, legs)
        return own_id

    try:
        with reading(lambda: webhooks.get_webhook(own_id)) as find:
            created = once.create_secret_once(session, f"rotateWebhookOnPage {own_id}", rotate, prefix=_PREFIX)
    except UnknownWebhook:
        raise
    except ApiError as failure:
        return _webhook(session, own_id, failure)
    return _secret(session, created, is_new=False)


@router.post(_PAGES + "/{webhookId}/delete")
async def submit_webhook_deletion(session: AdminSubmits, webhook_id: WebhookPath) -> Response:
    """Deletes the endpoint."""
    webhooks.delete_webhook(webhooks.get_webhook(session.own(WebhookId, webhook_id, UnknownWebhook)), session.user_id)
    return redirect_within(session.organization, "/webhooks?done=deleted")


@router.get(_PAGES + "/{webhookId}/deliveries/{eventId}")
async def show_webhook_delivery(session: AdminSees, webhook_id: WebhookPath, event_id: EventPath) -> Response:
    """Shows a delivery: what is sent, and each attempt."""
    return _delivery(session, *_get_delivery(session, webhook_id, event_id))


@router.post(_PAGES + "/{webhookId}/deliveries/{eventId}/replay")
async def submit_webhook_replay(session: AdminSubmits, webhook_id: WebhookPath, event_id: EventPath) -> Response:
    """Sends the event to the endpoint again."""
    webhook, found = _get_delivery(session, webhook_id, event_id)
    try:
        event = session.own(EventId, event_id, UnknownDelivery)
        _, message = webhook_deliveries.replay_delivery(webhook, event, session.user_id, found)
    except EndpointDisabled as failure:
        return _delivery(session, webhook, found, failure)
    messages.dispatch(message)
    return redirect_within(session.organization, f"/webhooks/{webhook_id}/deliveries/{event_id}?done=replayed")


def _get_delivery(
    session: WebSession, webhook_id: str, event_id: str
) -> tuple[WebhookItem, tuple[DeliveryItem, str | None]]:
    """Returns the endpoint, and the delivery with its body, if that hasn't expired.

    Raises UnknownWebhook, UnknownDelivery.
    """
    own_id, event = session.own(WebhookId, webhook_id, UnknownWebhook), session.own(EventId, event_id, UnknownDelivery)
    return read_both(lambda: webhooks.get_webhook(own_id), lambda: webhook_deliveries.get_delivery(own_id, event))


def _read(form: Mapping[str, str]) -> dict[str, Any]:
    """Returns the endpoint of the form. Raises NotAcceptable, which says which field is wrong."""
    name, format_ = read_name(form), read_choice(form, "format", FORMATS, "Choose a format.")
    try:
        url = check_url(form.get("url", ""))
        events = check_events(event for event in WEBHOOK_EVENTS if form.get(event))
    except InvalidPayload as problem:
        raise NotAcceptable(str(problem.details[0]["message"])) from None
    return {"name": name, "url": url, "format": format_, "events": events}


def _webhooks(session: WebSession, failure: ApiError | None = None) -> Response:
    listed = webhooks.list_webhooks(session.organization.organization_id) if session.is_admin else []
    return page(
        "webhooks", session, failure, done=_DONE, webhooks=listed, limit=WEBHOOKS_PER_ORGANIZATION, events=EVENTS
    )


def _webhook(session: WebSession, own_id: WebhookId, failure: ApiError | None = None) -> Response:
    codec = CursorCodec(session.parameters.get("after"), "showWebhook", own_id)
    webhook, listed = read_both(
        lambda: webhooks.get_webhook(own_id),
        lambda: webhook_deliveries.list_deliveries(own_id, _PER_PAGE, codec.after),
    )
    saved = {"name": webhook.name, "url": webhook.url, "format": webhook.format, **dict.fromkeys(webhook.events, "yes")}
    return page(
        "webhook",
        session,
        failure,
        done=_DONE,
        webhook=webhook,
        deliveries=listed.items,
        next_cursor=codec.cursor(listed.next_sk),
        is_first=codec.after is None,
        saved=saved,
        events=EVENTS,
    )


def _delivery(
    session: WebSession,
    webhook: WebhookItem,
    found: tuple[DeliveryItem, str | None],
    failure: ApiError | None = None,
) -> Response:
    delivery, body = found
    shown = json.dumps(json.loads(body), indent=2, ensure_ascii=False) if body else None
    content = {"webhook": webhook, "delivery": delivery, "body": shown, "events": EVENTS}
    return page("webhook_delivery", session, failure, done=_DONE, **content)


def _secret(session: WebSession, created: Created, *, is_new: bool) -> Response:
    return page("webhook_secret", session, webhook_id=created.reference, secret=created.secret, is_new=is_new)
