"""The list of scans, the comparison of one with the previous scan, unlocking, and downloads of its findings."""

import json
import re
from dataclasses import replace

import pytest

from controlplane.billing import store as billing
from controlplane.code_host import repositories
from controlplane.code_host.items import Link, RepositoryItem
from controlplane.platform.queues.messages import Queue
from controlplane.platform.table.stored import to_map
from controlplane.platform.table.table import Update, table
from controlplane.scans import failures, findings, reads, requests
from controlplane.scans.findings import FindingVendor
from controlplane.scans.items import Comparison, Failure, ScanItem
from dashboard.scans.pages import SCANS_PER_PAGE
from tests.functional.dashboard.conftest import ISSUES, change, pages_in, pages_of, rows_of
from tests.functional.projects.builders import make_project
from tests.support.api import Reply
from tests.support.audits import make_issue, make_request, make_scan, stored_repository
from tests.support.browser import text_of
from tests.support.table import PREPARED
from tests.support.world import Company, publish_finding

# Red, orange, blue, green, and gray.
COLORS = ["P0 problem", "P1 warning", "P2 info", "P3 accent", "Locked muted"]


address = pages_in("scans")


def listed(reply: Reply) -> list[str]:
    return re.findall(r'<th scope="row"><a href="[^"]*/scans/([^"]+)"', reply.text)


class TestList:
    def test_scans_are_listed_newest_first_on_pages(self, visitor, company, repository, now):
        scans = []
        for _ in range(SCANS_PER_PAGE + 1):
            scans.insert(0, make_scan(repository, issues=[make_issue()]).scan_id)
            now.advance(1)
        pages = [listed(page) for page in pages_of(visitor, address(company), "Older scans")]
        assert pages == [scans[:SCANS_PER_PAGE], scans[-1:]]
        assert visitor.offers("Newest scans")

    def test_a_scan_is_listed_with_its_trigger_findings_and_status_until_it_ends(self, visitor, company, repository):
        scan = make_scan(repository, issues=[make_issue(number) for number in range(5)])
        change(scan, cause={"trigger": "pull_request", "pullRequestNumber": 12}, priorityCounts={"P0": 1})
        reply = visitor.get(address(company))
        assert "shop shop, main Completed 5 2 locked Pull request #12 March 4, 2026, 05:06 UTC" in text_of(reply)
        for status, look in (("completed", "good"), ("failed", "bad"), ("running", "info")):
            scan = make_scan(repository, status=status, issues=[make_issue()] if status == "completed" else ())
            if status == "completed":
                change(scan, priorityCounts={"P0": 1})
            for page in (address(company), f"/organizations/{company.slug}", f"{address(company)}/{scan.scan_id}"):
                assert f'<span class="badge {look}">{status.capitalize()}</span>' in visitor.get(page).text
            assert ('id="scans" data-refresh="5"' in visitor.get(address(company)).text) is (status == "running")
        # Scans of pull requests are not charted, and a chart has two scans.
        assert "Findings by priority" not in visitor.get(address(company)).text

    def test_filters_restrict_the_list_and_keep_to_the_next_page(self, visitor, world, company, repository, now):
        other = world.connected_repository(company, name="blog")
        scans = []
        for of, status in ((repository, "completed"), (other, "completed"), (repository, "failed"), (other, "failed")):
            scans.append(make_scan(of, status=status).scan_id)
            now.advance(1)
        of_shop = f"repository={repository.repository_id}"
        for query, found in (
            ("", [3, 2, 1, 0]),
            (of_shop, [2, 0]),
            ("status=failed", [3, 2]),
            (f"{of_shop}&status=failed", [2]),
        ):
            assert listed(visitor.get(f"{address(company)}?{query}")) == [scans[number] for number in found]
        empty = visitor.get(f"{address(company)}?status=canceled")
        assert "No scans match" in text_of(empty)
        assert re.findall(r'<option value="([^"]+)" selected>', empty.text) == ["canceled"]

    def test_unknown_filters_are_ignored_and_another_lists_cursor_rejected(self, visitor, world, company, repository):
        foreign = world.connected_repository(world.company())
        make_scan(foreign)
        scans = {make_scan(repository).scan_id for _ in range(SCANS_PER_PAGE)}
        for query in ("status=lost", "repository=x", f"repository={foreign.repository_id}"):
            assert {*listed(visitor.get(f"{address(company)}?{query}"))} == scans
        make_scan(repository)
        older = re.findall(r'after=([^"]+)">Older scans', visitor.get(address(company)).text)[0]
        for query in (f"status=completed&after={older}", "after=x"):
            assert visitor.get(f"{address(company)}?{query}").status == 400

    def test_an_empty_list_says_what_to_do_first(self, visitor, world, company):
        assert "Connect a repository" in text_of(visitor.get(address(company)))
        unlinked = world.connected_repository(company, linked=False)
        assert "Link a repository to a project" in text_of(visitor.get(address(company)))
        project = make_project(company)
        repositories.link_project(unlinked.repository_id, Link(project.project_id, None, None, False))
        assert "Start the first one above." in text_of(visitor.get(address(company)))


class TestTrend:
    def test_findings_by_priority_are_charted_once_there_are_two_scans(self, visitor, company, repository, now):
        for counts in ({"P0": 1, "P1": 4}, {"P0": 2, "P2": 1, "P3": 3}):
            assert "Findings by priority" not in visitor.get(address(company)).text
            preview_used = repositories.get_repository(repository.repository_id).preview_used
            issues = [make_issue(number) for number in range(sum(counts.values()))]
            change(make_scan(repository, access="full" if preview_used else None, issues=issues), priorityCounts=counts)
            now.advance(20 * 3_600)
            visitor.signed_in(company.owner.user_id)
        for page in (address(company), f"/organizations/{company.slug}/projects/shop"):
            html = visitor.get(page).text
            assert "Findings by priority" in html
            rows = re.findall(r'<tr><th scope="row">(Mar \d+)</th>((?:<td>\d+</td>)+)</tr>', html)
            numbers = {day: re.findall(r"\d+", cells) for day, cells in rows}
            tones = re.findall(r'<span class="swatch tone-(\w+)" aria-hidden="true"></span>(\w+)', html)
            assert [f"{name} {tone}" for tone, name in tones] == COLORS
            # The first scan is a free preview: three of its findings are readable.
            assert numbers == {"Mar 4": ["1", "2", "0", "0", "2"], "Mar 5": ["2", "0", "1", "3", "0"]}


class TestStart:
    def test_a_member_starts_a_scan_and_gets_to_its_request(self, browser, world, company, repository, sqs):
        member = world.member(company, "member")
        browser.signed_in(member.user_id).get(address(company))
        reply = browser.press("Start scan")
        request_id = stored_repository(repository)["activeRequestId"]
        assert reply.headers["location"] == f"{address(company)}/{request_id}?done=started"
        assert len(sqs.at(Queue.SCAN_PREPARATION.url)) == 1
        shown = browser.get(reply.headers["location"])
        assert "The scan is requested." in text_of(shown)
        assert 'data-refresh="2"' in shown.text

    def test_a_second_scan_of_the_repository_is_refused_with_a_link_to_the_first(self, visitor, company, repository):
        running = make_scan(repository, status="running")
        visitor.get(address(company))
        reply = visitor.press("Start scan")
        assert reply.status == 409
        assert "A scan of this repository is in progress." in text_of(reply)
        assert f'{running.scan_id}">Open the scan in progress' in reply.text


def test_a_request_says_why_it_failed_or_leads_to_its_scan(visitor, company, repository):
    request_id = make_request(repository)
    lease, _ = requests.acquire_request(request_id, 30)
    failures.fail_attempted(request_id, Failure("BRANCH_NOT_FOUND", "The branch doesn't exist."), lease)
    failed = visitor.get(f"{address(company)}/{request_id}")
    assert "This scan didn't start: The branch doesn't exist." in text_of(failed)
    assert "data-refresh" not in failed.text
    for status, notice in (("completed", False), ("running", True)):
        scan = make_scan(repository, status=status)
        shown = visitor.follow(visitor.get(f"{address(company)}/{scan.request_id}"))
        assert visitor.at == f"{address(company)}/{scan.scan_id}?done=started"
        assert ("The scan is requested." in text_of(shown), "data-refresh" in shown.text) == (notice, notice)


def report(company: Company, scan: ScanItem, page: str = "") -> str:
    return f"/organizations/{company.slug}/scans/{scan.scan_id}{page}"


class TestComparison:
    def compared(self, repository: RepositoryItem, company: Company) -> tuple[ScanItem, ScanItem]:
        """Returns a scan that found one finding again, one new one, and fixed two of the base, one of them locked."""
        base = make_scan(repository, issues=ISSUES[:3])
        publish_finding(findings.as_discovery(base, replace(ISSUES[1], title="Fixed tracker")))
        scan = make_scan(repository, access="full", issues=[ISSUES[0], replace(ISSUES[4], is_new=True)])
        fixed = (ISSUES[1].fingerprint, ISSUES[2].fingerprint)
        comparison = Comparison(base.scan_id, 2, fixed, new_count=1)
        change(scan, comparison=to_map(comparison))
        return base, scan

    def test_new_fixed_and_remaining_findings_are_counted_and_marked(self, visitor, company, repository):
        base, scan = self.compared(repository, company)
        reply = visitor.get(report(company, scan))
        shown = text_of(reply)
        assert "Findings 2 New 1 Still present 1 Fixed 2" in shown
        assert f'href="{report(company, base)}">previous scan' in reply.text
        assert re.findall(r"line (\d) (New )?High severity", shown) == [("1", ""), ("5", "New ")]
        rows = rows_of(visitor.get(report(company, scan, "/findings.csv")))
        assert [(row["Line"], row["New"]) for row in rows] == [("1", "no"), ("5", "yes")]
        assert "Fixed since the previous scan Fixed tracker src/app.tsx P1 1 more was fixed." in shown
        assert "2 1 new, 2 fixed" in text_of(visitor.get(f"/organizations/{company.slug}/scans"))

    def test_only_a_later_scan_has_a_comparison(self, visitor, company, repository):
        scan = make_scan(repository, issues=ISSUES)
        shown = text_of(visitor.get(report(company, scan)))
        assert not any(words in shown for words in ("Still present", "previous scan"))
        comparison = Comparison(scan.scan_id, 2, (), new_count=None)
        change(scan, comparison=to_map(comparison))
        rows = rows_of(visitor.get(report(company, scan, "/findings.csv")))
        assert [row["New"] for row in rows] == [""] * 3


class TestUnlock:
    @pytest.fixture
    def scan(self, repository):
        return make_scan(repository, issues=ISSUES)

    def test_an_owner_unlocks_the_findings_for_credits(self, visitor, company, scan, sqs):
        billing.add_credits(company.organization_id, 120)
        assert f'href="{report(company, scan, "/unlock")}"' in visitor.get(report(company, scan)).text
        page = visitor.get(report(company, scan, "/unlock"))
        shown = text_of(page)
        assert "You unlock 2 findings of shop" in shown
        assert "Price 50 credits Balance 120 credits Balance afterwards 70 credits" in shown
        reply = visitor.press("Unlock for 50 credits")
        assert (reply.status, reply.headers["location"]) == (303, report(company, scan, "?done=unlocked"))
        assert reads.get_scan(scan.scan_id).access == "full"
        assert billing.get_billing(company.organization_id)[1].credits == 70
        assert len(sqs.at(Queue.SCAN_EXECUTION.url)) == 1
        shown = text_of(visitor.get(reply.headers["location"]))
        assert "All findings of this report are unlocked." in shown
        assert "line 5" in shown
        again = visitor.press("Unlock for 50 credits", on=page)
        assert again.headers["location"] == report(company, scan, "?done=already")
        assert billing.get_billing(company.organization_id)[1].credits == 70

    def test_a_low_balance_or_the_automatic_top_up_is_explained(self, visitor, company, scan):
        at = report(company, scan, "/unlock")
        billing.add_credits(company.organization_id, 10)
        assert "The organization has 10 credits, and needs 40 credits more." in text_of(visitor.get(at))
        assert visitor.buttons() == {"Sign out"}
        refused = visitor.forge(at)
        assert (refused.status, "doesn't have enough credits." in text_of(refused)) == (402, True)
        assert reads.get_scan(scan.scan_id).access == "free-preview"
        billing.enable_top_up(company.organization_id, threshold=5, amount=100, monthly_limit=2)
        assert "the automatic top-up adds 100 credits first" in text_of(visitor.get(at))
        assert visitor.press("Unlock for 50 credits").status == 303
        assert billing.get_billing(company.organization_id)[1].credits == 60

    def test_only_owners_unlock_and_only_locked_findings(self, visitor, world, company, scan, repository):
        at = report(company, make_scan(repository, status="running"), "/unlock")
        assert "This scan has no locked findings." in text_of(visitor.get(at))
        reply = visitor.forge(at)
        assert (reply.status, "Only the findings of a completed scan can be" in text_of(reply)) == (409, True)
        for role in ("admin", "member"):
            visitor.signed_in(world.member(company, role).user_id)
            shown = visitor.get(report(company, scan))
            assert "An owner of the organization can unlock them for 50 credits." in text_of(shown)
            assert "/unlock" not in shown.text
            assert visitor.get(report(company, scan, "/unlock")).status == 403


def sarif_of(reply: Reply) -> dict:
    assert reply.status == 200
    return json.loads(reply.text)


class TestDownloads:
    def test_only_readable_findings_are_downloaded(self, visitor, company, repository):
        preview = make_scan(repository, issues=ISSUES)
        full = make_scan(repository, access="full", issues=ISSUES)
        for scan, count in ((preview, 3), (full, 5)):
            page = visitor.get(report(company, scan)).text
            for kind in ("sarif", "csv"):
                assert f'href="{report(company, scan, f"/findings.{kind}")}" download' in page
            log = sarif_of(visitor.get(report(company, scan, "/findings.sarif")))
            assert len(log["runs"][0]["results"]) == count
            rows = rows_of(visitor.get(report(company, scan, "/findings.csv")))
            assert [row["Line"] for row in rows] == list("12345")[:count]

    def test_a_scan_without_readable_findings_has_no_downloads(self, visitor, company, repository):
        failed = make_scan(repository, status="failed")
        locked = make_scan(repository, again="locked", issues=ISSUES)
        running = make_scan(repository, status="running")
        for scan, status in ((failed, 409), (running, 409), (locked, 402)):
            assert "/findings." not in visitor.get(report(company, scan)).text
            for kind in ("sarif", "csv"):
                reply = visitor.get(report(company, scan, f"/findings.{kind}"))
                assert (reply.status, "The findings of this scan are locked." in text_of(reply)) == (
                    status,
                    status == 402,
                )

    def test_a_csv_has_no_formulas_and_its_name_no_special_characters(self, visitor, company, repository):
        texts = ["=HYPERLINK(1)", "+1", "-1", "@SUM(1)", "\t=1", "  =1", "\uff1d1", 'a,"b"\nc']
        issues = [
            replace(make_issue(number, path=text), title=text, vendors=(FindingVendor("x", text, "x.example"),))
            for number, text in enumerate(texts, start=1)
        ]
        make_scan(repository)
        scan = make_scan(repository, access="full", issues=issues)
        change(scan, repositoryName='a"b\r\nc/../é')
        reply = visitor.get(report(company, scan, "/findings.csv"))
        name = f"a-b-c-..--{scan.head_commit_sha[:12]}.csv"
        assert reply.headers["content-disposition"] == f'attachment; filename="{name}"'
        for row, text in zip(rows_of(reply), texts, strict=True):
            shown = text if text == texts[-1] else f"'{text}"
            assert (row["Title"], row["File"], row["Vendors"]) == (shown, shown, shown)
        findings.put_findings(scan.scan_id, 2, [make_issue(77)])
        later = Update(scan.key, "SET #findingsAttempt = :two, #issueCount = :one", values={"two": 2, "one": 1})
        table.update(later, PREPARED)
        assert re.findall(r"src/app\.tsx , line (\d+)", text_of(visitor.get(report(company, scan)))) == ["77"]
