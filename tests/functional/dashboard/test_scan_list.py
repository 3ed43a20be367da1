"""GET and POST /organizations/{organizationSlug}/scans, and the page of a request for a scan."""

import re
from typing import Any

import pytest

from controlplane.code_host import repositories
from controlplane.code_host.items import Link, RepositoryItem
from controlplane.platform.queues.messages import Queue
from controlplane.platform.table.table import Update, table
from controlplane.scans import failures, requests
from controlplane.scans.items import Failure, ScanItem
from dashboard.scans.pages import SCANS_PER_PAGE
from tests.functional.dashboard.conftest import pages_of
from tests.functional.projects.builders import make_project
from tests.support.api import Reply
from tests.support.audits import make_issue, make_request, make_scan, stored_repository
from tests.support.browser import Browser, text_of
from tests.support.table import PREPARED
from tests.support.world import Company, World

HOSTILE = "\"><script>alert(1)</script>{{739*911}}'&"
# Red, orange, blue, green, and gray.
COLORS = ["P0 problem", "P1 warning", "P2 info", "P3 accent", "Locked muted"]


@pytest.fixture
def repository(world: World, company: Company) -> RepositoryItem:
    return world.connected_repository(company, name="shop")


def address(company: Company) -> str:
    return f"/organizations/{company.slug}/scans"


def listed(reply: Reply) -> list[str]:
    return re.findall(r'<th scope="row"><a href="[^"]*/scans/([^"]+)"', reply.text)


def change(stored: ScanItem | RepositoryItem, **values: Any) -> None:
    """Sets attributes of the stored item."""
    key = stored.key
    table.update(Update(key, "SET " + ", ".join(f"#{name} = :{name}" for name in values), values=values), PREPARED)


def subject_of(repository: RepositoryItem) -> str:
    return f"{repository.repository_id} {repository.links[0].project_id}"


class TestList:
    def test_scans_are_listed_newest_first_on_pages(self, visitor: Browser, company, repository, now):
        scans = []
        for _ in range(SCANS_PER_PAGE + 1):
            scans.insert(0, make_scan(repository, issues=[make_issue()]).scan_id)
            now.advance(1)
        pages = [listed(page) for page in pages_of(visitor, address(company), "Older scans")]
        assert pages == [scans[:SCANS_PER_PAGE], scans[-1:]]
        assert visitor.offers("Newest scans")

    def test_a_scan_is_listed_with_project_trigger_status_and_findings(self, visitor: Browser, company, repository):
        scan = make_scan(repository, issues=[make_issue(number) for number in range(5)])
        change(scan, cause={"trigger": "pull_request", "pullRequestNumber": 12})
        shown = text_of(visitor.get(address(company)))
        assert "shop shop, main Completed 5 2 locked Pull request #12 March 4, 2026, 05:06 UTC" in shown

    def test_completed_scans_are_green_failed_ones_red_and_running_ones_blue(self, visitor, company, repository):
        for status, look in (("completed", "good"), ("failed", "bad"), ("running", "info")):
            scan = make_scan(repository, status=status)
            for page in (address(company), f"/organizations/{company.slug}", f"{address(company)}/{scan.scan_id}"):
                assert f'<span class="badge {look}">{status.capitalize()}</span>' in visitor.get(page).text

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

    def test_unknown_filters_are_ignored_and_a_cursor_of_another_list_is_rejected(
        self, visitor: Browser, world: World, company: Company, repository: RepositoryItem
    ):
        foreign = world.connected_repository(world.company())
        make_scan(foreign)
        scans = {make_scan(repository).scan_id for _ in range(SCANS_PER_PAGE)}
        for query in ("status=lost", "repository=x", f"repository={foreign.repository_id}"):
            assert {*listed(visitor.get(f"{address(company)}?{query}"))} == scans
        make_scan(repository)
        older = re.findall(r'after=([^"]+)">Older scans', visitor.get(address(company)).text)[0]
        for query in (f"status=completed&after={older}", "after=x"):
            assert visitor.get(f"{address(company)}?{query}").status == 400

    def test_an_empty_list_says_what_to_do_first(self, visitor: Browser, world: World, company: Company):
        assert "Connect a repository" in text_of(visitor.get(address(company)))
        unlinked = world.connected_repository(company, linked=False)
        assert "Link a repository to a project" in text_of(visitor.get(address(company)))
        project = make_project(company)
        repositories.link_project(unlinked.repository_id, Link(project.project_id, None, None, False))
        assert "Start the first one above." in text_of(visitor.get(address(company)))

    def test_names_are_escaped_and_a_list_with_open_scans_refreshes_itself(self, visitor, company, repository):
        scan = make_scan(repository)
        change(scan, repositoryName=HOSTILE, branch=HOSTILE)
        change(repository, name=HOSTILE, owner=HOSTILE)
        reply = visitor.get(address(company))
        assert text_of(reply).count("{{739*911}}") >= 4
        assert not any(text in reply.text for text in ("<script>alert", "data-refresh"))
        make_scan(repository, status="running")
        assert 'id="scans" data-refresh="5"' in visitor.get(address(company)).text


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

    def test_scans_of_pull_requests_are_not_charted(self, visitor: Browser, company, repository):
        for values in ({}, {"cause": {"pullRequestNumber": 7}}):
            change(make_scan(repository, issues=[make_issue()]), priorityCounts={"P0": 1}, **values)
        assert "Findings by priority" not in visitor.get(address(company)).text


class TestStart:
    def test_a_member_starts_a_scan_and_gets_to_its_request(self, browser: Browser, world, company, repository, sqs):
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

    def test_what_cant_be_scanned_is_refused_in_place(self, visitor: Browser, world, company, repository):
        foreign = world.connected_repository(world.company())
        visitor.get(address(company))
        project_id = repository.links[0].project_id
        cases = {
            "": (400, "Choose a repository and a project."),
            "x": (400, "Choose a repository and a project."),
            f"x {project_id}": (404, "This repository isn't connected anymore."),
            subject_of(foreign): (404, "This repository isn't connected anymore."),
            f"{repository.repository_id} {foreign.links[0].project_id}": (409, "The repository isn't linked"),
        }
        for subject, (status, message) in cases.items():
            reply = visitor.forge(address(company), {"subject": subject})
            assert (reply.status, message in text_of(reply)) == (status, True), subject
        assert "activeRequestId" not in stored_repository(repository)


def test_a_request_says_why_it_failed_or_leads_to_its_scan(visitor: Browser, company: Company, repository):
    request_id = make_request(repository)
    lease, _ = requests.acquire_request(request_id, 30)
    failures.fail_attempted(request_id, Failure("BRANCH_NOT_FOUND", "The branch doesn't exist."), lease)
    failed = visitor.get(f"{address(company)}/{request_id}")
    assert "This scan didn't start: The branch doesn't exist." in text_of(failed)
    assert "data-refresh" not in failed.text
    scans = [(make_scan(repository), "Open the report"), (make_scan(repository, status="running"), "Follow the scan")]
    for scan, link in scans:
        shown = visitor.get(f"{address(company)}/{scan.request_id}").text
        assert f'/scans/{scan.scan_id}">{link}' in shown
        assert ("data-refresh" in shown) is scan.is_open
