"""After a crash at any step of a scan, redelivery and the sweep ensure that it isn't lost, or charged or published
twice."""

import json
from collections.abc import Callable

import pytest

from controlplane.billing import store as billing
from controlplane.platform.queues.messages import Queue
from controlplane.platform.table.leases import LeaseState
from controlplane.scans.items import PREVIEW_FINDINGS
from tests.functional.sweeper.scan_line import FINDINGS, ScanLine
from tests.races.faults import Kind
from tests.races.stage import RACE_TIME, Stage, faults
from tests.races.yields import beyond_the_own, only_writes
from tests.support.calls import Call
from tests.support.sqs import FakeSqs
from tests.support.world import World

# The kinds that leave incomplete work. test_scans.py tests the effect of the others on each write.
DEADLY = frozenset({Kind.CRASH, Kind.LOST})
STAGES = [Queue.SCAN_PREPARATION, Queue.SCAN_EXECUTION]


def decisive(call: Call) -> bool:
    """Selects writes: dying at a read has the same effect as dying before the next write."""
    return beyond_the_own(call) and only_writes(call)


def beyond_progress(call: Call) -> bool:
    """The same, except the begin and end of a stage, which the sweep's own test covers."""
    return decisive(call) and not call.parameters.get("UpdateExpression", "").startswith("SET #progress")


@pytest.fixture
def fresh_line(stage: Stage, sqs: FakeSqs, thread_clock: Callable[[float], None]) -> Callable[[World], ScanLine]:
    def make(world: World) -> ScanLine:
        sqs.letters.clear()
        return ScanLine(world, stage.api, sqs, thread_clock, RACE_TIME)

    return make


def check_published(line: ScanLine, findings: int) -> None:
    """Checks that so many findings are published once, and told. A message may be sent twice."""
    line.check_end()
    published = [item.title for item in line.published()]
    assert len(published) == len(set(published)) == findings
    assert told(line, "finding.opened") >= {item.item_id for item in line.published()}


def check_completed(line: ScanLine, stage: Stage) -> None:
    check_published(line, PREVIEW_FINDINGS)
    assert told(line, "finding.opened") == {item.item_id for item in line.published()}
    assert line.work()["status"] == "completed"
    assert line.dead_letters() == []
    assert told(line, "scan.completed") == {line.scan().scan_id}
    items = stage.check_invariants()
    assert len([item for item in items.values() if "headCommitSha" in item]) == 1
    assert not [key for key in items if key.pk.startswith(("OUTBOX#", "SCANWATCH"))]


def told(line: ScanLine, event: str) -> set[str]:
    """Returns the ids in the messages about an event."""
    sent = [json.loads(letter.body) for letter in line.sqs.at(Queue.NOTIFICATIONS.url)]
    return {subject for message in sent if message["event"] == event for subject in message["subjects"]}


@faults(4, kinds=DEADLY, breaks=decisive)
def test_a_crash_of_the_request_leaves_no_scan_or_a_scan_that_ends(world, stage, fresh_line):
    line = fresh_line(world)

    def ask_again() -> None:
        assert line.start().status in {202, 409}
        line.run_to_the_end()

    case = yield line.start, ask_again
    case.second.get()
    check_completed(line, stage)


@pytest.mark.parametrize("queue", STAGES)
@faults(8, kinds=DEADLY, breaks=beyond_progress)
def test_a_crash_of_a_worker_is_recovered(world, stage, fresh_line, queue):
    line = fresh_line(world)
    assert line.start().status == 202
    if queue is Queue.SCAN_EXECUTION:
        line.deliver(Queue.SCAN_PREPARATION)
    case = yield lambda: line.deliver(queue), line.run_to_the_end
    case.second.get()
    check_completed(line, stage)


@pytest.mark.parametrize("queue", STAGES)
@faults(4, kinds=frozenset({Kind.CRASH}), breaks=decisive)
def test_a_crash_of_a_worker_with_a_lease_is_recovered_by_the_sweep_alone(world, stage, fresh_line, queue):
    line = fresh_line(world)
    line.start()
    if queue is Queue.SCAN_EXECUTION:
        line.deliver(Queue.SCAN_PREPARATION)
    line.redelivers = False

    def sweep_on() -> None:
        if LeaseState.from_item(line.work()).is_waiting:
            line.redeliver()  # it died before it acquired the work, so the queue must redeliver it
        line.run_to_the_end()

    case = yield lambda: line.deliver(queue), sweep_on
    case.second.get()
    check_completed(line, stage)


@faults(4, kinds=DEADLY, breaks=decisive)
def test_a_crash_of_the_sweep_after_a_worker_s_is_recovered(world, stage, fresh_line):
    line = fresh_line(world)
    line.redelivers = False
    line.start()
    line.host.deaths["stream_tarball"] = 1
    line.deliver_due()
    line.wait(700)
    case = yield line.sweep, line.run_to_the_end
    case.second.get()
    check_completed(line, stage)
    assert line.work()["attempts"] == 2


@faults(kinds=DEADLY, breaks=decisive)
def test_a_crash_during_unlock_and_publication_charges_and_publishes_once(world, stage, fresh_line):
    line = fresh_line(world)
    billing.add_credits(line.company.organization_id, 60)
    line.start()
    line.run_to_the_end()

    def unlock_and_publish() -> None:
        line.unlock()
        line.deliver(Queue.SCAN_EXECUTION)

    def unlock_again() -> None:
        assert line.unlock().status == 200
        line.run_to_the_end()

    case = yield unlock_and_publish, unlock_again
    case.second.get()
    check_published(line, FINDINGS)
    assert billing.get_billing(line.company.organization_id)[1].credits == 10
