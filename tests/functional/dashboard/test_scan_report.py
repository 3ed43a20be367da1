"""The comparison with the previous scan, unlocking, and downloads of the findings of a scan."""

import csv
import io
import json
import re
from dataclasses import replace

import pytest

from controlplane.billing import store as billing
from controlplane.code_host.items import RepositoryItem
from controlplane.platform.queues.messages import Queue
from controlplane.platform.table.stored import to_map
from controlplane.platform.table.table import Update, table
from controlplane.scans import findings, reads
from controlplane.scans.findings import FindingVendor
from controlplane.scans.items import Comparison, ScanItem
from tests.support.api import Reply
from tests.support.audits import make_issue, make_scan
from tests.support.browser import Browser, text_of
from tests.support.published import publish_finding
from tests.support.table import PREPARED
from tests.support.world import Company, World

ISSUES = [make_issue(number) for number in range(1, 6)]


@pytest.fixture
def repository(world: World, company: Company) -> RepositoryItem:
    return world.connected_repository(company, name="shop")


def address(company: Company, scan: ScanItem, page: str = "") -> str:
    return f"/organizations/{company.slug}/scans/{scan.scan_id}{page}"


class TestComparison:
    def compared(self, repository: RepositoryItem, company: Company) -> tuple[ScanItem, ScanItem]:
        """Returns a scan that found one finding again, one new one, and fixed two of the base, one of them locked."""
        base = make_scan(repository, issues=ISSUES[:3])
        publish_finding(findings.as_discovery(base, replace(ISSUES[1], title="Fixed tracker")))
        scan = make_scan(repository, access="full", issues=[ISSUES[0], replace(ISSUES[4], is_new=True)])
        fixed = (ISSUES[1].fingerprint, ISSUES[2].fingerprint)
        comparison = Comparison(base.scan_id, 2, fixed, new_count=1)
        table.update(Update(scan.key, "SET #comparison = :it", values={"it": to_map(comparison)}), PREPARED)
        return base, scan

    def test_new_fixed_and_remaining_findings_are_counted_and_marked(self, visitor: Browser, company, repository):
        base, scan = self.compared(repository, company)
        reply = visitor.get(address(company, scan))
        shown = text_of(reply)
        assert "Findings 2 New 1 Still present 1 Fixed 2" in shown
        assert f'href="{address(company, base)}">previous scan' in reply.text
        assert re.findall(r"line (\d) (New )?High severity", shown) == [("1", ""), ("5", "New ")]
        rows = rows_of(visitor.get(address(company, scan, "/findings.csv")))
        assert [(row["Line"], row["New"]) for row in rows] == [("1", "no"), ("5", "yes")]
        assert "Fixed since the previous scan Fixed tracker src/app.tsx P1 1 more was fixed." in shown
        assert "2 1 new, 2 fixed" in text_of(visitor.get(f"/organizations/{company.slug}/scans"))

    def test_a_first_scan_has_no_comparison_and_a_pull_requests_scan_only_new_findings(
        self, visitor: Browser, company: Company, repository: RepositoryItem
    ):
        scan = make_scan(repository, issues=ISSUES)
        shown = text_of(visitor.get(address(company, scan)))
        assert not any(words in shown for words in ("Still present", "previous scan"))
        comparison = Comparison(scan.scan_id, 2, (), new_count=None)
        table.update(Update(scan.key, "SET #comparison = :it", values={"it": to_map(comparison)}), PREPARED)
        rows = rows_of(visitor.get(address(company, scan, "/findings.csv")))
        assert [row["New"] for row in rows] == [""] * 3


def test_findings_of_a_later_attempt_are_shown(visitor: Browser, company: Company, repository: RepositoryItem):
    scan = make_scan(repository, issues=ISSUES)
    findings.put_findings(scan.scan_id, 2, [make_issue(77)])
    later = Update(scan.key, "SET #findingsAttempt = :two, #issueCount = :one", values={"two": 2, "one": 1})
    table.update(later, PREPARED)
    assert re.findall(r"src/app\.tsx , line (\d+)", text_of(visitor.get(address(company, scan)))) == ["77"]


class TestUnlock:
    @pytest.fixture
    def scan(self, repository: RepositoryItem) -> ScanItem:
        return make_scan(repository, issues=ISSUES)

    def test_an_owner_unlocks_the_findings_for_credits(self, visitor: Browser, company, scan, sqs):
        billing.add_credits(company.organization_id, 120)
        assert f'href="{address(company, scan, "/unlock")}"' in visitor.get(address(company, scan)).text
        page = visitor.get(address(company, scan, "/unlock"))
        shown = text_of(page)
        assert "You unlock 2 findings of shop" in shown
        assert "Price 50 credits Balance 120 credits Balance afterwards 70 credits" in shown
        reply = visitor.press("Unlock for 50 credits")
        assert (reply.status, reply.headers["location"]) == (303, address(company, scan, "?done=unlocked"))
        assert reads.get_scan(scan.scan_id).access == "full"
        assert billing.get_billing(company.organization_id)[1].credits == 70
        assert len(sqs.at(Queue.SCAN_EXECUTION.url)) == 1
        shown = text_of(visitor.get(reply.headers["location"]))
        assert "All findings of this report are unlocked." in shown
        assert "line 5" in shown
        again = visitor.press("Unlock for 50 credits", on=page)
        assert again.headers["location"] == address(company, scan, "?done=already")
        assert billing.get_billing(company.organization_id)[1].credits == 70

    def test_a_low_balance_or_the_automatic_top_up_is_explained(self, visitor: Browser, company: Company, scan):
        at = address(company, scan, "/unlock")
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

    def test_only_owners_unlock(self, browser: Browser, world: World, company: Company, scan: ScanItem):
        for role in ("admin", "member"):
            browser.signed_in(world.member(company, role).user_id)
            shown = browser.get(address(company, scan))
            assert "An owner of the organization can unlock them for 50 credits." in text_of(shown)
            assert "/unlock" not in shown.text
            assert browser.get(address(company, scan, "/unlock")).status == 403

    def test_a_scan_without_locked_findings_has_nothing_to_unlock(self, visitor: Browser, company, repository):
        at = address(company, make_scan(repository, status="running"), "/unlock")
        assert "This scan has no locked findings." in text_of(visitor.get(at))
        reply = visitor.forge(at)
        assert (reply.status, "Only the findings of a completed scan can be" in text_of(reply)) == (409, True)


def sarif_of(reply: Reply) -> dict:
    assert reply.status == 200
    return json.loads(reply.text)


def rows_of(reply: Reply) -> list[dict[str, str]]:
    assert reply.status == 200
    assert reply.text.startswith("\ufeff")
    return list(csv.DictReader(io.StringIO(reply.text[1:])))


class TestDownloads:
    def test_only_readable_findings_are_downloaded(self, visitor: Browser, company, repository):
        preview = make_scan(repository, issues=ISSUES)
        full = make_scan(repository, access="full", issues=ISSUES)
        for scan, count in ((preview, 3), (full, 5)):
            page = visitor.get(address(company, scan)).text
            for kind in ("sarif", "csv"):
                assert f'href="{address(company, scan, f"/findings.{kind}")}" download' in page
            log = sarif_of(visitor.get(address(company, scan, "/findings.sarif")))
            assert len(log["runs"][0]["results"]) == count
            rows = rows_of(visitor.get(address(company, scan, "/findings.csv")))
            assert [row["Line"] for row in rows] == list("12345")[:count]

    def test_a_scan_without_readable_findings_has_no_downloads(self, visitor: Browser, company, repository):
        failed = make_scan(repository, status="failed")
        locked = make_scan(repository, again="locked", issues=ISSUES)
        running = make_scan(repository, status="running")
        for scan, status in ((failed, 409), (running, 409), (locked, 402)):
            assert "/findings." not in visitor.get(address(company, scan)).text
            for kind in ("sarif", "csv"):
                reply = visitor.get(address(company, scan, f"/findings.{kind}"))
                assert (reply.status, "The findings of this scan are locked." in text_of(reply)) == (
                    status,
                    status == 402,
                )

    def test_the_file_name_has_no_special_characters(self, visitor: Browser, company, repository):
        scan = make_scan(repository, issues=ISSUES)
        table.update(Update(scan.key, "SET #repositoryName = :x", values={"x": 'a"b\r\nc/../é'}), PREPARED)
        reply = visitor.get(address(company, scan, "/findings.csv"))
        name = f"a-b-c-..--{scan.head_commit_sha[:12]}.csv"
        assert reply.headers["content-disposition"] == f'attachment; filename="{name}"'

    def test_a_csv_has_no_formulas(self, visitor: Browser, company: Company, repository: RepositoryItem):
        texts = ["=HYPERLINK(1)", "+1", "-1", "@SUM(1)", "\t=1", "  =1", "\uff1d1", 'a,"b"\nc']
        issues = [
            replace(make_issue(number, path=text), title=text, vendors=(FindingVendor("x", text, "x.example"),))
            for number, text in enumerate(texts, start=1)
        ]
        make_scan(repository)
        rows = rows_of(
            visitor.get(address(company, make_scan(repository, access="full", issues=issues), "/findings.csv"))
        )
        for row, text in zip(rows, texts, strict=True):
            shown = text if text == texts[-1] else f"'{text}"
            assert (row["Title"], row["File"], row["Vendors"]) == (shown, shown, shown)
