"""A charge and its automatic top-up are one decision: the month's limit holds, and no balance is negative."""

from collections.abc import Callable

import pytest

from controlplane.store import billing, keys
from tests.races.stage import Stage
from tests.races.test_unlocks import Customer, books_are_right
from tests.races.verdicts import check_first
from tests.support.api import Reply
from tests.support.faults import Case, Trial
from tests.support.outcomes import Outcome
from tests.support.schedules import Race
from tests.support.threads import run_repeatedly
from tests.support.world import World

pytestmark = pytest.mark.races

AMOUNT = 60


class ToppedUp(Customer):
    """A customer whose balance is topped up below 40 credits."""

    def enable(self, monthly_limit: int = 1, amount: int = AMOUNT) -> None:
        billing.enable_top_up(self.company.organization_id, threshold=40, amount=amount, monthly_limit=monthly_limit)

    def disable(self) -> None:
        billing.disable_top_up(self.company.organization_id)

    def check(self, unlocked: int) -> int:
        """Checks the books of so many unlocks. Returns the number of top-ups."""
        entries = billing.list_ledger(self.company.organization_id)
        kinds = [entry.kind for entry in entries]
        top_ups = [entry.credits for entry in entries if entry.kind == "top-up"]
        assert kinds.count("unlock") == unlocked
        assert self.balance() == sum(entry.credits for entry in entries)
        _, account = billing.get_billing(self.company.organization_id)
        assert account.top_up.used_in("2026-03") == len(top_ups)
        return len(top_ups)


type Act = Callable[[], Reply | None]
type Check = Callable[[ToppedUp, list[Reply]], None]


@pytest.fixture
def race(stage: Stage) -> Callable[..., None]:
    def run(credits_: int, acts: Callable[[ToppedUp], list[Act]], check: Check, monthly_limit: int = 1) -> None:
        def scenario(world: World) -> Race:
            customer = ToppedUp(world, stage.api, credits_, scans=2)
            customer.enable(monthly_limit)

            def check_run(outcomes: list[Outcome]) -> None:
                books_are_right(stage.check_invariants())
                check(customer, [outcome.get() for outcome in outcomes])

            return Race(acts(customer), check_run)

        stage.race(scenario)

    return run


def both(customer: ToppedUp) -> list[Act]:
    return [customer.unlocks(0), customer.unlocks(1)]


def unlocked(replies: list[Reply]) -> int:
    return [reply.status for reply in replies].count(200)


class TestEveryOrder:
    def test_two_unlocks_around_the_threshold_are_topped_up_once(self, race: Callable[..., None]) -> None:
        def check(customer: ToppedUp, replies: list[Reply]) -> None:
            assert unlocked(replies) == 2
            assert customer.check(2) == 1
            assert customer.balance() == 100 - 100 + AMOUNT

        race(100, both, check)

    def test_the_months_limit_holds_for_two_unlocks_that_both_need_a_top_up(self, race: Callable[..., None]) -> None:
        def check(customer: ToppedUp, replies: list[Reply]) -> None:
            assert unlocked(replies) == 1
            (refused,) = [reply for reply in replies if reply.status == 402]
            assert refused.error["details"] == {"remainingCredits": 40, "requiredCredits": 50}
            assert customer.check(1) == 1

        race(30, both, check)

    def test_two_unlocks_can_each_be_topped_up(self, race: Callable[..., None]) -> None:
        def check(customer: ToppedUp, replies: list[Reply]) -> None:
            assert unlocked(replies) == 2
            assert customer.check(2) == 2
            assert customer.balance() == 2 * AMOUNT - 100

        race(0, both, check, monthly_limit=2)

    def test_one_scan_unlocked_twice_is_topped_up_once(self, race: Callable[..., None]) -> None:
        def check(customer: ToppedUp, replies: list[Reply]) -> None:
            assert sorted(reply.data["status"] for reply in replies) == ["already-unlocked", "unlocked"]
            assert customer.check(1) == 1

        race(30, lambda customer: [customer.unlocks(), customer.unlocks()], check, monthly_limit=2)

    def test_settings_that_change_during_a_charge_apply_to_it_or_not(self, race: Callable[..., None]) -> None:
        seen: set[tuple[int, int]] = set()

        def check(customer: ToppedUp, replies: list[Reply]) -> None:
            seen.add((unlocked(replies[:1]), customer.check(unlocked(replies[:1]))))

        race(30, lambda customer: [customer.unlocks(), customer.disable], check)
        assert seen == {(1, 1), (0, 0)}

    def test_a_changed_amount_is_the_one_that_is_booked(self, race: Callable[..., None]) -> None:
        seen: set[int] = set()

        def check(customer: ToppedUp, replies: list[Reply]) -> None:
            assert customer.check(1) == 1
            seen.add(customer.balance())

        race(30, lambda customer: [customer.unlocks(), lambda: customer.enable(amount=200)], check)
        assert seen == {30 + AMOUNT - 50, 30 + 200 - 50}


def test_threads_never_exceed_the_months_top_ups(stage: Stage) -> None:
    customer = ToppedUp(stage.fresh(), stage.api, 10, scans=5)
    customer.enable(monthly_limit=3)
    acts = [customer.unlocks(number) for number in range(5)] * 2
    replies = [outcome.get() for outcome in run_repeatedly(acts, times=2)]
    opened = {reply.data["status"] for reply in replies if reply.status == 200}
    assert "unlocked" in opened
    books_are_right(stage.check_invariants())
    # 10 credits and three top-ups of 60 are enough for three scans, and leave 40.
    assert customer.check(3) == 3


def test_a_charge_is_topped_up_once_under_every_fault(stage: Stage) -> None:
    def scenario(world: World) -> Trial:
        customer = ToppedUp(world, stage.api, 30)
        customer.enable(monthly_limit=5)

        def check(case: Case) -> None:
            items = stage.check_invariants()
            books_are_right(items)
            first = check_first(case, 200)
            second: Reply = case.second.get()
            assert second.status == 200
            if first is not None and first.status == 200:
                assert (first.data["status"], second.data["status"]) == ("unlocked", "already-unlocked")
            assert customer.check(1) == 1
            assert items[keys.ledger_of_top_up(*customer.scans[0].scan_id.location)]["credits"] == AMOUNT

        return Trial(customer.unlocks(), check)

    assert stage.faults(scenario) > 20
