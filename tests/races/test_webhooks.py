"""A delivery is made once for each attempt, whatever else happens to it, and a crash at any step loses nothing."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from controlplane.notify import webhook_deliveries, webhooks
from controlplane.notify.webhook_deliveries import FAILING_SECONDS
from controlplane.notify.webhooks import WebhookItem
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import DeliverWebhook, Queue
from controlplane.platform.queues.worker import Delayed, Postponed
from controlplane.platform.table.table import Update, table
from notifications.service import process
from tests.races.faults import Kind
from tests.races.stage import RACE_TIME, faults, race
from tests.races.yields import only_writes
from tests.support.cleanup import swept
from tests.support.endpoints import URL, Line, Receiver, endpoint
from tests.support.outcomes import Aborted
from tests.support.sqs import FakeSqs
from tests.support.table import PREPARED
from tests.support.world import World

type SetClock = Callable[[float], None]


class Setting(Line):
    """A company with an endpoint. `deliver` makes the attempt of a message, as the worker does."""

    webhook: WebhookItem
    set_clock: SetClock

    def pending(self) -> list[DeliverWebhook]:
        """Opens a finding, and returns the messages of the first attempts at its deliveries."""
        self.happen()
        (letter,) = self.sqs.due(Queue.NOTIFICATIONS.url)
        process(messages.OrganizationEvent.model_validate_json(letter.body))
        self.sqs.letters.remove(letter)
        sent = [DeliverWebhook.model_validate_json(it.body) for it in self.sqs.due(Queue.NOTIFICATIONS.url)]
        self.sqs.letters.clear()
        return sent

    @staticmethod
    def deliver(message: DeliverWebhook) -> None:
        with suppress(Postponed, Delayed):
            process(message)

    def finish(self) -> None:
        """Redelivers and sweeps until nothing is left to do, for an hour."""
        for seconds in (1, 200, 400, 600, 900, 3_600):
            self.set_clock(RACE_TIME + seconds)
            for letter in self.sqs.letters:
                letter.visible_at = 0
            with suppress(Aborted):
                self.work()
            swept(messages.resend)
        self.work()

    @property
    def delivery(self) -> Any:
        (found,) = self.deliveries(self.webhook)
        return found


@pytest.fixture
def fresh(sqs: FakeSqs, thread_clock: SetClock, monkeypatch: pytest.MonkeyPatch) -> Callable[[World], Setting]:
    def make(world: World) -> Setting:
        sqs.letters.clear()
        thread_clock(RACE_TIME)
        made = Setting(sqs, world, world.company(), Receiver().install(monkeypatch))
        made.webhook, made.set_clock = endpoint(made.company), thread_clock
        return made

    return make


@race()
def test_two_deliveries_of_one_message_make_one_attempt(world, fresh):
    line = fresh(world)
    (message,) = line.pending()
    yield [lambda: line.deliver(message)] * 2
    assert len(line.receiver.requests) == 1
    assert (line.delivery.status, line.delivery.attempts) == ("succeeded", 1)


@race(ends={1, 2})
def test_a_replay_during_a_delivery_loses_neither(world, stage, fresh):
    line = fresh(world)
    (message,) = line.pending()
    event_id, user_id = line.delivery.event_id, line.company.owner.user_id
    replay = lambda: webhook_deliveries.replay_delivery(line.webhook, event_id, user_id)  # noqa: E731
    yield [lambda: line.deliver(message), replay]
    line.finish()
    assert (line.delivery.status, line.delivery.attempts) == ("succeeded", len(line.receiver.requests))
    assert not any(key.pk.startswith("OUTBOX#") for key in stage.check_invariants())
    return line.delivery.attempts


@race(ends={0, 1})
def test_an_endpoint_that_is_disabled_during_a_delivery_stays_disabled(world, fresh):
    line = fresh(world)
    (message,) = line.pending()
    disable = lambda: webhooks.update_webhook(line.webhook, {"status": "disabled"}, line.company.owner.user_id)  # noqa: E731
    yield [lambda: line.deliver(message), disable]
    line.finish()
    assert line.read(line.webhook).status == "disabled"
    assert line.delivery.status == ("succeeded" if line.receiver.requests else "failed")
    return len(line.receiver.requests)


@race(ends={True, False})
def test_a_success_and_a_failure_after_a_day_disable_the_endpoint_or_not(world, fresh):
    line = fresh(world)
    (failing,), (working,) = line.pending(), line.pending()
    since = {"since": int(RACE_TIME) - FAILING_SECONDS}
    table.update(Update(line.webhook.key, "SET #failingSince = :since", values=since), PREPARED)
    line.receiver.answers = {failing.event_id: 500}
    yield [lambda: line.deliver(failing), lambda: line.deliver(working)]
    is_disabled = line.read(line.webhook).status == "disabled"
    assert len([it for it in line.sqs.letters if "webhook.disabled" in it.body]) == is_disabled
    return is_disabled


@race(webhooks.WebhookLimitReached)
def test_an_organization_never_has_more_than_ten(world):
    company = world.company()
    for _ in range(9):
        endpoint(company)
    made = yield [lambda: endpoint(company)] * 2
    assert sorted(isinstance(it, webhooks.WebhookLimitReached) for it in made) == [False, True]
    assert len(webhooks.list_webhooks(company.organization_id)) == 10


@faults(kinds=frozenset({Kind.CRASH}), breaks=only_writes)
def test_a_crash_at_every_step_loses_nothing(world, stage, fresh):
    """From the event in the outbox to the delivery that is attempted twice, to two endpoints."""
    line = fresh(world)
    other = endpoint(line.company, url=URL + "/other")
    line.receiver.answer = 500
    line.happen()
    (letter,) = line.sqs.due(Queue.NOTIFICATIONS.url)

    def recover() -> None:
        line.receiver.answer = 200
        line.finish()

    case = yield line.work, recover
    case.second.get()
    for webhook in (line.webhook, other):
        (delivery,) = line.deliveries(webhook)
        assert delivery.status == "succeeded"
        assert {*line.receiver.ids} == {delivery.event_id}
    assert line.sqs.at(Queue.NOTIFICATIONS.dead_letters_url) == []
    assert not any(key.pk.startswith("OUTBOX#") for key in stage.check_invariants())
    assert letter not in line.sqs.letters
