"""Attempts at deliveries, as workers begin and finish them, and replays."""

import pytest

from controlplane.notify import webhook_deliveries, webhooks
from controlplane.notify.webhook_deliveries import EndpointBusy, UnknownDelivery
from controlplane.notify.webhooks import TIMEOUT, Attempt
from controlplane.platform.core.ids import EventId
from controlplane.platform.queues import messages
from controlplane.platform.table import keys
from controlplane.platform.table.table import Delete, table
from tests.support.endpoints import FAILED, begin, delivered, endpoint
from tests.support.table import PREPARED

SUCCEEDED, TIMED_OUT = FAILED._replace(status=200, error=None), Attempt(FAILED.at, None, TIMEOUT, 1)


def finish(begun, made=FAILED):
    return webhook_deliveries.finish_attempt(begun, made)


def attempt(company, webhook, made):
    """Makes the first attempt at the delivery of a new event."""
    finish(begin(delivered(company, webhook)), made)


def stored(delivery):
    return webhook_deliveries.get_delivery(delivery.webhook_id, delivery.event_id)[0]


def test_an_endpoint_rests_longer_after_each_timeout_until_it_answers(company, now):
    webhook = endpoint(company)
    for number in range(1, 17):
        attempt(company, webhook, TIMED_OUT)
        now.advance(min(60 * number, 900) - 1)
        with pytest.raises(EndpointBusy) as busy:
            attempt(company, webhook, SUCCEEDED)
        assert busy.value.seconds == 1
        now.advance(1)
    attempt(company, webhook, SUCCEEDED)
    assert webhooks.get_webhook(webhook.webhook_id) == webhook


def test_an_endpoint_that_is_enabled_again_rests_no_more(company):
    timed_out = endpoint(company)
    attempt(company, timed_out, TIMED_OUT)
    for status in ("disabled", "enabled"):
        webhooks.update_webhook(timed_out, {"status": status}, company.owner.user_id)
    assert webhooks.get_webhook(timed_out.webhook_id) == timed_out


@pytest.mark.parametrize(("seconds", "status"), [(86_399, "enabled"), (86_400, "disabled")])
def test_an_endpoint_is_disabled_by_a_failure_a_day_after_the_first(seconds, status, company, now):
    webhook = endpoint(company)
    attempt(company, webhook, FAILED)
    now.advance(seconds)
    attempt(company, webhook, FAILED)
    assert webhooks.get_webhook(webhook.webhook_id).status == status


def test_the_latest_20_attempts_are_kept(company):
    webhook, owner = endpoint(company), company.owner.user_id
    delivery = delivered(company, webhook)
    place = webhook.webhook_id, delivery.event_id
    for number in range(1, 23):
        finish(webhook_deliveries.begin_attempt(*place, number), FAILED._replace(milliseconds=number))
        webhook_deliveries.replay_delivery(webhook, delivery.event_id, owner)
    kept = stored(delivery).log
    assert [it.milliseconds for it in kept] == [*range(3, 23)]
    webhooks.update_webhook(webhook, {"status": "disabled"}, owner)
    assert webhook_deliveries.begin_attempt(*place, 23) is None
    assert (stored(delivery).log[:-1], stored(delivery).log[-1].error) == (kept[1:], "disabled")


def test_every_attempt_sends_what_the_first_one_did_which_is_kept_as_long_as_the_delivery(company):
    delivery = delivered(company)
    webhook_deliveries.keep_body(delivery.event_id, "credits.low", '{"changed": true}')
    assert begin(delivery).body == "{}"
    assert table.get(keys.webhook_event(*delivery.event_id.location))["expiresAt"] == delivery.expires_at


def test_an_event_that_has_expired_is_neither_sent_nor_replayed(company):
    delivery = delivered(company)
    table.delete(Delete(keys.webhook_event(*delivery.event_id.location)), PREPARED)
    assert webhook_deliveries.begin_attempt(delivery.webhook_id, delivery.event_id, 1) is None
    ended = stored(delivery)
    assert (ended.status, ended.attempts, ended.log[-1].error) == ("failed", 0, "expired")
    webhook = webhooks.get_webhook(delivery.webhook_id)
    with pytest.raises(UnknownDelivery):
        webhook_deliveries.replay_delivery(webhook, delivery.event_id, company.owner.user_id)


def test_the_slot_of_another_delivery_stays_taken_after_a_late_attempt(company, now):
    late = begin(delivered(company))
    now.advance(webhook_deliveries.LEASE_SECONDS)
    other = begin(delivered(company, late.webhook))
    assert other.slot == late.slot
    finish(late)
    assert webhooks.get_webhook(late.webhook.webhook_id).slots[late.slot] == other.until


def test_an_event_of_another_organization_is_unknown(company, world):
    delivery = delivered(company)
    foreign = EventId.of(world.company().organization_id, delivery.event_id.local)
    with pytest.raises(UnknownDelivery):
        webhook_deliveries.get_delivery(delivery.webhook_id, foreign)


def test_a_replay_sends_the_same_event_again_and_is_retried(line, company, now):
    webhook = endpoint(company)
    line.tell()
    (delivery,) = line.deliveries(webhook)
    now.advance(86_400)
    line.receiver.answer = 500
    replayed, message = webhook_deliveries.replay_delivery(webhook, delivery.event_id, company.owner.user_id)
    assert (replayed.status, replayed.attempts) == ("pending", 1)
    messages.dispatch(message)
    line.work()
    line.receiver.answer = 200
    now.advance(61)
    line.sweep()
    first, _, third = line.receiver.requests
    assert (first[1], len({*line.receiver.ids})) == (third[1], 1)
    assert [(it.status, it.attempts) for it in line.deliveries(webhook)] == [("succeeded", 3)]
