"""Scans after pushes and on a schedule, and the state of issues."""

from controlplane.core.schedules import next_run
from controlplane.queues import scan_starts
from controlplane.queues.messages import Queue, ref_digest
from controlplane.store import issue_attempts, repositories
from controlplane.store.inbox_items import GithubIssue
from controlplane.store.repositories import RepositoryItem
from controlplane.store.scans import execution, reads
from controlplane.store.scans.items import ScanItem
from tests.functional.github_events.conftest import DEMO, Events, connect
from tests.support.api import Api
from tests.support.audits import end_scan, make_scan, stored_repository
from tests.support.github import GitHub
from tests.support.sweeping import swept
from tests.support.world import Company, World, table_dump

MAIN = ref_digest("refs/heads/main")


def prepared_scans(events: Events, repository: RepositoryItem) -> list[tuple[str, str]]:
    """Returns the trigger and commit of each scan, the newest first, after all were prepared."""
    events.work(Queue.SCAN_PREPARATION)
    scans = reads.list_scans(repository.organization_id, 100, None, repository.repository_id).scans
    return [(scan.cause.trigger, scan.head_commit_sha) for scan in scans]


def finish(scan: ScanItem) -> None:
    """Runs a queued scan in place of its worker, and forgets its message."""
    execution.acquire_scan(scan.scan_id, 420)
    end_scan(scan)


class TestPush:
    def test_a_push_to_the_production_branch_is_scanned_once(self, events: Events, company: Company, code_host, now):
        repository = connect(company, scan_on_push=True)
        head = code_host.stand_in.repositories.find(*DEMO).find_commit("refs/heads/main").sha
        for _ in range(2):
            events.take("push", ref=MAIN)
            assert prepared_scans(events, repository) == [("push", head)]
        assert swept(scan_starts.start_queued) == 0

    def test_the_newest_commit_waits_while_a_scan_is_active(self, events: Events, company: Company, code_host, now):
        repository = connect(company, scan_on_push=True)
        scan = make_scan(repository, status="running")
        for number in range(2):
            (file := code_host.root / "files").mkdir(exist_ok=True)
            (file / "index.html").write_text(str(number))
            head = code_host.stand_in.repositories.commit(*DEMO, file, "Push")
            now.advance(1)
            events.take("push", ref=MAIN)
        assert len([it for it in table_dump() if it["pk"]["S"].startswith("SCANQUEUE#")]) == 1
        end_scan(scan)
        assert swept(scan_starts.start_queued) == 1
        assert prepared_scans(events, repository)[0] == ("push", head)
        assert swept(scan_starts.start_queued) == 0

    def test_other_branches_and_links_that_do_not_want_it_are_not_scanned(
        self, events: Events, company: Company, code_host: GitHub
    ):
        unwanted, other = connect(company), connect(company, scan_on_push=True, production_branch="release")
        assert unwanted.repository_id == other.repository_id
        code_host.exchanges.clear()
        for ref in (MAIN, ref_digest("refs/tags/main"), ref_digest("refs/heads/other"), None):
            events.take("push", ref=ref)
        events.take("push", ref=ref_digest("refs/heads/release"))
        assert "activeRequestId" not in stored_repository(other)
        assert swept(scan_starts.start_queued) == 0


class TestSchedule:
    def test_a_link_is_scanned_daily_at_its_minute(self, events: Events, company: Company, code_host, now):
        repository = connect(company, schedule="daily")
        link = repository.links[0]
        for _ in range(2):
            at = next_run("daily", repository.repository_id, link.project_id, now())
            now.advance(at - now() - 1)
            assert swept(scan_starts.queue_scheduled) == 0
            now.advance(1)
            assert swept(scan_starts.queue_scheduled) == 0
            now.advance(1)
            assert swept(scan_starts.queue_scheduled) == 1
            assert swept(scan_starts.start_queued) == 1
            assert prepared_scans(events, repository)[0][0] == "scheduled"
            finish(reads.list_scans(repository.organization_id, 1, None).scans[0])

    def test_an_entry_of_an_earlier_schedule_has_no_effect(self, company: Company, now):
        repository = connect(company, schedule="daily")
        link = repository.links[0]
        repositories.link_project(repository.repository_id, link._replace(schedule="weekly"))
        now.advance(7 * 86_400 + 60)
        assert swept(scan_starts.queue_scheduled) == 1
        repositories.link_project(repository.repository_id, link._replace(schedule=None))
        now.advance(7 * 86_400)
        assert swept(scan_starts.queue_scheduled) == 0
        assert [it for it in table_dump() if it["pk"]["S"].startswith("SCANSCHEDULE#")] == []

    def test_runs_that_were_missed_are_made_up_for_once(self, company: Company, now):
        connect(company, schedule="daily")
        now.advance(5 * 86_400)
        assert swept(scan_starts.queue_scheduled) == 1
        assert swept(scan_starts.queue_scheduled) == 0

    def test_a_scan_that_is_no_longer_wanted_is_dropped(self, events: Events, company: Company, now):
        repository = connect(company, schedule="daily")
        now.advance(86_401)
        swept(scan_starts.queue_scheduled)
        repositories.unlink_project(repository.repository_id, repository.links[0].project_id)
        assert swept(scan_starts.start_queued) == 0
        assert [it for it in table_dump() if it["pk"]["S"].startswith("SCANQUEUE#")] == []


class TestIssues:
    def test_the_item_says_that_its_issue_is_closed_and_reopened(  # noqa: PLR0917
        self, events: Events, repository: RepositoryItem, company: Company, code_host: GitHub, world: World, api: Api
    ):
        item = world.finding(company, repository)
        issue = code_host.stand_in.issues.create(*DEMO, "A finding", "Text", [])
        opened = GithubIssue(issue.number, "https://github.com/demo-shop/storefront/issues/1", "2026-03-04T05:06:07Z")
        issue_attempts.complete(item.item_id, None, opened, repository.repository_id)
        for state in ("closed", "open", "closed"):
            code_host.stand_in.issues.set_state(*DEMO, issue.number, state)
            events.take("issues", issue.number)
            shown = api.get(f"/v1/inbox/{item.item_id}", company.owner.token).data
            assert (shown["githubIssue"]["state"], shown["status"]) == (state, "open")
            assert api.get("/v1/inbox", company.owner.token).data[0]["githubIssue"]["state"] == state

    def test_other_issues_are_ignored(self, events: Events, repository: RepositoryItem, code_host: GitHub):
        events.take("issues", 77)
        assert code_host.sent("GET /repos/{owner}/{repo}/issues/{issue_number}") == []
