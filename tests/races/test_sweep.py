"""The sweep beside what it takes for dead: of a worker and the sweep one has the scan, and nothing is half done."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from controlplane import scan_messages
from controlplane.queues import Queue
from controlplane.store import keys, leases, outbox, projects, repositories, scan_requests, scans, vendors
from controlplane.store.project_items import Address, ProjectItem
from controlplane.store.repositories import HostedRepository, Link
from controlplane.store.table import table
from tests.races.stage import STILL_AT, Stage
from tests.races.yields import only_writes
from tests.support.faults import Case, Trial, explore_faults
from tests.support.outcomes import Outcome
from tests.support.schedules import Race, explore
from tests.support.sweeping import swept
from tests.support.world import World

pytestmark = pytest.mark.races

LONG_AGO = STILL_AT - 700
HOSTED = HostedRepository(1, "acme", "shop", "https://code.example/acme/shop", "main", "private")


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
        self.request = scan_requests.create_request(
            repository,
            link,
            scan_requests.new_request_id(organization_id),
            message=message,
            requested_by=self.company.owner.user_id,
        )
        scan_requests.acquire_request(self.request.request_id, 30)

    def takes(self) -> bool:
        """A worker's delivery: whether it has the request now."""
        try:
            scan_requests.acquire_request(self.request.request_id, 30)
        except leases.Finished:
            return False
        return True

    def stored(self) -> dict[str, Any]:
        return table.get(keys.scan_request(*scans.located("spr", self.request.request_id))) or {}

    def is_free(self) -> bool:
        repository = table.get(keys.repository(*scans.located("rep", self.request.repository_id))) or {}
        return "activeRequestId" not in repository

    def vendors_left(self) -> int:
        organization_id, local = self.project.location
        pk = keys.organization_pk(organization_id)
        return len(table.query(pk, prefix=keys.vendor_prefix(local), consistent=True).items)


def notes(pks: Iterable[str]) -> int:
    return sum(len(table.query(pk, consistent=True).items) for pk in pks)


class TestScans:
    @pytest.fixture
    def shop(self, stage: Stage, own_clock: Callable[[float], None]) -> Callable[[], Shop]:
        def make() -> Shop:
            own_clock(LONG_AGO)
            made = Shop(stage.fresh())
            own_clock(STILL_AT)
            return made

        return make

    def test_either_a_worker_has_the_request_or_the_sweep_has_ended_it(
        self, stage: Stage, shop: Callable[[], Shop]
    ) -> None:
        def scenario() -> Race:
            made = shop()

            def check(outcomes: list[Outcome]) -> None:
                taken, ended = outcomes[0].get(), outcomes[1].get()
                assert made.stored()["status"] == ("starting" if taken else "failed")
                assert made.is_free() is not taken
                assert ended == (not taken)
                assert notes(keys.SCAN_WATCH_PKS) == taken

            return Race([made.takes, lambda: swept(scan_messages.recover_scans)], check)

        assert explore(stage.client, scenario).exhaustive

    def test_two_sweeps_end_it_once(self, stage: Stage, shop: Callable[[], Shop]) -> None:
        def scenario() -> Race:
            made = shop()

            def check(outcomes: list[Outcome]) -> None:
                for outcome in outcomes:
                    outcome.get()
                assert (made.stored()["status"], made.is_free()) == ("failed", True)
                assert notes(keys.SCAN_WATCH_PKS) == 0

            return Race([lambda: swept(scan_messages.recover_scans)] * 2, check)

        assert explore(stage.client, scenario, yields_at=only_writes).exhaustive

    def test_the_next_sweep_ends_what_any_fault_left(self, stage: Stage, shop: Callable[[], Shop]) -> None:
        def scenario() -> Trial:
            made = shop()

            def check(case: Case) -> None:
                case.second.get()
                assert (made.stored()["status"], made.is_free()) == ("failed", True)
                assert notes(keys.SCAN_WATCH_PKS) == 0

            return Trial(lambda: swept(scan_messages.recover_scans), check)

        assert explore_faults(stage.client, scenario) > 10


def test_the_next_sweep_removes_what_any_fault_left_of_a_deleted_project(stage: Stage) -> None:
    def scenario() -> Trial:
        shop = Shop(stage.fresh())
        projects.delete_project(shop.project)

        def check(case: Case) -> None:
            case.second.get()
            assert (shop.vendors_left(), notes(keys.DELETIONS_PKS)) == (0, 0)

        return Trial(lambda: swept(vendors.finish_deletions), check)

    assert explore_faults(stage.client, scenario) > 10
