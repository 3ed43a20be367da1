"""The worker that runs scans: stages, findings, the inbox, and a final status for every scan, whatever fails."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from controlplane.code_host import repositories
from controlplane.code_host.github import errors
from controlplane.code_host.items import RepositoryItem
from controlplane.findings import inbox
from controlplane.findings.items import InboxItem
from controlplane.platform.core.ids import ScanRequestId
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import ExecuteScan, PublishScan, Queue
from controlplane.platform.table import leases
from controlplane.platform.table.leases import MAX_ATTEMPTS
from controlplane.scans import execution, failures, findings, history, reads, requests
from controlplane.scans.items import Failure, Progress, ScanItem
from openassent_analysis.sandbox import Sandbox
from scan_execution.app import ScanMessage
from tests.functional.scan_execution.repeated_scans import PAGE, found_by
from tests.support.audits import history_of, lease_of, make_issue, make_scan, scan_worker, stored_repository
from tests.support.code_host import SHA, FakeHost, archive
from tests.support.outcomes import Aborted
from tests.support.sqs import FakeSqs, SqsMessage
from tests.support.world import table_dump

QUEUE = Queue.SCAN_EXECUTION
FILES: dict[str, str | bytes] = {"index.html": PAGE, "logo.png": b"\x89PNG", "node_modules/a/index.js": "1"}


def send(sqs: FakeSqs, message: ScanMessage) -> SqsMessage:
    messages.send(QUEUE.value, message.model_dump(by_alias=True))
    return sqs.at(QUEUE.url)[-1]


def deliver(sqs: FakeSqs, letter: SqsMessage, host: FakeHost) -> None:
    sqs.deliver(letter, scan_worker(host), QUEUE.dead_letters_url)


def execute(sqs: FakeSqs, scan: ScanItem, host: FakeHost) -> ScanItem:
    """Sends and delivers the scan's message. Returns the scan afterward."""
    deliver(sqs, send(sqs, ExecuteScan(scan_id=scan.scan_id)), host)
    return reads.get_scan(scan.scan_id)


def run(sqs: FakeSqs, scan: ScanItem, files: dict[str, str | bytes] | None = None) -> ScanItem:
    return execute(sqs, scan, FakeHost(archives={SHA: archive(FILES if files is None else files)}))


def published(scan: ScanItem) -> list[InboxItem]:
    return inbox.list_items(scan.organization_id, None, 100, None).items


class Interrupted(FakeHost):
    """A code host that runs a callback when it is asked for the archive."""

    def __init__(self, on_download: Callable[[], object], files: dict[str, str | bytes] = FILES) -> None:
        super().__init__(archives={SHA: archive(files)})
        self._on_download = on_download

    def stream_tarball(self, *names: Any, **options: Any) -> Any:
        self._on_download()
        return super().stream_tarball(*names, **options)


@pytest.fixture
def scan(repository: RepositoryItem) -> ScanItem:
    """Returns a queued free preview."""
    return make_scan(repository, status="queued")


class TestSandbox:
    def test_a_file_that_crashes_the_analysis_is_skipped_with_a_reason_and_the_scan_continues(
        self, scan, sqs, monkeypatch
    ):
        monkeypatch.setattr("scan_execution.service.Sandbox", partial(Sandbox, entry="analysis_testing.hostile:start"))
        done = run(sqs, scan, {"attack/open-a-socket.js": "1", "attack/abort.js": "1", **FILES})
        assert done.status == "completed"
        assert done.issue_count
        assert done.coverage.skipped["crashed the analysis"] == 2

    def test_without_a_closed_sandbox_nothing_is_analyzed_and_the_scan_is_retried(self, scan, sqs, monkeypatch):
        unprotected = partial(Sandbox, entry="analysis_testing.hostile:start_nothing")
        monkeypatch.setattr("scan_execution.service.Sandbox", unprotected)
        tried = run(sqs, scan)
        assert (tried.status, tried.coverage, published(scan)) == ("running", None, [])


class TestCompleted:
    def test_a_preview_stores_all_findings_and_publishes_the_three_most_urgent(self, scan, repository, sqs):
        done = run(sqs, scan)
        found = found_by(done)
        assert done.status == "completed"
        assert done.issue_count == len(found) >= 5
        assert [finding.priority for finding in found] == sorted(finding.priority for finding in found)
        line = found[0].location.start_line
        assert found[0].location.permalink.startswith(f"{repository.html_url}/blob/{SHA}/index.html#L{line}")
        items = {item.item_id for item in published(scan)}
        assert items == {findings.as_discovery(done, finding).item_id for finding in found[:3]}
        told = [json.loads(letter.body) for letter in sqs.letters]
        assert [event["event"] for event in told] == ["finding.opened", "scan.completed"]
        assert [{*event["subjects"]} for event in told] == [items, {scan.scan_id}]
        assert "activeRequestId" not in stored_repository(repository)
        coverage = done.coverage
        assert (coverage.files, coverage.analyzed_files, sum(coverage.skipped.values())) == (3, 1, 2)
        assert coverage.skipped_examples.keys() == coverage.skipped.keys()


class TestFailed:
    @pytest.mark.parametrize(
        ("host", "code"),
        [
            (FakeHost(failures=[errors.RepositoryGone()]), "REPOSITORY_GONE"),
            (FakeHost(failures=[errors.AccessLost()]), "ACCESS_LOST"),
            (FakeHost(failures=[errors.CommitGone()]), "COMMIT_GONE"),
            (FakeHost(archives={SHA: archive({"a.js": "1" * 9_000})[:-50]}), "ARCHIVE_INVALID"),
        ],
        ids=["repository", "access", "commit", "half an archive"],
    )
    def test_a_permanent_error_of_the_code_host_ends_the_scan(self, host, code, scan, repository, sqs):
        ended = execute(sqs, scan, host)
        assert (ended.status, ended.failure and ended.failure.code) == ("failed", code)
        assert ended.progress == Progress("fetch", "failed", 0)
        assert "activeRequestId" not in stored_repository(repository)
        assert sqs.letters == []

    def test_a_scan_fails_after_the_last_attempt(self, scan, repository, sqs, now):
        letter = send(sqs, ExecuteScan(scan_id=scan.scan_id))
        host = FakeHost(failures=[errors.HostUnavailable() for _ in range(9)])
        for attempt in range(MAX_ATTEMPTS):
            assert reads.get_scan(scan.scan_id).status in {"queued", "running"}, attempt
            deliver(sqs, letter, host)
            now.advance(1_000)
        ended = reads.get_scan(scan.scan_id)
        assert (ended.status, ended.failure and ended.failure.code) == ("failed", "CODE_HOST_UNAVAILABLE")
        assert len(sqs.at(QUEUE.dead_letters_url)) == 1
        assert "activeRequestId" not in stored_repository(repository)

    def test_a_rate_limit_of_the_code_host_delays_all_scans_of_the_installation(self, scan, sqs, now):
        host = FakeHost(archives={SHA: archive(FILES)}, failures=[errors.RateLimitedByHost(3_000)])
        for _ in range(MAX_ATTEMPTS + 1):
            assert execute(sqs, scan, host).status in {"queued", "running"}
        assert host.failures == []
        now.advance(3_001)
        assert execute(sqs, scan, host).status == "completed"


class TestDelivery:
    def test_of_an_ended_or_unknown_scan_changes_nothing(self, scan, sqs):
        run(sqs, scan)
        sqs.letters.clear()
        before = table_dump()
        unknown = "scn_" + "0" * 34
        for message in (ExecuteScan(scan_id=scan.scan_id), ExecuteScan(scan_id=unknown), PublishScan(scan_id=unknown)):
            deliver(sqs, send(sqs, message), FakeHost())
        assert (table_dump(), sqs.letters) == (before, [])

    def test_of_an_empty_repository_finds_nothing_and_of_a_disconnected_one_is_left_to_its_deletion(
        self, scan, repository, sqs
    ):
        done = run(sqs, scan, {})
        assert (done.status, done.finding_count, done.issue_count, done.unlock_credits) == ("completed", 0, 0, 0)
        sqs.letters.clear()
        late = make_scan(repository, status="queued")
        repositories.disconnect_repository(repository.repository_id)
        run(sqs, late)
        assert sqs.letters == []

    def test_a_worker_that_lost_its_lease_writes_nothing_that_counts(self, scan, sqs, now):
        def overtake() -> None:
            now.advance(421)
            run(sqs, scan)

        ended = execute(sqs, scan, Interrupted(overtake))
        assert (ended.status, ended.findings_attempt) == ("completed", 2)
        assert len(found_by(ended)) == ended.issue_count
        assert findings.list_findings(scan.scan_id, 1, 500) == []

    def test_after_a_crash_completes_the_scan_and_removes_earlier_findings(self, scan, sqs, now):
        letter = send(sqs, ExecuteScan(scan_id=scan.scan_id))

        def die() -> None:
            raise Aborted

        with pytest.raises(Aborted):
            deliver(sqs, letter, Interrupted(die))
        findings.put_findings(scan.scan_id, 1, [make_issue(number) for number in range(30)])
        now.advance(2_520)
        deliver(sqs, letter, FakeHost(archives={SHA: archive(FILES)}))
        ended = reads.get_scan(scan.scan_id)
        assert (ended.status, ended.findings_attempt) == ("completed", 2)
        assert findings.list_findings(scan.scan_id, 1, 500) == []

    def test_any_number_of_findings_and_histories_is_stored_and_removed(self, repository):
        scan = make_scan(repository, status="running")
        found = [make_issue(number) for number in range(1, 251)]
        history.put_history(lease_of(scan), [history_of(scan, issue) for issue in found])
        assert len(history.list_history(repository.repository_id)) == 250
        for attempt in (1, 2, 3):
            findings.put_findings(scan.scan_id, attempt, found)
        findings.delete_attempts_before(scan.scan_id, 3)
        assert [len(findings.list_findings(scan.scan_id, attempt, 500)) for attempt in (1, 2, 3)] == [0, 0, 250]

    def test_a_scan_is_attempted_four_times_each_once_the_lease_before_has_ended(self, scan, now):
        with pytest.raises(leases.LeaseLost):  # attempts are left
            failures.fail_attempted(scan.scan_id, Failure("X", "x"), None)
        for attempt in range(1, 5):
            lease, _ = execution.acquire_scan(scan.scan_id, 420)
            assert (lease.attempt, lease.last) == (attempt, attempt == 4)
            now.advance(419)
            with pytest.raises(leases.Held) as held:
                execution.acquire_scan(scan.scan_id, 420)
            assert held.value.seconds == 1
            now.advance(1)
        before = table_dump()
        with pytest.raises(leases.Exhausted):
            execution.acquire_scan(scan.scan_id, 420)
        with pytest.raises(leases.Finished):
            requests.acquire_request(ScanRequestId.of(scan.organization_id, scan.scan_id.local), 30)
        assert table_dump() == before
