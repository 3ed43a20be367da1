"""The automatic top-up of credits, which is part of the charge that needs it."""

from itertools import product

import pytest

from controlplane.billing import charges
from controlplane.billing import store as billing
from controlplane.organizations.items import BillingItem, TopUpItem
from controlplane.platform.core import ids
from controlplane.platform.core.ids import ScanId
from controlplane.platform.queues.outbox import new_entry
from controlplane.platform.table import keys
from controlplane.platform.table.table import LegFailed, Put, Update, table
from controlplane.scans import unlocks
from tests.functional.code_audit.conftest import ISSUES
from tests.support.audit_log import all_entries
from tests.support.each import each
from tests.support.table import PREPARED
from tests.support.world import table_dump

UNLOCK = ("unlock", -50)


@pytest.fixture
def scans(free):
    return [free.scan(issues=ISSUES) for _ in range(3)]


def enable(acme, threshold=40, amount=100, monthly_limit=3):
    billing.enable_top_up(acme.id, threshold=threshold, amount=amount, monthly_limit=monthly_limit)


def used(acme):
    return acme.send("GET", "/v1/billing").data["topUp"]["usedThisMonth"]


def change_billing(acme, assignments, **values):
    table.update(Update(keys.billing(acme.id), f"SET {assignments}", None, values), PREPARED)


def changes(acme):
    """Returns the ledger's entries since the first credits."""
    return sorted((entry["kind"], entry["credits"]) for entry in acme.ledger if entry["kind"] != "operator")


# The credits before a charge of 50, the threshold and amount of the top-up, its entries, and the credits after it.
@pytest.mark.parametrize(
    "case",
    [
        (80, (31, 100), [("top-up", 100), UNLOCK], 130),
        (80, (30, 100), [UNLOCK], 30),
        (80, (500, 10), [("top-up", 10), UNLOCK], 40),
        (0, (0, 50), [("top-up", 50), UNLOCK], 0),
        (10, (40, 40), [("top-up", 40), UNLOCK], 0),
    ],
)
def test_a_charge_tops_up_once_if_it_leaves_fewer_credits_than_the_threshold(case, free, scans):
    before, settings, entries, after = case
    billing.add_credits(free.id, before - 80)
    enable(free, *settings)
    assert free.unlocks(scans[0]) == "unlocked"
    assert (changes(free), free.balance, used(free)) == (entries, after, len(entries) - 1)


def test_the_entries_name_the_scan_and_the_top_up_but_no_person_for_it(free, scans):
    enable(free)
    for scan in scans[:2]:
        free.unlock(scan)
    (entry,) = [entry for entry in free.ledger if entry["kind"] == "top-up"]
    assert (entry["scanId"], "by" in entry) == (scans[0].scan_id, False)
    recorded = {it["resource"]: it["after"] for it in all_entries() if it["action"] == "scan.unlock"}
    charged = {"access": "full", "credits": -50}
    assert recorded == {scans[0].scan_id: {**charged, "topUp": 100}, scans[1].scan_id: charged}


def test_an_entry_that_exists_already_is_not_taken_for_the_balance(free, scans):
    enable(free)
    entry = keys.ledger_of_top_up(*scans[0].scan_id.location)
    table.put(Put({**entry._asdict(), "kind": "top-up", "credits": 100}), PREPARED)
    account = billing.get_billing(free.id)[1]
    with pytest.raises(LegFailed) as failure:
        unlocks.charge(scans[0], free.owner.user_id, new_entry("scan-execution", {}), account)
    assert (failure.value.leg, account.credits) == ("topUp", billing.get_billing(free.id)[1].credits)


def test_a_charge_of_nothing_needs_no_top_up(free):
    enable(free, threshold=500)
    free.unlock(free.scan(issues=ISSUES[:3]))
    assert (free.balance, used(free)) == (80, 0)


def test_the_monthly_limit_ends_top_ups_but_not_charges(free, scans):
    enable(free, threshold=500, amount=10, monthly_limit=1)
    billing.add_credits(free.id, 10)
    assert [free.unlocks(scan) for scan in scans[:2]] == ["unlocked", "unlocked"]
    assert changes(free) == [("top-up", 10), UNLOCK, UNLOCK]
    before = [item for item in table_dump() if "ORG#" in item["pk"]["S"]]
    assert free.unlock(scans[2]).error["details"] == {"remainingCredits": 0, "requiredCredits": 50}
    assert [item for item in table_dump() if "ORG#" in item["pk"]["S"]] == before


def test_the_limit_counts_from_zero_in_the_next_month_in_utc(free, scans, world, now):
    enable(free, threshold=500, amount=100, monthly_limit=1)
    now.seconds = 1_775_001_599  # 2026-03-31T23:59:59Z
    for scan, top_ups in zip(scans, (1, 1, 2), strict=True):
        now.seconds += scan is scans[2]
        free.unlock(scan, world.token(free.owner.user_id))
        assert [kind for kind, _ in changes(free)].count("top-up") == top_ups


def test_a_raised_limit_counts_the_months_earlier_top_ups(free, scans):
    for limit, scan in zip((1, 2, 2), scans, strict=True):
        enable(free, threshold=500, monthly_limit=limit)
        free.unlock(scan)
    assert [kind for kind, _ in changes(free)].count("top-up") == 2


def test_a_clock_that_is_behind_counts_in_the_later_month(free, scans):
    enable(free, threshold=500, monthly_limit=1)
    change_billing(free, "#topUp.#month = :month, #topUp.#used = :used", month="2026-04", used=1)
    free.unlock(scans[0])
    assert changes(free) == [UNLOCK]


def test_a_top_up_that_is_not_enough_returns_402_and_writes_nothing(free, scans):
    billing.add_credits(free.id, -70)
    enable(free, amount=39)
    reply = free.unlock(scans[0])
    assert (reply.status, reply.code) == (402, "INSUFFICIENT_CREDITS")
    assert reply.error["details"] == {"remainingCredits": 10, "requiredCredits": 50}
    assert (changes(free), used(free)) == ([], 0)


def disable(acme):
    enable(acme)
    billing.disable_top_up(acme.id)


def store_without_monthly_limit(acme):
    change_billing(acme, "#topUp = :topUp", topUp={"enabled": True, "threshold": 500, "amount": 100})


@pytest.mark.parametrize("prepare", [disable, store_without_monthly_limit])
def test_a_disabled_or_unlimited_top_up_has_no_effect(prepare, free, scans):
    prepare(free)
    free.unlock(scans[0])
    assert (changes(free), free.unlock(scans[1]).code) == ([UNLOCK], "INSUFFICIENT_CREDITS")


# A charge of 50 credits that was decided on another state. A balance below 100 is low.


def enabled(threshold, amount, used=0):
    month = "2026-03" if used else None
    return TopUpItem(enabled=True, threshold=threshold, amount=amount, monthly_limit=1, month=month, used=used)


def is_charged(read, stored):
    """Charges as decided on what was read. Checks that the balance is changed as the ledger says."""
    table.put(Put(stored.to_item()), PREPARED)
    legs = charges.charge_legs(read, ScanId.of(read.organization_id, ids.new_local()), 50, "usr_ada")
    try:
        table.transact(legs, PREPARED)
    except LegFailed:
        return False
    after = billing.get_billing(read.organization_id)[1].credits
    assert after == stored.credits + sum(legs[name].item["credits"] for name in ("ledger", "topUp") if name in legs)
    assert after >= 0
    return True


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
def test_an_outdated_charge_happens_only_if_it_has_the_same_effects(top_up, balances, free):
    for pair in product(balances, repeat=2):
        read, stored = (BillingItem(organization_id=free.id, credits=it, top_up=top_up) for it in pair)
        scan_id = ScanId.of(free.id, ids.new_local())
        effects, others = (charges.charge_legs(it, scan_id, 50, "usr_ada").keys() for it in (read, stored))
        assert is_charged(read, stored) is (effects == others and charges.covers(stored, 50)), pair


def test_an_outdated_charge_happens_only_with_the_same_settings_or_without_a_top_up(free):
    disabled = TopUpItem(enabled=False, threshold=40, amount=20)
    choices = (TopUpItem(), disabled, enabled(40, 20), enabled(40, 30))
    for balance, *settings in product((200, 60), choices, choices):
        read, stored = (BillingItem(organization_id=free.id, credits=balance, top_up=it) for it in settings)
        expected = settings[0] == settings[1] or not any(it.enabled for it in settings)
        assert is_charged(read, stored) is expected, (balance, *settings)
