"""Writes about webhook deliveries and emails."""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.notify import mail_messages, mails, webhook_deliveries, webhooks
from controlplane.notify.mails import MailId
from controlplane.notify.webhook_deliveries import Begun
from controlplane.organizations.store import UnknownOrganization
from controlplane.platform.core import clock
from controlplane.platform.table import keys
from controlplane.platform.table.retry import WriteConflict
from controlplane.platform.table.table import table
from tests.functional.stale_writes.cases import ORGANIZATION, Case, Make, Refused, check_refused, deletes, happens, sets
from tests.support.calls import before_the_transaction
from tests.support.endpoints import FAILED, begin, delivered, endpoint
from tests.support.world import World


def _abandoned(world: World, earlier: Callable[[Begun], Any]) -> Case:
    """Gives a delivery up, which another worker has begun to attempt."""
    delivery = delivered(world.company())
    return lambda: webhook_deliveries._give_up(delivery, "disabled"), lambda: earlier(begin(delivery)), WriteConflict


def _abandoned_twice(world: World) -> Case:
    delivery = delivered(world.company())

    def give_up() -> None:
        webhook_deliveries._give_up(delivery, "expired")

    return give_up, give_up, WriteConflict


def _taken(world: World, earlier: Callable[[Begun], Any]) -> Case:
    """Takes a delivery for an attempt."""
    delivery = delivered(world.company())
    webhook = webhooks.get_webhook(delivery.webhook_id)
    begun = Begun(webhook, delivery, "{}", 0, int(clock.now()) + 60)
    return lambda: webhook_deliveries._take(begun, int(clock.now())), lambda: earlier(begun), WriteConflict


def _finish(begun: Begun) -> object:
    return webhook_deliveries.finish_attempt(begun, FAILED)


def _finished(world: World, **changed: object) -> Case:
    """Records an attempt."""
    begun = begin(delivered(world.company()))
    return happens(lambda: _finish(begun) is not None), sets(begun.delivery.key, **changed), Refused


def _endpoint(world: World) -> Case:
    company = world.company()
    return lambda: endpoint(company), deletes(keys.organization(company.organization_id)), UnknownOrganization


def _created(world: World) -> Case:
    delivery = delivered(world.company())
    webhook = webhooks.get_webhook(delivery.webhook_id)
    create = happens(lambda: webhook_deliveries.create_delivery(webhook, delivery.event_id, delivery.event))
    return create, lambda: None, Refused


CASES: dict[str, Make] = {
    "delivery that is being attempted": lambda it: _abandoned(it, lambda _: None),
    "delivery that was attempted": lambda it: _abandoned(it, _finish),
    "delivery that was given up": _abandoned_twice,
    "delivery that was given up before it is taken": lambda it: _taken(
        it, lambda begun: webhook_deliveries._give_up(begun.delivery, "expired")
    ),
    "delivery that was attempted before it is taken": lambda it: _taken(
        it, lambda begun: _finish(begin(begun.delivery))
    ),
    "delivery that another worker has": lambda it: _taken(
        it, lambda begun: sets(begun.delivery.key, leaseUntil=int(clock.now()) + 1)()
    ),
    "slot that another delivery has": lambda it: _taken(
        it, lambda begun: sets(begun.webhook.key, slot0=int(clock.now()) + 1)()
    ),
    "attempt at a delivery that has ended": lambda it: _finished(it, status="failed"),
    "attempt that was recorded": lambda it: _finished(it, attempts=1),
    "attempt that another worker makes": lambda it: _finished(it, leaseUntil=1),
    "endpoint of a deleted organization": _endpoint,
    "delivery that was created before": _created,
}


@pytest.mark.parametrize("name", CASES)
def test_an_outdated_write_is_refused_and_changes_nothing(name, world):
    check_refused(CASES[name], world)


def test_what_became_of_an_email_is_recorded_once():
    mail_id = MailId("usr_1", "m1")

    def claim():
        mails.claim(mail_id, "ada@example.com", "digest", ORGANIZATION, {})

    claim()
    with pytest.raises(mails.Unsettled) as unsettled:
        claim()
    assert unsettled.value.seconds == 120
    for state in ("sent", "failed"):
        mails.settle(mail_id, state)
    with pytest.raises(mails.AlreadySent):
        claim()


def test_findings_of_events_at_the_same_time_are_in_one_email():
    def add(number):
        mail_messages.add_findings(ORGANIZATION, f"evt_{number}", [f"inb_{number}"])

    add(1)
    with before_the_transaction(table.client, lambda: add(2)):
        add(3)
    batch = mail_messages.find_batch(ORGANIZATION, str(int(clock.now()) // mail_messages.WINDOW_SECONDS))
    assert batch == (3, ["inb_1", "inb_2", "inb_3"])


@pytest.mark.parametrize(
    "changed", [{"failingSince": 1_790_000_000}, {"status": "disabled", "disabledReason": "other"}]
)
def test_an_endpoint_that_recovered_or_was_disabled_isnt_disabled_as_failing(changed, world):
    company = world.company()
    webhook = endpoint(company)
    sets(webhook.key, failingSince=int(clock.now()) - webhook_deliveries.FAILING_SECONDS)()
    begun = begin(delivered(company, webhook))
    sets(webhook.key, **changed)()
    assert webhook_deliveries.finish_attempt(begun, FAILED) == []
    stored = table.get(webhook.key)
    assert {name: stored[name] for name in changed} == changed
    assert stored.get("disabledReason") == changed.get("disabledReason")


def test_a_replay_of_a_delivery_that_was_attempted_since_makes_the_next_attempt(world):
    company = world.company()
    delivery = delivered(company)
    seen = webhook_deliveries.get_delivery(delivery.webhook_id, delivery.event_id)
    _finish(begin(delivery))
    webhook = webhooks.get_webhook(delivery.webhook_id)
    _, message = webhook_deliveries.replay_delivery(webhook, delivery.event_id, company.owner.user_id, seen)
    assert message.message["attempt"] == 2
