"""A scan whose worker dies is retried until it has no attempts left; a scan that waits in a queue isn't touched."""

import json

import pytest

from controlplane.platform.queues import messages, outbox
from controlplane.platform.queues.messages import ExecuteScan, PrepareScan, Queue
from controlplane.platform.table import leases
from controlplane.platform.table.leases import MAX_ATTEMPTS
from controlplane.scans import execution, reads, requests
from tests.functional.sweeper.conftest import NOTHING
from tests.functional.sweeper.scan_line import ScanLine
from tests.support.api import Api
from tests.support.audits import make_request, make_scan
from tests.support.sqs import FakeSqs
from tests.support.template import resources
from tests.support.world import World

RECOVERED = {**NOTHING, "RecoveredScans": 1}
# The message's retention, plus a day in which an unsent message is sent.
LOST_AFTER_SECONDS = 5 * 86_400


@pytest.fixture
def line(world: World, api: Api, sqs: FakeSqs, now) -> ScanLine:
    return ScanLine(world, api, sqs, lambda seconds: setattr(now, "seconds", seconds), now())


class TestADeadWorker:
    def test_gets_its_message_resent_once(self, line, sweep, sqs, now):
        scan = make_scan(line.repository, status="running")
        line.forget_unsent()
        now.advance(601)
        assert sweep() == RECOVERED
        (letter,) = sqs.at(Queue.SCAN_EXECUTION.url)
        assert json.loads(letter.body) == ExecuteScan(scan_id=scan.scan_id).model_dump(by_alias=True)
        for seconds in (*[600] * 5, LOST_AFTER_SECONDS - 3_000):
            now.advance(seconds)
            assert sweep() == NOTHING
        assert (len(sqs.letters), line.work()["status"]) == (1, "running")
        now.advance(1)
        assert sweep() == RECOVERED
        assert line.work()["status"] == "failed"

    def test_of_a_request_gets_the_request_s_message_resent(self, line, sweep, sqs, now):
        request_id = make_request(line.repository)
        requests.acquire_request(request_id, 30)
        line.forget_unsent()
        now.advance(599)
        assert sweep() == NOTHING
        now.advance(2)
        assert sweep() == RECOVERED
        (letter,) = sqs.letters
        assert letter.queue_url == Queue.SCAN_PREPARATION.url
        assert json.loads(letter.body) == PrepareScan(request_id=request_id).model_dump(by_alias=True)

    def test_fails_the_scan_a_minute_after_the_last_attempts_lease(self, line, sweep, api, now):
        """A running worker isn't taken for a dead one."""
        scan = make_scan(line.repository, status="running")
        for attempt in range(2, MAX_ATTEMPTS + 1):
            now.advance(601)
            sweep()
            lease, _ = execution.acquire_scan(scan.scan_id, 420)
            assert lease.attempt == attempt
        now.advance(420 + 60)
        assert sweep()["RecoveredScans"] == 0
        now.advance(1)
        assert sweep()["RecoveredScans"] == 1
        reply = api.get(f"/v1/code-audit/scans/{scan.scan_id}", line.world.token(line.company.owner.user_id))
        assert (reply.data["status"], reply.data["failure"]["code"]) == ("failed", "ABANDONED")
        assert (line.active, line.watches()) == (None, 0)


class TestAScanThatWaits:
    def test_is_not_touched_while_its_message_may_be_in_the_queue(self, line, sweep, now):
        for hours in (4, 24, 95):
            other_line = ScanLine(line.world, line.api, line.sqs, line._set_clock, now())
            assert other_line.start().status == 202
            now.advance(hours * 3_600)
            assert {**sweep(), "MatchedRepositories": 0} == NOTHING
            assert other_line.start().code == "SCAN_IN_PROGRESS"
            other_line._at = now()
            other_line.run_to_the_end()
            assert other_line.work()["status"] == "completed"
            other_line.check_end()

    @pytest.mark.parametrize("status", ["starting", "queued", "given back"])
    def test_ends_after_that_if_its_message_is_lost(self, status, line, sweep, sqs, now):
        if status == "starting":
            make_request(line.repository)
        else:
            make_scan(line.repository, status="queued")
        if status == "given back":
            lease, _ = execution.acquire_scan(line.scan().scan_id, 420)
            leases.release(lease)
        line.forget_unsent()
        now.advance(LOST_AFTER_SECONDS)
        assert sweep() == NOTHING
        assert line.start().code == "SCAN_IN_PROGRESS"
        now.advance(1)
        assert sweep() == RECOVERED
        assert (line.work()["status"], line.work()["failure"]["code"]) == ("failed", "ABANDONED")
        line.check_end()

    def test_a_waiting_scan_waits_as_long_as_the_template_retains_messages(self):
        made = resources("AWS::SQS::Queue")
        for name in ("ScanPreparationQueue", "ScanExecutionQueue"):
            assert made[name]["Properties"]["MessageRetentionPeriod"] == outbox.RETENTION_SECONDS


class TestAMessageAtItsLastDelivery:
    """SQS won't deliver it again, so the sweep makes the remaining attempts."""

    def deliver_last(self, line: ScanLine, scan_id: str) -> None:
        messages.send(Queue.SCAN_EXECUTION, ExecuteScan(scan_id=scan_id).model_dump(by_alias=True))
        letter = line.sqs.at(Queue.SCAN_EXECUTION.url)[-1]
        letter.receives = messages.MAX_RECEIVES - 1
        line.deliver_due()

    def test_that_fails_is_followed_by_another_attempt(self, line, sweep, now):
        scan = make_scan(line.repository, status="queued")
        line.forget_unsent()
        line.host.failures.append(OSError())
        self.deliver_last(line, scan.scan_id)
        assert (line.dead_letters(), line.sqs.letters) == ([], [])
        assert reads.get_scan(scan.scan_id).status == "running"
        line._at = now()
        line.run_to_the_end()
        assert (line.work()["status"], line.work()["attempts"]) == ("completed", 2)
        line.check_end()

    def test_that_finds_another_worker_is_discarded_and_the_last_attempt_fails_the_scan(self, line, now):
        scan = make_scan(line.repository, status="running")
        self.deliver_last(line, scan.scan_id)
        assert (line.dead_letters(), line.sqs.letters) == ([], [])
        for _ in range(MAX_ATTEMPTS - 2):
            now.advance(421)
            execution.acquire_scan(scan.scan_id, 420)
        now.advance(421)
        line.host.failures.append(OSError())
        self.deliver_last(line, scan.scan_id)
        assert len(line.dead_letters()) == 1
        assert (line.work()["status"], line.active) == ("failed", None)
