"""A scan is charged exactly when it is unlocked, and once. A balance is never negative, and is its ledger's sum."""

from collections.abc import Callable

import pytest

from controlplane.store import billing, keys, members
from controlplane.store.scans import reads
from controlplane.store.scans.items import ScanItem
from tests.races.stage import Stage
from tests.races.verdicts import check_first
from tests.support.api import Reply
from tests.support.asgi import DirectApi
from tests.support.audits import make_issue, make_scan
from tests.support.faults import Case, Trial
from tests.support.invariants import Items
from tests.support.outcomes import Outcome
from tests.support.schedules import Race
from tests.support.threads import run_repeatedly
from tests.support.world import World

pytestmark = pytest.mark.races

ISSUES = [make_issue(number) for number in range(1, 6)]


class Customer:
    """An organization with a number of credits, and completed scans of a number of repositories."""

    def __init__(self, world: World, api: DirectApi, credits_: int, scans: int = 1) -> None:
        self.api, self.world = api, world
        self.company = world.company("free")
        world.credits(self.company, credits_)
        self.scans = [make_scan(world.connected_repository(self.company), issues=ISSUES) for _ in range(scans)]

    def unlocks(self, number: int = 0) -> Callable[[], Reply]:
        path = f"/v1/code-audit/scans/{self.scans[number].scan_id}/unlock"
        return lambda: self.api.post(path, self.company.owner.token)

    def balance(self) -> int:
        return billing.get_billing(self.company.organization_id)[1].credits


def books_are_right(items: Items) -> None:
    """Checks that balances are the sum of their ledgers and not negative, and that ledgers list the unlocked scans."""
    for key, item in items.items():
        if key.sk != "BILLING":
            continue
        ledger = [
            entry for other, entry in items.items()
            if other.pk == key.pk and other.sk.startswith(keys.LEDGER_PREFIX)
        ]  # fmt: skip
        assert item["credits"] == sum(entry["credits"] for entry in ledger)
        assert item["credits"] >= 0
        charged = sorted(entry["scanId"] for entry in ledger if entry["kind"] == "unlock")
        opened = sorted(
            scan["scanId"]
            for other, scan in items.items()
            if other.pk == key.pk and other.sk.startswith(keys.SCAN_PREFIX) and scan["access"] == "full"
        )
        assert charged == opened


@pytest.fixture
def race(stage: Stage) -> Callable[..., None]:
    def run(credits_: int, scans: int, acts: Callable[[Customer], list], check: Callable[..., None]) -> None:
        def scenario(world: World) -> Race:
            customer = Customer(world, stage.api, credits_, scans)

            def check_run(outcomes: list[Outcome]) -> None:
                books_are_right(stage.check_invariants())
                check(customer, [outcome.get() for outcome in outcomes])

            return Race(acts(customer), check_run)

        stage.race(scenario)

    return run


class TestEveryOrder:
    def test_one_scan_unlocked_twice_is_charged_once(self, race: Callable[..., None]) -> None:
        def check(customer: Customer, replies: list[Reply]) -> None:
            assert sorted(reply.data["status"] for reply in replies) == ["already-unlocked", "unlocked"]
            assert customer.balance() == 150

        race(200, 1, lambda customer: [customer.unlocks(), customer.unlocks()], check)

    def test_one_scan_unlocked_twice_needs_credits_for_one(self, race: Callable[..., None]) -> None:
        def check(customer: Customer, replies: list[Reply]) -> None:
            assert sorted(reply.data["status"] for reply in replies) == ["already-unlocked", "unlocked"]
            assert customer.balance() == 0

        race(50, 1, lambda customer: [customer.unlocks(), customer.unlocks()], check)

    def test_a_balance_for_one_unlocks_one_of_two_scans(self, race: Callable[..., None]) -> None:
        def check(customer: Customer, replies: list[Reply]) -> None:
            assert sorted(reply.status for reply in replies) == [200, 402]
            (refused,) = [reply for reply in replies if reply.status == 402]
            assert refused.error["details"] == {"remainingCredits": 10, "requiredCredits": 50}
            assert customer.balance() == 10

        race(60, 2, lambda customer: [customer.unlocks(0), customer.unlocks(1)], check)

    def test_a_former_owner_charges_nothing(self, race: Callable[..., None]) -> None:
        def acts(customer: Customer) -> list[Callable[[], Reply | None]]:
            company, world = customer.company, customer.world
            second = world.member(company, "owner")
            owner, _ = members.find_member_and_caller(company.organization_id, company.owner.user_id, second.user_id)
            assert owner is not None

            def demote() -> None:
                members.change_role(owner, "member", second.user_id, "owner")

            return [customer.unlocks(), demote]

        seen: set[int] = set()

        def check(customer: Customer, replies: list[Reply]) -> None:
            seen.add(replies[0].status)
            assert (replies[0].status == 200) is (customer.balance() == 50)

        race(100, 1, acts, check)
        assert seen == {200, 403}


def test_threads_never_overdraw_the_balance(stage: Stage) -> None:
    customer = Customer(stage.fresh(), stage.api, 120, scans=4)
    acts = [customer.unlocks(number) for number in range(4)] * 3
    replies = [outcome.get() for outcome in run_repeatedly(acts, times=2)]
    assert [reply.status == 200 and reply.data["status"] for reply in replies].count("unlocked") == 2
    assert {reply.code for reply in replies if reply.status != 200} <= {"INSUFFICIENT_CREDITS"}
    assert customer.balance() == 20
    books_are_right(stage.check_invariants())


def test_charges_once_under_every_fault(stage: Stage) -> None:
    def scenario(world: World) -> Trial:
        customer = Customer(world, stage.api, 200)

        def check(case: Case) -> None:
            books_are_right(stage.check_invariants())
            first = check_first(case, 200)
            second: Reply = case.second.get()
            assert second.status == 200
            if first is not None and first.status == 200:
                assert (first.data["status"], second.data["status"]) == ("unlocked", "already-unlocked")
            assert customer.balance() == 150
            assert _is_open(customer.scans[0])

        return Trial(customer.unlocks(), check)

    assert stage.faults(scenario) > 20


def _is_open(scan: ScanItem) -> bool:
    return reads.get_scan(scan.scan_id).access == "full"
