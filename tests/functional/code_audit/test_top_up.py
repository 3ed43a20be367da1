"""The automatic top-up of credits, which is part of the charge that needs it."""

from itertools import product

import pytest

from controlplane.store import billing, charges, keys
from controlplane.store.organization_items import BillingItem, TopUpItem
from controlplane.store.outbox import new_entry
from controlplane.store.scans import unlocks
from controlplane.store.scans.items import ScanItem
from controlplane.store.scans.requests import new_scan_id
from controlplane.store.table import LegFailed, Put, Update, table
from tests.functional.code_audit.test_unlock_scan import ISSUES, balance, ledger, unlock
from tests.functional.conftest import FakeClock
from tests.support.api import Api
from tests.support.audit_log import all_entries
from tests.support.audits import make_scan
from tests.support.each import each
from tests.support.recorded import recorded_calls
from tests.support.table import PREPARED
from tests.support.world import Company, World, table_dump


@pytest.fixture
def company(world: World) -> Company:
    made = world.company("free")
    world.credits(made, 80)
    return made


@pytest.fixture
def scans(company: Company, world: World) -> list[ScanItem]:
    return [make_scan(world.connected_repository(company), issues=ISSUES) for _ in range(3)]


def enable(company: Company, threshold: int = 40, amount: int = 100, monthly_limit: int = 3) -> None:
    billing.enable_top_up(company.organization_id, threshold=threshold, amount=amount, monthly_limit=monthly_limit)


def used(company: Company, api: Api) -> int:
    token = company.owner.token
    return int(api.get("/v1/billing", token).data["topUp"]["usedThisMonth"])


def changes(company: Company) -> list[tuple[str, int]]:
    """Returns the ledger's entries since the first credits, and checks that the balance is the sum of all."""
    entries = ledger(company)
    assert balance(company) == sum(entry["credits"] for entry in entries)
    return sorted((entry["kind"], entry["credits"]) for entry in entries if entry["kind"] != "operator")


class TestTopUp:
    def test_happens_if_the_charge_leaves_fewer_credits_than_the_threshold(
        self, company: Company, scans: list[ScanItem], api: Api
    ):
        enable(company, threshold=31)
        assert unlock(api, company.owner.token, scans[0]).data == {"status": "unlocked"}
        assert changes(company) == [("top-up", 100), ("unlock", -50)]
        assert (balance(company), used(company, api)) == (130, 1)

    def test_its_ledger_entry_names_the_scan_but_no_person(self, company: Company, scans: list[ScanItem], api: Api):
        enable(company)
        unlock(api, company.owner.token, scans[0])
        (entry,) = [entry for entry in ledger(company) if entry["kind"] == "top-up"]
        assert entry["scanId"] == scans[0].scan_id
        assert "by" not in entry

    def test_the_audit_log_says_that_the_unlock_included_it(self, company: Company, scans: list[ScanItem], api: Api):
        enable(company)
        for scan in scans[:2]:
            unlock(api, company.owner.token, scan)
        recorded = {it["resource"]: it["after"] for it in all_entries() if it["action"] == "scan.unlock"}
        charged = {"access": "full", "credits": -50}
        assert recorded == {scans[0].scan_id: {**charged, "topUp": 100}, scans[1].scan_id: charged}

    def test_an_entry_that_exists_already_is_not_taken_for_the_balance(self, company: Company, scans: list[ScanItem]):
        enable(company)
        entry = keys.ledger_of_top_up(*scans[0].scan_id.location)
        table.put(Put({**entry._asdict(), "kind": "top-up", "credits": 100}), PREPARED)
        account = billing.get_billing(company.organization_id)[1]
        with pytest.raises(LegFailed) as failure:
            unlocks.unlock_scan(scans[0], company.owner.user_id, new_entry("scan-execution", {}), account)
        assert failure.value.leg == "topUp"
        assert balance(company) == 80

    def test_does_not_happen_if_enough_is_left(self, company: Company, scans: list[ScanItem], api: Api):
        enable(company, threshold=30)
        unlock(api, company.owner.token, scans[0])
        assert changes(company) == [("unlock", -50)]
        assert (balance(company), used(company, api)) == (30, 0)

    def test_makes_a_charge_possible_that_the_balance_does_not_cover(
        self, company: Company, scans: list[ScanItem], api: Api
    ):
        billing.add_credits(company.organization_id, -80)
        enable(company, threshold=0, amount=50)
        assert unlock(api, company.owner.token, scans[0]).data == {"status": "unlocked"}
        assert balance(company) == 0

    def test_happens_once_per_charge(self, company: Company, scans: list[ScanItem], api: Api):
        enable(company, threshold=500, amount=10)
        unlock(api, company.owner.token, scans[0])
        assert changes(company) == [("top-up", 10), ("unlock", -50)]

    def test_is_not_needed_for_a_charge_of_nothing(self, company: Company, world: World, api: Api):
        enable(company, threshold=500)
        scan = make_scan(world.connected_repository(company), issues=ISSUES[:3])
        unlock(api, company.owner.token, scan)
        assert (balance(company), used(company, api)) == (80, 0)

    def test_takes_one_transaction_more_than_a_charge_without_settings(
        self, company: Company, scans: list[ScanItem], api: Api
    ):
        enable(company)
        api.get("/v1/me", company.owner.token)
        with recorded_calls() as calls:
            unlock(api, company.owner.token, scans[0])
        assert [call.operation for call in calls].count("TransactWriteItems") == 2


class TestMonthlyLimit:
    def test_ends_the_top_ups_of_a_month_but_not_the_charges(self, company: Company, scans: list[ScanItem], api: Api):
        enable(company, threshold=500, amount=10, monthly_limit=1)
        billing.add_credits(company.organization_id, 10)
        for scan in scans[:2]:
            assert unlock(api, company.owner.token, scan).data == {"status": "unlocked"}
        assert changes(company) == [("top-up", 10), ("unlock", -50), ("unlock", -50)]
        before = table_dump()
        reply = unlock(api, company.owner.token, scans[2])
        assert reply.error["details"] == {"remainingCredits": 0, "requiredCredits": 50}
        assert [item for item in table_dump() if "ORG#" in item["pk"]["S"]] == [
            item for item in before if "ORG#" in item["pk"]["S"]
        ]

    def test_starts_anew_in_the_next_month_in_utc(
        self, company: Company, scans: list[ScanItem], api: Api, world: World, now: FakeClock
    ):
        enable(company, threshold=500, amount=100, monthly_limit=1)
        now.seconds = 1_775_001_599  # 2026-03-31T23:59:59Z
        unlock(api, world.token(company.owner.user_id), scans[0])
        unlock(api, world.token(company.owner.user_id), scans[1])
        assert [kind for kind, _ in changes(company)].count("top-up") == 1
        now.seconds += 1
        unlock(api, world.token(company.owner.user_id), scans[2])
        assert [kind for kind, _ in changes(company)].count("top-up") == 2

    def test_counts_in_the_later_month_while_a_clock_is_behind(self, company: Company, scans: list[ScanItem], api: Api):
        enable(company, threshold=500, monthly_limit=1)
        ahead = {"month": "2026-04", "used": 1}
        change = "SET #topUp.#month = :month, #topUp.#used = :used"
        table.update(Update(keys.billing(company.organization_id), change, None, ahead), PREPARED)
        unlock(api, company.owner.token, scans[0])
        assert changes(company) == [("unlock", -50)]

    def test_a_raised_limit_counts_the_months_earlier_top_ups(self, company: Company, scans: list[ScanItem], api: Api):
        enable(company, threshold=500, monthly_limit=1)
        unlock(api, company.owner.token, scans[0])
        enable(company, threshold=500, monthly_limit=2)
        for scan in scans[1:]:
            unlock(api, company.owner.token, scan)
        assert [kind for kind, _ in changes(company)].count("top-up") == 2


class TestRefused:
    def test_returns_402_and_writes_nothing_if_the_topped_up_balance_is_too_low(
        self, company: Company, scans: list[ScanItem], api: Api
    ):
        billing.add_credits(company.organization_id, -70)
        enable(company, amount=39)
        reply = unlock(api, company.owner.token, scans[0])
        assert (reply.status, reply.code) == (402, "INSUFFICIENT_CREDITS")
        assert reply.error["details"] == {"remainingCredits": 10, "requiredCredits": 50}
        assert (changes(company), used(company, api)) == ([], 0)
        enable(company, amount=40)
        assert unlock(api, company.owner.token, scans[0]).data == {"status": "unlocked"}

    def test_a_disabled_top_up_does_not_happen(self, company: Company, scans: list[ScanItem], api: Api):
        enable(company)
        billing.disable_top_up(company.organization_id)
        unlock(api, company.owner.token, scans[0])
        assert changes(company) == [("unlock", -50)]
        assert unlock(api, company.owner.token, scans[1]).code == "INSUFFICIENT_CREDITS"

    def test_stored_settings_without_a_monthly_limit_have_no_effect(
        self, company: Company, scans: list[ScanItem], api: Api
    ):
        settings = {"enabled": True, "threshold": 500, "amount": 100}
        table.update(Update(keys.billing(company.organization_id), "SET #topUp = :t", None, {"t": settings}), PREPARED)
        unlock(api, company.owner.token, scans[0])
        assert changes(company) == [("unlock", -50)]
        assert unlock(api, company.owner.token, scans[1]).code == "INSUFFICIENT_CREDITS"


def enabled(threshold: int, amount: int, used: int = 0) -> TopUpItem:
    return TopUpItem(
        enabled=True, threshold=threshold, amount=amount, monthly_limit=1, month="2026-03" if used else None, used=used
    )


def is_charged(read: BillingItem, stored: BillingItem) -> bool:
    """Charges as decided on what was read. Checks that the balance is changed as the ledger says."""
    table.put(Put(stored.to_item()), PREPARED)
    legs = charges.charge_legs(read, new_scan_id(read.organization_id), 50, "usr_ada")
    try:
        table.transact(legs, PREPARED)
    except LegFailed:
        return False
    entries = [
        leg.item["credits"] for name, leg in legs.items() if name in {"ledger", "topUp"} and isinstance(leg, Put)
    ]
    after = billing.get_billing(read.organization_id)[1].credits
    assert after == stored.credits + sum(entries)
    assert after >= 0
    return True


class TestOutdated:
    """A charge of 50 credits that was decided on another state. A balance below 100 is low."""

    @each(
        ("top_up", "balances"),
        [
            (TopUpItem(), (49, 50, 99, 100, 149, 150)),
            (enabled(40, 20), (29, 30, 89, 90, 99, 100, 149, 150)),
            (enabled(120, 20), (29, 30, 99, 100, 129, 130, 169, 170)),
            (enabled(40, 60), (0, 89, 90)),
            (enabled(40, 20, used=1), (49, 50, 99, 100, 149, 150)),
        ],
    )
    def test_happens_only_if_the_stored_balance_is_enough_and_has_the_same_effects(
        self, top_up: TopUpItem, balances: tuple[int, ...], company: Company
    ):
        for balance_read, balance_stored in product(balances, repeat=2):
            read, stored = (
                BillingItem(organization_id=company.organization_id, credits=it, top_up=top_up)
                for it in (balance_read, balance_stored)
            )
            scan_id = new_scan_id(company.organization_id)
            effects, others = (charges.charge_legs(it, scan_id, 50, "usr_ada").keys() for it in (read, stored))
            expected = effects == others and charges.covers(stored, 50)
            assert is_charged(read, stored) is expected, (balance_read, balance_stored)

    def test_happens_only_with_the_same_settings_or_without_a_top_up(self, company: Company):
        disabled = TopUpItem(enabled=False, threshold=40, amount=20)
        choices = (TopUpItem(), disabled, enabled(40, 20), enabled(40, 30))
        for credits_read, earlier, later in product((200, 60), choices, choices):
            read, stored = (
                BillingItem(organization_id=company.organization_id, credits=credits_read, top_up=it)
                for it in (earlier, later)
            )
            expected = earlier == later or not (earlier.enabled or later.enabled)
            assert is_charged(read, stored) is expected, (credits_read, earlier, later)
