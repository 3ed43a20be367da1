"""A pull request gets one check run and one comment, whichever write its workers die at."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from typing import Any

import pytest

from controlplane.code_host import repositories
from controlplane.code_host.github import reviews
from controlplane.code_host.github.reviews import Annotation, CheckRun, CheckState, PullRequest
from controlplane.platform.core import clock
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import HostEvent, Queue
from controlplane.platform.table.table import Put, table
from controlplane.scans import execution, failures, reads
from controlplane.scans import queue as scan_starts
from controlplane.scans.items import Coverage
from github_events.app import handler
from scan_preparation.app import handler as prepare
from tests.races.faults import Kind
from tests.races.stage import RACE_TIME, faults
from tests.support import lagging
from tests.support.calls import Proceed, intercepted
from tests.support.cleanup import swept
from tests.support.code_host import SHA
from tests.support.outcomes import Aborted
from tests.support.sqs import FakeSqs, SqsMessage
from tests.support.table import PREPARED
from tests.support.world import World

HANDLERS = {Queue.GITHUB_EVENTS: handler, Queue.SCAN_PREPARATION: prepare}
_READS = {"GetItem", "BatchGetItem", "Query"}
_NUMBER = 12
_HOSTED_ID = 9


class Died(Aborted):
    """The worker's process died here."""


class Hosted:
    """The code host, in memory. `around` is called with each write."""

    def __init__(self) -> None:
        self.checks: list[tuple[str, CheckState]] = []
        self.comments: list[str] = []
        self.around: Callable[[Proceed], Any] = lambda proceed: proceed()

    def connect(self, _: int) -> "Hosted":
        return self

    def get_pull_request(self, *_: Any) -> PullRequest:
        return PullRequest(_NUMBER, True, SHA, "change")

    def find_check_run(self, _: str, __: str, sha: str, ___: str, external_id: str) -> CheckRun | None:
        found = [number for number, (of, _) in enumerate(self.checks) if of == sha]
        return CheckRun(found[0], external_id) if found else None

    def create_check_run(self, _: str, __: str, sha: str, ___: str, external_id: str, state: CheckState) -> CheckRun:
        self.around(lambda: self.checks.append((sha, state)))
        return CheckRun(len(self.checks) - 1, external_id)

    def update_check_run(self, _: str, __: str, number: int, state: CheckState, ___: Sequence[Annotation] = ()) -> None:
        def change() -> None:
            self.checks[number] = (self.checks[number][0], state)

        self.around(change)

    def find_comment(self, _: str, __: str, ___: int, marker: str) -> int | None:
        return next((number for number, body in enumerate(self.comments) if marker in body), None)

    def create_comment(self, _: str, __: str, ___: int, body: str) -> int:
        self.around(lambda: self.comments.append(body))
        return len(self.comments) - 1

    def update_comment(self, _: str, __: str, number: int, body: str) -> None:
        self.around(lambda: self.comments.__setitem__(number, body))


@pytest.fixture
def announced(
    sqs: FakeSqs, shared_clock: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> Callable[[World], "Review"]:
    """Returns a function that starts with a new code host and an event about a pull request."""

    def start(world: World) -> Review:
        host = Hosted()
        monkeypatch.setattr(reviews, "connect", host.connect)
        monkeypatch.setattr("scan_preparation.service.prepare_scan.__defaults__", (host.connect,))
        return Review(world, sqs, shared_clock, host)

    return start


class Review:
    """A pull request that GitHub has announced, with everything that scans it and reports on it."""

    def __init__(self, world: World, sqs: FakeSqs, set_clock: Callable[[float], None], host: Hosted) -> None:
        sqs.letters.clear()
        set_clock(RACE_TIME)
        self.repository = world.connected_repository(world.company())
        self.project_id = self.repository.links[0].project_id
        link = self.repository.links[0]._replace(pull_request_scans_enabled=True)
        repositories.link_project(self.repository.repository_id, link)
        key = self.repository.key
        table.put(Put({**(table.get(key) or {}), "hostedId": _HOSTED_ID}), PREPARED)
        lagging.settle()  # an event about a repository that was just connected may not find it
        self.sqs, self.host, self._set_clock = sqs, host, set_clock
        subject = {"hosted_id": _HOSTED_ID, "subject": _NUMBER}
        event = HostEvent(event="pull_request", installation_id=4711, until=2**31, **subject)
        messages.send(Queue.GITHUB_EVENTS.value, event.model_dump(by_alias=True))

    def run(self, last_write: int = 10_000) -> bool:
        """Runs everything until nothing is left. Returns whether a worker died: after that write, from 0."""
        made = [0]
        was_done = False

        def around(proceed: Proceed) -> Any:
            answer = proceed()
            made[0] += 1
            if made[0] == last_write + 1:
                raise Died
            return answer

        self.host.around = around
        is_read = lambda call: call.operation in _READS  # noqa: E731
        with intercepted(table.client, lambda call, proceed: proceed() if is_read(call) else around(proceed)):
            for _ in range(40):
                with suppress(Died):
                    self.step()
                # Once more after that: the sweeper may have something left to repeat.
                if was_done and self._is_done():
                    break
                was_done = self._is_done()
                self._set_clock(clock.now() + 121)
        return last_write < made[0]

    def deliver(self, letter: SqsMessage, queue: Queue = Queue.GITHUB_EVENTS) -> None:
        self.sqs.deliver(letter, HANDLERS[queue], queue.dead_letters_url)

    def step(self) -> None:
        """Delivers what is due, and does what the worker of scans and the sweeper do then."""
        for queue in HANDLERS:
            for letter in self.sqs.due(queue.url):
                self.deliver(letter, queue)
        self._execute()
        for step in (messages.resend, failures.recover_scans, scan_starts.start_queued):
            swept(step)

    def _execute(self) -> None:
        """Completes the scan in place of its worker."""
        for letter in self.sqs.at(Queue.SCAN_EXECUTION.url):
            self.sqs.letters.remove(letter)
        for scan in reads.list_scans(self.repository.organization_id, 10, None).items:
            if scan.is_open and scan.lease.until <= clock.now():
                lease, running = execution.acquire_scan(scan.scan_id, 60)
                execution.complete_scan(running, lease, 0, 0, Coverage(1, 1, {}))

    def _is_done(self) -> bool:
        if any(self.sqs.at(queue.url) for queue in HANDLERS):
            return False
        return bool(self.host.comments) and all(state.conclusion for _, state in self.host.checks)

    def check(self) -> None:
        scans = reads.list_scans(self.repository.organization_id, 10, None).items
        assert [scan.status for scan in scans] == ["completed"]
        assert [sha for sha, _ in self.host.checks] == [SHA]
        assert self.host.checks[0][1].conclusion == "neutral"
        assert len(self.host.comments) == 1


def test_a_crash_at_any_write_leaves_one_check_run_and_one_comment(stage, announced):
    for runs in count():
        review = announced(stage.fresh())
        died = review.run(runs)
        review.check()
        stage.check_invariants()
        if not died:
            assert runs > 15
            break


# A call that is certain to have failed leaves what a crash before it leaves, which the test above covers.
@pytest.mark.parametrize("steps", [0, 1], ids=["event", "report"])
@faults(
    kinds=frozenset({Kind.LOST, Kind.LOST_THEN_CONFLICT, Kind.CONFLICT}),
    breaks=lambda call: call.operation not in _READS,
)
def test_under_every_fault_of_a_delivery_there_is_one_check_run_and_one_comment(world, announced, steps):
    review = announced(world)
    for _ in range(steps):
        review.step()
    letter = review.sqs.due(Queue.GITHUB_EVENTS.url)[0]
    yield lambda: review.deliver(letter), review.run
    review.check()
