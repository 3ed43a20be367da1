"""A delivery is made once for each attempt, whatever else happens to it, and a crash at any step loses nothing."""

from collections.abc import Callable
from contextlib import suppress

import pytest

from controlplane.queues import messages
from controlplane.queues.messages import DeliverWebhook, Queue
from controlplane.queues.worker import Delayed, Postponed
from controlplane.store import keys, webhook_deliveries, webhooks
from controlplane.store.table import Update, table
from controlplane.store.webhook_deliveries import FAILING_SECONDS
from controlplane.store.webhook_items import WebhookItem
from notifications.service import process
from tests.races.stage import RACE_TIME, Stage
from tests.races.yields import only_writes
from tests.support.endpoints import URL, Line, Receiver, endpoint
from tests.support.faults import Case, Kind, Trial
from tests.support.outcomes import Aborted, Outcome
from tests.support.schedules import Race
from tests.support.sqs import FakeSqs
from tests.support.sweeping import swept
from tests.support.table import PREPARED
from tests.support.world import World

pytestmark = pytest.mark.races

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


@pytest.fixture
def fresh(sqs: FakeSqs, thread_clock: SetClock, monkeypatch: pytest.MonkeyPatch) -> Callable[[World], Setting]:
    def make(world: World) -> Setting:
        sqs.letters.clear()
        thread_clock(RACE_TIME)
        made = Setting(sqs, world, world.company(), Receiver().install(monkeypatch))
        made.webhook, made.set_clock = endpoint(made.company), thread_clock
        return made

    return make


def unsent(stage: Stage) -> list[keys.Key]:
    return [key for key in stage.check_invariants() if key.pk.startswith("OUTBOX#")]


def test_two_deliveries_of_one_message_make_one_attempt(stage: Stage, fresh: Callable[[World], Setting]) -> None:
    def scenario(world: World) -> Race:
        line = fresh(world)
        (message,) = line.pending()

        def check(outcomes: list[Outcome]) -> None:
            for outcome in outcomes:
                outcome.get()
            assert len(line.receiver.requests) == 1
            (delivery,) = line.deliveries(line.webhook)
            assert (delivery.status, delivery.attempts) == ("succeeded", 1)

        return Race([lambda: line.deliver(message)] * 2, check)

    stage.race(scenario)


def test_a_replay_during_a_delivery_loses_neither(stage: Stage, fresh: Callable[[World], Setting]) -> None:
    made: set[int] = set()

    def scenario(world: World) -> Race:
        line = fresh(world)
        (message,) = line.pending()
        delivery = line.deliveries(line.webhook)[0]

        def replay() -> None:
            webhook_deliveries.replay_delivery(line.webhook, delivery.event_id, line.company.owner.user_id)

        def check(outcomes: list[Outcome]) -> None:
            for outcome in outcomes:
                outcome.get()
            line.finish()
            (after,) = line.deliveries(line.webhook)
            assert (after.status, after.attempts) == ("succeeded", len(line.receiver.requests))
            made.add(after.attempts)
            assert unsent(stage) == []

        return Race([lambda: line.deliver(message), replay], check)

    stage.race(scenario)
    assert made == {1, 2}


def test_an_endpoint_that_is_disabled_during_a_delivery_stays_disabled(
    stage: Stage, fresh: Callable[[World], Setting]
) -> None:
    sent: set[int] = set()

    def scenario(world: World) -> Race:
        line = fresh(world)
        (message,) = line.pending()

        def disable() -> None:
            webhooks.update_webhook(line.webhook, {"status": "disabled"}, line.company.owner.user_id)

        def check(outcomes: list[Outcome]) -> None:
            for outcome in outcomes:
                outcome.get()
            line.finish()
            assert line.read(line.webhook).status == "disabled"
            (delivery,) = line.deliveries(line.webhook)
            sent.add(len(line.receiver.requests))
            assert delivery.status == ("succeeded" if line.receiver.requests else "failed")

        return Race([lambda: line.deliver(message), disable], check)

    stage.race(scenario)
    assert sent == {0, 1}


def test_a_success_and_a_failure_after_a_day_disable_the_endpoint_or_not(
    stage: Stage, fresh: Callable[[World], Setting]
) -> None:
    seen: set[bool] = set()

    def scenario(world: World) -> Race:
        line = fresh(world)
        failing, working = line.pending(), line.pending()
        since = {"since": int(RACE_TIME) - FAILING_SECONDS}
        table.update(Update(line.webhook.key, "SET #failingSince = :since", values=since), PREPARED)

        line.receiver.answers = {failing[0].event_id: 500}

        def check(outcomes: list[Outcome]) -> None:
            for outcome in outcomes:
                outcome.get()
            is_disabled = line.read(line.webhook).status == "disabled"
            events = [it for it in line.sqs.letters if "webhook.disabled" in it.body]
            assert len(events) == is_disabled
            seen.add(is_disabled)

        return Race([lambda: line.deliver(failing[0]), lambda: line.deliver(working[0])], check)

    stage.race(scenario)
    assert seen == {True, False}


def test_an_organization_never_has_more_than_ten(stage: Stage, fresh: Callable[[World], Setting]) -> None:
    def scenario(world: World) -> Race:
        line = fresh(world)
        for _ in range(8):
            endpoint(line.company)

        def check(outcomes: list[Outcome]) -> None:
            assert [type(it.error) for it in outcomes].count(webhooks.WebhookLimitReached) == 1
            assert len(webhooks.list_webhooks(line.company.organization_id)) == 10

        return Race([lambda: endpoint(line.company)] * 2, check)

    stage.race(scenario)


def test_a_crash_at_every_step_loses_nothing(stage: Stage, fresh: Callable[[World], Setting]) -> None:
    """From the event in the outbox to the delivery that is attempted twice, to two endpoints."""

    def scenario(world: World) -> Trial:
        line = fresh(world)
        other = endpoint(line.company, url=URL + "/other")
        line.receiver.answer = 500
        line.happen()
        (letter,) = line.sqs.due(Queue.NOTIFICATIONS.url)

        def recover() -> None:
            line.receiver.answer = 200
            line.finish()

        def check(case: Case) -> None:
            case.second.get()
            for webhook in (line.webhook, other):
                (delivery,) = line.deliveries(webhook)
                assert delivery.status == "succeeded"
                assert {*line.receiver.ids} == {delivery.event_id}
            assert line.sqs.at(Queue.NOTIFICATIONS.dead_letters_url) == []
            assert unsent(stage) == []
            assert letter not in line.sqs.letters

        return Trial(line.work, check, recover)

    assert stage.faults(scenario, kinds=frozenset({Kind.CRASH}), breaks=only_writes) > 15
