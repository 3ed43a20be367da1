"""A report is charged exactly when it is unlocked, and once, with its automatic top-up. No balance is negative.

After each run, an invariant compares the balance with its ledger, and the ledger with the scans that are open.
"""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.billing import store as billing
from controlplane.organizations import members
from controlplane.platform.queues.messages import ExecuteScan, PublishScan
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from controlplane.scans import findings, reads
from openassent_analysis import rules_version
from scan_execution.service import execute_scan, publish_scan
from tests.functional.sweeper.scan_line import FILES
from tests.races.faults import check_first
from tests.races.stage import Stage, faults, race
from tests.races.threads import run_repeatedly
from tests.races.yields import only_writes
from tests.support.api import Reply
from tests.support.audits import make_issue, make_scan, serving
from tests.support.code_host import archive
from tests.support.world import World

ISSUES = [make_issue(number) for number in range(1, 6)]
# A report costs 50 credits.
AMOUNT = 60


class Customer:
    """An organization with so many credits, and completed scans of so many repositories."""

    def __init__(self, world: World, stage: Stage, credits_: int, scans: int = 1, monthly_limit: int = 0) -> None:
        self.api, self.world, self.company = stage.api, world, world.company("free")
        self.id = self.company.organization_id
        world.credits(self.company, credits_)
        self.scans = [make_scan(world.connected_repository(self.company), issues=ISSUES) for _ in range(scans)]
        if monthly_limit:
            self.top_up(monthly_limit)

    def unlocks(self, number: int = 0) -> Callable[[], Reply]:
        path = f"/v1/code-audit/scans/{self.scans[number].scan_id}/unlock"
        return lambda: self.api.post(path, self.company.owner.token)

    def top_up(self, monthly_limit: int = 1, amount: int = AMOUNT) -> None:
        """Lets the balance be topped up below 40 credits."""
        billing.enable_top_up(self.id, threshold=40, amount=amount, monthly_limit=monthly_limit)

    def balance(self) -> int:
        return billing.get_billing(self.id)[1].credits

    def accesses(self) -> list[str]:
        return [reads.get_scan(scan.scan_id).access for scan in self.scans]

    def check(self, unlocked: int, top_ups: int = 0) -> None:
        """Checks the books of so many unlocks and top-ups."""
        kinds = [entry.kind for entry in billing.list_ledger(self.id)]
        assert (kinds.count("unlock"), kinds.count("top-up")) == (unlocked, top_ups)
        assert self.accesses().count("full") == unlocked
        assert billing.get_billing(self.id)[1].top_up.used_in("2026-03") == top_ups


def statuses(replies: list[Reply]) -> list[Any]:
    """Returns what came of each unlock: its status, or the details of its refusal."""
    return sorted((it.data["status"] if it.status == 200 else it.error["details"] for it in replies), key=str)


ONCE = ["already-unlocked", "unlocked"]


@pytest.mark.parametrize(
    ("credits_", "acts", "monthly_limit", "expected", "left", "top_ups"),
    [
        pytest.param(200, (0, 0), 0, ONCE, 150, 0, id="once"),
        pytest.param(50, (0, 0), 0, ONCE, 0, 0, id="once, with credits for one"),
        pytest.param(
            60, (0, 1), 0, ["unlocked", {"remainingCredits": 10, "requiredCredits": 50}], 10, 0, id="one of two"
        ),
        pytest.param(100, (0, 1), 1, ["unlocked"] * 2, AMOUNT, 1, id="topped up once around the threshold"),
        pytest.param(
            30, (0, 1), 1, ["unlocked", {"remainingCredits": 40, "requiredCredits": 50}], 40, 1, id="the month's limit"
        ),
        pytest.param(0, (0, 1), 2, ["unlocked"] * 2, 2 * AMOUNT - 100, 2, id="each topped up"),
        pytest.param(30, (0, 0), 2, ONCE, 40, 1, id="once, topped up once"),
    ],
)
@race()
def test_two_unlocks_are_charged_once_for_each_scan(
    world, *, stage, credits_, acts, monthly_limit, expected, left, top_ups
):
    customer = Customer(world, stage, credits_, len({*acts}), monthly_limit)
    replies = yield [customer.unlocks(number) for number in acts]
    assert statuses(replies) == sorted(expected, key=str)
    customer.check(expected.count("unlocked"), top_ups)
    assert customer.balance() == left


@race(ends={200, 403})
def test_a_former_owner_charges_nothing(world, stage):
    customer = Customer(world, stage, 100)
    company, second = customer.company, world.member(customer.company, "owner")
    owner: Any = members.find_member_and_caller(company.organization_id, company.owner.user_id, second.user_id)[0]
    reply, _ = yield [customer.unlocks(), lambda: members.change_role(owner, "member", second.user_id, "owner")]
    assert (reply.status == 200) is (customer.balance() == 50)
    return reply.status


@race(ends={(200, 1), (402, 0)})
def test_settings_that_change_during_a_charge_apply_to_it_or_not(world, stage):
    customer = Customer(world, stage, 30, monthly_limit=1)
    reply, _ = yield [customer.unlocks(), lambda: billing.disable_top_up(customer.id)]
    customer.check(reply.status == 200, reply.status == 200)
    return reply.status, int(customer.balance() == 30 + AMOUNT - 50)


@race(ends={30 + AMOUNT - 50, 30 + 200 - 50})
def test_a_changed_amount_is_the_one_that_is_booked(world, stage):
    customer = Customer(world, stage, 30, monthly_limit=1)
    yield [customer.unlocks(), lambda: customer.top_up(amount=200)]
    customer.check(1, 1)
    return customer.balance()


@pytest.mark.parametrize(
    ("credits_", "scans", "monthly_limit", "unlocked", "left"), [(120, 4, 0, 2, 20), (10, 5, 3, 3, 40)]
)
def test_threads_never_overdraw_the_balance_or_exceed_the_months_top_ups(
    stage, *, credits_, scans, monthly_limit, unlocked, left
):
    customer = Customer(stage.fresh(), stage, credits_, scans, monthly_limit)
    acts = [customer.unlocks(number) for number in range(scans)] * 3
    replies = [outcome.get() for outcome in run_repeatedly(acts, times=2)]
    assert {reply.code for reply in replies if reply.status != 200} <= {"INSUFFICIENT_CREDITS"}
    assert [reply.status == 200 and reply.data["status"] for reply in replies].count("unlocked") == unlocked
    customer.check(unlocked, monthly_limit)
    assert customer.balance() == left
    stage.check_invariants()


@pytest.mark.parametrize(("credits_", "monthly_limit"), [(200, 0), (30, 5)], ids=["credits", "topped up"])
@faults()
def test_a_charge_is_made_and_topped_up_once_under_every_fault(world, stage, credits_, monthly_limit):
    customer = Customer(world, stage, credits_, monthly_limit=monthly_limit)
    case = yield customer.unlocks()
    first, second = check_first(case, 200), case.second.get()
    assert second.status == 200
    if first:
        assert [first.data["status"], second.data["status"]] == ["unlocked", "already-unlocked"]
    customer.check(1, bool(monthly_limit))
    assert customer.balance() == (40 if monthly_limit else 150)
    if monthly_limit:
        stored = stage.check_invariants()
        assert stored[keys.ledger_of_top_up(*customer.scans[0].scan_id.location)]["credits"] == AMOUNT


# Scans of one commit share a report.


class Twins(Customer):
    """An organization with credits for one report, and two scans of the same commit. The second one may be running."""

    def __init__(self, world: World, stage: Stage, *, running: bool = False, unlocked: bool = False) -> None:
        super().__init__(world, stage, 60, scans=0)
        self.repository = world.connected_repository(self.company)
        self.scans = [
            make_scan(self.repository, status=status, issues=ISSUES, rules_version=rules_version())
            for status in ("completed", "queued" if running else "completed")
        ]
        if unlocked:
            assert self.unlocks(0)().status == 200

    def publish(self) -> None:
        """Does what the message of the charged unlock causes."""
        publish_scan(PublishScan(scan_id=self.scans[0].scan_id))

    def execute(self) -> None:
        host = serving(self.repository, archive(FILES))
        execute_scan(ExecuteScan(scan_id=self.scans[1].scan_id), host.connect)

    def listed(self) -> int:
        """Returns how many scans are listed as locked."""
        page = table.query(keys.finding_history_pk(self.repository.repository_id), prefix="REPORT#", consistent=True)
        return len(page.items) - 1

    def check_charged_once(self, listed: int = 0) -> None:
        assert [entry.kind for entry in billing.list_ledger(self.id) if entry.kind != "operator"] == ["unlock"]
        assert self.balance() == 10
        assert self.accesses() == ["full", "free-preview" if listed else "full"]
        assert self.listed() == listed


@race()
def test_two_scans_of_a_commit_unlocked_at_once_are_charged_once(world, stage):
    twins = Twins(world, stage)
    replies = yield [twins.unlocks(0), twins.unlocks(1)]
    assert statuses(replies) == ONCE
    twins.check_charged_once()


@race(ends={"free-preview", "full"})
def test_a_scan_completed_during_the_unlock_becomes_full(world, stage):
    twins = Twins(world, stage, running=True)
    unlocked, _ = yield [twins.unlocks(0), twins.execute]
    assert unlocked.data == {"status": "unlocked"}
    access = twins.accesses()[1]
    twins.check_charged_once(listed=access == "free-preview")
    twins.publish()
    twins.check_charged_once()
    scan = reads.get_scan(twins.scans[1].scan_id)
    found = [it.fingerprint for it in findings.list_findings(scan.scan_id, scan.findings_attempt, scan.visible_count)]
    assert found
    assert {*found} == {*findings.find_items(scan, found)}
    return access


@race()
def test_a_scan_unlocked_during_the_background_unlocking_is_not_charged(world, stage):
    twins = Twins(world, stage, unlocked=True)
    reply, _ = yield [twins.unlocks(1), twins.publish]
    assert reply.data == {"status": "already-unlocked"}
    twins.check_charged_once()


@faults()
def test_every_fault_of_the_second_unlock_charges_nothing(world, stage):
    twins = Twins(world, stage, unlocked=True)
    case = yield twins.unlocks(1)
    assert case.second.get().data == {"status": "already-unlocked"}
    twins.check_charged_once()


@faults(breaks=only_writes)
def test_every_fault_of_the_background_unlocking_is_made_up_for_by_the_redelivery(world, stage):
    twins = Twins(world, stage, unlocked=True)
    case = yield twins.publish
    case.second.get()
    twins.check_charged_once()
