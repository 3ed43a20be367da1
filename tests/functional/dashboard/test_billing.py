"""The billing page: the plan, usage against its limits, and the credits with their ledger."""

import re

import pytest

from controlplane.billing import charges
from controlplane.billing import store as billing
from controlplane.platform.core.ids import ScanId
from controlplane.platform.core.settings import settings
from controlplane.platform.table.table import table
from tests.functional.dashboard.conftest import pages_in, pages_of
from tests.support.browser import Browser, text_of
from tests.support.table import PREPARED
from tests.support.world import Company

DAY = 86_400


path = pages_in("billing")


def charge(company: Company, scan_local: str, price: int) -> None:
    """Writes what unlocking a scan writes to the balance and the ledger."""
    _, account = billing.get_billing(company.organization_id)
    scan_id = ScanId.of(company.organization_id, scan_local)
    table.transact(charges.charge_legs(account, scan_id, price, company.owner.user_id), PREPARED)


def shown_amounts(visitor: Browser, company: Company) -> list[int]:
    """Returns the amounts of the ledger as all of its pages show them."""
    pages = pages_of(visitor, path(company), "Earlier entries")
    return [int(it) for page in pages for it in re.findall(r'<td class="number">([+-]\d+)</td>', page.text)]


class TestPlan:
    def test_shows_the_plan_usage_and_balance_to_every_member(self, browser, company, world):
        world.credits(company, 1_250)
        world.key(company)
        browser.signed_in(world.member(company).user_id)
        shown = text_of(browser.get(path(company)))
        for words in ("is on the Pro plan", "Credits 1,250", "Projects 0 of 200", "API keys 1 of 50", "1,500 per key"):
            assert words in shown

    def test_says_what_exceeds_a_smaller_plan_and_whom_to_ask(self, visitor, company, world, monkeypatch):
        world.key(company)
        billing.change_plan(company.organization_id, "free")
        assert "has 1 API key, but the Free plan has no API access" in text_of(visitor.get(path(company)))
        for contact, shown in (
            ("sales@example.com", '<a href="mailto:sales@example.com">'),
            ("https://example.com/plans?a=1&b=2", '<a href="https://example.com/plans?a=1&amp;b=2">'),
            (None, "ask the operator of this service"),
        ):
            monkeypatch.setitem(settings.__dict__, "contact", contact)
            assert shown in visitor.get(path(company)).text


class TestLedger:
    @pytest.mark.parametrize("granted", [100, 0])
    def test_each_entry_is_on_one_page_with_the_latest_first(self, visitor, company, now, monkeypatch, granted):
        monkeypatch.setattr("dashboard.billing.pages.ENTRIES_PER_PAGE", 3)
        billing.enable_top_up(company.organization_id, threshold=10 if granted else 0, amount=40, monthly_limit=4)
        if granted:
            billing.add_credits(company.organization_id, granted)
        for number in range(4):
            now.advance(DAY)
            charge(company, f"01j{number:015d}", 40)
        visitor.signed_in(company.owner.user_id)
        entries = billing.list_ledger(company.organization_id)
        assert {entry.kind for entry in entries} == {"unlock", "top-up", *(["operator"] if granted else [])}
        amounts = shown_amounts(visitor, company)
        assert sorted(amounts) == sorted(entry.credits for entry in entries)
        assert amounts[-1] == (granted or amounts[-1])

    def test_draws_the_balance_of_each_day_and_shows_the_first_page_for_no_position(self, visitor, company, world, now):
        world.credits(company, 100)
        now.advance(2 * DAY)
        charge(company, "01j000000000000000", 30)
        visitor.signed_in(company.owner.user_id)
        rows = re.findall(r'<th scope="row">(\w+ \d+)</th><td>(\d+)</td>', visitor.get(path(company)).text)
        assert rows[:4] == [("Mar 6", "70"), ("Mar 5", "100"), ("Mar 4", "100"), ("Mar 3", "0")]
        for position in ("x", "..", "../..", "a.b.c.d", "é..", "%00", "SCAN#.x.y"):
            reply = visitor.get(f"{path(company)}?after={position.replace('#', '%23')}")
            assert reply.status == 400 or (reply.status == 200 and "+100" in reply.text)

    def test_shows_the_state_of_the_top_up(self, visitor, company, world):
        assert "Automatic top-up Off" in text_of(visitor.get(path(company)))
        billing.enable_top_up(company.organization_id, threshold=10, amount=40, monthly_limit=2)
        world.credits(company, 30)
        charge(company, "01j000000000000000", 30)
        shown = text_of(visitor.get(path(company)))
        assert "40 credits" in shown
        assert "1 of 2 top-ups" in shown
