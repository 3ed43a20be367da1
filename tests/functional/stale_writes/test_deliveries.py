"""Writes about webhook deliveries and emails."""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.notify import mail_messages, mails, webhook_deliveries, webhooks
from controlplane.notify.mails import MailId
from controlplane.organizations.store import UnknownOrganization
from controlplane.platform.core import clock
from controlplane.platform.table import keys
from controlplane.platform.table.retry import WriteConflict
from controlplane.platform.table.table import Delete, Update, table
from tests.functional.stale_writes.cases import ORGANIZATION, Case, Make, Refused, cases, check_refused
from tests.support.calls import before_the_transaction
from tests.support.endpoints import FAILED, begin, delivered, endpoint
from tests.support.table import PREPARED
from tests.support.world import World


def _delivery(world: World, earlier: Callable[[webhook_deliveries.Begun], Any]) -> Case:
    delivery = delivered(world.company())

    return lambda: webhook_deliveries._give_up(delivery, "disabled"), lambda: earlier(begin(delivery)), WriteConflict


def delivery_that_is_being_attempted(world: World) -> Case:
    return _delivery(world, lambda _: None)


def delivery_that_was_attempted(world: World) -> Case:
    return _delivery(world, lambda begun: webhook_deliveries.finish_attempt(begun, FAILED))


def delivery_that_was_given_up(world: World) -> Case:
    delivery = delivered(world.company())

    def give_up() -> None:
        webhook_deliveries._give_up(delivery, "expired")

    return give_up, give_up, WriteConflict


def _taken(world: World, earlier: Callable[[webhook_deliveries.Begun], Any]) -> Case:
    """Takes a delivery for an attempt."""
    delivery = delivered(world.company())
    webhook = webhooks.get_webhook(delivery.webhook_id)
    begun = webhook_deliveries.Begun(webhook, delivery, "{}", 0, int(clock.now()) + 60)
    return lambda: webhook_deliveries._take(begun, int(clock.now())), lambda: earlier(begun), WriteConflict


def delivery_that_was_given_up_before_it_is_taken(world: World) -> Case:
    return _taken(world, lambda begun: webhook_deliveries._give_up(begun.delivery, "expired"))


def delivery_that_was_attempted_before_it_is_taken(world: World) -> Case:
    return _taken(world, lambda begun: webhook_deliveries.finish_attempt(begin(begun.delivery), FAILED))


def delivery_that_another_worker_has(world: World) -> Case:
    def lease(begun: webhook_deliveries.Begun) -> None:
        until = {"until": int(clock.now()) + 1}
        table.update(Update(begun.delivery.key, "SET #leaseUntil = :until", None, until), PREPARED)

    return _taken(world, lease)


def _finished(world: World, change: str, value: object) -> Case:
    """Records an attempt."""
    begun = begin(delivered(world.company()))

    def finish() -> None:
        if webhook_deliveries.finish_attempt(begun, FAILED) is None:
            raise Refused

    other = Update(begun.delivery.key, change, None, {"value": value})
    return finish, lambda: table.update(other, PREPARED), Refused


def attempt_at_a_delivery_that_has_ended(world: World) -> Case:
    return _finished(world, "SET #status = :value", "failed")


def attempt_that_was_recorded(world: World) -> Case:
    return _finished(world, "SET #attempts = :value", 1)


def attempt_that_another_worker_makes(world: World) -> Case:
    return _finished(world, "SET #leaseUntil = :value", 1)


def endpoint_of_a_deleted_organization(world: World) -> Case:
    company = world.company()
    organization = keys.organization(company.organization_id)
    return lambda: endpoint(company), lambda: table.delete(Delete(organization), PREPARED), UnknownOrganization


def slot_that_another_delivery_has(world: World) -> Case:
    def take(begun: webhook_deliveries.Begun) -> None:
        taken = Update(begun.webhook.key, "SET #slot0 = :until", None, {"until": int(clock.now()) + 1})
        table.update(taken, PREPARED)

    return _taken(world, take)


@pytest.mark.parametrize("make", cases(globals()), ids=lambda make: make.__name__)
def test_an_outdated_write_is_refused_and_changes_nothing(make: Make, world: World):
    check_refused(make, world)


def test_what_became_of_an_email_is_recorded_once():
    mail_id = MailId("usr_1", "m1")

    def claim() -> None:
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
    def add(number: int) -> None:
        mail_messages.add_findings(ORGANIZATION, f"evt_{number}", [f"inb_{number}"])

    add(1)
    with before_the_transaction(table.client, lambda: add(2)):
        add(3)
    batch = mail_messages.find_batch(ORGANIZATION, str(int(clock.now()) // mail_messages.WINDOW_SECONDS))
    assert batch == (3, ["inb_1", "inb_2", "inb_3"])
