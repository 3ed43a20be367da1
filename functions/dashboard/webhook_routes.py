"""The pages of webhooks: endpoints, their deliveries, and replays. A secret is only in the response that creates it."""

from typing import Annotated

from fastapi import Path, Response

from controlplane.access.web_session import WebSession
from controlplane.notify.webhook_deliveries import EndpointDisabled
from controlplane.notify.webhooks import WEBHOOKS_PER_ORGANIZATION, UnknownWebhook
from controlplane.organizations.store import Membership
from controlplane.platform.core.errors import ApiError
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.table.parallel import reading
from dashboard import once, webhooks
from dashboard.once import Created
from dashboard.organizations import get_organization
from dashboard.page_parameters import Done, OrganizationSlug, SignedIn, Submits, Text
from dashboard.pages import address, page, redirect

router = ControlRouter(tags=["Pages"], include_in_schema=False)

WebhookPath = Annotated[str, Path(alias="webhookId")]
EventPath = Annotated[str, Path(alias="eventId")]

_OWN = "/organizations/{organizationSlug}/webhooks"
_DONE = {
    "deleted": "The endpoint is deleted. Nothing is sent to it anymore.",
    "saved": "The endpoint is saved.",
    "enabled": "The endpoint is enabled.",
    "disabled": "The endpoint is disabled. Pending deliveries fail and can be replayed once it is enabled.",
    "replayed": "The event is being sent again.",
}
# Of Standard Webhooks.
_PREFIX = "whsec"


@router.get(_OWN, operation_id="showWebhooks")
async def show_webhooks(session: SignedIn, organization_slug: OrganizationSlug, done: Done = "") -> Response:
    """Lists the organization's endpoints. Admins and owners can create others."""
    return _webhooks(session, organization_slug, done=_DONE.get(done))


@router.post(_OWN, operation_id="submitWebhook")
async def submit_webhook(session: Submits, organization_slug: OrganizationSlug) -> Response:
    """Creates an endpoint and shows its secret. Sending the same form again shows the same secret."""
    organization, user_id = get_organization(organization_slug, session.account), session.user_id
    try:
        created = once.create_secret_once(
            session,
            organization,
            "createWebhookOnPage",
            lambda legs, secret: webhooks.create_webhook(organization, session.form, user_id, legs, secret).webhook_id,
            prefix=_PREFIX,
        )
    except ApiError as failure:
        return _webhooks(session, organization_slug, failure=failure)
    return _secret(session, organization, created, is_new=True)


@router.get(_OWN + "/{webhookId}", operation_id="showWebhook")
async def show_webhook(
    session: SignedIn,
    organization_slug: OrganizationSlug,
    webhook_id: WebhookPath,
    after: Text = None,
    done: Done = "",
) -> Response:
    """Shows an endpoint with its deliveries."""
    return _webhook(session, organization_slug, webhook_id, after=after, done=_DONE.get(done))


@router.post(_OWN + "/{webhookId}", operation_id="submitWebhookChange")
async def submit_webhook_change(
    session: Submits, organization_slug: OrganizationSlug, webhook_id: WebhookPath
) -> Response:
    """Changes the endpoint's name, URL, format, and events."""
    try:
        webhooks.update_webhook(organization_slug, webhook_id, session.account, session.user_id, session.form)
    except UnknownWebhook:
        raise
    except ApiError as failure:
        return _webhook(session, organization_slug, webhook_id, failure=failure)
    return _done(organization_slug, webhook_id, "saved")


@router.post(_OWN + "/{webhookId}/status", operation_id="submitWebhookStatus")
async def submit_webhook_status(
    session: Submits, organization_slug: OrganizationSlug, webhook_id: WebhookPath
) -> Response:
    """Enables or disables the endpoint."""
    status = session.form.get("status", "")
    webhooks.change_status(organization_slug, webhook_id, session.account, session.user_id, status)
    return _done(organization_slug, webhook_id, status)


@router.post(_OWN + "/{webhookId}/rotate", operation_id="submitWebhookRotation")
async def submit_webhook_rotation(
    session: Submits, organization_slug: OrganizationSlug, webhook_id: WebhookPath
) -> Response:
    """Replaces the secret and shows the new one. Sending the same form again shows the same secret."""
    organization, user_id = get_organization(organization_slug, session.account), session.user_id
    try:
        with reading(lambda: webhooks.own_webhook(organization, webhook_id)) as find:
            created = once.create_secret_once(
                session,
                organization,
                f"rotateWebhookOnPage {webhook_id}",
                lambda legs, secret: webhooks.rotate_secret(find(), user_id, legs, secret).webhook_id,
                prefix=_PREFIX,
            )
    except UnknownWebhook:
        raise
    except ApiError as failure:
        return _webhook(session, organization_slug, webhook_id, failure=failure)
    return _secret(session, organization, created, is_new=False)


@router.post(_OWN + "/{webhookId}/delete", operation_id="submitWebhookDeletion")
async def submit_webhook_deletion(
    session: Submits, organization_slug: OrganizationSlug, webhook_id: WebhookPath
) -> Response:
    """Deletes the endpoint."""
    webhooks.delete_webhook(organization_slug, webhook_id, session.account, session.user_id)
    return redirect(address(f"/organizations/{organization_slug}/webhooks?done=deleted"))


@router.get(_OWN + "/{webhookId}/deliveries/{eventId}", operation_id="showWebhookDelivery")
async def show_webhook_delivery(
    session: SignedIn,
    organization_slug: OrganizationSlug,
    webhook_id: WebhookPath,
    event_id: EventPath,
    done: Done = "",
) -> Response:
    """Shows a delivery: what is sent, and each attempt."""
    return _delivery(session, organization_slug, webhook_id, event_id, done=_DONE.get(done))


@router.post(_OWN + "/{webhookId}/deliveries/{eventId}/replay", operation_id="submitWebhookReplay")
async def submit_webhook_replay(
    session: Submits, organization_slug: OrganizationSlug, webhook_id: WebhookPath, event_id: EventPath
) -> Response:
    """Sends the event to the endpoint again."""
    try:
        webhooks.replay_delivery(organization_slug, webhook_id, event_id, session.account, session.user_id)
    except EndpointDisabled as failure:
        return _delivery(session, organization_slug, webhook_id, event_id, failure=failure)
    return redirect(
        address(f"/organizations/{organization_slug}/webhooks/{webhook_id}/deliveries/{event_id}?done=replayed")
    )


def _webhooks(
    session: WebSession, organization_slug: str, *, failure: ApiError | None = None, done: str | None = None
) -> Response:
    shown = webhooks.get_webhooks(organization_slug, session.account)
    return page(
        "webhooks",
        session,
        failure=failure,
        done=done,
        **shown._asdict(),
        can_see=shown.webhooks is not None,
        limit=WEBHOOKS_PER_ORGANIZATION,
        events=webhooks.EVENTS,
        entered=session.form,
        **once.form_content(session, failure),
    )


def _webhook(
    session: WebSession,
    organization_slug: str,
    webhook_id: str,
    *,
    after: str | None = None,
    failure: ApiError | None = None,
    done: str | None = None,
) -> Response:
    shown = webhooks.get_webhook(organization_slug, webhook_id, session.account, after)
    return page(
        "webhook",
        session,
        failure=failure,
        done=done,
        **shown._asdict(),
        is_first=after is None,
        saved=webhooks.to_form(shown.webhook),
        events=webhooks.EVENTS,
        entered=session.form,
        **once.form_content(session, failure),
    )


def _delivery(
    session: WebSession,
    organization_slug: str,
    webhook_id: str,
    event_id: str,
    *,
    failure: ApiError | None = None,
    done: str | None = None,
) -> Response:
    shown = webhooks.get_delivery(organization_slug, webhook_id, event_id, session.account)
    return page("webhook_delivery", session, failure=failure, done=done, **shown._asdict(), events=webhooks.EVENTS)


def _done(organization_slug: str, webhook_id: str, done: str) -> Response:
    return redirect(address(f"/organizations/{organization_slug}/webhooks/{webhook_id}?done={done}"))


def _secret(session: WebSession, organization: Membership, created: Created, *, is_new: bool) -> Response:
    return page(
        "webhook_secret",
        session,
        organization=organization,
        webhook_id=created.reference,
        secret=created.secret,
        is_new=is_new,
    )
