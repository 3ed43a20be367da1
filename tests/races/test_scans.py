"""A repository has one scan at a time and one free preview, and every request ends, despite races and faults."""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.queues import messages
from controlplane.queues.messages import ExecuteScan, PrepareScan, Queue
from controlplane.store import keys, leases
from controlplane.store.scans import execution, failures, reads
from controlplane.store.scans.inventories import Inventory, Language
from controlplane.store.scans.items import OPEN, Failure
from controlplane.store.scans.progress import Coverage, Progress
from controlplane.store.table import table
from scan_preparation.service import prepare_scan
from tests.races.stage import RACE_TIME, Stage
from tests.races.verdicts import check_first
from tests.support.api import Reply
from tests.support.asgi import DirectApi
from tests.support.audits import lease_of, make_request, make_scan, serving, stored_repository
from tests.support.faults import Case, Trial
from tests.support.invariants import Items
from tests.support.outcomes import Outcome
from tests.support.schedules import Race
from tests.support.threads import run_repeatedly
from tests.support.world import World

pytestmark = pytest.mark.races
INVENTORY = Inventory(files=2, languages=(Language("Ruby", 2, 40),))


class Audited:
    """An organization on the free plan with a linked repository."""

    def __init__(self, world: World, api: DirectApi) -> None:
        self.api = api
        self.company = world.company("free")
        self.repository = world.connected_repository(self.company)

    def start(self) -> Reply:
        path = f"/v1/code-audit/scans?organizationId={self.company.organization_id}"
        body = {"repositoryId": self.repository.repository_id}
        return self.api.post(path, self.company.owner.token, json_body=body)

    def prepares(self, request_id: str) -> Callable[[], None]:
        host = serving(self.repository)
        return lambda: prepare_scan(PrepareScan(request_id=request_id), host.connect)


def repository_is_consistent(items: Items) -> None:
    """Checks that a repository names its one open request or scan, and that no other is open."""
    for key, item in items.items():
        if not key.sk.startswith("REPO#") or "repositoryId" not in item:
            continue
        mine = [other for other in items.values() if other.get("repositoryId") == item["repositoryId"]]
        starting = [other["requestId"] for other in mine if other.get("status") == "starting"]
        running = [other for other in mine if "scanId" in other and other.get("status") in OPEN]
        open_work = starting + [other["requestId"] for other in running]
        active = [item["activeRequestId"]] if "activeRequestId" in item else []
        assert open_work == active, f"{open_work} open, {active} named"
        previews = [
            other
            for other in mine
            if other.get("access") == "free-preview" and other.get("status") in {*OPEN, "completed"}
        ]
        assert len(previews) == int(item["previewUsed"]), "previews and the note of them differ"


class TestEveryOrder:
    def test_of_two_first_scans_one_starts_and_the_other_gets_a_conflict(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            audited = Audited(world, stage.api)

            def check(outcomes: list[Outcome]) -> None:
                replies: list[Reply] = [outcome.get() for outcome in outcomes]
                repository_is_consistent(stage.check_invariants())
                assert sorted(reply.status for reply in replies) == [202, 409]
                (won,) = [reply for reply in replies if reply.status == 202]
                (lost,) = [reply for reply in replies if reply.status == 409]
                assert lost.code == "SCAN_IN_PROGRESS"
                assert lost.error["details"] == {"preparationId": won.data["preparationId"]}

            return Race([audited.start, audited.start], check)

        stage.race(scenario)

    def test_two_deliveries_create_one_scan_and_one_preview(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            audited = Audited(world, stage.api)
            request_id = make_request(audited.repository)

            def check(outcomes: list[Outcome]) -> None:
                items = stage.check_invariants()
                repository_is_consistent(items)
                made = [item for item in items.values() if "headCommitSha" in item]
                assert [item["access"] for item in made] == ["free-preview"]

            return Race([audited.prepares(request_id), audited.prepares(request_id)], check)

        stage.race(scenario)

    def test_two_requests_that_replace_an_exhausted_scan_start_one_scan(
        self, stage: Stage, thread_clock: Callable[[float], None]
    ) -> None:
        def later(act: Callable[[], Reply]) -> Callable[[], Reply]:
            def run() -> Reply:
                thread_clock(RACE_TIME + 2_400)
                return act()

            return run

        def scenario(world: World) -> Race:
            audited = Audited(world, stage.api)
            dead = make_scan(audited.repository, status="running")
            for attempt in range(2, leases.MAX_ATTEMPTS + 1):
                thread_clock(RACE_TIME + attempt * 421)
                execution.acquire_scan(dead.scan_id, 420)
            thread_clock(RACE_TIME)

            def check(outcomes: list[Outcome]) -> None:
                replies: list[Reply] = [outcome.get() for outcome in outcomes]
                repository_is_consistent(stage.check_invariants())
                assert sorted(reply.status for reply in replies) == [202, 409]
                assert reads.get_scan(dead.scan_id).status == "failed"

            return Race([later(audited.start), later(audited.start)], check)

        # 250 of 668 orders, because all of them take 15 seconds.
        stage.race(scenario)

    @pytest.mark.parametrize("late", ["complete", "fail", "report", "inventory"])
    def test_either_a_new_worker_acquires_the_scan_or_a_late_one_ends_it(
        self, late: str, stage: Stage, thread_clock: Callable[[float], None]
    ) -> None:
        def scenario(world: World) -> Race:
            audited = Audited(world, stage.api)
            scan = make_scan(audited.repository, status="running")
            lease = lease_of(scan)
            acts: dict[str, Callable[[], Any]] = {
                "complete": lambda: execution.complete_scan(scan, lease, 1, 1, Coverage(1, 1, {})),
                "fail": lambda: failures.fail_attempted(scan.scan_id, Failure("X", "x"), lease),
                "report": lambda: execution.report_stage(lease, "publish", "running"),
                "inventory": lambda: execution.complete_stage(lease, "inventory", scan.scan_id, INVENTORY),
            }

            def take_over() -> bool:
                thread_clock(RACE_TIME + 421)
                try:
                    execution.acquire_scan(scan.scan_id, 420)
                except leases.Finished:
                    return False
                return True

            def end_late() -> bool:
                try:
                    acts[late]()
                except leases.LeaseLost:
                    return False
                return True

            def check(outcomes: list[Outcome]) -> None:
                taken, ended = [outcome.get() for outcome in outcomes]
                repository_is_consistent(stage.check_invariants())
                status = reads.get_scan(scan.scan_id).status
                if late in {"report", "inventory"}:
                    assert status == "running"
                    stored = table.get(keys.scan_inventory(scan.scan_id))
                    assert (stored is not None) is (ended and late == "inventory")
                else:
                    assert (status != "running") is ended
                    assert taken is not ended

            return Race([take_over, end_late], check)

        stage.race(scenario)


def test_threads_start_one_scan(stage: Stage) -> None:
    audited = Audited(stage.fresh(), stage.api)
    replies = [outcome.get() for outcome in run_repeatedly([audited.start] * 8, times=2)]
    assert [reply.status for reply in replies].count(202) == 1
    assert {reply.code for reply in replies if reply.status == 409} == {"SCAN_IN_PROGRESS"}
    repository_is_consistent(stage.check_invariants())


class TestEveryFault:
    def test_a_stage_is_completed_with_its_inventory_or_not_at_all(self, stage: Stage) -> None:
        def scenario(world: World) -> Trial:
            scan = make_scan(Audited(world, stage.api).repository, status="running")
            lease = lease_of(scan)

            def complete() -> None:
                execution.complete_stage(lease, "inventory", scan.scan_id, INVENTORY)

            def check(case: Case) -> None:
                # A worker that retries isn't taken for one that lost its lease.
                case.second.get()
                found = table.get(keys.scan_inventory(scan.scan_id))
                assert found is not None
                assert Inventory.from_item(found) == INVENTORY
                assert reads.get_scan(scan.scan_id).progress == Progress("inventory", "completed", 2)

            return Trial(complete, check)

        assert stage.faults(scenario) > 5

    def test_a_start_is_applied_completely_or_not_at_all(self, stage: Stage) -> None:
        def scenario(world: World) -> Trial:
            audited = Audited(world, stage.api)

            def check(case: Case) -> None:
                items = stage.check_invariants()
                repository_is_consistent(items)
                reply = check_first(case, 202)
                # A client without a response retries: it starts the scan, or gets a conflict with the existing one.
                again: Reply = case.second.get()
                assert again.status in {202, 409}
                if reply is not None and reply.status == 202:
                    assert again.error["details"] == {"preparationId": reply.data["preparationId"]}
                assert len([item for item in items.values() if item.get("status") == "starting"]) == 1

            return Trial(audited.start, check)

        assert stage.faults(scenario) > 20

    def test_a_preparation_ends_once_wherever_its_worker_crashes(
        self, stage: Stage, thread_clock: Callable[[float], None]
    ) -> None:
        def scenario(world: World) -> Trial:
            thread_clock(RACE_TIME)
            audited = Audited(world, stage.api)
            request_id = make_request(audited.repository)
            prepare = audited.prepares(request_id)

            def deliver_again() -> None:
                thread_clock(RACE_TIME + 180)
                prepare()

            def check(case: Case) -> None:
                thread_clock(RACE_TIME)
                items = stage.check_invariants()
                repository_is_consistent(items)
                case.second.get()
                request = reads.get_request(request_id)
                assert request.status == "started"
                made = [item for item in items.values() if "headCommitSha" in item]
                assert [item["scanId"] for item in made] == [request.scan_id]
                assert _sent_or_waiting(items, Queue.SCAN_EXECUTION, ExecuteScan(scan_id=request.scan_id or ""))

            return Trial(prepare, check, deliver_again)

        assert stage.faults(scenario) > 20

    def test_under_every_fault_the_end_of_a_scan_is_written_once(self, stage: Stage) -> None:
        def scenario(world: World) -> Trial:
            audited = Audited(world, stage.api)
            scan = make_scan(audited.repository, status="running")
            lease = lease_of(scan)

            def complete() -> None:
                execution.complete_scan(scan, lease, 7, 5, Coverage(1, 1, {}))

            def check(case: Case) -> None:
                repository_is_consistent(stage.check_invariants())
                ended = reads.get_scan(scan.scan_id)
                assert (ended.status, ended.finding_count, ended.issue_count) == ("completed", 7, 5)
                assert "activeRequestId" not in stored_repository(audited.repository)

            return Trial(complete, check)

        assert stage.faults(scenario) > 5


def _sent_or_waiting(items: Items, queue: Queue, message: ExecuteScan) -> bool:
    """Returns True if the message is on its queue, or in the outbox, from which a sweep sends it."""
    client: Any = messages.sender.client
    sent = [letter for letter in client.at(queue.url) if message.scan_id in letter.body]
    waiting = [item for key, item in items.items() if key.pk.startswith("OUTBOX#")]
    return bool(sent) or any(entry["message"].get("scanId") == message.scan_id for entry in waiting)
