"""GET /organizations/{organizationSlug}/scans/{scanId}, and the scans on the page of a project."""

import re
from collections.abc import Sequence
from dataclasses import replace

from controlplane.code_host import repositories
from controlplane.code_host.items import Link, RepositoryItem
from controlplane.findings import inbox
from controlplane.findings.fixes import Edit, Fix
from controlplane.platform.core import ids
from controlplane.platform.core.ids import ScanId
from controlplane.platform.table.stored import to_map
from controlplane.platform.table.table import table
from controlplane.scans import findings
from controlplane.scans.findings import FindingItem
from controlplane.scans.items import Coverage, CoveredKind, Progress, ScanItem
from controlplane.scans.reads import Inventory, UsedVendor, VendorPackage, stored_leg
from dashboard.scans.latest import SHOWN
from dashboard.scans.pages import FINDINGS_PER_PAGE
from tests.functional.dashboard.conftest import ISSUES, change, pages_of
from tests.functional.projects.builders import make_project
from tests.support.api import Reply
from tests.support.audits import end_scan, make_issue, make_scan
from tests.support.browser import Browser, text_of
from tests.support.table import PREPARED
from tests.support.world import Company, publish_finding

POSTHOG = UsedVendor(
    id="posthog",
    name="PostHog",
    category="analytics",
    packages=(VendorPackage("posthog-js", "1.2.0", "package.json"),),
    hosts=("eu.posthog.com",),
    loading_files=2,
    ungated_files=1,
)
HOTJAR = UsedVendor(id="hotjar", name="Hotjar", category="analytics", loading_files=1, ungated_files=0)


def full_scan(repository: RepositoryItem, issues: Sequence[FindingItem] = ISSUES) -> ScanItem:
    """Creates a scan with full access. The first scan of a repository is a free preview, so it isn't that one."""
    used = repositories.get_repository(repository.repository_id).preview_used
    return make_scan(repository, again=None if used else "full", access="full", issues=issues)


def take_inventory(scan: ScanItem, *vendors: UsedVendor, truncated: bool = False) -> None:
    table.put(stored_leg(scan.scan_id, Inventory(files=10, vendors=vendors, truncated=truncated)), PREPARED)


def show(browser: Browser, company: Company, scan_id: str, query: str = "") -> Reply:
    return browser.get(f"/organizations/{company.slug}/scans/{scan_id}{query}")


def words(browser: Browser, company: Company, scan: ScanItem, query: str = "") -> str:
    reply = show(browser, company, scan.scan_id, query)
    assert reply.status == 200
    return text_of(reply)


def lines_in(shown: str) -> list[str]:
    """Returns the lines of the findings in the text of a page."""
    return re.findall(r"src/app\.tsx , line (\d+)", shown)


class TestStatus:
    def test_a_scan_that_did_not_complete_says_why_and_has_no_findings(self, visitor, company, repository):
        failed = words(visitor, company, make_scan(repository, status="failed"))
        queued = make_scan(repository, status="queued")
        reply = show(visitor, company, queued.scan_id)
        assert "This scan hasn't started yet. Reload this page" in text_of(reply)
        assert f'href="/organizations/{company.slug}/scans/{queued.scan_id}"' in reply.text
        assert "The vendors are listed once the scan has read the package manifests." in text_of(reply)
        change(queued, status="canceled")
        canceled = words(visitor, company, queued)
        assert "This scan was canceled." in canceled
        assert "This scan failed: Too large. Start another scan" in failed
        assert "This scan has no inventory of vendors." in failed
        assert not any("Findings" in shown for shown in (text_of(reply), canceled, failed))

    def test_an_open_scan_is_canceled_with_its_button_until_it_publishes(self, visitor, company, repository):
        scan = make_scan(repository, status="queued")
        show(visitor, company, scan.scan_id)
        reply = visitor.press("Cancel this scan")
        assert (reply.status, reply.headers["location"].rpartition("/")[2]) == (303, f"{scan.scan_id}?done=canceled")
        shown = text_of(visitor.get(reply.headers["location"]))
        assert "This scan was canceled: A member of the organization canceled it." in shown
        assert visitor.offers("Cancel this scan") == 0
        running = make_scan(repository, status="running")
        before = show(visitor, company, running.scan_id)
        change(running, progress=to_map(Progress("publish", "running", 3)))
        late = visitor.press("Cancel this scan", on=before)
        assert (late.status, visitor.offers("Cancel this scan")) == (409, 0)
        assert "An attempt has begun to publish findings, so the scan can't be canceled anymore." in text_of(late)

    def test_a_running_scan_names_its_stage_until_it_ends(self, visitor, company, repository):
        scan = make_scan(repository, status="running")
        stages = {
            "Queued Done Preparing Downloading the commit Analyzing Not started": Progress("fetch", "running", 0),
            "Preparing Reading the package manifests": Progress("inventory", "running", 1),
            "Preparing Done Analyzing Searching the files": Progress("analyze", "running", 2),
            "Preparing Done Analyzing 12 of 40 files Publishing Not started": Progress("analyze", "running", 2, 12, 40),
            "Analyzing Done Publishing Storing the findings": Progress("publish", "running", 3),
        }
        for sentence, progress in stages.items():
            change(scan, progress=to_map(progress))
            assert sentence in words(visitor, company, scan)
            assert 'id="scan" data-refresh="2"' in show(visitor, company, scan.scan_id).text
        end_scan(scan)
        assert "data-refresh" not in show(visitor, company, scan.scan_id).text

    def test_a_scan_shows_what_was_scanned(self, visitor, company, repository):
        scan = full_scan(repository)
        change(scan, rootDirectory="apps/web")
        reply = show(visitor, company, scan.scan_id)
        commit = scan.head_commit_sha
        for text in ("Branch main", "Folder apps/web", commit[:12], "Scan of shop Completed Manual"):
            assert text in text_of(reply)
        assert f'href="{repository.html_url}/commit/{commit}"' in reply.text
        assert f'href="/organizations/{company.slug}/projects/shop"' in reply.text
        visitor.api.delete(f"/v1/projects/{scan.project_id}", company.owner.token)
        assert "/projects/" not in show(visitor, company, scan.scan_id).text


class TestFindings:
    def test_a_finding_is_shown_with_its_place_and_fix(self, visitor, company, repository):
        fix = Fix("Waits for consent.", "html", '<script data-src="a.js"></script>', ("c15t@^2.2",))
        edited = Fix("Waits.", "html", "", edits=(Edit("src/app.tsx", 1, "load()", "later(load)"),))
        issue = replace(ISSUES[0], rule_id="embedded-media", fix=fix)
        scan = full_scan(repository, [issue, replace(ISSUES[1], fix=edited)])
        found = publish_finding(findings.as_discovery(scan, issue))
        inbox.change_status(found, "accepted", found.version, company.owner.user_id, None)
        reply = show(visitor, company, scan.scan_id)
        shown = text_of(reply)
        assert (
            "P1 Google Analytics loads before consent src/app.tsx , line 1 Accepted High severity High confidence "
            "Code at this commit About this rule A script of googletagmanager.com is loaded before anybody agreed."
            in shown
        )
        assert "How to fix it Load it in the consent callback. Waits for consent. It needs c15t@^2.2 ." in shown
        assert '<span class="is-string">&#34;a.js&#34;</span>' in reply.text
        assert re.findall(r'data-line="(\d+)"', reply.text) == ["1", "2"]
        assert f'href="{issue.location.permalink}"' in reply.text
        assert '<a href="https://api.assent.test/docs/rules/embedded-media">About this rule</a>' in reply.text
        assert "@@ -1 +1 @@ -load() +later(load) Copy the diff" in shown
        assert f'data-copy="fix-{ISSUES[1].fingerprint}"' in reply.text

    def test_only_readable_findings_are_shown_in_order_of_urgency(self, visitor, company, repository):
        preview = make_scan(repository, issues=ISSUES)
        shown = words(visitor, company, preview)
        assert lines_in(shown) == list("123")
        assert "2 more findings are locked. Unlock them for 50 credits. Unlock findings" in shown
        for after, lines in ((1, ["2", "3"]), (3, []), (4, [])):
            assert lines_in(words(visitor, company, preview, f"?after={after}")) == lines
        shown = words(visitor, company, full_scan(repository))
        assert (lines_in(shown), "locked" in shown) == (list("12345"), False)
        shown = words(visitor, company, make_scan(repository, again="locked", issues=ISSUES[:1]))
        assert "1 finding is locked. Unlock it for 50 credits." in shown
        assert "src/app.tsx" not in shown

    def test_findings_of_low_confidence_say_so_and_expired_ones_are_hidden(self, visitor, company, repository, now):
        unknown = "The analysis can't tell whether the caller waits for consent."
        scan = full_scan(repository, [replace(ISSUES[0], confidence="low", description=unknown)])
        assert f"Low confidence Code at this commit {unknown}" in words(visitor, company, scan)
        change(scan, findingsExpireAt=int(now.seconds) + 100_000)
        assert "A later scan replaced this one. Its findings expire on" in words(visitor, company, scan)
        change(scan, findingsExpireAt=int(now.seconds) - 1)
        shown = words(visitor, company, scan)
        assert "The findings of this scan expired on" in shown
        assert "src/app.tsx" not in shown
        missing = ScanId.of(company.organization_id, ids.new_local())
        replies = [show(visitor, company, it) for it in (missing, "x", "scn_x", "%23", "x" * 2000, "%C3%A9")]
        assert ({reply.status for reply in replies}, len({reply.text for reply in replies})) == ({404}, 1)

    def test_many_findings_are_on_several_pages(self, visitor, company, repository):
        count = 2 * FINDINGS_PER_PAGE + 1
        scan = full_scan(repository, [make_issue(number) for number in range(1, count + 1)])
        first = f"/organizations/{company.slug}/scans/{scan.scan_id}?after=0"
        seen = [lines_in(text_of(page)) for page in pages_of(visitor, first, "Next findings")]
        assert [len(page) for page in seen] == [FINDINGS_PER_PAGE, FINDINGS_PER_PAGE, 1]
        assert [int(line) for page in seen for line in page] == list(range(1, count + 1))
        assert "Findings 101 to 101 of 101" in words(visitor, company, scan, "?after=100")
        assert "There are no further findings." in words(visitor, company, scan, "?after=101")
        for wrong in ("-1", "x", "99999", ""):
            assert show(visitor, company, scan.scan_id, f"?after={wrong}").status == 400


def test_no_findings_say_nothing_about_files_that_were_not_assessed(visitor, company, repository):
    scan = full_scan(repository, [])
    kinds = (CoveredKind("ERB", 61, 0), CoveredKind("Ruby", 0, 240), CoveredKind("package manifests", 0, 1))
    change(scan, coverage=to_map(Coverage(412, 61, {"minified": 2, "other kind of file": 100}, kinds)))
    shown = words(visitor, company, scan)
    assert (
        "The scan found nothing in the 61 files that it analyzed. That says nothing about the 241 files that "
        "it didn't assess ." in shown
    )
    assert (
        "Coverage 412 files, of which 61 were analyzed. ERB: 61 of 61 files analyzed "
        "Ruby: 0 of 240 files analyzed Package manifests: 0 of 1 file analyzed "
        "A scan without findings says nothing about files that weren't assessed. "
        "Skipped files Other kind of file 100 Minified 2" in shown
    )
    left_out = "The repository's archive has more than 256 MB: files after apps/web/a.ts weren't read."
    change(scan, coverage=to_map(Coverage(412, 61, {}, (), left_out)))
    assert f"This scan is incomplete. {left_out}" in words(visitor, company, scan)
    change(scan, coverage=to_map(Coverage(10, 9, {})))
    shown = words(visitor, company, scan)
    assert "The scan found nothing in the 9 files that it analyzed. Scan Repository" in shown.replace("  ", " ")
    assert "of which 9 were analyzed. A scan without findings says nothing" in shown


class TestVendors:
    def test_a_vendor_says_how_often_it_is_loaded_without_consent(self, visitor, company, repository):
        scan = full_scan(repository)
        cases = {
            "PostHog ( posthog-js 1.2.0 ): loaded in 2 files, 1 without consent, from eu.posthog.com": POSTHOG,
            "Hotjar : loaded in 1 file, none without consent": HOTJAR,
            "Hotjar : loaded in 1 file": HOTJAR._replace(ungated_files=None),
            "Hotjar : not loaded by the analyzed files": HOTJAR._replace(loading_files=0),
        }
        for sentence, vendor in cases.items():
            take_inventory(scan, vendor)
            assert f"Vendors {sentence}" in words(visitor, company, scan)
        take_inventory(scan)
        assert "No known vendor is used." in words(visitor, company, scan)

    def test_a_scan_without_full_access_hides_what_the_analysis_found(self, visitor, company, repository):
        scan = make_scan(repository, issues=ISSUES)
        take_inventory(scan, POSTHOG, HOTJAR, truncated=True)
        shown = words(visitor, company, scan)
        assert "Vendors PostHog ( posthog-js 1.2.0 ) The repository has more" in shown
        for hidden in ("Hotjar", "eu.posthog.com", "loaded in"):
            assert hidden not in shown
        take_inventory(scan, HOTJAR)
        assert "The package manifests name no known vendor." in words(visitor, company, scan)


def project_page(company: Company, slug: str) -> str:
    return f"/organizations/{company.slug}/projects/{slug}"


class TestOnTheProjectsPage:
    def test_the_latest_scans_of_all_repositories_are_linked(self, visitor, world, company, repository, now):
        second = world.connected_repository(company, linked=False, name="widgets")
        link = Link(repository.links[0].project_id, None, None, False)
        second = repositories.link_project(second.repository_id, link)
        scans = []
        for count in range(SHOWN):
            scans.append(full_scan(repository, ISSUES[: count + 1]))
            now.advance(1)
        scans.append(make_scan(second, issues=ISSUES[:1]))
        reply = visitor.get(project_page(company, "shop"))
        linked = re.findall(r'href="/organizations/[^"/]+/scans/([^"]+)"', reply.text)
        assert linked == [scan.scan_id for scan in reversed(scans)][:SHOWN]
        assert "Completed, 5 findings" in text_of(reply)
        assert "Completed, 1 finding " in text_of(reply)
        now.advance(1)
        running = make_scan(repository, status="running")
        assert "Running widgets" in text_of(visitor.get(project_page(company, "shop")))
        assert show(visitor, company, running.scan_id).status == 200

    def test_scans_for_other_projects_of_the_repository_are_not_listed(self, visitor, company, repository):
        other = make_project(company, "Blog")
        full_scan(repository)
        assert "No repository is linked to this project." in text_of(visitor.get(project_page(company, "blog")))
        repositories.link_project(repository.repository_id, Link(other.project_id, None, "blog", False))
        shown = text_of(visitor.get(project_page(company, "blog")))
        assert "There are no recent scans of shop for this project." in shown
