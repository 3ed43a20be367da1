"""Webhook endpoints in tests: a receiver that records requests, and a line that delivers the worker's messages."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from controlplane.findings import publications
from controlplane.notify import webhook_deliveries, webhooks
from controlplane.notify.webhook_deliveries import Begun
from controlplane.notify.webhooks import Attempt, DeliveryItem, WebhookItem
from controlplane.platform.core import ids
from controlplane.platform.core.ids import EventId, WebhookId
from controlplane.platform.queues import messages
from controlplane.platform.queues.events import WEBHOOK_EVENTS
from controlplane.platform.queues.messages import Queue
from notifications import transport
from notifications.app import handler
from notifications.transport import NotDelivered
from tests.support.calls import touch_outside
from tests.support.cleanup import swept
from tests.support.sqs import FakeSqs
from tests.support.world import Company, World

URL = "https://hooks.example.com/assent"
FAILED = Attempt("2026-03-04T05:06:07.000Z", 500, "status", 1)
SECRET = "whsec_" + "Ab3x" * 9
_DOCUMENT = Path(__file__).parents[2] / "docs" / "webhooks.md"


def documented_verify() -> Callable[..., str]:
    """Returns the function that the documentation tells receivers to use."""
    (code,) = re.findall(r"```python\n(.*?)```", _DOCUMENT.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    found: Callable[..., str] = names["verify"]
    return found


def documented_fields(event: str) -> set[str]:
    """Returns the fields of the event's data that the documentation lists, at any depth."""
    (row,) = re.findall(rf"^\| `{re.escape(event)}` \|.*\|(.*)\|$", _DOCUMENT.read_text(), re.MULTILINE)
    return {*re.findall(r"`(\w+)`", row)}


@dataclass
class Receiver:
    """Stands for every endpoint. `answer` is the status of its response, or why it failed; `answers` by event."""

    answer: int | str = 200
    requests: list[tuple[str, bytes, dict[str, str]]] = field(default_factory=list)
    answers: dict[str, int | str] = field(default_factory=dict)
    before: Callable[[], None] = lambda: None

    def post(self, url: str, body: bytes, headers: dict[str, str]) -> int:
        touch_outside()
        self.requests.append((url, body, headers))
        self.before()
        answer = self.answers.get(headers["webhook-id"], self.answer)
        if isinstance(answer, str):
            raise NotDelivered(answer)
        return answer

    @property
    def ids(self) -> list[str]:
        return [headers["webhook-id"] for _, _, headers in self.requests]

    def install(self, patch: pytest.MonkeyPatch) -> "Receiver":
        patch.setattr(transport, "post", self.post)
        return self


def endpoint(company: Company, **changes: Any) -> WebhookItem:
    """Creates an endpoint for every event."""
    chosen: dict[str, Any] = {
        "name": "Alerts",
        "url": URL,
        "format": "standard",
        "events": WEBHOOK_EVENTS,
        "secret": SECRET,
        "created_by": company.owner.user_id,
        "pages_url": "https://dashboard.assent.test",
        "extra_legs": {},
    }
    return webhooks.create_webhook(company.organization_id, **{**chosen, **changes})


def begin(delivery: DeliveryItem) -> Begun:
    """Begins the delivery's first attempt, as a worker does."""
    begun = webhook_deliveries.begin_attempt(delivery.webhook_id, delivery.event_id, 1)
    assert begun is not None
    return begun


def delivered(company: Company, webhook: WebhookItem | None = None) -> DeliveryItem:
    """Creates the delivery of an event to the endpoint, which is a new one if none is given."""
    webhook, event_id = webhook or endpoint(company), EventId.of(company.organization_id, ids.new_local())
    webhook_deliveries.keep_body(event_id, "credits.low", "{}")
    webhook_deliveries.create_delivery(webhook, event_id, "credits.low")
    return webhook_deliveries.get_delivery(webhook.webhook_id, event_id)[0]


@dataclass
class Line:
    """The queue of `notifications`, its worker, and the sweep."""

    sqs: FakeSqs
    world: World
    company: Company
    receiver: Receiver

    def happen(self) -> str:
        """Opens a finding, and returns its id."""
        discovery = self.world.discovery(self.company)
        messages.dispatch(*publications.publish_findings([discovery]))
        return discovery.item_id

    def work(self) -> None:
        """Delivers what is due, and what follows from it."""
        url = Queue.NOTIFICATIONS.url
        while due := self.sqs.due(url):
            self.sqs.deliver(due[0], handler, Queue.NOTIFICATIONS.dead_letters_url)

    def tell(self) -> str:
        """Opens a finding, delivers its event, and returns its id."""
        item_id = self.happen()
        self.work()
        return item_id

    def sweep(self) -> None:
        swept(messages.resend)
        self.work()

    @staticmethod
    def deliveries(webhook: WebhookItem) -> list[DeliveryItem]:
        return webhook_deliveries.list_deliveries(webhook.webhook_id, 50, None).items

    @staticmethod
    def read(webhook: WebhookItem) -> WebhookItem:
        return webhooks.get_webhook(WebhookId.stored(webhook.webhook_id))
