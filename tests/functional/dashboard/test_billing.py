"""The pages of billing and of the audit log."""

import json
import re

import pytest

from controlplane.billing import charges
from controlplane.billing import store as billing
from controlplane.platform.core.actions import Action
from controlplane.platform.core.ids import ScanId
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from dashboard.organizations.audit_log import ACTIONS
from tests.functional.conftest import FakeClock
from tests.functional.dashboard.conftest import HOSTILE, pages_in, pages_of, rows_of
from tests.functional.projects.builders import make_project
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


@pytest.fixture
def company(world, person, now):
    made = world.company(owner=person)
    now.advance(1)
    return made


log_path = pages_in("audit-log")


def make(company: Company, name: str, now: FakeClock) -> str:
    made = make_project(company, name, ["a.example"])
    now.advance(1)
    return made.project_id


def rename(visitor: Browser, company: Company) -> None:
    visitor.get(f"/organizations/{company.slug}/projects/shop/settings")
    visitor.press("Save", near="Description", fill={"Name": "Store"})


class TestPage:
    def test_shows_who_did_what_and_what_changed(self, visitor, company, person, now):
        project_id = make(company, "Shop", now)
        rename(visitor, company)
        text = text_of(visitor.get(log_path(company)))
        for words in ("Changed a project", "before: Shop after: Store", "Created a project", "The service Background"):
            assert words in text
        assert f"{person.name} Web page" in text
        only = text_of(visitor.get(log_path(company, f"?resource={project_id}&action=project.update")))
        assert (only.count("March 4, 2026"), "Store" in only) == (1, True)
        assert "No entries match" in text_of(visitor.get(log_path(company, "?since=2027-01-01")))
        assert text_of(visitor.get(log_path(company, "?since=nonsense&action=paint"))) == text

    def test_pages_lead_back_in_time_to_entries_of_a_later_release_and_of_a_former_member(self, visitor, company, now):
        entry = table.query(keys.log_pk(company.organization_id, "2026-03")).items[0]
        former = {"sk": "z", "action": "webhook.pause", "actorKind": "person", "actorId": "usr_gone"}
        items = [{**entry, "sk": f"{number:018d}", "name": f"Number {number}."} for number in range(70)]
        table.put_all([*items, {**entry, **former}], PREPARED)
        first = text_of(visitor.get(log_path(company)))
        assert ("webhook.pause" in first, "A former member" in first) == (True, True)
        second = text_of(visitor.press("Earlier entries"))
        assert [f"Number {number}." in second for number in (0, 69)] == [True, False]
        assert visitor.get(log_path(company, "?after=x")).status == 400
        make(company, HOSTILE, now)
        query = "?actor=%3Cscript%3E&resource=%3Cscript%3E"
        for page in (log_path(company), log_path(company, query)):
            assert visitor.get(page).status == 200  # which checks that it has no other script

    def test_members_see_who_can_read_it_and_no_link_to_it(self, visitor, person, world):
        company = world.company()
        world.member(company, "member", person)
        reply = visitor.get(log_path(company))
        assert "Only admins and owners can read the audit log" in text_of(reply)
        for hidden in ("Created the organization", f'href="{log_path(company)}"'):
            assert hidden not in reply.text
        assert [visitor.get(log_path(company, kind)).status for kind in (".csv", ".json")] == [403, 403]


class TestExport:
    def test_csv_and_json_have_the_entries_that_match(self, visitor, company, now):
        make(company, "=1+1", now)
        now.advance(40 * DAY)
        make(company, "Later", now)
        visitor.signed_in(company.owner.user_id)
        reply = visitor.get(log_path(company, ".csv?until=2026-03-31&action=project.create"))
        assert reply.headers["content-disposition"] == f'attachment; filename="audit-log-{company.slug}.csv"'
        (row,) = rows_of(reply)
        assert (row["Action"], row["Resource"], row["Source"]) == ("project.create", "'=1+1", "worker")
        assert "websites: a.example" in row["After"]
        exported = json.loads(visitor.get(log_path(company, ".json")).text)["entries"]
        actions = [it["action"] for it in exported]
        assert actions[:2] == ["project.create"] * 2
        assert {*actions[2:]} == {"organization.create", "organization.change_plan"}

    def test_both_files_and_the_page_have_only_entries_of_the_chosen_actor(self, visitor, company, person, now):
        assert {*ACTIONS} == {*Action}
        make(company, "Shop", now)
        rename(visitor, company)
        query = f"?actor={person.user_id}&resource="
        rows = rows_of(visitor.get(log_path(company, f".csv{query}")))
        entries = json.loads(visitor.get(log_path(company, f".json{query}")).text)["entries"]
        assert {row["Actor ID"] for row in rows} == {it["actor"]["id"] for it in entries} == {person.user_id}
        assert "The service" not in text_of(visitor.get(log_path(company, query))).partition("Latest entries")[2]
