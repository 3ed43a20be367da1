"""Endpoints that an organization's webhooks are sent to, at most ten, each with its own secret; and stored deliveries.

A secret is shown once, when it is created. It is stored encrypted (`core.keyring`), because deliveries are signed with
it. The organization's counter is changed in the transaction that creates or deletes an endpoint.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NamedTuple, get_args
from urllib.parse import urlsplit

from controlplane.notify import webhook_urls
from controlplane.notify.webhook_urls import UnacceptableUrl
from controlplane.organizations import store as organizations
from controlplane.organizations.store import UnknownOrganization
from controlplane.platform.core import acting, clock, ids, keyring
from controlplane.platform.core.actions import Action
from controlplane.platform.core.errors import Conflict, InvalidPayload, NotFound, RoleRequired, known
from controlplane.platform.core.ids import EventId, WebhookId
from controlplane.platform.core.observability import logger
from controlplane.platform.queues.events import WEBHOOK_EVENTS
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.legs import Delete, Leg, Put, Recorded, Unrecorded, Update, set_expression
from controlplane.platform.table.retry import ConditionFailed, LegFailed
from controlplane.platform.table.stored import SPARSE, Derived, StoredItem
from controlplane.platform.table.table import table

WEBHOOKS_PER_ORGANIZATION = 10
# How long deliveries are signed with both secrets after a rotation.
ROTATION_SECONDS = 86_400
_EXISTS = "attribute_exists(pk)"
Format = Literal["standard", "slack"]
FORMATS: tuple[Format, ...] = get_args(Format)
WebhookStatus = Literal["enabled", "disabled"]
DeliveryStatus = Literal["pending", "succeeded", "failed"]
# Why an endpoint is disabled: a person did it, or its deliveries failed for a day.
DisabledReason = Literal["person", "failing"]
# Attempts at one endpoint at the same time, so that one that hangs leaves the workers to the others.
SLOTS = 2
# An attempt that takes longer is slow, whatever its outcome.
_SLOW_MILLISECONDS = 2_000
TIMEOUT = "timeout"


def _read_slots(item: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(item.get(f"slot{number}") or 0 for number in range(SLOTS))


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookItem(StoredItem):
    """An endpoint. `secret` and `previous_secret` are sealed; the latter also signs until `previous_until`.

    pages_url: the base URL of the pages, for the links in what is sent.
    failing_since: when the first delivery failed after the last one that succeeded, in Unix seconds.
    slots: until when each slot for an attempt is taken. slow_attempts: how many attempts in a row were slow.
        The endpoint isn't called until `rests_until`.
    """

    webhook_id: WebhookId
    name: str
    url: str
    format: Format
    events: tuple[str, ...]
    secret: str
    created_at: str
    created_by: str
    pages_url: str
    status: WebhookStatus
    disabled_reason: Annotated[DisabledReason | None, SPARSE] = None
    disabled_at: Annotated[str | None, SPARSE] = None
    previous_secret: Annotated[str | None, SPARSE] = None
    previous_until: Annotated[int, SPARSE] = 0
    failing_since: Annotated[int | None, SPARSE] = None
    slots: Annotated[tuple[int, ...], Derived(_read_slots)] = (0,) * SLOTS
    slow_attempts: Annotated[int, SPARSE] = 0
    rests_until: Annotated[int, SPARSE] = 0

    @property
    def key(self) -> Key:
        return keys.webhook(*self.webhook_id.location)

    @property
    def is_enabled(self) -> bool:
        return self.status == "enabled"

    def describe(self) -> dict[str, Any]:
        """Returns the fields that the audit log shows. The path of a URL may be a secret, as in Slack's."""
        host = urlsplit(self.url).netloc
        return {"host": host, "format": self.format, "events": list(self.events), "status": self.status}

    def recorded(self, action: Action, **changed: Mapping[str, Any]) -> Recorded:
        """Returns the entry of a change in the audit log. changed: `before`, `after`."""
        return Recorded(action, self.webhook_id.organization_id, self.webhook_id, self.name, **changed)

    @property
    def failing_since_at(self) -> str | None:
        return clock.timestamp(self.failing_since) if self.failing_since is not None else None

    @property
    def sealed_secrets(self) -> list[str]:
        """Returns the sealed secrets that sign, the newest first."""
        previous = self.previous_secret if self.previous_until > clock.now() else None
        return [secret for secret in (self.secret, previous) if secret is not None]


class Attempt(NamedTuple):
    """One attempt at a delivery. status: of the response, if there was one. error: why it failed; None if it didn't."""

    at: str
    status: int | None
    error: str | None
    milliseconds: int

    @property
    def is_slow(self) -> bool:
        return self.error == TIMEOUT or self.milliseconds > _SLOW_MILLISECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryItem(StoredItem):
    """The delivery of an event to an endpoint.

    attempts: how many were made. retries: how many were made since the delivery was created or replayed; they determine
    when the next one is. log: the latest attempts, oldest first.
    """

    webhook_id: WebhookId
    event_id: EventId
    event: str
    created_at: str
    status: DeliveryStatus
    attempts: int
    retries: Annotated[int, SPARSE] = 0
    next_attempt_at: Annotated[str | None, SPARSE] = None
    lease_until: int
    log: Annotated[tuple[Attempt, ...], SPARSE] = ()
    expires_at: Annotated[int, SPARSE] = 0

    @property
    def key(self) -> Key:
        return keys.webhook_delivery(self.webhook_id.organization_id, self.webhook_id.local, self.event_id.local)

    @property
    def last(self) -> Attempt | None:
        return self.log[-1] if self.log else None


class UnknownWebhook(NotFound):
    message = "The organization has no such webhook endpoint."


class WebhookLimitReached(Conflict):
    message = f"The organization has {WEBHOOKS_PER_ORGANIZATION} webhook endpoints. Delete one first."

    def __init__(self) -> None:
        super().__init__(details={"limit": WEBHOOKS_PER_ORGANIZATION})


def list_webhooks(organization_id: str) -> list[WebhookItem]:
    """Returns the organization's endpoints, oldest first. Consistent: events are sent to these endpoints."""
    page = table.query(keys.organization_pk(organization_id), prefix=keys.WEBHOOK_PREFIX, consistent=True)
    return [WebhookItem.from_item(item) for item in page.items]


def get_webhook(webhook_id: WebhookId) -> WebhookItem:
    """Returns the endpoint. Raises UnknownWebhook."""
    return WebhookItem.from_item(known(table.get(keys.webhook(*webhook_id.location)), UnknownWebhook))


def create_webhook(
    organization_id: str,
    *,
    name: str,
    url: str,
    format: Format,  # noqa: A002
    events: tuple[str, ...],
    secret: str,
    created_by: str,
    pages_url: str,
    extra_legs: Mapping[str, Leg],
) -> WebhookItem:
    """Creates an endpoint. `extra_legs` go first in the transaction.

    Raises WebhookLimitReached, UnknownOrganization, RoleRequired, and LegFailed if an extra leg fails.
    """
    webhook_id = WebhookId.of(organization_id, ids.new_local())
    made = WebhookItem(
        webhook_id=webhook_id,
        name=name,
        url=url,
        format=format,
        events=events,
        secret=keyring.seal(webhook_id, secret),
        created_at=clock.timestamp(),
        created_by=created_by,
        pages_url=pages_url,
        status="enabled",
    )
    count = Update(
        keys.organization(organization_id),
        "SET #webhooks = if_not_exists(#webhooks, :none) + :one",
        f"{_EXISTS} AND (attribute_not_exists(#webhooks) OR #webhooks < :most)",
        {"none": 0, "one": 1, "most": WEBHOOKS_PER_ORGANIZATION},
    )
    legs: dict[str, Leg] = {
        **extra_legs,
        **organizations.admin_check(created_by, organization_id),
        "organization": count,
        "webhook": Put(made.to_item()),
    }
    try:
        table.transact(legs, made.recorded(Action.WEBHOOK_CREATE, after=made.describe()), {"caller": RoleRequired})
    except LegFailed as failure:
        if failure.leg in extra_legs:
            raise
        if failure.items.get("organization") is None:
            raise UnknownOrganization from None
        raise WebhookLimitReached from None
    return made


def update_webhook(webhook: WebhookItem, changes: Mapping[str, Any], caller_id: str) -> WebhookItem:
    """Changes name, url, format, events, or status. Enabling an endpoint forgets its failures.

    Returns the endpoint as it is now. Raises UnknownWebhook, RoleRequired.
    """
    if not changes:
        return webhook
    changed, forgets = {**changes}, ""
    if changes.get("status") == "disabled":
        changed |= {"disabledReason": "person", "disabledAt": clock.timestamp()}
    elif changes.get("status") == "enabled":
        forgets = " REMOVE #disabledReason, #disabledAt, #failingSince, #slowAttempts, #restsUntil"
    after = replace(webhook, **changes)
    record = after.recorded(
        Action.WEBHOOK_UPDATE,
        before={"name": webhook.name, **webhook.describe()},
        after={"name": after.name, **after.describe()},
    )
    _write(webhook, Update(webhook.key, set_expression(changed) + forgets, _EXISTS, changed), caller_id, record)
    if acting.is_dry_run():
        kept = {name: value for name, value in webhook.to_item().items() if f"#{name}" not in forgets}
        return WebhookItem.from_item({**kept, **changed})
    return get_webhook(webhook.webhook_id)


def rotate_secret(webhook: WebhookItem, secret: str, caller_id: str, extra_legs: Mapping[str, Leg]) -> None:
    """Replaces the secret. Both sign for a day. Raises UnknownWebhook, RoleRequired, LegFailed."""
    values: dict[str, Any] = {
        "sealed": keyring.seal(webhook.webhook_id, secret),
        "until": int(clock.now()) + ROTATION_SECONDS,
    }
    change = "SET #previousSecret = #secret, #previousUntil = :until, #secret = :sealed"
    until = {"previousSecretUntil": clock.timestamp(values["until"])}
    record = webhook.recorded(Action.WEBHOOK_ROTATE_SECRET, after=until)
    _write(webhook, Update(webhook.key, change, _EXISTS, values), caller_id, record, extra_legs=extra_legs)


def delete_webhook(webhook: WebhookItem, caller_id: str) -> None:
    """Deletes the endpoint. Its deliveries can't be read anymore, and expire. Raises UnknownWebhook, RoleRequired."""
    organization = keys.organization(webhook.webhook_id.organization_id)
    count = Update(organization, "SET #webhooks = #webhooks - :one", _EXISTS, {"one": 1})
    record = webhook.recorded(Action.WEBHOOK_DELETE, before=webhook.describe())
    _write(webhook, Delete(webhook.key, _EXISTS), caller_id, record, more={"organization": count})


def _write(
    webhook: WebhookItem,
    leg: Leg,
    caller_id: str,
    record: Recorded,
    *,
    extra_legs: Mapping[str, Leg] | None = None,
    more: Mapping[str, Leg] | None = None,
) -> None:
    extra = extra_legs or {}
    caller = organizations.admin_check(caller_id, webhook.webhook_id.organization_id)
    errors = {"caller": RoleRequired, "webhook": UnknownWebhook, "organization": UnknownWebhook}
    table.transact({**extra, **caller, "webhook": leg, **(more or {})}, record, errors)


def seal_again(webhook: WebhookItem) -> None:
    """Seals the endpoint's secrets with the current signing key, unless they have changed since they were read."""
    try:
        opened = {name: keyring.unseal(webhook.webhook_id, text) for name, text in _sealed(webhook).items()}
    except keyring.Unsealable:
        logger.error("webhook secret unreadable", extra={"webhookId": webhook.webhook_id})
        return
    if all(it.is_current for it in opened.values()):
        return
    changed = {name: keyring.seal(webhook.webhook_id, it.text) for name, it in opened.items()}
    when, values = "#secret = :read", {**changed, "read": webhook.secret}
    try:
        table.update(Update(webhook.key, set_expression(changed), when, values), Unrecorded.REWRITE)
    except ConditionFailed:
        return


def _sealed(webhook: WebhookItem) -> dict[str, str]:
    previous = webhook.sealed_secrets[1:]
    return {"secret": webhook.secret, **({"previousSecret": previous[0]} if previous else {})}


# Values of endpoints


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
