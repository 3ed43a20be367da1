"""Scans of pull requests: what is scanned, what is reported, and what is canceled."""

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from controlplane.code_host import pull_requests, repositories
from controlplane.code_host.items import RepositoryItem
from controlplane.code_host.pull_requests import PullRequestItem
from controlplane.platform.core import ids
from controlplane.platform.core.ids import ScanId, ScanRequestId
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import PrepareScan, Queue
from controlplane.platform.table import leases
from controlplane.platform.table.stored import to_map
from controlplane.platform.table.table import Put, Update, table
from controlplane.scans import queue as scan_starts
from controlplane.scans import reads
from controlplane.scans.findings import FindingItem
from controlplane.scans.items import Cause, Comparison, Coverage, Failure, QueuedScan, ScanItem
from github_events import outcomes
from local.github.records import CheckRun, Comment
from tests.functional.github_events.conftest import DEMO, INSTALLATION, Events, connect
from tests.support.audits import make_issue, make_request, make_scan, stored_repository
from tests.support.calls import before_the_transaction
from tests.support.cleanup import clean_up, swept
from tests.support.github import GitHub
from tests.support.github_faults import Fault, Quota
from tests.support.table import PREPARED
from tests.support.world import table_dump

TRACKER = '<script async src="https://www.googletagmanager.com/gtag/js?id=G-1"></script>'
PAGE = f"<!doctype html><html><head>{TRACKER}</head><body></body></html>"
WAITING = '<script type="text/plain" data-cookiecategory="analytics"'
CHECKS = "POST /repos/{owner}/{repo}/check-runs"


def scans_of(repository: RepositoryItem) -> list[ScanItem]:
    """Returns the repository's scans, the newest first."""
    page = reads.list_scans(repository.organization_id, 100, None, repository.repository_id)
    return page.items


def scan_production(events: Events, repository: RepositoryItem) -> None:
    request_id = make_request(repositories.get_repository(repository.repository_id))
    messages.send(Queue.SCAN_PREPARATION.value, PrepareScan(request_id=request_id).model_dump(by_alias=True))
    events.scan()
    assert scans_of(repository)[0].status == "completed"


def checks(code_host: GitHub) -> list[CheckRun]:
    return code_host.stand_in.reviews.read(*DEMO).check_runs


def comments(code_host: GitHub) -> list[Comment]:
    return code_host.stand_in.reviews.read(*DEMO).comments


def open_one(code_host: GitHub, **options: str) -> int:
    opened = code_host.stand_in.open_pull_request(*DEMO, "A change", {"new.html": PAGE}, **options)
    return opened.pull_request.number


def item_of(repository: RepositoryItem, number: int) -> PullRequestItem:
    found = pull_requests.find(repository.repository_id, repository.links[0].project_id, number)
    assert found is not None
    return found


class TestScan:
    def test_only_new_findings_count_and_the_report_says_what_was_fixed(  # noqa: PLR0917
        self, events, reviewed, code_host, api, company, now
    ):
        scan_production(events, reviewed)
        now.advance(1)
        production = scans_of(reviewed)[0]
        changed = {"new.html": PAGE, "index.html": "<!doctype html><title>Nothing is loaded</title>"}
        opened = code_host.stand_in.open_pull_request(*DEMO, "A change", changed)
        number = opened.pull_request.number
        events.take("pull_request", number)
        assert [(it.head_sha, it.status) for it in checks(code_host)] == [(opened.head, "queued")]
        events.scan()
        scan = scans_of(reviewed)[0]
        assert (scan.head_commit_sha, scan.status, scan.access) == (opened.head, "completed", "full")
        shown = api.get(f"/v1/code-audit/scans/{scan.scan_id}", company.owner.token).data
        assert (shown["trigger"], shown["pullRequestNumber"]) == ("pull_request", number)
        assert (shown["scope"], shown["findingCount"], shown["issueCount"]) == ("pull_request", 1, 1)
        listed = api.get(f"/v1/code-audit/scans/{scan.scan_id}/issues", company.owner.token).data["issues"]
        assert {it["location"]["path"] for it in listed} == {"new.html"}
        (check,) = checks(code_host)
        assert (check.status, check.conclusion) == ("completed", "failure")
        assert {it["path"] for it in check.annotations} == {"new.html"}
        assert scan.comparison.base_scan_id == production.scan_id
        assert scan.comparison.fixed_count > 0
        assert "**Fixed**" in check.output["summary"]
        (comment,) = comments(code_host)
        assert "**Fixed**" in comment.body
        assert "new.html" in comment.body
        (review,) = code_host.stand_in.reviews.read(*DEMO).reviews
        assert review.comments[0]["body"].endswith(f"\n\n```suggestion\n{PAGE.replace('<script', WAITING)}\n```")

        # A newer commit changes the same comment, and gets a check run of its own.
        code_host.stand_in.push(*DEMO, number, {"new.html": "<!doctype html>"})
        events.take("pull_request", number)
        events.scan()
        assert [(it.status, it.conclusion) for it in checks(code_host)] == [
            ("completed", "failure"),
            ("completed", "success"),
        ]
        (edited,) = comments(code_host)
        assert edited.comment_id == comment.comment_id
        assert "new.html" not in edited.body
        clean_up()
        assert reads.get_scan(production.scan_id).findings_expire_at is None

    def test_one_that_is_closed_before_its_scan_is_prepared_is_not_scanned(self, events, reviewed, code_host):
        number = open_one(code_host)
        events.take("pull_request", number)
        request_id = stored_repository(reviewed)["activeRequestId"]
        code_host.stand_in.set_pull_request_state(*DEMO, number, "closed")
        events.scan()
        request = reads.get_request(ScanRequestId.stored(request_id))
        assert (request.status, request.failure and request.failure.code) == ("failed", "PULL_REQUEST_CLOSED")
        assert scans_of(reviewed) == []

    def test_neither_the_inbox_nor_the_history_nor_the_preview_nor_credits_change(
        self, events, reviewed, code_host, api, company
    ):
        before = {it["pk"]["S"] + it["sk"]["S"] for it in table_dump()}
        events.take("pull_request", open_one(code_host, fork="stranger"))
        events.scan()
        (check,) = checks(code_host)
        assert check.conclusion == "neutral"
        assert api.get("/v1/inbox", company.owner.token).data == []
        assert not repositories.get_repository(reviewed.repository_id).preview_used
        kinds = {it["sk"]["S"].partition("#")[0] for it in table_dump() if it["pk"]["S"] + it["sk"]["S"] not in before}
        assert kinds.isdisjoint({"FP", "INBOX", "LEDGER"})

    def test_nothing_runs_on_the_free_plan_or_if_the_link_does_not_want_it(self, events, code_host, world):
        connect(world.company("free"), pull_request_scans_enabled=True)
        connect(world.company("pro"), pull_request_scans_enabled=False)
        starter = connect(world.company("starter"), pull_request_scans_enabled=True)
        events.take("pull_request", open_one(code_host))
        assert len(checks(code_host)) == 1
        assert [len(events.sqs.at(queue.url)) for queue in (Queue.SCAN_PREPARATION, Queue.GITHUB_EVENTS)] == [1, 0]
        assert reads.get_active_work(stored_repository(starter)).cause.trigger == "pull_request"

    def test_the_links_threshold_decides_which_findings_fail(self, events, company, code_host, now):
        repository = connect(company, pull_request_scans_enabled=True, failure_threshold="P0")
        scan_production(events, repository)
        now.advance(1)
        video = '<!doctype html><iframe src="https://www.youtube.com/embed/1"></iframe>'
        opened = code_host.stand_in.open_pull_request(*DEMO, "A change", {"new.html": video})
        events.take("pull_request", opened.pull_request.number)
        events.scan()
        (check,) = checks(code_host)
        assert (check.conclusion, len(check.annotations) > 0) == ("success", True)


class TestReport:
    """The content of a report, of scans whose findings are made for it."""

    @staticmethod
    def reported(
        repository: RepositoryItem,
        base: Sequence[FindingItem] = (),
        new: Sequence[FindingItem] = (),
        coverage: Coverage | None = None,
    ) -> outcomes.Outcome:
        """Returns the outcome of a scan that fixes all findings of the production branch, and has new ones."""
        production = make_scan(repository, issues=base)
        scan = make_scan(repository, access="full", issues=new)
        fixed = Comparison(production.scan_id, len(base), tuple(it.fingerprint for it in base))
        covered = to_map(coverage or Coverage(1, 1, {}))
        values = {"it": to_map(fixed), "covered": covered}
        table.update(Update(scan.key, "SET #comparison = :it, #coverage = :covered", values=values), PREPARED)
        item = PullRequestItem(
            repository_id=repository.repository_id, project_id=scan.project_id, number=1, head_sha="1f0c"
        )
        return outcomes.outcome_of(replace(item, scan_id=scan.scan_id), repository)

    def test_fixed_findings_that_the_organization_cannot_read_are_only_counted(self, repository):
        base = [make_issue(number, path=f"src/{number}.tsx") for number in range(1, 6)]
        comment = self.reported(repository, base).comment
        assert comment is not None
        assert re.findall(r"src/(\d)\.tsx", comment) == ["1", "2", "3"]
        assert "- and 2 more" in comment

    def test_the_title_counts_new_and_fixed_findings_and_urgent_ones_are_failures(self, repository):
        priorities = ("P0", "P1", "P2", "P3")
        new = [make_issue(number, priority, f"{priority}.tsx") for number, priority in enumerate(priorities, 10)]
        outcome = self.reported(repository, [make_issue(number) for number in range(1, 4)], new)
        assert (outcome.state.title, outcome.state.conclusion) == ("4 new findings, 3 fixed", "failure")
        shown = [(it.path, it.start_line, it.end_line, it.level) for it in outcome.annotations]
        assert shown == [
            ("P0.tsx", 10, 11, "failure"),
            ("P1.tsx", 11, 12, "failure"),
            ("P2.tsx", 12, 13, "warning"),
            ("P3.tsx", 13, 14, "notice"),
        ]
        assert outcome.comment.startswith("### 4 new findings, 3 fixed\n")
        assert "- P0 Google Analytics loads before consent (`P0.tsx`, line 10)" in outcome.comment

    def test_text_of_the_repository_stays_text_and_is_no_more_than_github_takes(self, repository):
        image = "![x](https://evil.example/x.png)"
        coverage = Coverage(1, 1, {}, (), f"files after {image} weren't read.")
        comment = self.reported(repository, new=[make_issue(path=f"a`{image}`.html")], coverage=coverage).comment
        assert "**This scan is incomplete**: the repository is larger than a scan reads." in comment
        assert comment.count("evil.example") == 1
        assert f"(``a`{image}`.html``, line 1)" in comment
        outcome = self.reported(repository, new=[make_issue(it, path=f"{it}/{'x' * 2_000}") for it in range(1, 51)])
        assert len(outcome.state.summary) <= 65_535
        assert len(outcome.comment) <= 65_535


class TestNewest:
    def test_a_newer_push_cancels_the_scan_of_the_older_one(self, events, reviewed, code_host, now):
        number = open_one(code_host)
        events.take("pull_request", number)
        events.work(Queue.SCAN_PREPARATION, Queue.GITHUB_EVENTS)
        assert scans_of(reviewed)[0].status == "queued"
        now.advance(1)
        pushed = code_host.stand_in.push(*DEMO, number, {"other.html": PAGE})
        events.take("pull_request", number)
        events.scan()
        newer, older = scans_of(reviewed)
        assert (older.status, newer.status) == ("canceled", "completed")
        assert newer.head_commit_sha == pushed.head
        reason = f"Commit {pushed.head[:7]} was pushed, and its scan replaces this one."
        assert older.failure == Failure("SUPERSEDED", reason)
        assert [(it.status, it.conclusion) for it in checks(code_host)] == [
            ("completed", "cancelled"),
            ("completed", "neutral"),
        ]

    def test_a_person_cancels_the_scan_and_the_check_says_so(self, events, reviewed, code_host, *, api, company, now):
        number = open_one(code_host)
        events.take("pull_request", number)
        events.work(Queue.SCAN_PREPARATION, Queue.GITHUB_EVENTS)
        (scan,) = scans_of(reviewed)
        reply = api.post(f"/v1/code-audit/scans/{scan.scan_id}/cancel", company.owner.token)
        assert (reply.status, reply.data["trigger"]) == (200, "pull_request")
        now.advance(61)
        swept(messages.resend)
        events.scan()
        (check,) = checks(code_host)
        assert (check.conclusion, check.output["summary"]) == ("cancelled", reply.data["failure"]["message"])
        assert comments(code_host) == []

    def test_duplicates_and_late_events_change_nothing(self, events, reviewed, code_host):
        number = open_one(code_host)
        for _ in range(3):
            events.take("pull_request", number)
        events.scan()
        for _ in range(2):
            events.take("pull_request", number)
        events.scan()
        assert len(scans_of(reviewed)) == len(checks(code_host)) == len(comments(code_host)) == 1

    def test_closing_cancels_and_reopening_scans_again(self, events, reviewed, code_host, now):
        number = open_one(code_host)
        events.take("pull_request", number)
        events.work(Queue.SCAN_PREPARATION)
        code_host.stand_in.set_pull_request_state(*DEMO, number, "closed")
        events.take("pull_request", number)
        events.scan()
        assert scans_of(reviewed)[0].status == "canceled"
        assert [it.conclusion for it in checks(code_host)] == ["cancelled"]
        now.advance(1)
        code_host.stand_in.set_pull_request_state(*DEMO, number, "open")
        events.take("pull_request", number)
        events.scan()
        assert [it.status for it in scans_of(reviewed)] == ["completed", "canceled"]
        assert [it.conclusion for it in checks(code_host)] == ["neutral"]

    def test_a_check_run_that_is_requested_again_is_the_same_one(self, events, reviewed, code_host, now):
        events.take("pull_request", open_one(code_host))
        events.scan()
        (check,) = checks(code_host)
        events.take("check_run", check.check_run_id)
        assert checks(code_host)[0].status == "queued"
        events.take("check_run", check.check_run_id)
        events.scan()
        assert len(scans_of(reviewed)) == 2
        (again,) = checks(code_host)
        assert (again.status, again.annotations) == ("completed", check.annotations)

    def test_others_wait_until_the_repository_is_free(self, events, reviewed, code_host, now):
        first, second = open_one(code_host), open_one(code_host)
        events.take("pull_request", first)
        now.advance(1)
        events.take("pull_request", second)
        assert [it.status for it in checks(code_host)] == ["queued", "queued"]
        assert swept(scan_starts.start_queued) == 0
        events.scan()
        assert [it.cause.pull_request_number for it in scans_of(reviewed)] == [first]
        now.advance(1)
        assert swept(scan_starts.start_queued) == 1
        events.scan()
        assert [it.cause.pull_request_number for it in scans_of(reviewed)] == [second, first]

    def test_an_organization_starts_no_more_than_its_plan_lets_run(self, events, code_host, world):
        company = world.company("starter")
        for _ in range(2):
            make_scan(world.connected_repository(company), status="running")
        connect(company, pull_request_scans_enabled=True)
        events.take("pull_request", open_one(code_host))
        assert events.sqs.at(Queue.SCAN_PREPARATION.url) == []
        assert swept(scan_starts.start_queued) == 0


class TestStored:
    """A pull request as it is stored, which events and workers write."""

    @pytest.fixture
    def item(self, repository: RepositoryItem) -> PullRequestItem:
        project_id = repository.links[0].project_id
        return PullRequestItem(
            repository_id=repository.repository_id, project_id=project_id, number=12, head_sha="1f0c"
        )

    @staticmethod
    def want(item: PullRequestItem) -> bool:
        place = (item.repository_id, item.project_id)
        queued = QueuedScan.of(*place, Cause("pull_request", item.number))
        report = pull_requests.report_entry(*place, item.number)
        return pull_requests.want_scan(item, Put(queued.to_item()), report, again=False)

    def test_the_first_of_two_events_counts(self, item, repository):
        first = replace(item, marker="first")
        with before_the_transaction(table.client, lambda: self.want(first)):
            assert not self.want(item)
        assert item_of(repository, item.number) == first

    def test_a_new_commit_keeps_only_what_was_reported(self, item, repository):
        own, local = repository.organization_id, ids.new_local()
        scanned = {"request_id": ScanRequestId.of(own, local), "scan_id": ScanId.of(own, local)}
        before = replace(item, **scanned, closed=True, comment_id=7)
        table.put(Put(before.to_item()), PREPARED)
        assert self.want(replace(item, head_sha="2a1b", marker="other"))
        assert item_of(repository, item.number) == replace(item, head_sha="2a1b", comment_id=7)

    def test_one_worker_reports_until_its_claim_expires(self, item, now):
        assert pull_requests.claim(item.key) is None
        assert table.get(item.key) is None
        table.put(Put(item.to_item()), PREPARED)
        first = pull_requests.claim(item.key)
        now.advance(149)
        with pytest.raises(leases.Held) as reported:
            pull_requests.claim(item.key)
        assert reported.value.seconds == 1
        now.advance(1)
        second = pull_requests.claim(item.key)
        with pytest.raises(leases.LeaseLost):
            pull_requests.record(item.key, first[0], comment="late")
        pull_requests.release(item.key, first[0])
        with pytest.raises(leases.Held):
            pull_requests.claim(item.key)
        pull_requests.record(item.key, second[0], comment="first")
        pull_requests.release(item.key, second[0])
        third = pull_requests.claim(item.key)
        assert third[1] == replace(item, comment="first")


class TestFailures:
    def test_the_scan_is_started_again_after_an_hour_without_github(self, events, reviewed, code_host, sqs, now):
        events.take("pull_request", open_one(code_host))
        down = "GET /repos/{owner}/{repo}/pulls/{pull_number}"
        code_host.stand_in.faults.add(down, *[Fault(503)] * 12)
        for _ in range(4):
            events.work(Queue.SCAN_PREPARATION)
            now.advance(31)
        assert reads.list_scans(reviewed.organization_id, 10, None).items == []
        now.advance(3_600)
        assert swept(scan_starts.start_queued) == 1
        events.scan()
        assert checks(code_host)[0].status == "completed"
        assert len(checks(code_host)) == 1

    def test_a_scan_whose_source_cannot_be_read_is_started_again(self, events, reviewed, code_host, now):
        events.take("pull_request", open_one(code_host))
        events.work(Queue.SCAN_PREPARATION)
        code_host.stand_in.faults.add("GET /repos/{owner}/{repo}/tarball/{ref}", *[Fault(503)] * 12)
        for _ in range(4):
            events.work(Queue.SCAN_EXECUTION)
            now.advance(31)
        assert scans_of(reviewed)[0].status == "failed"
        now.advance(300)
        assert swept(scan_starts.start_queued) == 1
        events.scan()
        assert [it.status for it in scans_of(reviewed)] == ["completed", "failed"]
        assert [it.conclusion for it in checks(code_host)] == ["neutral"]

    def test_each_of_many_annotations_is_added_once_wherever_the_report_is_interrupted(
        self, events, reviewed, code_host, now
    ):
        scan_production(events, reviewed)
        now.advance(1)
        opened = code_host.stand_in.open_pull_request(*DEMO, "A change", {f"{at}.html": PAGE for at in range(102)})
        events.take("pull_request", opened.pull_request.number)
        events.work(Queue.SCAN_PREPARATION)
        # The first part takes effect without a response, then nothing arrives, then the last response is lost.
        change = "PATCH /repos/{owner}/{repo}/check-runs/{check_run_id}"
        for fault in (Fault(502, takes_effect=True), Fault(502)):
            events.work(Queue.SCAN_EXECUTION, Queue.GITHUB_EVENTS)
            code_host.stand_in.faults.add(change, fault)
            now.advance(61)
        events.scan()
        now.advance(61)
        events.scan()
        (check,) = checks(code_host)
        assert check.conclusion == "failure"
        places = [(it["path"], it["start_line"], it["title"]) for it in check.annotations]
        assert len(places) == len({*places}) > 100
        sizes = [len(it.body["output"].get("annotations", ())) for it in code_host.sent(change)]
        assert max(sizes) == 50

    def test_what_an_uninstalled_app_interrupts_or_misses_is_scanned_once_it_is_installed_again(
        self, events, company, code_host, sqs, now
    ):
        repository = connect(company, pull_request_scans_enabled=True, scan_on_push=True)
        interrupted = open_one(code_host)
        events.take("pull_request", interrupted)
        events.work(Queue.SCAN_PREPARATION)
        code_host.stand_in.faults.suspended.add(INSTALLATION)
        code_host.stand_in.revoke_tokens()
        events.take("installation")
        events.scan()
        assert [it.status for it in scans_of(repository)] == ["failed"]
        assert sqs.letters == []
        now.advance(7_200)
        assert swept(scan_starts.start_queued) == 0  # it could only fail again
        # GitHub sends nothing about these to an App without access.
        pushed = code_host.stand_in.push(*DEMO, interrupted, {"other.html": PAGE})
        missed = open_one(code_host)
        code_host.stand_in.faults.suspended.clear()
        for _ in range(2):
            events.take("installation")
        for _ in range(4):
            now.advance(60)
            swept(scan_starts.start_queued)
            events.scan()
        found = [(it.cause.pull_request_number or 0, it.status) for it in scans_of(repository)]
        assert sorted(found) == [(0, "completed"), (1, "completed"), (1, "failed"), (missed, "completed")]
        assert pushed.head in [it.head_commit_sha for it in scans_of(repository) if it.status == "completed"]
        assert {it.status for it in checks(code_host)} == {"completed"}
        assert len(comments(code_host)) == 2

    def test_no_request_is_sent_after_the_last_one_that_the_installation_has(
        self, events, reviewed, code_host, sqs, now
    ):
        """Neither by this worker nor by others, and no message runs out of receives, nor a scan of attempts."""
        code_host.stand_in.faults.quotas[INSTALLATION] = Quota(left=1, resets_at=int(now()) + 3_600)
        number = open_one(code_host)
        for _ in range(6):
            events.take("pull_request", number)
            events.work(Queue.SCAN_PREPARATION)
            now.advance(590)
            swept(messages.resend)
        spent = [it for it in code_host.stand_in.requests if "access_tokens" not in it.operation]
        assert [it.operation for it in spent] == ["GET /repos/{owner}/{repo}/pulls/{pull_number}"]
        now.advance(121)
        swept(messages.resend)
        events.scan()
        assert [it.status for it in scans_of(reviewed)] == ["completed"]
        assert [it.status for it in checks(code_host)] == ["completed"]
        assert [it for it in sqs.letters if it.queue_url != Queue.NOTIFICATIONS.url] == []
