"""Stored endpoints of webhooks, and the deliveries to them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, get_args
from urllib.parse import urlsplit

from controlplane.platform.core import clock
from controlplane.platform.core.ids import EventId, WebhookId
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.stored import SPARSE, Derived, StoredItem

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

    @property
    def recorded(self) -> dict[str, Any]:
        """Returns the fields that the audit log shows. The path of a URL may be a secret, as in Slack's."""
        host = urlsplit(self.url).netloc
        return {"host": host, "format": self.format, "events": list(self.events), "status": self.status}

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
