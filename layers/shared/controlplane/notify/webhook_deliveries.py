"""Deliveries of events to endpoints: attempted under a lease, retried for a day, and kept for 30 days.

Each attempt has a number and a message of its own, which is written in the transaction that makes the attempt due. A
message whose attempt was made is ignored, so a delivery is attempted once for each number unless a worker dies after
it has sent the request and before it has recorded the result. An attempt also takes one of its endpoint's slots.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from controlplane.notify.webhooks import TIMEOUT, Attempt, DeliveryItem, WebhookItem
from controlplane.organizations import store as organizations
from controlplane.platform.core import clock
from controlplane.platform.core.actions import Action
from controlplane.platform.core.errors import Conflict, NotFound, RoleRequired
from controlplane.platform.core.ids import EventId, WebhookId
from controlplane.platform.queues import events, messages
from controlplane.platform.queues.messages import DeliverWebhook, Queue
from controlplane.platform.queues.outbox import Entry
from controlplane.platform.table import keys
from controlplane.platform.table.leases import Held
from controlplane.platform.table.legs import Leg, Put, Unrecorded, Update, set_expression
from controlplane.platform.table.retry import ConditionFailed, LegFailed, StoreError, WriteConflict, retry_on_conflict
from controlplane.platform.table.stored import to_map
from controlplane.platform.table.table import QueryPage, table

# The pauses after failed attempts. Together they last a day.
RETRY_SECONDS = (60, 300, 900, 3_600, 7_200, 14_400, 28_800, 31_140)
# An endpoint that fails for that long is disabled.
FAILING_SECONDS = 86_400
# Longer than the worker's timeout, so that only a dead worker's lease expires.
LEASE_SECONDS = 40
_KEPT_SECONDS = 30 * 86_400
_MOST_LOGGED = 20
# How long an endpoint isn't called after a timeout: for each slow attempt in a row, and at most.
_REST_SECONDS, _LONGEST_REST_SECONDS = 60, 900
# One that responds, but slowly, rests after so many slow attempts in a row.
_SLOW_ATTEMPTS = 3
_BUSY_SECONDS = 5


class UnknownDelivery(NotFound):
    message = "The endpoint has no such delivery. Deliveries are kept for 30 days."


class EndpointDisabled(Conflict):
    message = "The endpoint is disabled. Enable it first."


class EndpointBusy(StoreError):
    """The endpoint's slots are taken, or it rests because it is slow."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class Begun:
    """An attempt that a worker may make now: the endpoint and the delivery as they were, and the body."""

    webhook: WebhookItem
    delivery: DeliveryItem
    body: str
    slot: int
    until: int


# Creating


def keep_body(event_id: EventId, event: str, body: str) -> None:
    """Stores the body of the event. The first of several calls counts, so each attempt sends the same."""
    item = {**keys.webhook_event(*event_id.location)._asdict(), "event": event, "body": body, **_expiry()}
    try:
        table.put(Put(item, "attribute_not_exists(pk)"), Unrecorded.MESSAGE)
    except ConditionFailed:
        return


def create_delivery(webhook: WebhookItem, event_id: EventId, event: str) -> list[Entry]:
    """Creates the delivery of an event to the endpoint, once. Returns the message of its first attempt."""
    now = clock.timestamp()
    made = DeliveryItem(
        webhook_id=webhook.webhook_id,
        event_id=event_id,
        event=event,
        created_at=now,
        status="pending",
        attempts=0,
        lease_until=0,
        next_attempt_at=now,
        expires_at=_expiry()["expiresAt"],
    )
    message = _message(made, 1, 0)
    try:
        legs = {"delivery": Put(made.to_item(), "attribute_not_exists(pk)"), "message": message.leg}
        table.transact(legs, Unrecorded.MESSAGE)
    except LegFailed:
        return []
    return [message]


def _expiry() -> dict[str, int]:
    return {"expiresAt": int(clock.now()) + _KEPT_SECONDS}


def _message(delivery: DeliveryItem, attempt: int, after_seconds: int) -> Entry:
    message = DeliverWebhook(webhook_id=delivery.webhook_id, event_id=delivery.event_id, attempt=attempt)
    return messages.entry(Queue.NOTIFICATIONS, message, after_seconds)


# Reading


def list_deliveries(webhook_id: WebhookId, limit: int, after: str | None) -> QueryPage[DeliveryItem]:
    """Returns one page of the endpoint's deliveries, those of the latest events first.

    Consistent, because people look for what they just replayed.
    """
    organization_id, local = webhook_id.location
    page = table.query(
        keys.organization_pk(organization_id),
        prefix=keys.webhook_delivery_prefix(local),
        newest_first=True,
        limit=limit,
        after=after,
        consistent=True,
    )
    return page.read(DeliveryItem.from_item)


def get_delivery(webhook_id: WebhookId, event_id: EventId) -> tuple[DeliveryItem, str | None]:
    """Returns the delivery and its body. Raises UnknownDelivery."""
    own = keys.webhook_delivery(webhook_id.organization_id, webhook_id.local, event_id.local)
    item, event = table.batch_get([own, keys.webhook_event(*event_id.location)])
    if item is None or event_id.organization_id != webhook_id.organization_id:
        raise UnknownDelivery
    return DeliveryItem.from_item(item), event["body"] if event else None


# Attempting


def begin_attempt(webhook_id: WebhookId, event_id: EventId, attempt: int) -> Begun | None:
    """Takes the delivery and a slot of its endpoint for the attempt. Returns None if there is nothing to do anymore.

    Raises Held while another worker makes it, and EndpointBusy.
    """

    def begin() -> Begun | None:
        own = keys.webhook_delivery(webhook_id.organization_id, webhook_id.local, event_id.local)
        stored, item, event = table.batch_get(
            [keys.webhook(*webhook_id.location), own, keys.webhook_event(*event_id.location)]
        )
        if stored is None or item is None:
            return None
        webhook, delivery = WebhookItem.from_item(stored), DeliveryItem.from_item(item)
        if delivery.status != "pending" or delivery.attempts != attempt - 1:
            return None
        now = int(clock.now())
        if delivery.lease_until > now:
            raise Held(delivery.lease_until - now)
        if not webhook.is_enabled or event is None:
            _give_up(delivery, "disabled" if event else "expired")
            return None
        begun = Begun(webhook, delivery, event["body"], _free_slot(webhook, now), now + LEASE_SECONDS)
        _take(begun, now)
        return begun

    return retry_on_conflict(begin, "the endpoint")


def _free_slot(webhook: WebhookItem, now: int) -> int:
    if webhook.rests_until > now:
        raise EndpointBusy(webhook.rests_until - now)
    for number, until in enumerate(webhook.slots):
        if until <= now:
            return number
    raise EndpointBusy(_BUSY_SECONDS)


def _take(begun: Begun, now: int) -> None:
    slot = f"slot{begun.slot}"
    legs: dict[str, Leg] = {
        "webhook": Update(
            begun.webhook.key,
            f"SET #{slot} = :until",
            f"#status = :enabled AND (attribute_not_exists(#{slot}) OR #{slot} <= :now)",
            {"until": begun.until, "enabled": "enabled", "now": now},
        ),
        "delivery": Update(
            begun.delivery.key,
            "SET #leaseUntil = :until",
            "#status = :pending AND #attempts = :attempts AND #leaseUntil <= :now",
            {"until": begun.until, "pending": "pending", "attempts": begun.delivery.attempts, "now": now},
        ),
    }
    table.transact_or_retry(legs, Unrecorded.LEASE)


def _give_up(delivery: DeliveryItem, error: str) -> None:
    """Ends the delivery without an attempt: its endpoint is disabled, or its body has expired."""
    made = Attempt(clock.timestamp(), None, error, 0)
    log = [to_map(attempt) for attempt in (*delivery.log, made)[-_MOST_LOGGED:]]
    changed = {"status": "failed", "nextAttemptAt": None, "log": log}
    when = "#status = :pending AND #attempts = :attempts AND #leaseUntil = :until"
    values = {"pending": "pending", "attempts": delivery.attempts, "until": delivery.lease_until}
    try:
        table.update(Update(delivery.key, set_expression(changed), when, {**changed, **values}), Unrecorded.MESSAGE)
    except ConditionFailed:
        raise WriteConflict from None


def finish_attempt(begun: Begun, made: Attempt) -> list[Entry] | None:
    """Records the attempt, with the message of the next one if it failed.

    In the same transaction, it frees the endpoint's slot, and disables the endpoint if it has failed for a day, with
    the event `webhook.disabled`. Returns the messages to send now, or None if the worker outlived its lease.
    """
    delivery = _after(begun.delivery, made)
    changed = {
        "status": delivery.status,
        "attempts": delivery.attempts,
        "retries": delivery.retries,
        "nextAttemptAt": delivery.next_attempt_at,
        "leaseUntil": 0,
        "log": [to_map(attempt) for attempt in delivery.log],
    }
    values = {"pending": "pending", "read": begun.delivery.attempts, "until": begun.until}
    when = "#status = :pending AND #attempts = :read AND #leaseUntil = :until"
    legs: dict[str, Leg] = {
        "delivery": Update(delivery.key, set_expression(changed), when, {**changed, **values}),
    }
    if delivery.status == "pending":
        pause = RETRY_SECONDS[delivery.retries - 1]
        legs["message"] = _message(delivery, delivery.attempts + 1, pause).leg
    for webhook_legs, entry in _effects(begun, made):
        try:
            statuses = {"before": {"status": "enabled"}, "after": {"status": "disabled"}}
            record = begun.webhook.recorded(Action.WEBHOOK_DISABLE, **statuses) if entry else Unrecorded.MESSAGE
            table.transact({**legs, **webhook_legs}, record)
        except LegFailed as failure:
            if "delivery" in failure.items:
                return None
            continue  # the endpoint recovered, was disabled, or was deleted since
        return [entry] if entry else []
    return None


def _after(delivery: DeliveryItem, made: Attempt) -> DeliveryItem:
    retries = delivery.retries + 1
    changed = replace(
        delivery, attempts=delivery.attempts + 1, retries=retries, log=(*delivery.log, made)[-_MOST_LOGGED:]
    )
    if made.error is None:
        return replace(changed, status="succeeded", next_attempt_at=None)
    if retries > len(RETRY_SECONDS):
        return replace(changed, status="failed", next_attempt_at=None)
    return replace(changed, next_attempt_at=clock.timestamp(clock.now() + RETRY_SECONDS[retries - 1]))


def _effects(begun: Begun, made: Attempt) -> Iterator[tuple[dict[str, Leg], Entry | None]]:
    """Yields the changes of the endpoint by the attempt: the first one whose conditions hold is written."""
    webhook, now = begun.webhook, int(clock.now())
    slot = f"slot{begun.slot}"
    change, mine, values = f"SET #{slot} = :free", f"#{slot} = :until", {"free": 0, "until": begun.until}
    removed = []
    if made.is_slow:
        slow = webhook.slow_attempts + 1
        change, values = change + ", #slowAttempts = :slow", {**values, "slow": slow}
        if seconds := _rest_seconds(made, slow):
            change, values = change + ", #restsUntil = :rests", {**values, "rests": now + seconds}
    elif made.error is None:
        removed = ["#slowAttempts", "#restsUntil"]
    if made.error is None:
        change += f" REMOVE {', '.join(['#failingSince', *removed])}"
    else:
        change, values = change + ", #failingSince = if_not_exists(#failingSince, :now)", {**values, "now": now}
        if webhook.failing_since is not None and now >= webhook.failing_since + FAILING_SECONDS:
            yield _disabling(webhook, change, mine, values)
    yield {"webhook": Update(webhook.key, change, mine, values)}, None
    yield {}, None


def _rest_seconds(made: Attempt, slow_attempts: int) -> int:
    """Returns how long the endpoint rests after a slow attempt, the last one of so many in a row."""
    if made.error == TIMEOUT:
        return min(_REST_SECONDS * slow_attempts, _LONGEST_REST_SECONDS)
    return _REST_SECONDS if slow_attempts >= _SLOW_ATTEMPTS else 0


def _disabling(webhook: WebhookItem, change: str, mine: str, values: dict[str, Any]) -> tuple[dict[str, Leg], Entry]:
    entry = events.entry(webhook.webhook_id.organization_id, "webhook.disabled", webhook.webhook_id)
    disabled = {"status": "disabled", "disabledReason": "failing", "disabledAt": clock.timestamp()}
    change += "".join(f", #{name} = :{name}" for name in disabled)
    when = f"{mine} AND #failingSince = :since AND #status = :enabled"
    values = {**values, **disabled, "since": webhook.failing_since, "enabled": "enabled"}
    return {"webhook": Update(webhook.key, change, when, values), "event": entry.leg}, entry


# Replaying


def replay_delivery(
    webhook: WebhookItem, event_id: EventId, caller_id: str, seen: tuple[DeliveryItem, str | None] | None = None
) -> tuple[DeliveryItem, Entry]:
    """Makes another attempt at the delivery due now, which is retried for a day like the first one.

    seen: what `get_delivery` has just returned, which saves reading it.
    Returns the delivery, and the attempt's message to send. Raises UnknownDelivery, EndpointDisabled, RoleRequired.
    """
    if not webhook.is_enabled:
        raise EndpointDisabled

    def replay() -> tuple[DeliveryItem, Entry]:
        nonlocal seen
        (delivery, body), seen = seen or get_delivery(webhook.webhook_id, event_id), None
        if body is None:
            raise UnknownDelivery
        now = clock.timestamp()
        changed = {"status": "pending", "retries": 0, "nextAttemptAt": now}
        message = _message(delivery, delivery.attempts + 1, 0)
        legs: dict[str, Leg] = {
            **organizations.admin_check(caller_id, webhook.webhook_id.organization_id),
            "delivery": Update(
                delivery.key,
                set_expression(changed),
                "#attempts = :attempts",
                {**changed, "attempts": delivery.attempts},
            ),
            "message": message.leg,
        }
        record = webhook.recorded(Action.WEBHOOK_REPLAY, after={"eventId": event_id})
        table.transact(legs, record, {"caller": RoleRequired}, WriteConflict)
        return replace(delivery, status="pending", retries=0, next_attempt_at=now), message

    return retry_on_conflict(replay, "the delivery")
