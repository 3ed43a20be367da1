"""After a crash at any step of a scan, redelivery and the sweep ensure that it isn't lost, or charged or published
twice."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from controlplane.queues.messages import Queue
from controlplane.store import billing, keys
from controlplane.store.leases import LeaseState
from controlplane.store.scans.items import PREVIEW_FINDINGS
from controlplane.store.table import table
from tests.races.stage import RACE_TIME, Stage
from tests.races.yields import beyond_the_own, only_writes
from tests.support.calls import Call
from tests.support.faults import Case, Kind, Trial
from tests.support.scan_line import FINDINGS, ScanLine
from tests.support.sqs import FakeSqs
from tests.support.world import World

pytestmark = pytest.mark.races

# The kinds that leave incomplete work. test_scans.py tests the effect of the others on each write.
DEADLY = frozenset({Kind.CRASH, Kind.LOST})


def decisive(call: Call) -> bool:
    """Selects writes: dying at a read has the same effect as dying before the next write."""
    return beyond_the_own(call) and only_writes(call)


def beyond_progress(call: Call) -> bool:
    """The same, except the begin and end of a stage, which the sweep's own test covers."""
    return decisive(call) and not call.parameters.get("UpdateExpression", "").startswith("SET #progress")


type Fresh = Callable[[World], ScanLine]


@pytest.fixture
def fresh_line(stage: Stage, sqs: FakeSqs, thread_clock: Callable[[float], None]) -> Fresh:
    def make(world: World) -> ScanLine:
        sqs.letters.clear()
        return ScanLine(world, stage.api, sqs, thread_clock, RACE_TIME)

    return make


def ends_well(line: ScanLine, stage: Stage) -> None:
    """Checks that the scan is completed and that its findings are published once."""
    line.check_end()
    assert line.work()["status"] == "completed"
    published = [item.title for item in line.published()]
    assert len(published) == len(set(published)) == PREVIEW_FINDINGS
    assert line.dead_letters() == []
    assert told(line, "finding.opened") == {item.item_id for item in line.published()}
    assert told(line, "scan.completed") == {line.scan().scan_id}
    items = stage.check_invariants()
    assert len([item for item in items.values() if "headCommitSha" in item]) == 1
    assert not [key for key in items if key.pk.startswith(("OUTBOX#", "SCANWATCH"))]


class TestACrash:
    def test_of_the_request_leaves_no_scan_or_a_scan_that_ends(self, stage: Stage, fresh_line: Fresh) -> None:
        def scenario(world: World) -> Trial:
            line = fresh_line(world)

            def ask_again() -> None:
                assert line.start().status in {202, 409}
                line.run_to_the_end()

            def check(case: Case) -> None:
                case.second.get()
                ends_well(line, stage)

            return Trial(line.start, check, ask_again)

        assert stage.faults(scenario, kinds=DEADLY, breaks=decisive) > 4

    @pytest.mark.parametrize("queue", [Queue.SCAN_PREPARATION, Queue.SCAN_EXECUTION])
    def test_of_a_worker_is_recovered(self, queue: Queue, stage: Stage, fresh_line: Fresh) -> None:
        def scenario(world: World) -> Trial:
            line = fresh_line(world)
            assert line.start().status == 202
            if queue is Queue.SCAN_EXECUTION:
                line.deliver(Queue.SCAN_PREPARATION)

            def check(case: Case) -> None:
                case.second.get()
                ends_well(line, stage)

            return Trial(lambda: line.deliver(queue), check, line.run_to_the_end)

        assert stage.faults(scenario, kinds=DEADLY, breaks=beyond_progress) > 8

    @pytest.mark.parametrize("queue", [Queue.SCAN_PREPARATION, Queue.SCAN_EXECUTION])
    def test_of_a_worker_with_a_lease_is_recovered_by_the_sweep_alone(
        self, queue: Queue, stage: Stage, fresh_line: Fresh
    ) -> None:
        def scenario(world: World) -> Trial:
            line = fresh_line(world)
            line.start()
            if queue is Queue.SCAN_EXECUTION:
                line.deliver(Queue.SCAN_PREPARATION)
            line.redelivers = False

            def sweep_on() -> None:
                if LeaseState.from_item(line.work()).is_waiting:
                    line.redeliver()  # it died before it acquired the work, so the queue must redeliver it
                line.run_to_the_end()

            def check(case: Case) -> None:
                case.second.get()
                ends_well(line, stage)

            return Trial(lambda: line.deliver(queue), check, sweep_on)

        kinds = frozenset({Kind.CRASH})
        assert stage.faults(scenario, kinds=kinds, breaks=decisive) > 4

    def test_of_the_sweep_after_a_worker_s_is_recovered(self, stage: Stage, fresh_line: Fresh) -> None:
        def scenario(world: World) -> Trial:
            line = fresh_line(world)
            line.redelivers = False
            line.start()
            line.host.deaths["stream_tarball"] = 1
            line.deliver_due()
            line.wait(700)

            def check(case: Case) -> None:
                case.second.get()
                ends_well(line, stage)
                assert line.work()["attempts"] == 2

            return Trial(line.sweep, check, line.run_to_the_end)

        assert stage.faults(scenario, kinds=DEADLY, breaks=decisive) > 4

    def test_a_crash_during_unlock_and_publication_charges_and_publishes_once(
        self, stage: Stage, fresh_line: Fresh
    ) -> None:
        def scenario(world: World) -> Trial:
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

            def check(case: Case) -> None:
                case.second.get()
                line.check_end()
                published = [item.title for item in line.published()]
                assert len(published) == len(set(published)) == FINDINGS
                assert credits_of(line) == 10
                assert told(line, "finding.opened") >= {item.item_id for item in line.published()}

            return Trial(unlock_and_publish, check, unlock_again)

        assert stage.faults(scenario, kinds=DEADLY, breaks=decisive) > 10


def told(line: ScanLine, event: str) -> set[str]:
    """Returns the ids in the messages about an event. A message may be sent twice."""
    sent = [json.loads(letter.body) for letter in line.sqs.at(Queue.NOTIFICATIONS.url)]
    return {subject for message in sent if message["event"] == event for subject in message["subjects"]}


def credits_of(line: ScanLine) -> int:
    item: dict[str, Any] = table.get(keys.billing(line.company.organization_id)) or {}
    return int(item["credits"])
