"""Scans after pushes and on a schedule, the limits of an installation's requests, and the state of issues."""

from types import SimpleNamespace

import pytest

from controlplane.code_host import installations, repositories
from controlplane.code_host import installations as host_limits
from controlplane.code_host.github import client
from controlplane.code_host.github.app_auth import Quotas
from controlplane.code_host.github.transport import Response
from controlplane.code_host.items import RepositoryItem
from controlplane.code_host.pull_requests import PullRequestItem
from controlplane.code_host.requests import within_limits
from controlplane.erasure import deletions
from controlplane.findings import issue_attempts
from controlplane.findings.items import GithubIssue
from controlplane.platform.core.ids import RepositoryId, ScanRequestId
from controlplane.platform.core.schedules import next_run
from controlplane.platform.queues.messages import Queue, ref_digest
from controlplane.platform.table import keys
from controlplane.platform.table.table import Delete, Put, Update, table
from controlplane.scans import execution, failures, queue, reads, requests
from controlplane.scans import queue as scan_starts
from controlplane.scans.items import Cause, QueuedScan, ScanItem, Work
from tests.functional.github_events.conftest import DEMO, Events, connect
from tests.support.audits import describe, end_scan, make_scan, stored_repository
from tests.support.calls import before, before_the_transaction
from tests.support.cleanup import swept
from tests.support.code_host import SHA
from tests.support.each import each
from tests.support.table import PREPARED
from tests.support.world import table_dump

MAIN = ref_digest("refs/heads/main")


def prepared_scans(events: Events, repository: RepositoryItem) -> list[tuple[str, str]]:
    """Returns the trigger and commit of each scan, the newest first, after all were prepared."""
    events.work(Queue.SCAN_PREPARATION)
    scans = reads.list_scans(repository.organization_id, 100, None, repository.repository_id).items
    return [(scan.cause.trigger, scan.head_commit_sha) for scan in scans]


def finish(scan: ScanItem) -> None:
    """Runs a queued scan in place of its worker, and forgets its message."""
    execution.acquire_scan(scan.scan_id, 420)
    end_scan(scan)


class TestPush:
    def test_a_push_to_the_production_branch_is_scanned_once(self, events, company, code_host, now):
        repository = connect(company, scan_on_push=True)
        head = code_host.stand_in.repositories.find(*DEMO).find_commit("refs/heads/main").sha
        for _ in range(2):
            events.take("push", ref=MAIN)
            assert prepared_scans(events, repository) == [("push", head)]
        assert swept(scan_starts.start_queued) == 0

    @pytest.mark.parametrize(
        ("trigger", "status"),
        [("manual", "running"), ("push", "queued"), ("push", "running"), ("scheduled", "running")],
    )
    def test_the_newest_commit_waits_until_the_active_scan_is_completed(
        self, events, company, *, trigger, status, code_host, now
    ):
        repository = connect(company, scan_on_push=True)
        scan = make_scan(repository, status=status)
        table.update(Update(scan.key, "SET #cause = :it", None, {"it": {"trigger": trigger}}), PREPARED)
        for number in range(2):
            (file := code_host.root / "files").mkdir(exist_ok=True)
            (file / "index.html").write_text(str(number))
            head = code_host.stand_in.repositories.commit(*DEMO, file, "Push")
            now.advance(1)
            events.take("push", ref=MAIN)
        assert len([it for it in table_dump() if it["pk"]["S"].startswith("SCANQUEUE#")]) == 1
        if status == "queued":
            execution.acquire_scan(scan.scan_id, 420)
        end_scan(scan)
        assert reads.get_scan(scan.scan_id).status == "completed"
        assert swept(scan_starts.start_queued) == 1
        assert prepared_scans(events, repository)[0] == ("push", head)
        assert swept(scan_starts.start_queued) == 0

    def test_an_event_that_is_late_leaves_the_scan_of_a_newer_commit_alone(self, events, company, code_host, now):
        repository = connect(company, scan_on_push=True)

        def push_again() -> None:
            file = code_host.root / "index.html"
            file.write_text("newer")
            code_host.stand_in.repositories.commit(*DEMO, file, "Push")
            events.take("push", ref=MAIN)
            prepared_scans(events, repository)

        events.send("push", ref=MAIN)
        with before(table.client, lambda call: call.operation == "PutItem", push_again):  # after it has read the head
            events.work()
        assert reads.get_active_work(stored_repository(repository)).status == "queued"

    def test_other_branches_and_links_that_do_not_want_it_are_not_scanned(self, events, company, code_host):
        unwanted, other = connect(company), connect(company, scan_on_push=True, production_branch="release")
        assert unwanted.repository_id == other.repository_id
        code_host.exchanges.clear()
        for ref in (MAIN, ref_digest("refs/tags/main"), ref_digest("refs/heads/other"), None):
            events.take("push", ref=ref)
        events.take("push", ref=ref_digest("refs/heads/release"))
        assert "activeRequestId" not in stored_repository(other)
        assert swept(scan_starts.start_queued) == 0


def begin_requested(repository_ids: list[RepositoryId]) -> list[Work]:
    """Creates the scans of these repositories' requests in place of the worker. Returns their active scans."""
    found = []
    for repository_id in repository_ids:
        repository = repositories.get_repository(repository_id)
        stored = stored_repository(repository)
        if stored.get("activeRequestId") and not stored.get("activeScanId"):
            lease, request = requests.acquire_request(ScanRequestId.stored(stored["activeRequestId"]), 30)
            target = requests.Target(repository, repository.links[0], "main", SHA)
            requests.start_scan(request, lease, target, "full")
        if stored.get("activeRequestId"):
            found.append(reads.get_active_work(stored_repository(repository)))
    return found


def open_pull_requests(repository: RepositoryItem, count: int) -> None:
    """Queues the scans of that many pull requests."""
    repository_id, link = repository.repository_id, repository.links[0]
    repositories.link_project(repository_id, link._replace(pull_request_scans_enabled=True))
    for number in range(1, count + 1):
        wanted = PullRequestItem(
            repository_id=repository_id, project_id=link.project_id, number=number, head_sha="0" * 40
        )
        table.put(Put(wanted.to_item()), PREPARED)
        queue.enqueue(QueuedScan.of(repository_id, link.project_id, Cause("pull_request", number)))


def queue_push(repository: RepositoryItem) -> None:
    """Queues the scan of a push."""
    link = repository.links[0]._replace(scan_on_push=True)
    repositories.link_project(repository.repository_id, link)
    queue.enqueue(QueuedScan.of(repository.repository_id, link.project_id, Cause("push")))


class TestTurns:
    def test_a_monorepo_with_a_hundred_open_pull_requests_delays_no_one(self, world, now):
        company, other_company = world.company("starter"), world.company("starter")
        # In the order in which the sweep reads them: without turns, it would always start those of the first two.
        own = sorted(
            (world.connected_repository(company) for _ in range(3)),
            key=lambda it: (keys.SCAN_QUEUE_PKS.index(keys.scan_queue_pk(it.repository_id)), it.repository_id),
        )
        quiet, others = own[2], world.connected_repository(other_company)
        ids = [it.repository_id for it in (*own, others)]
        for busy, count in zip(own[:2], (100, 10), strict=True):
            open_pull_requests(busy, count)
        now.advance(60)
        for late in (quiet, others):
            queue_push(late)
        started = []
        for _ in range(4):
            # More pushes to the pull requests come in whenever a scan has ended.
            for busy in own[:2]:
                scan_starts.start_next(busy.repository_id)
                begin_requested(ids)
            swept(scan_starts.start_queued)
            running = begin_requested(ids)
            started.append({ids.index(work.repository_id) for work in running})
            for work in running:
                failures.cancel_superseded(work, "A test.")
            now.advance(60)
        assert 3 in started[0]  # the other organization's isn't even delayed
        assert 2 in started[0] | started[1]
        assert 1 in set.union(*started)
        assert [len(turns - {3}) for turns in started] == [2] * 4

    @each(("plan", "most"), [("free", 1), ("starter", 2), ("pro", 5), ("enterprise", 20)])
    def test_as_many_scans_run_by_themselves_as_the_plan_allows_and_half_of_them_out_of_turn(self, plan, most, world):
        company = world.company(plan)
        for running in range(most):
            repository = world.connected_repository(company)
            queue_push(repository)
            assert scan_starts.start_next(repository.repository_id) == (running < most // 2)
            assert not scan_starts.start_next(repository.repository_id)
            swept(scan_starts.start_queued)
            begin_requested([repository.repository_id])
        for _ in range(2):
            queue_push(world.connected_repository(company))
        assert swept(scan_starts.start_queued) == 0
        failures.cancel_superseded(reads.get_active_work(stored_repository(repository)), "A test.")
        assert swept(scan_starts.start_queued) == 1

    def test_a_scan_waits_while_the_app_is_limited_or_has_no_access(self, world, now):
        repository = world.connected_repository(world.company())
        queue_push(repository)
        host_limits.limit(repository.installation_id, 60)
        now.advance(59)
        assert swept(scan_starts.start_queued) == 0
        installations.lose_access(repository)
        now.advance(1)
        assert swept(scan_starts.start_queued) == 0
        describe(repository)
        assert swept(scan_starts.start_queued) == 1

    def test_a_scan_of_a_deleted_organization_is_dropped(self, world):
        repository = world.connected_repository(world.company())
        queue_push(repository)
        deletions.delete_organization(repository.organization_id)
        assert swept(scan_starts.start_queued) == 0
        assert queue.list_queued(repository.repository_id) == []


class TestSchedule:
    def test_a_link_is_scanned_daily_at_its_minute(self, events, company, code_host, now):
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
            finish(reads.list_scans(repository.organization_id, 1, None).items[0])

    def test_an_entry_of_an_earlier_schedule_has_no_effect(self, company, now):
        repository = connect(company, schedule="daily")
        link = repository.links[0]
        repositories.link_project(repository.repository_id, link._replace(schedule="weekly"))
        now.advance(7 * 86_400 + 60)
        assert swept(scan_starts.queue_scheduled) == 1
        repositories.link_project(repository.repository_id, link._replace(schedule=None))
        now.advance(7 * 86_400)
        assert swept(scan_starts.queue_scheduled) == 0
        assert [it for it in table_dump() if it["pk"]["S"].startswith("SCANSCHEDULE#")] == []

    def test_missed_runs_are_made_up_for_once_by_one_of_two_sweeps(self, company, now):
        connect(company, schedule="daily")
        now.advance(5 * 86_400)
        with before_the_transaction(table.client, lambda: swept(scan_starts.queue_scheduled)):
            assert swept(scan_starts.queue_scheduled) == 0
        assert swept(scan_starts.queue_scheduled) == 0
        assert len([it for it in table_dump() if it["pk"]["S"].startswith("SCANQUEUE#")]) == 1

    def test_no_scan_of_a_disconnected_repository_is_queued(self, company, now):
        key = connect(company, schedule="daily").key
        now.advance(86_401)
        with before_the_transaction(table.client, lambda: table.delete(Delete(key), PREPARED)):
            assert swept(scan_starts.queue_scheduled) == 0
        assert [it for it in table_dump() if it["pk"]["S"].startswith("SCANQUEUE#")] == []

    def test_a_scan_whose_link_or_setting_is_gone_is_dropped(self, company, now):
        repository = connect(company, scan_on_push=True, schedule="daily")
        repository_id, link = repository.repository_id, repository.links[0]
        for trigger, off in (("push", {"scan_on_push": False}), ("scheduled", {"schedule": None})):
            queue.enqueue(QueuedScan.of(repository_id, link.project_id, Cause(trigger)))
            repositories.link_project(repository_id, link._replace(**off))
            assert swept(scan_starts.start_queued) == 0
            assert not queue.is_queued(repository_id, link.project_id, Cause(trigger))
        repositories.link_project(repository_id, link)
        now.advance(86_401)
        swept(scan_starts.queue_scheduled)
        repositories.unlink_project(repository_id, link.project_id)
        assert swept(scan_starts.start_queued) == 0
        assert [it for it in table_dump() if it["pk"]["S"].startswith("SCANQUEUE#")] == []


class TestIssues:
    def test_the_item_says_that_its_issue_is_closed_and_reopened(  # noqa: PLR0917
        self, events, repository, company, code_host, world, api
    ):
        item = world.finding(company, repository)
        issue = code_host.stand_in.create_issue(*DEMO, "A finding", "Text", [])
        opened = GithubIssue(issue.number, "https://github.com/demo-shop/storefront/issues/1", "2026-03-04T05:06:07Z")
        issue_attempts.complete(item.item_id, None, opened, repository.repository_id)
        for state in ("closed", "open", "closed"):
            code_host.stand_in.set_issue_state(*DEMO, issue.number, state)
            events.take("issues", issue.number)
            shown = api.get(f"/v1/inbox/{item.item_id}", company.owner.token).data
            assert (shown["githubIssue"]["state"], shown["status"]) == (state, "open")
            assert api.get("/v1/inbox", company.owner.token).data[0]["githubIssue"]["state"] == state

    def test_a_known_state_and_that_of_another_issue_are_not_recorded(self, company, world):
        repository = world.connected_repository(company)
        item = world.finding(company, repository)
        opened = GithubIssue(1, "https://github.com/demo-shop/storefront/issues/1", "2026-03-04T05:06:07Z")
        issue_attempts.complete(item.item_id, None, opened)
        issue_attempts.record_state(item.item_id, 1, is_open=False)
        before = table_dump()
        for number, is_open in ((1, False), (2, True)):
            issue_attempts.record_state(item.item_id, number, is_open=is_open)
            assert table_dump() == before

    def test_other_issues_are_ignored(self, events, repository, code_host):
        events.take("issues", 77)
        assert code_host.sent("GET /repos/{owner}/{repo}/issues/{issue_number}") == []


def test_the_limit_that_ends_last_counts(now):
    for seconds, left in ((60, 60), (30, 60), (90, 90)):
        host_limits.limit(7, seconds)
        assert host_limits.seconds_left(7) == left
    assert host_limits.seconds_left(8) == 0
    now.advance(89)
    assert host_limits.seconds_left(7) == 1
    now.advance(2)
    assert host_limits.seconds_left(7) == 0


def test_the_last_request_that_an_installation_has_is_known_to_all_workers(now, monkeypatch):
    quotas, reset = Quotas(), str(int(now.seconds) + 60)
    with monkeypatch.context() as patched:
        patched.setattr(client, "get_transport", lambda: (None, SimpleNamespace(quotas=quotas)))
        with within_limits(7):
            quotas.note(7, Response(200, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}, None))
    assert host_limits.seconds_left(7) == 60
