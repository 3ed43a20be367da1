"""The page of the audit log: filters, pages, export, and who may see it."""

import csv
import json

import pytest

from controlplane.platform.core.actions import Action
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from controlplane.projects import store as projects
from controlplane.projects.items import Address
from dashboard.organizations.audit_log import ACTIONS
from tests.functional.conftest import FakeClock
from tests.functional.dashboard.conftest import HOSTILE, pages_in
from tests.support.browser import Browser, text_of
from tests.support.table import PREPARED
from tests.support.world import Company

DAY = 86_400


@pytest.fixture
def company(world, person, now):
    made = world.company(owner=person)
    now.advance(1)
    return made


path = pages_in("audit-log")


def make(company: Company, name: str, now: FakeClock) -> str:
    made = projects.create_project(
        company.organization_id, name, region="eu-central", addresses=[Address("a.example", "domain")], branding="x"
    )
    now.advance(1)
    return made.project_id


def rename(visitor: Browser, company: Company) -> None:
    visitor.get(f"/organizations/{company.slug}/projects/shop/settings")
    visitor.press("Save", near="Description", fill={"Name": "Store"})


class TestPage:
    def test_shows_who_did_what_and_what_changed(self, visitor, company, person, now):
        project_id = make(company, "Shop", now)
        rename(visitor, company)
        text = text_of(visitor.get(path(company)))
        for words in ("Changed a project", "before: Shop after: Store", "Created a project", "The service Background"):
            assert words in text
        assert f"{person.name} Web page" in text
        only = text_of(visitor.get(path(company, f"?resource={project_id}&action=project.update")))
        assert (only.count("March 4, 2026"), "Store" in only) == (1, True)
        assert "No entries match" in text_of(visitor.get(path(company, "?since=2027-01-01")))
        assert text_of(visitor.get(path(company, "?since=nonsense&action=paint"))) == text

    def test_pages_lead_back_in_time_to_entries_of_a_later_release_and_of_a_former_member(self, visitor, company, now):
        entry = table.query(keys.log_pk(company.organization_id, "2026-03")).items[0]
        former = {"sk": "z", "action": "webhook.pause", "actorKind": "person", "actorId": "usr_gone"}
        items = [{**entry, "sk": f"{number:018d}", "name": f"Number {number}."} for number in range(70)]
        table.put_all([*items, {**entry, **former}], PREPARED)
        first = text_of(visitor.get(path(company)))
        assert ("webhook.pause" in first, "A former member" in first) == (True, True)
        second = text_of(visitor.press("Earlier entries"))
        assert [f"Number {number}." in second for number in (0, 69)] == [True, False]
        assert visitor.get(path(company, "?after=x")).status == 400
        make(company, HOSTILE, now)
        query = "?actor=%3Cscript%3E&resource=%3Cscript%3E"
        assert "<script>alert" not in visitor.get(path(company)).text
        assert "<script>" not in visitor.get(path(company, query)).text.partition("<main")[2]

    def test_members_see_who_can_read_it_and_no_link_to_it(self, visitor, person, world):
        company = world.company()
        world.member(company, "member", person)
        reply = visitor.get(path(company))
        assert "Only admins and owners can read the audit log" in text_of(reply)
        for hidden in ("Created the organization", f'href="{path(company)}"'):
            assert hidden not in reply.text
        assert [visitor.get(path(company, kind)).status for kind in (".csv", ".json")] == [403, 403]


class TestExport:
    def test_csv_and_json_have_the_entries_that_match(self, visitor, company, now):
        make(company, "=1+1", now)
        now.advance(40 * DAY)
        make(company, "Later", now)
        visitor.signed_in(company.owner.user_id)
        reply = visitor.get(path(company, ".csv?until=2026-03-31&action=project.create"))
        assert reply.headers["content-disposition"] == f'attachment; filename="audit-log-{company.slug}.csv"'
        header, line = csv.reader(reply.text.removeprefix("\ufeff").splitlines())
        row = dict(zip(header, line, strict=True))
        assert (row["Action"], row["Resource"], row["Source"]) == ("project.create", "'=1+1", "worker")
        assert "websites: a.example" in row["After"]
        exported = json.loads(visitor.get(path(company, ".json")).text)["entries"]
        actions = [it["action"] for it in exported]
        assert actions[:2] == ["project.create"] * 2
        assert {*actions[2:]} == {"organization.create", "organization.change_plan"}

    def test_both_files_and_the_page_have_only_entries_of_the_chosen_actor(self, visitor, company, person, now):
        assert {*ACTIONS} == {*Action}
        make(company, "Shop", now)
        rename(visitor, company)
        query = f"?actor={person.user_id}&resource="
        rows = [*csv.DictReader(visitor.get(path(company, f".csv{query}")).text.removeprefix("\ufeff").splitlines())]
        entries = json.loads(visitor.get(path(company, f".json{query}")).text)["entries"]
        assert {row["Actor ID"] for row in rows} == {it["actor"]["id"] for it in entries} == {person.user_id}
        assert "The service" not in text_of(visitor.get(path(company, query))).partition("Latest entries")[2]
