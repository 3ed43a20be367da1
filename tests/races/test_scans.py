"""A repository has one scan at a time, and every request and scan ends once, despite races and faults.

An invariant compares each repository with its open requests and scans after each run.
"""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import ExecuteScan, PrepareScan, Queue
from controlplane.platform.queues.worker import Rejected
from controlplane.platform.table import keys, leases
from controlplane.platform.table.stored import read_map
from controlplane.platform.table.table import table
from controlplane.scans import execution, failures, reads, requests
from controlplane.scans.items import Coverage, Failure, Progress, ScanItem
from controlplane.scans.reads import Inventory, Language, stored_leg
from scan_preparation.service import prepare_scan
from tests.races.faults import check_first
from tests.races.stage import RACE_TIME, Stage, faults, race
from tests.races.yields import beyond_queries
from tests.support.api import Reply
from tests.support.audits import lease_of, make_request, make_scan, serving, stored_repository
from tests.support.cleanup import swept
from tests.support.code_host import FakeHost
from tests.support.invariants import Items
from tests.support.sqs import FakeSqs
from tests.support.world import World

INVENTORY = Inventory(files=2, languages=(Language("Ruby", 2, 40),))
LONG_AGO = RACE_TIME - 700


class Audited:
    """An organization on the free plan with a linked repository."""

    def __init__(self, world: World, stage: Stage) -> None:
        self.stage, self.company = stage, world.company("free")
        self.repository = world.connected_repository(self.company)

    def start(self) -> Reply:
        path = f"/v1/code-audit/scans?organizationId={self.company.organization_id}"
        body = {"repositoryId": self.repository.repository_id}
        return self.stage.api.post(path, self.company.owner.token, json_body=body)

    def prepares(self, request_id: str) -> Callable[[], None]:
        host = serving(self.repository)
        return lambda: prepare_scan(PrepareScan(request_id=request_id), host.connect)

    def cancels(self, scan: ScanItem) -> Callable[[], Reply]:
        path = f"/v1/code-audit/scans/{scan.scan_id}/cancel"
        return lambda: self.stage.api.post(path, self.company.owner.token)

    @staticmethod
    def works(scan: ScanItem, act: str) -> Any:
        """Does that with the scan as its worker, with the lease that it has now."""
        if act == "acquire":
            return lambda: execution.acquire_scan(scan.scan_id, 420)
        lease = lease_of(scan)
        leg = stored_leg(scan.scan_id, INVENTORY)
        return {
            "complete": lambda: execution.complete_scan(scan, lease, 1, 1, Coverage(1, 1, {})),
            "fail": lambda: failures.fail_attempted(scan.scan_id, Failure("X", "x"), lease),
            "report": lambda: execution.report_stage(lease, "fetch", "running"),
            "publish": lambda: execution.report_stage(lease, "publish", "running"),
            "inventory": lambda: execution.report_stage(lease, "inventory", "completed", inventory=leg),
        }[act]

    def check(self) -> list[dict[str, Any]]:
        """Checks that only a completed scan uses the free preview, and returns the scans."""
        scans = scans_in(self.stage.check_invariants())
        completed = any(it["status"] == "completed" for it in scans)
        assert stored_repository(self.repository)["previewUsed"] is completed
        return scans


def scans_in(items: Items) -> list[dict[str, Any]]:
    return [item for item in items.values() if "headCommitSha" in item]


@race()
def test_of_two_first_scans_one_starts_and_the_other_gets_a_conflict(world, stage):
    audited = Audited(world, stage)
    first, second = yield [audited.start] * 2
    won, lost = (first, second) if first.status == 202 else (second, first)
    assert (won.status, lost.status, lost.code) == (202, 409, "SCAN_IN_PROGRESS")
    assert lost.error["details"] == {"preparationId": won.data["preparationId"]}
    audited.check()


@race(Exception)
def test_two_deliveries_create_one_scan_and_one_preview(world, stage):
    audited = Audited(world, stage)
    request_id = make_request(audited.repository)
    yield [audited.prepares(request_id)] * 2
    assert [item["access"] for item in audited.check()] == ["free-preview"]


@race()
def test_two_requests_that_replace_an_exhausted_scan_start_one_scan(world, stage, thread_clock):
    audited = Audited(world, stage)
    dead = make_scan(audited.repository, status="running")
    for attempt in range(2, leases.MAX_ATTEMPTS + 1):
        thread_clock(RACE_TIME + attempt * 421)
        execution.acquire_scan(dead.scan_id, 420)
    thread_clock(RACE_TIME)
    replies = yield [lambda: (thread_clock(RACE_TIME + 2_400), audited.start())[1]] * 2
    audited.check()
    assert sorted(reply.status for reply in replies) == [202, 409]
    assert reads.get_scan(dead.scan_id).status == "failed"


@pytest.mark.parametrize("late", ["complete", "fail", "publish", "inventory"])
@race(leases.LeaseLost, leases.Finished)
def test_either_a_new_worker_acquires_the_scan_or_a_late_one_ends_it(world, stage, thread_clock, late):
    audited = Audited(world, stage)
    scan = make_scan(audited.repository, status="running")

    def take_over() -> None:
        thread_clock(RACE_TIME + 421)
        execution.acquire_scan(scan.scan_id, 420)

    results = yield [take_over, audited.works(scan, late)]
    taken, ended = (not isinstance(it, leases.LeaseLost | leases.Finished) for it in results)
    audited.check()
    status = reads.get_scan(scan.scan_id).status
    if late in {"publish", "inventory"}:
        assert status == "running"
        assert (table.get(keys.scan_inventory(scan.scan_id)) is not None) is (ended and late == "inventory")
    else:
        assert (status != "running") is ended is not taken


@pytest.mark.parametrize("act", ["acquire", "report", "publish", "complete", "fail"])
@race(leases.LeaseLost, leases.Finished)
def test_either_a_person_cancels_the_scan_or_its_worker_ends_it(world, stage, act):
    audited = Audited(world, stage)
    scan = make_scan(audited.repository, status="queued" if act == "acquire" else "running")
    reply, worked = yield [audited.cancels(scan), audited.works(scan, act)]
    is_refused = isinstance(worked, leases.LeaseLost | leases.Finished)
    audited.check()
    status = reads.get_scan(scan.scan_id).status
    if act in {"acquire", "report"} or is_refused:
        assert (reply.status, status) == (200, "canceled")
        assert "activeRequestId" not in stored_repository(audited.repository)
    else:
        assert (reply.code, reply.error["details"]) == ("CONFLICT", {"currentStatus": status})
        assert status == {"publish": "running", "complete": "completed", "fail": "failed"}[act]


@race()
def test_a_scan_that_two_people_cancel_is_canceled_once(world, stage):
    audited = Audited(world, stage)
    replies = yield [audited.cancels(make_scan(audited.repository, status="running"))] * 2
    assert [(it.status, it.data["status"]) for it in replies] == [(200, "canceled")] * 2
    assert replies[0].data == replies[1].data
    audited.check()


@faults()
def test_under_every_fault_a_scan_is_canceled_once(world, stage):
    audited = Audited(world, stage)
    cancel = audited.cancels(make_scan(audited.repository, status="running"))
    case = yield cancel
    check_first(case, 200)
    assert case.second.get().data["status"] == "canceled"
    audited.check()
    assert "activeRequestId" not in stored_repository(audited.repository)


@faults(5)
def test_under_every_fault_a_stage_is_completed_with_its_inventory_or_not_at_all(world, stage):
    audited = Audited(world, stage)
    scan = make_scan(audited.repository, status="running")
    case = yield audited.works(scan, "inventory")
    case.second.get()  # a worker that retries isn't taken for one that lost its lease
    assert read_map(Inventory, table.get(keys.scan_inventory(scan.scan_id)) or {}) == INVENTORY
    assert reads.get_scan(scan.scan_id).progress == Progress("inventory", "completed", 2)


@faults()
def test_under_every_fault_a_start_is_applied_completely_or_not_at_all(world, stage):
    audited = Audited(world, stage)
    case = yield audited.start
    audited.check()
    reply, again = check_first(case, 202), case.second.get()
    # A client without a response retries: it starts the scan, or gets a conflict with the existing one.
    assert again.status in {202, 409}
    if reply:
        assert again.error["details"] == {"preparationId": reply.data["preparationId"]}
    assert [it.get("status") for it in stage.check_invariants().values()].count("starting") == 1


@faults()
def test_a_preparation_ends_once_wherever_its_worker_crashes(world, stage, thread_clock):
    thread_clock(RACE_TIME)
    audited = Audited(world, stage)
    request_id = make_request(audited.repository)
    prepare = audited.prepares(request_id)
    case = yield prepare, lambda: (thread_clock(RACE_TIME + 180), prepare())[1]
    thread_clock(RACE_TIME)
    case.second.get()
    request = reads.get_request(request_id)
    assert request.status == "started"
    assert [item["scanId"] for item in audited.check()] == [request.scan_id]
    # The message is on its queue, or in the outbox, from which a sweep sends it.
    client: Any = messages.sender.client
    sent = [letter.body for letter in client.at(Queue.SCAN_EXECUTION.url)]
    waiting = [str(item["message"]) for key, item in stage.check_invariants().items() if key.pk.startswith("OUTBOX#")]
    assert any(ExecuteScan(scan_id=request.scan_id or "").scan_id in message for message in sent + waiting)


@faults(5)
def test_under_every_fault_the_end_of_a_scan_is_written_once(world, stage):
    audited = Audited(world, stage)
    scan = make_scan(audited.repository, status="running")
    lease = lease_of(scan)
    yield lambda: execution.complete_scan(scan, lease, 7, 5, Coverage(1, 1, {}))
    audited.check()
    ended = reads.get_scan(scan.scan_id)
    assert (ended.status, ended.finding_count, ended.issue_count) == ("completed", 7, 5)
    assert "activeRequestId" not in stored_repository(audited.repository)


class Abandoned(Audited):
    """A request for a scan, long ago, which a worker has tried so often to prepare."""

    def __init__(
        self, world: World, stage: Stage, thread_clock: Callable[[float], None], sqs: FakeSqs, attempts: int
    ) -> None:
        thread_clock(LONG_AGO)
        sqs.letters.clear()
        super().__init__(world, stage)
        self.request_id = make_request(self.repository)
        for entry in waiting_in(keys.OUTBOX_PKS):
            table.client.delete_item(TableName=table.name, Key={name: {"S": entry[name]} for name in ("pk", "sk")})
        for number in range(attempts):
            thread_clock(LONG_AGO + number * 31)
            self.take()
        thread_clock(RACE_TIME)

    def take(self) -> None:
        requests.acquire_request(self.request_id, 30)

    def stored(self) -> tuple[Any, ...]:
        """Returns the request's status, its attempts, the end of its lease, and whether its repository is free."""
        item = table.get(reads.get_request(self.request_id).key) or {}
        free = "activeRequestId" not in stored_repository(self.repository)
        return item["status"], item["attempts"], item["leaseUntil"], free


def waiting_in(pks: tuple[str, ...]) -> list[dict[str, Any]]:
    return [item for pk in pks for item in table.query(pk, consistent=True).items]


def sweep() -> int:
    return swept(failures.recover_scans)


@race()
def test_a_worker_acquires_a_request_that_the_sweep_releases_once(world, stage, thread_clock, sqs):
    made = Abandoned(world, stage, thread_clock, sqs, 1)
    _, retried = yield [made.take, sweep]
    assert made.stored() == ("starting", 2, RACE_TIME + 30, False)
    assert len(sqs.letters) == retried
    assert len(waiting_in(keys.SCAN_WATCH_PKS)) == 1


@race()
def test_two_sweeps_send_one_message(world, stage, thread_clock, sqs):
    made = Abandoned(world, stage, thread_clock, sqs, 1)
    released = yield [sweep] * 2
    assert sum(released) == len(sqs.letters) == 1
    assert made.stored() == ("starting", 1, 0, False)


@race(Rejected)
def test_either_a_worker_or_the_sweep_ends_a_request_without_remaining_attempts(world, stage, thread_clock, sqs):
    made = Abandoned(world, stage, thread_clock, sqs, leases.MAX_ATTEMPTS)
    host = FakeHost()
    yield [lambda: prepare_scan(PrepareScan(request_id=made.request_id), host.connect), sweep]
    assert (made.stored()[0], made.stored()[-1]) == ("failed", True)
    assert waiting_in(keys.SCAN_WATCH_PKS) == host.asked == []


@pytest.mark.parametrize("attempts", [1, leases.MAX_ATTEMPTS])
@faults(breaks=beyond_queries)
def test_the_next_sweep_completes_recovery_after_any_fault(world, stage, thread_clock, sqs, attempts):
    made = Abandoned(world, stage, thread_clock, sqs, attempts)

    def sweep_again() -> None:
        thread_clock(RACE_TIME + 120)
        sweep()
        swept(messages.resend)

    case = yield sweep, sweep_again
    case.second.get()
    if attempts == 1:
        # Sent once, or twice only if the first send couldn't be recorded.
        assert len(sqs.letters) in {1, 2}
        assert made.stored() == ("starting", 1, 0, False)
    else:
        assert (made.stored()[0], made.stored()[-1]) == ("failed", True)
        assert waiting_in(keys.SCAN_WATCH_PKS) == []
    assert waiting_in(keys.OUTBOX_PKS) == []
