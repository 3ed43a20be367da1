"""An organization holds at most half of a queue's workers, whatever the work is, and no message is lost by that.

Time is simulated: it passes only while every worker sleeps, and the workers run one at a time.
"""

import heapq
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import count
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from pydantic import TypeAdapter

from controlplane.notify import mail_messages
from controlplane.platform.core import clock
from controlplane.platform.core.settings import settings
from controlplane.platform.queues import messages, shares
from controlplane.platform.queues.messages import CreateIssue, PrepareScan, Queue
from controlplane.platform.queues.shares import NoSlot, Slot
from controlplane.platform.queues.worker import create_worker
from controlplane.platform.table import keys
from controlplane.platform.table.table import Put, table
from github_events import app as github_events
from github_events.service import find_organization
from notifications import app as notifications
from scan_execution import app as scan_execution
from tests.races.faults import Kind
from tests.races.stage import RACE_TIME, faults, race
from tests.support.outcomes import Outcome
from tests.support.sqs import FakeSqs, SqsMessage
from tests.support.table import PREPARED

# What an invocation takes in addition to the work, and how often an idle worker looks for a message.
INVOCATION_SECONDS, POLL_SECONDS = 0.05, 0.25
GREEDY_MESSAGES, MODEST_MESSAGES = 20, 3
ORGANIZATION, OTHER = (f"org_{number:016d}" for number in range(2))
_LIMIT_SECONDS = 60


class Time:
    """Seconds that pass only while all threads sleep. The one that wakes up first goes on alone."""

    def __init__(self) -> None:
        self.now = RACE_TIME
        self._sleepers: list[tuple[float, int, threading.Event]] = []
        self._numbers = count()

    def sleep(self, seconds: float) -> None:
        awake = self._enter(seconds)
        self._wake_next()
        assert awake.wait(_LIMIT_SECONDS)

    def run(self, acts: Sequence[Callable[[], Any]]) -> None:
        """Runs each act in a thread of its own."""
        outcomes: list[Outcome] = []

        def run(act: Callable[[], Any], awake: threading.Event) -> None:
            awake.wait(_LIMIT_SECONDS)
            outcomes.append(Outcome.of(act))
            self._wake_next()

        threads = [threading.Thread(target=run, args=(act, self._enter(0)), daemon=True) for act in acts]
        for thread in threads:
            thread.start()
        self._wake_next()
        for thread in threads:
            thread.join(_LIMIT_SECONDS)
        assert [outcome.get() for outcome in outcomes] == [None] * len(acts)

    def _enter(self, seconds: float) -> threading.Event:
        awake = threading.Event()
        heapq.heappush(self._sleepers, (self.now + seconds, next(self._numbers), awake))
        return awake

    def _wake_next(self) -> None:
        if self._sleepers:
            self.now, _, awake = heapq.heappop(self._sleepers)
            awake.set()


class Work(NamedTuple):
    """A queue's messages, which lack the rest of their ids. seconds: how long each is worked on."""

    accepted: TypeAdapter[Any]
    seconds: float
    message: dict[str, Any]


WORK = {
    Queue.NOTIFICATIONS: Work(
        notifications.ACCEPTED, 5, {"kind": "deliver-webhook", "eventId": "evt", "webhookId": "whk", "attempt": 1}
    ),
    Queue.EMAILS: Work(
        mail_messages.EMAIL_MESSAGES, 2, {"kind": "send-invitation", "invitationId": "inv", "number": 0}
    ),
    Queue.ISSUE_CREATION: Work(TypeAdapter(CreateIssue), 20, {"kind": "create-issue", "itemId": "inb"}),
    Queue.GITHUB_EVENTS: Work(
        github_events.ACCEPTED, 30, {"kind": "host-event", "event": "installation", "installationId": 0, "until": 0}
    ),
    Queue.SCAN_PREPARATION: Work(TypeAdapter(PrepareScan), 5, {"kind": "prepare-scan", "requestId": "spr"}),
    Queue.SCAN_EXECUTION: Work(scan_execution.ACCEPTED, 300, {"kind": "execute-scan", "scanId": "scn"}),
}


class Line:
    """A queue with two workers, and what they did: when the work of each message began, and how much of it at once."""

    def __init__(self, queue: Queue, sqs: FakeSqs, time: Time) -> None:
        self.queue, self.sqs, self.time, self.work = queue, sqs, time, WORK[queue]
        self.begun: dict[str, float] = {}
        self.working: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        sqs.letters.clear()
        sqs.visibility_seconds = 3_600

    def send(self, organization_id: str, number: int) -> str:
        """Sends a message of the organization, and returns its body."""
        owned = f"{organization_id[4:]}{number:018d}"
        message = {
            name: f"{value}_{owned}" if name.endswith("Id") and isinstance(value, str) else value
            for name, value in self.work.message.items()
        }
        if "installationId" in message:
            installation_id = int.from_bytes(organization_id.encode()[-4:])
            table.put(
                Put({**keys.installation(installation_id)._asdict(), "organizationId": organization_id}), PREPARED
            )
            message |= {"installationId": installation_id, "subject": number + 1}
        messages.send(self.queue, {**message, "version": 1})
        return self.sqs.letters[-1].body

    def run_worker(self, total: int) -> None:
        """Works until so many messages are done."""
        letter = SqsMessage("", "", 0)

        def process(_: Any) -> None:
            assert letter.body not in self.begun, "it was processed twice"
            self.begun[letter.body] = self.time.now
            self.working[str(letter.group)] += 1
            self.most |= self.working
            self.time.sleep(self.work.seconds)
            self.working[str(letter.group)] -= 1

        find = find_organization if self.queue is Queue.GITHUB_EVENTS else None
        handler = create_worker(self.queue, self.work.accepted, process, find)
        context = SimpleNamespace(get_remaining_time_in_millis=lambda: (self.work.seconds + 60) * 1000)
        while len(self.begun) < total:
            if due := self.sqs.due(self.queue.url):
                letter = due[0]
                self.sqs.deliver(letter, lambda event, _: handler(event, context), self.queue.dead_letters_url)
            self.time.sleep(INVOCATION_SECONDS if due else POLL_SECONDS)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr(clock, "source", lambda: made.now)
    return made


@pytest.fixture(autouse=True)
def _two_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(settings.__dict__, "worker_concurrency", 2)


def acquire(wait_seconds: float = 1) -> Slot:
    return shares._acquire(ORGANIZATION, Queue.EMAILS.value, 1, 30, wait_seconds)


@pytest.mark.parametrize("queue", WORK)
def test_the_work_of_a_modest_organization_leaves_in_ten_seconds_while_a_greedy_one_has_much(stage, sqs, time, queue):
    world = stage.fresh()
    greedy, modest = (world.company().organization_id for _ in range(2))
    line = Line(queue, sqs, time)
    first = [line.send(greedy, number) for number in range(GREEDY_MESSAGES)]
    asked: dict[str, float] = {}

    def ask() -> None:
        for number in range(MODEST_MESSAGES):
            time.sleep(1 if number == 0 else line.work.seconds + 10)
            asked[line.send(modest, number)] = time.now

    def work() -> None:
        line.run_worker(GREEDY_MESSAGES + MODEST_MESSAGES)

    time.run([ask, work, work])
    # Until a long task has begun, or a short one is done.
    took = line.work.seconds if line.work.seconds <= 5 else 0
    assert [body for body, at in asked.items() if line.begun[body] + took - at > 10] == []
    assert {*line.begun} == {*first, *asked}
    assert max(line.most.values()) == 1
    # The greedy one isn't starved: its share of the workers is seldom idle.
    assert max(line.begun[body] for body in first) - RACE_TIME <= 1.3 * GREEDY_MESSAGES * line.work.seconds
    assert sqs.letters == []


@pytest.mark.parametrize(("count", "slots"), [(1, 1), (2, 1), (3, 2), (10, 5)])
def test_an_organization_has_half_of_the_workers_rounded_up(stage, sqs, monkeypatch, count, slots):
    stage.fresh()
    monkeypatch.setitem(settings.__dict__, "worker_concurrency", count)
    with ExitStack() as held:
        for _ in range(slots):
            held.enter_context(shares.hold(Queue.EMAILS, lambda: ORGANIZATION))
        with pytest.raises(NoSlot), shares.hold(Queue.EMAILS, lambda: ORGANIZATION):
            pytest.fail("it has another slot")
        with shares.hold(Queue.EMAILS, lambda: OTHER), shares.hold(Queue.NOTIFICATIONS, lambda: ORGANIZATION):
            held.close()
    with shares.hold(Queue.EMAILS, lambda: ORGANIZATION):
        pass


@race(NoSlot)
def test_of_workers_at_once_as_many_as_there_are_slots_get_one(world):
    results = yield [acquire] * 3
    (held,) = [it for it in results if not isinstance(it, NoSlot)]
    shares._release(held._replace(holder="another"))
    with pytest.raises(NoSlot):
        acquire()
    shares._release(held)
    acquire()


def test_the_slot_of_a_dead_worker_is_free_when_its_lease_ends(stage, thread_clock):
    stage.fresh()
    acquire()
    waits = []
    for _ in range(3):
        with pytest.raises(NoSlot) as taken:
            acquire(1.5)
        waits.append(taken.value.seconds)
    assert waits == [2, 3, 5]
    thread_clock(RACE_TIME + 30)
    acquire()


@pytest.mark.parametrize("is_taken", [False, True])
@faults(invariants=False)
def test_under_every_fault_a_message_is_processed_and_leaves_no_slot_taken(world, sqs, thread_clock, is_taken):
    thread_clock(RACE_TIME)
    line = Line(Queue.EMAILS, sqs, Time())
    line.send(ORGANIZATION, 0)
    done: list[Any] = []
    handler = create_worker(line.queue, line.work.accepted, done.append)
    if is_taken:
        acquire()

    def deliver() -> None:
        for letter in sqs.due(line.queue.url):
            sqs.deliver(letter, handler, line.queue.dead_letters_url)

    def again() -> None:
        for hours in (1, 2, 3):
            thread_clock(RACE_TIME + hours * 3_600)
            deliver()

    case = yield deliver, again
    case.second.get()
    assert sqs.letters == []
    assert len(done) == 1 or (case.fault.kind is Kind.CRASH and done)
    acquire()
