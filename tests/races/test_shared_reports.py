"""A report is charged once, however unlocks, completions, and the background unlocking of its scans overlap."""

from collections.abc import Callable

import pytest

from controlplane.queues.messages import ExecuteScan, PublishScan
from controlplane.store import billing, keys
from controlplane.store.scans import findings, reads
from controlplane.store.scans.findings import FindingItem
from controlplane.store.table import table
from openassent_analysis import rules_version
from scan_execution.service import execute_scan, publish_scan
from tests.races.stage import Stage
from tests.races.test_unlocks import ISSUES
from tests.races.yields import only_writes
from tests.support.api import Reply
from tests.support.asgi import DirectApi
from tests.support.audits import make_scan, serving
from tests.support.calls import Call
from tests.support.code_host import archive
from tests.support.faults import Case, Trial
from tests.support.outcomes import Outcome
from tests.support.scan_line import FILES
from tests.support.schedules import Race
from tests.support.threads import run_repeatedly
from tests.support.world import World

pytestmark = pytest.mark.races


class Twins:
    """An organization with credits for one report, and two scans of the same commit. The second one may be running."""

    def __init__(self, world: World, api: DirectApi, *, running: bool = False) -> None:
        self.api = api
        self.company = world.company("free")
        world.credits(self.company, 60)
        self.repository = world.connected_repository(self.company)
        first = make_scan(self.repository, issues=ISSUES, rules_version=rules_version())
        status = "queued" if running else "completed"
        second = make_scan(self.repository, status=status, issues=ISSUES, rules_version=rules_version())
        self.scans = [first, second]

    def unlocks(self, number: int) -> Callable[[], Reply]:
        path = f"/v1/code-audit/scans/{self.scans[number].scan_id}/unlock"
        return lambda: self.api.post(path, self.company.owner.token)

    def publish(self) -> None:
        """Does what the message of the charged unlock causes."""
        publish_scan(PublishScan(scan_id=self.scans[0].scan_id))

    def execute(self) -> None:
        host = serving(self.repository, archive(FILES))
        execute_scan(ExecuteScan(scan_id=self.scans[1].scan_id), host.connect)

    def unpublished(self) -> list[FindingItem]:
        """Returns the findings of the second scan that aren't in the inbox."""
        scan = reads.get_scan(self.scans[1].scan_id)
        found = findings.list_findings(scan.scan_id, scan.findings_attempt, scan.visible_count)
        assert found
        items = findings.find_items(scan, [it.fingerprint for it in found])
        return [it for it in found if it.fingerprint not in items]

    def check_charged_once(self) -> None:
        ledger = billing.list_ledger(self.company.organization_id)
        assert [entry.kind for entry in ledger if entry.kind != "operator"] == ["unlock"]
        assert billing.get_billing(self.company.organization_id)[1].credits == 10

    def accesses(self) -> list[str]:
        return [reads.get_scan(scan.scan_id).access for scan in self.scans]

    def listed(self) -> int:
        """Returns how many scans are listed as locked."""
        page = table.query(keys.finding_history_pk(self.repository.repository_id), prefix="REPORT#", consistent=True)
        return len(page.items) - 1


type Acts = Callable[[Twins], list[Callable[[], Reply | None]]]


@pytest.fixture
def race(stage: Stage) -> Callable[..., None]:
    """Runs the acts in every order. Checks that the report is charged once, and calls `check` with the replies."""

    def run(acts: Acts, check: Callable[[Twins, list[Reply]], None], *, running: bool = False) -> None:
        def scenario(world: World) -> Race:
            twins = Twins(world, stage.api, running=running)

            def check_run(outcomes: list[Outcome]) -> None:
                replies = [outcome.get() for outcome in outcomes]
                check(twins, replies)
                twins.check_charged_once()

            return Race(acts(twins), check_run)

        stage.race(scenario)

    return run


def of_reports(call: Call) -> bool:
    """Selects the calls that read or write reports, or the access to scans."""
    return any(name in str(call.parameters) for name in ("REPORT#", "#access"))


class TestEveryOrder:
    def test_two_scans_of_a_commit_unlocked_at_once_are_charged_once(self, race: Callable[..., None]) -> None:
        def check(twins: Twins, replies: list[Reply]) -> None:
            assert sorted(reply.data["status"] for reply in replies) == ["already-unlocked", "unlocked"]
            assert twins.accesses() == ["full", "full"]
            assert twins.listed() == 0

        race(lambda twins: [twins.unlocks(0), twins.unlocks(1)], check)

    def test_a_scan_completed_during_the_unlock_becomes_full(self, race: Callable[..., None]) -> None:
        seen: set[str] = set()

        def check(twins: Twins, replies: list[Reply]) -> None:
            assert replies[0].data == {"status": "unlocked"}
            first, second = twins.accesses()
            seen.add(second)
            assert twins.listed() == (second == "locked")
            twins.publish()
            assert twins.accesses() == [first, "full"] == ["full", "full"]
            assert twins.listed() == 0
            assert twins.unpublished() == []

        race(lambda twins: [twins.unlocks(0), twins.execute], check, running=True)
        assert seen == {"locked", "full"}

    def test_a_scan_unlocked_during_the_background_unlocking_is_not_charged(self, race: Callable[..., None]) -> None:
        def acts(twins: Twins) -> list[Callable[[], Reply | None]]:
            assert twins.unlocks(0)().status == 200
            return [twins.unlocks(1), twins.publish]

        def check(twins: Twins, replies: list[Reply]) -> None:
            assert replies[0].data == {"status": "already-unlocked"}
            assert twins.accesses() == ["full", "full"]
            assert twins.listed() == 0

        race(acts, check)


def test_threads_charge_a_report_once(stage: Stage) -> None:
    twins = Twins(stage.fresh(), stage.api)
    acts = [twins.unlocks(0), twins.unlocks(1)] * 4
    replies = [outcome.get() for outcome in run_repeatedly(acts, times=2)]
    assert [reply.data["status"] for reply in replies].count("unlocked") == 1
    twins.check_charged_once()
    assert twins.accesses() == ["full", "full"]
    stage.check_invariants()


class TestEveryFault:
    def test_of_the_second_unlock_charges_nothing(self, stage: Stage) -> None:
        def scenario(world: World) -> Trial:
            twins = Twins(world, stage.api)
            assert twins.unlocks(0)().status == 200

            def check(case: Case) -> None:
                assert case.second.get().data == {"status": "already-unlocked"}
                twins.check_charged_once()
                assert twins.accesses() == ["full", "full"]

            return Trial(twins.unlocks(1), check)

        assert stage.faults(scenario) > 20

    def test_of_the_background_unlocking_is_made_up_for_by_the_redelivery(self, stage: Stage) -> None:
        def scenario(world: World) -> Trial:
            twins = Twins(world, stage.api)
            assert twins.unlocks(0)().status == 200

            def check(case: Case) -> None:
                case.second.get()
                twins.check_charged_once()
                assert twins.accesses() == ["full", "full"]
                assert twins.listed() == 0

            return Trial(twins.publish, check)

        assert stage.faults(scenario, breaks=only_writes) > 10
