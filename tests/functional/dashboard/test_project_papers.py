"""The papers of a project: its report over a period, the report of a scan, the privacy table, and the badge."""

import re

import pytest

from controlplane.code_host import repositories
from controlplane.code_host.items import Link
from controlplane.findings import inbox, vendors
from controlplane.platform.core.ids import InboxItemId
from controlplane.projects import store as projects
from controlplane.scans import reads
from dashboard.projects import badge, report
from tests.functional.dashboard.conftest import pages_in
from tests.functional.projects.test_vendors import detect
from tests.support.api import Reply
from tests.support.audits import make_issue, make_scan
from tests.support.browser import Browser, text_of
from tests.support.calls import recorded_calls
from tests.support.each import each

address = pages_in("projects")


@pytest.fixture
def project(repository):
    return projects.get_project(repository.links[0].project_id)


@pytest.fixture
def own(company, project):
    return address(company, f"/{project.slug}")


def decide(item_id: str, status: str, user_id: str, reason: str | None = None) -> None:
    item = inbox.get_item(InboxItemId.stored(item_id))
    inbox.change_status(item, status, item.version, user_id, reason)


class TestReport:
    def test_it_has_the_scans_findings_decisions_and_vendors_of_the_period(  # noqa: PLR0917
        self, visitor, own, project, repository, person, now
    ):
        scan = make_scan(repository, issues=[make_issue(number) for number in range(5)])
        detect(project, "segment")
        vendors.decide_vendor(project, "hotjar", "ignored", person.user_id)
        items = inbox.list_items(project.project_id.organization_id, None, 50, None).items
        (item, *_) = [it for it in items if it.project_id == project.project_id]
        decide(item.item_id, "dismissed", person.user_id, "We need <b>it</b>")
        text = text_of(visitor.get(f"{own}/report"))
        assert "February 3, 2026 to March 4, 2026 (UTC)" in text
        for part in (
            f"Dismissed by {person.name}: We need <b>it</b>",
            "2 findings are locked and not in this report.",
            "hotjar Not known Not seen Ignored by",
            "Scans (1)",
            "Accepted or dismissed (1)",
        ):
            assert part in text, part
        assert f"/scans/{scan.scan_id}" in visitor.get(f"{own}/report").text
        now.advance(40 * 86_400)
        visitor.signed_in(person.user_id)
        later = text_of(visitor.get(f"{own}/report"))
        for part in ("There were no scans.", "No finding was opened", "No scan of a branch was completed"):
            assert part in later
        again = text_of(visitor.get(f"{own}/report?since=2026-03-01&until=2026-03-31"))
        assert "March 1, 2026 to March 31, 2026" in again
        assert ("Scans (1)" in again, "We need" in again) == (True, True)

    @each(
        "query",
        ["since=x&until=2026-13-01", "since=9999-01-01", "since=2026-05-01&until=2026-01-01"],
    )
    def test_a_period_that_cannot_be_read_is_replaced(self, query, visitor, own):
        assert visitor.get(f"{own}/report?{query}").status == 200

    def test_it_says_what_it_leaves_out(self, visitor, own, project, repository, monkeypatch):
        for number in range(3):
            detect(project, f"vendor-{number}", name=f"Vendor {number}", beforeConsent=True)
        make_scan(repository)
        make_scan(repository)
        for name, value in (("MOST_READ", 1), ("MOST_SHOWN", 1), ("_VENDORS", 1)):
            monkeypatch.setattr(report, name, value)
        text = text_of(visitor.get(f"{own}/report"))
        for part in (
            "This report leaves out:",
            "Findings that changed earlier",
            "Some open",
            "Earlier scans",
            "Some vendors",
        ):
            assert part in text, part
        monkeypatch.setattr(report, "MOST_READ", 100)
        assert "2 more aren't listed." in text_of(visitor.get(f"{own}/report"))

    @each(("changes", "says"), [(9, False), (10, True)])
    def test_it_says_that_earlier_changes_of_a_finding_are_not_kept(  # noqa: PLR0917
        self, changes, says, visitor, own, project, company, person, world
    ):
        found = world.finding(company, project_id=project.project_id)
        for number in range(changes):
            decide(found.item_id, ("accepted", "open")[number % 2], person.user_id)
        text = text_of(visitor.get(f"{own}/report"))
        assert ("Earlier changes of some findings: only the latest 11 statuses of each are kept." in text) == says

    def test_a_scan_has_a_report_with_its_readable_findings(self, visitor, company, repository, monkeypatch):
        scan = make_scan(repository, issues=[make_issue(number) for number in range(5)])
        reply = visitor.get(f"/organizations/{company.slug}/scans/{scan.scan_id}/report")
        assert len(re.findall("<article", reply.text)) == 3
        assert "2 findings are locked, so this report doesn't have them." in text_of(reply)
        monkeypatch.setattr("dashboard.scans.pages._MOST_REPORTED", 2)
        text = text_of(visitor.get(f"/organizations/{company.slug}/scans/{scan.scan_id}/report"))
        assert "This report has the 2 most urgent findings of 3." in text
        running = make_scan(repository, status="running")
        text = text_of(visitor.get(f"/organizations/{company.slug}/scans/{running.scan_id}/report"))
        assert "This scan is running, so there is nothing to report." in text


def test_the_privacy_table_can_be_copied_and_warns_of_what_it_lacks(visitor, own, project, person):
    assert "Nothing to list yet" in text_of(visitor.get(f"{own}/privacy-table"))
    detect(project, "google-analytics", name="Google Analytics", category="analytics", beforeConsent=True)
    detect(project, "segment")
    vendors.decide_vendor(project, "google-analytics", "approved", person.user_id)
    reply = visitor.get(f"{own}/privacy-table")
    text = text_of(reply)
    assert "1 vendor found, but not decided on, and not in the table: Segment." in text
    assert "1 vendor seen to load before consent: Google Analytics." in text
    assert "&lt;th scope=&#34;row&#34;&gt;Google Analytics&lt;/th&gt;" in reply.text
    assert "| Google Analytics | Measures" in text


class TestBadge:
    @pytest.fixture(autouse=True)
    def _nothing_kept(self, monkeypatch):
        monkeypatch.setattr(badge, "_counts", {})
        badge._read.cache_clear()

    @pytest.fixture
    def page(self, visitor, own, project):
        """Returns the page that shows the address of a new badge."""
        assert "/badges/" not in visitor.get(f"{own}/settings").text
        return visitor.follow(visitor.press("Create a badge"))

    @pytest.fixture
    def shown(self, visitor, page):
        """Returns a function that reads what the badge shows now."""

        def read() -> tuple[str, bool]:
            badge._read.cache_clear()
            svg = self.get(visitor, page).text
            return svg.partition("<title>assent: ")[2].partition("</title>")[0], badge._GOOD in svg

        return read

    def get(self, browser: Browser, page: Reply) -> Reply:
        (path,) = re.findall(r'href="[^"]+(/badges/[^"]+)"', page.text)
        return Browser(browser.api).get(path)

    def test_an_admin_creates_replaces_and_revokes_it(  # noqa: PLR0917
        self, visitor, page, project, repository, company, now
    ):
        assert self.get(visitor, page).text.count("not scanned") == 3
        now.advance(300)
        make_scan(repository, issues=[make_issue(number) for number in range(5)])
        shown = self.get(visitor, page)
        assert re.search(r"assent: \d open P0/P1, 2 locked, scanned 2026-03-04</title>", shown.text)
        assert shown.headers["content-type"] == "image/svg+xml"
        assert shown.headers["cache-control"] == "public, max-age=300"
        for name in (company.name, company.slug, project.name, "shop", "href", "<style"):
            assert name not in shown.text
        assert "![Open privacy findings](" in text_of(page)
        replaced = visitor.follow(visitor.press("Give it a new address"))
        assert (self.get(visitor, page).status, self.get(visitor, replaced).status) == (404, 200)
        visitor.press("Revoke the badge")
        assert self.get(visitor, replaced).status == 404
        changes = [it["changes"] for it in visitor.api.get("/v1/audit-log", company.owner.token).data]
        assert [{"field": "badge", "before": True, "after": False}] in changes

    def test_findings_of_the_project_are_counted_and_a_deleted_project_has_none(  # noqa: PLR0917
        self, visitor, page, project, repository, company, world, now
    ):
        make_scan(repository)
        assert badge._GOOD in self.get(visitor, page).text
        world.finding(company, priority="P1", project_id=project.project_id)
        world.finding(company, priority="P1")
        assert badge._GOOD in self.get(visitor, page).text
        now.advance(300)
        assert "1 open P0/P1, scanned" in self.get(visitor, page).text
        projects.delete_project(projects.get_project(project.project_id))
        assert self.get(visitor, page).status == 404

    def test_it_covers_all_linked_repositories_however_many_scans_others_have(  # noqa: PLR0917
        self, shown, world, company, project, repository, now, monkeypatch
    ):
        make_scan(repository)
        assert shown() == ("0 open P0/P1, scanned 2026-03-04", True)
        other = world.connected_repository(company, name="other")
        now.advance(86_400)
        make_scan(other)
        monkeypatch.setattr(reads, "list_scans", None)
        link = Link(project.project_id, None, None, pull_request_scans_enabled=False)
        repositories.link_project(other.repository_id, link)
        assert shown() == ("0 open P0/P1, not all code, 1 of 2 repositories, scanned 2026-03-04", False)
        repositories.unlink_project(other.repository_id, project.project_id)
        repositories.link_project(repository.repository_id, link._replace(root_directory="web"))
        assert shown() == ("0 open P0/P1, not all code, 0 of 1 repositories, scanned 2026-03-04", False)

    def test_it_is_not_green_if_a_list_is_too_long(self, shown, world, company, repository, monkeypatch):
        make_scan(repository)
        for _ in range(2):
            world.finding(company, priority="P1")
        with monkeypatch.context() as patched:
            patched.setattr(badge, "_MOST_OPEN", 1)
            assert shown() == ("0+ open P0/P1, scanned 2026-03-04", False)
        listed = repositories.list_repositories(company.organization_id, 1, None)
        monkeypatch.setattr(repositories, "list_repositories", lambda *_: listed._replace(next_sk="REPO#"))
        assert shown() == ("0 open P0/P1, not all code, 1 of 1+ repositories, scanned 2026-03-04", False)

    def test_a_badge_is_read_once_in_five_minutes_and_limited_for_itself(self, visitor, page, now):
        assert self.get(visitor, page).status == 200
        with recorded_calls() as calls:
            statuses = [self.get(visitor, page).status for _ in range(300)]
        assert (set(statuses[:299]), statuses[299]) == ({200}, 429)
        assert [call.operation for call in calls] == ["GetItem"] * 300
        assert Browser(visitor.api).get("/badges/x").status == 404

    def test_other_addresses_are_unknown_of_which_a_client_gets_300_a_minute(self, browser, now):
        names = ["x", "x.svg", "-", f"{'0' * 34}-.svg", f"{'0' * 34}-é.svg"]
        statuses = [browser.get(f"/badges/{name}").status for name in names * 60 + ["x"]]
        assert (set(statuses[:300]), statuses[300]) == ({404}, 429)
