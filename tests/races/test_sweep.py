"""The sweep races with a worker that it considers dead: exactly one of them gets the scan, and no work is partial."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from controlplane.queues import messages, scan_messages
from controlplane.queues.messages import PrepareScan, Queue
from controlplane.queues.worker import Rejected
from controlplane.store import keys, leases, outbox, projects, repositories, vendors
from controlplane.store.project_items import Address, ProjectItem
from controlplane.store.repository_items import HostedRepository, Link
from controlplane.store.scans import requests
from controlplane.store.table import table
from scan_preparation.service import prepare_scan
from tests.races.stage import RACE_TIME, Stage
from tests.races.yields import beyond_queries
from tests.support.cleanup import finish_deletions
from tests.support.code_host import FakeHost
from tests.support.faults import Case, Trial
from tests.support.outcomes import Outcome
from tests.support.schedules import Race
from tests.support.sqs import FakeSqs
from tests.support.sweeping import swept
from tests.support.world import World

pytestmark = pytest.mark.races

LONG_AGO = RACE_TIME - 700
HOSTED = HostedRepository(
    installation_id=1,
    owner="acme",
    name="shop",
    html_url="https://code.example/acme/shop",
    default_branch="main",
    visibility="private",
)


class Shop:
    """A project with a vendor, and a request for a scan of its repository."""

    def __init__(self, world: World) -> None:
        self.company = world.company()
        organization_id = self.company.organization_id
        self.project: ProjectItem = projects.create_project(
            organization_id, "Shop", region="eu-central", addresses=[Address("a.example", "domain")], branding="assent"
        )
        vendors.decide_vendor(self.project, "segment", "approved", self.company.owner.user_id)
        link = Link(self.project.project_id, None, None, False)
        connected = repositories.connect_repository(organization_id, HOSTED)
        repository = repositories.link_project(connected.repository_id, link)
        message = outbox.new_entry(Queue.SCAN_PREPARATION, {})
        self.request = requests.create_request(
            repository,
            link,
            requests.new_request_id(organization_id),
            message=message,
            requested_by=self.company.owner.user_id,
        )
        outbox.delete_entry(message)

    def takes(self) -> bool:
        """Acquires the request as a worker does. Returns True if it succeeded."""
        try:
            requests.acquire_request(self.request.request_id, 30)
        except leases.Finished:
            return False
        return True

    def stored(self) -> dict[str, Any]:
        return table.get(self.request.key) or {}

    def is_free(self) -> bool:
        repository = table.get(keys.repository(*self.request.repository_id.location)) or {}
        return "activeRequestId" not in repository

    def vendors_left(self) -> int:
        organization_id, local = self.project.project_id.location
        pk = keys.organization_pk(organization_id)
        return len(table.query(pk, prefix=keys.vendor_prefix(local), consistent=True).items)


def notes(pks: Iterable[str]) -> int:
    return sum(len(table.query(pk, consistent=True).items) for pk in pks)


def sweeps() -> int:
    return swept(scan_messages.recover_scans)


class TestScans:
    @pytest.fixture
    def shop(self, thread_clock: Callable[[float], None], sqs: FakeSqs) -> Callable[[World, int], Shop]:
        def make(world: World, attempts: int) -> Shop:
            thread_clock(LONG_AGO)
            sqs.letters.clear()
            made = Shop(world)
            for number in range(attempts):
                thread_clock(LONG_AGO + number * 31)
                requests.acquire_request(made.request.request_id, 30)
            thread_clock(RACE_TIME)
            return made

        return make

    def test_a_worker_acquires_a_request_that_the_sweep_releases_once(
        self, stage: Stage, shop: Callable[[World, int], Shop], sqs: FakeSqs
    ) -> None:
        def scenario(world: World) -> Race:
            made = shop(world, 1)

            def check(outcomes: list[Outcome]) -> None:
                taken, retried = outcomes[0].get(), outcomes[1].get()
                assert taken
                assert (made.stored()["attempts"], made.stored()["leaseUntil"]) == (2, RACE_TIME + 30)
                assert len(sqs.letters) == retried
                assert (made.is_free(), notes(keys.SCAN_WATCH_PKS)) == (False, 1)

            return Race([made.takes, sweeps], check)

        stage.race(scenario)

    def test_two_sweeps_send_one_message(self, stage: Stage, shop: Callable[[World, int], Shop], sqs: FakeSqs) -> None:
        def scenario(world: World) -> Race:
            made = shop(world, 1)

            def check(outcomes: list[Outcome]) -> None:
                assert sum(outcome.get() for outcome in outcomes) == len(sqs.letters) == 1
                assert (made.stored()["attempts"], made.stored()["leaseUntil"]) == (1, 0)

            return Race([sweeps] * 2, check)

        stage.race(scenario)

    def test_either_a_worker_or_the_sweep_ends_a_request_without_remaining_attempts(
        self, stage: Stage, shop: Callable[[World, int], Shop]
    ) -> None:
        def scenario(world: World) -> Race:
            made = shop(world, leases.MAX_ATTEMPTS)
            host = FakeHost()

            def deliver() -> bool:
                try:
                    prepare_scan(PrepareScan(request_id=made.request.request_id), host.connect)
                except Rejected:
                    return True
                return False

            def check(outcomes: list[Outcome]) -> None:
                for outcome in outcomes:
                    outcome.get()
                assert (made.stored()["status"], made.is_free()) == ("failed", True)
                assert notes(keys.SCAN_WATCH_PKS) == 0
                assert host.asked == []

            return Race([deliver, sweeps], check)

        stage.race(scenario)

    @pytest.mark.parametrize("attempts", [1, leases.MAX_ATTEMPTS])
    def test_the_next_sweep_completes_recovery_after_any_fault(
        self, attempts: int, stage: Stage, shop: Callable[[World, int], Shop], sqs: FakeSqs, thread_clock
    ) -> None:
        def scenario(world: World) -> Trial:
            made = shop(world, attempts)

            def sweep_again() -> None:
                thread_clock(RACE_TIME + 120)
                sweeps()
                swept(messages.resend)

            def check(case: Case) -> None:
                case.second.get()
                if attempts == 1:
                    # Sent once, or twice only if the first send couldn't be recorded.
                    assert len(sqs.letters) in {1, 2}
                    assert (made.stored()["status"], made.stored()["leaseUntil"]) == ("starting", 0)
                else:
                    assert (made.stored()["status"], made.is_free()) == ("failed", True)
                    assert notes(keys.SCAN_WATCH_PKS) == 0
                assert notes(keys.OUTBOX_PKS) == 0

            return Trial(sweeps, check, sweep_again)

        assert stage.faults(scenario, breaks=beyond_queries) > 10


def test_the_next_sweep_removes_what_any_fault_left_of_a_deleted_project(stage: Stage) -> None:
    def scenario(world: World) -> Trial:
        shop = Shop(world)
        projects.delete_project(shop.project)

        def check(case: Case) -> None:
            case.second.get()
            assert (shop.vendors_left(), notes(keys.DELETIONS_PKS)) == (0, 0)

        return Trial(finish_deletions, check)

    assert stage.faults(scenario, breaks=beyond_queries) > 10
