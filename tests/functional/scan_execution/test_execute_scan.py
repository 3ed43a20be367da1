"""The worker that runs scans: stages, findings, the inbox, and a final status for every scan, whatever fails."""

import json
import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from controlplane.code_host import repositories
from controlplane.code_host.github import errors
from controlplane.code_host.items import Link, RepositoryItem
from controlplane.findings import inbox
from controlplane.findings.items import InboxItem
from controlplane.findings.status_history import Status
from controlplane.platform.core import ids
from controlplane.platform.core.ids import ScanId
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import ExecuteScan, PublishScan, Queue
from controlplane.platform.queues.worker import create_worker
from controlplane.platform.table import leases
from controlplane.platform.table.leases import MAX_ATTEMPTS
from controlplane.scans import execution, failures, findings, history, reads, requests
from controlplane.scans.items import Failure, ScanItem
from controlplane.scans.progress import Coverage, Progress
from openassent_analysis.sandbox import Sandbox
from scan_execution.messages import ACCEPTED, ScanMessage
from scan_execution.service import execute_scan, publish_scan
from tests.support.api import Api
from tests.support.audits import history_of, lease_of, make_issue, make_scan, stored_repository
from tests.support.code_host import SHA, FakeHost, archive
from tests.support.sqs import FakeSqs, Handler, SqsMessage
from tests.support.world import World, table_dump

QUEUE = Queue.SCAN_EXECUTION
TRACKERS = "".join(
    f'<script async src="https://{address}"></script>\n'
    for address in (
        "www.googletagmanager.com/gtag/js?id=G-1234567890",
        "static.hotjar.com/c/hotjar-123456.js",
        "connect.facebook.net/en_US/fbevents.js",
        "snap.licdn.com/li.lms-analytics/insight.min.js",
        "bat.bing.com/bat.js",
    )
)
PAGE = f"<!doctype html>\n<html><head>\n{TRACKERS}</head><body></body></html>\n"
FILES: dict[str, str | bytes] = {"index.html": PAGE, "logo.png": b"\x89PNG", "node_modules/a/index.js": "1"}


def worker(host: FakeHost) -> Handler:
    def take(message: ScanMessage) -> None:
        if message.kind == "execute-scan":
            execute_scan(message, host.connect)
        else:
            publish_scan(message)

    return create_worker(QUEUE, ACCEPTED, take)


def send(sqs: FakeSqs, message: ScanMessage) -> SqsMessage:
    messages.send(QUEUE.value, message.model_dump(by_alias=True))
    return sqs.at(QUEUE.url)[-1]


def deliver(sqs: FakeSqs, letter: SqsMessage, host: FakeHost) -> None:
    sqs.deliver(letter, worker(host), QUEUE.dead_letters_url)


def run(sqs: FakeSqs, scan: ScanItem, files: dict[str, str | bytes] | None = None) -> ScanItem:
    host = FakeHost(archives={SHA: archive(FILES if files is None else files)})
    deliver(sqs, send(sqs, ExecuteScan(scan_id=scan.scan_id)), host)
    return reads.get_scan(scan.scan_id)


def published(scan: ScanItem) -> list[InboxItem]:
    return inbox.list_items(scan.organization_id, None, 100, None).items


@pytest.fixture
def repository(world: World) -> RepositoryItem:
    return world.connected_repository(world.company())


class TestSandbox:
    def test_a_file_that_crashes_the_analysis_is_skipped_with_a_reason_and_the_scan_continues(
        self, repository: RepositoryItem, sqs: FakeSqs, monkeypatch: pytest.MonkeyPatch
    ):
        hostile = partial(Sandbox, entry="tests.support.hostile:start")
        monkeypatch.setattr("scan_execution.service.Sandbox", hostile)
        files = {"attack/open-a-socket.js": "1", "attack/abort.js": "1", **FILES}
        scan = run(sqs, make_scan(repository, status="queued"), files)
        assert scan.status == "completed"
        assert scan.issue_count
        assert scan.coverage is not None
        assert scan.coverage.skipped["crashed the analysis"] == 2

    def test_without_a_closed_sandbox_nothing_is_analyzed_and_the_scan_is_retried(
        self, repository: RepositoryItem, sqs: FakeSqs, monkeypatch: pytest.MonkeyPatch
    ):
        unprotected = partial(Sandbox, entry="tests.support.hostile:start_nothing")
        monkeypatch.setattr("scan_execution.service.Sandbox", unprotected)
        scan = run(sqs, make_scan(repository, status="queued"))
        assert (scan.status, scan.coverage) == ("running", None)
        assert published(scan) == []

    def test_the_source_of_a_killed_attempt_is_removed(
        self, repository: RepositoryItem, sqs: FakeSqs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ):
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        left = tmp_path / "scan-source-abcd1234"
        left.mkdir()
        (left / "secret.py").write_text("another tenant's")
        assert run(sqs, make_scan(repository, status="queued")).status == "completed"
        assert list(tmp_path.iterdir()) == []


class TestCompleted:
    def test_a_preview_stores_all_findings_and_publishes_the_three_most_urgent(
        self, repository: RepositoryItem, sqs: FakeSqs
    ):
        scan = run(sqs, make_scan(repository, status="queued"))
        assert scan.status == "completed"
        assert scan.issue_count is not None
        assert scan.issue_count >= 5
        found = findings.list_findings(scan.scan_id, scan.findings_attempt, 500)
        assert len(found) == scan.issue_count
        assert [finding.priority for finding in found] == sorted(finding.priority for finding in found)
        items = {item.item_id for item in published(scan)}
        assert items == {findings.as_discovery(scan, finding).item_id for finding in found[:3]}
        told = [json.loads(letter.body) for letter in sqs.letters]
        assert [event["event"] for event in told] == ["finding.opened", "scan.completed"]
        assert [{*event["subjects"]} for event in told] == [items, {scan.scan_id}]
        assert "activeRequestId" not in stored_repository(repository)

    def test_a_full_scan_publishes_all_findings_and_a_locked_scan_none(self, repository: RepositoryItem, sqs: FakeSqs):
        full = run(sqs, make_scan(repository, again="full", status="queued"))
        assert len(published(full)) == full.issue_count
        before = published(full)
        locked = run(sqs, make_scan(repository, again="locked", status="queued"), {"a.html": PAGE})
        assert published(locked) == before

    def test_a_permalink_leads_to_the_lines_at_the_scanned_commit(self, repository: RepositoryItem, sqs: FakeSqs):
        scan = run(sqs, make_scan(repository, status="queued"))
        (first, *_) = findings.list_findings(scan.scan_id, scan.findings_attempt, 1)
        line = first.location.start_line
        assert first.location.permalink.startswith(f"{repository.html_url}/blob/{SHA}/index.html#L{line}")

    def test_records_its_coverage(self, repository: RepositoryItem, sqs: FakeSqs):
        coverage = run(sqs, make_scan(repository, status="queued")).coverage
        assert coverage is not None
        assert coverage.files == 3
        assert coverage.analyzed_files == 1
        assert sum(coverage.skipped.values()) == 2

    def test_only_the_linked_folder_is_analyzed(self, repository: RepositoryItem, sqs: FakeSqs):
        link = Link(repository.links[0].project_id, None, "apps/web", False)
        repository = repositories.link_project(repository.repository_id, link)
        scan = run(sqs, make_scan(repository, status="queued"), {"apps/web/a.html": PAGE, "b.html": PAGE})
        found = findings.list_findings(scan.scan_id, scan.findings_attempt, 500)
        assert found
        assert {finding.location.path for finding in found} == {"apps/web/a.html"}

    def test_an_empty_repository_has_no_findings(self, repository: RepositoryItem, sqs: FakeSqs):
        scan = run(sqs, make_scan(repository, status="queued"), {})
        assert (scan.status, scan.finding_count, scan.issue_count) == ("completed", 0, 0)
        assert scan.unlock_credits == 0


class TestAcrossScans:
    def test_findings_keep_their_first_seen_time_and_their_item(self, repository: RepositoryItem, sqs: FakeSqs, now):
        first = run(sqs, make_scan(repository, again="full", status="queued"))
        items = {item.item_id: item.version for item in published(first)}
        now.advance(86_400)
        moved = {"index.html": PAGE.replace("<head>", "<head>\n\n\n<title>Shop</title>")}
        second = run(sqs, make_scan(repository, again="full", status="queued"), moved)
        found = findings.list_findings(second.scan_id, second.findings_attempt, 500)
        assert {finding.first_seen_at for finding in found} == {first.created_at}
        assert {item.item_id: item.version for item in published(second)} == items

    @pytest.mark.parametrize(
        ("decided", "then"),
        [("open", "open"), ("accepted", "accepted"), ("dismissed", "dismissed"), ("resolved", "open")],
    )
    def test_a_dismissed_finding_stays_dismissed_and_a_resolved_one_reopens(
        self, decided: Status, then: str, repository: RepositoryItem, sqs: FakeSqs, now
    ):
        first = run(sqs, make_scan(repository, again="full", status="queued"))
        item = published(first)[0]
        inbox.change_status(item, decided, item.version, "usr_0000000000000000", None)
        now.advance(60)
        run(sqs, make_scan(repository, again="full", status="queued"))
        assert inbox.get_item(item.item_id).status == then

    def test_a_finding_resolved_during_the_scan_stays_resolved(self, repository: RepositoryItem, sqs: FakeSqs, now):
        item = published(run(sqs, make_scan(repository, again="full", status="queued")))[0]
        now.advance(60)
        scan = make_scan(repository, again="full", status="queued")
        now.advance(60)
        inbox.change_status(inbox.get_item(item.item_id), "resolved", item.version, "usr_0000000000000000", None)
        run(sqs, scan)
        assert inbox.get_item(item.item_id).status == "resolved"


class TestUnlocked:
    def test_unlocked_findings_are_published_once(
        self, repository: RepositoryItem, sqs: FakeSqs, api: Api, world: World
    ):
        scan = run(sqs, make_scan(repository, status="queued"))
        (owner_token,) = [world.token(_owner(repository))]
        world_credits(repository)
        assert api.post(f"/v1/code-audit/scans/{scan.scan_id}/unlock", owner_token).status == 200
        (letter,) = sqs.at(QUEUE.url)
        deliver(sqs, letter, FakeHost())
        assert len(published(scan)) == scan.issue_count
        before = table_dump()
        deliver(sqs, send(sqs, PublishScan(scan_id=scan.scan_id)), FakeHost())
        assert table_dump() == before


def _owner(repository: RepositoryItem) -> str:
    from controlplane.organizations import members

    return members.list_members(repository.organization_id, 1, None).members[0].user_id


def world_credits(repository: RepositoryItem) -> None:
    from controlplane.billing import store as billing

    billing.add_credits(repository.organization_id, 50)


class TestFailed:
    @pytest.mark.parametrize(
        ("failure", "code"),
        [
            (errors.RepositoryGone(), "REPOSITORY_GONE"),
            (errors.AccessLost(), "ACCESS_LOST"),
            (errors.CommitGone(), "COMMIT_GONE"),
        ],
        ids=lambda value: value if isinstance(value, str) else type(value).__name__,
    )
    def test_on_a_permanent_error_of_the_code_host(
        self, failure: Exception, code: str, repository: RepositoryItem, sqs: FakeSqs
    ):
        scan = make_scan(repository, status="queued")
        deliver(sqs, send(sqs, ExecuteScan(scan_id=scan.scan_id)), FakeHost(failures=[failure]))
        ended = reads.get_scan(scan.scan_id)
        assert (ended.status, ended.failure and ended.failure.code) == ("failed", code)
        assert ended.progress == Progress("fetch", "failed", 0)
        assert "activeRequestId" not in stored_repository(repository)
        assert sqs.letters == []

    @pytest.mark.parametrize("content", [b"", b"not gzip", archive({"a.js": "1" * 9_000})[:-50]])
    def test_on_an_invalid_archive(self, content: bytes, repository: RepositoryItem, sqs: FakeSqs):
        scan = make_scan(repository, status="queued")
        host = FakeHost(archives={SHA: content})
        deliver(sqs, send(sqs, ExecuteScan(scan_id=scan.scan_id)), host)
        ended = reads.get_scan(scan.scan_id)
        assert ended.failure is not None
        assert ended.failure.code == "ARCHIVE_INVALID"

    def test_a_scan_of_a_disconnected_repository_is_left_to_its_deletion(
        self, repository: RepositoryItem, sqs: FakeSqs
    ):
        scan = make_scan(repository, status="queued")
        repositories.disconnect_repository(repository.repository_id)
        run(sqs, scan)
        assert sqs.letters == []

    def test_a_scan_fails_after_the_last_attempt(self, repository: RepositoryItem, sqs: FakeSqs, now):
        scan = make_scan(repository, status="queued")
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


class TestPostponed:
    def test_a_rate_limit_of_the_code_host_delays_all_scans_of_the_installation(
        self, repository: RepositoryItem, sqs: FakeSqs, now
    ):
        scan = make_scan(repository, status="queued")
        host = FakeHost(archives={SHA: archive(FILES)}, failures=[errors.RateLimitedByHost(3_000)])
        for _ in range(MAX_ATTEMPTS + 1):
            deliver(sqs, send(sqs, ExecuteScan(scan_id=scan.scan_id)), host)
        assert host.failures == []
        assert reads.get_scan(scan.scan_id).status in {"queued", "running"}
        now.advance(3_001)
        deliver(sqs, send(sqs, ExecuteScan(scan_id=scan.scan_id)), host)
        assert reads.get_scan(scan.scan_id).status == "completed"


class _Killed(BaseException):
    """No handler catches it, just as none can catch the death of a process."""


class _Host(FakeHost):
    """Runs a callback when it is asked for the archive."""

    def __init__(self, on_download: Any) -> None:
        super().__init__(archives={SHA: archive(FILES)})
        self._on_download = on_download

    def stream_tarball(self, *names: Any, **options: Any) -> Any:
        self._on_download()
        return super().stream_tarball(*names, **options)


class TestDelivery:
    def test_after_the_scan_has_ended_changes_nothing(self, repository: RepositoryItem, sqs: FakeSqs):
        scan = run(sqs, make_scan(repository, status="queued"))
        before = table_dump()
        deliver(sqs, send(sqs, ExecuteScan(scan_id=scan.scan_id)), FakeHost())
        assert table_dump() == before

    def test_of_an_unknown_scan_changes_nothing(self, sqs: FakeSqs, world: World):
        before = table_dump()
        for message in (ExecuteScan, PublishScan):
            deliver(sqs, send(sqs, message(scan_id="scn_" + "0" * 34)), FakeHost())
        assert table_dump() == before
        assert sqs.letters == []

    def test_a_worker_that_lost_its_lease_writes_nothing_that_counts(
        self, repository: RepositoryItem, sqs: FakeSqs, now
    ):
        scan = make_scan(repository, status="queued")
        good = FakeHost(archives={SHA: archive(FILES)})

        def overtake() -> None:
            now.advance(421)
            deliver(sqs, send(sqs, ExecuteScan(scan_id=scan.scan_id)), good)

        deliver(sqs, send(sqs, ExecuteScan(scan_id=scan.scan_id)), _Host(overtake))
        ended = reads.get_scan(scan.scan_id)
        assert (ended.status, ended.findings_attempt) == ("completed", 2)
        assert len(findings.list_findings(scan.scan_id, 2, 500)) == ended.issue_count
        assert findings.list_findings(scan.scan_id, 1, 500) == []

    def test_after_a_crash_completes_the_scan_and_removes_earlier_findings(
        self, repository: RepositoryItem, sqs: FakeSqs, now, tmp_path: Path
    ):
        scan = make_scan(repository, status="queued")
        letter = send(sqs, ExecuteScan(scan_id=scan.scan_id))

        def die() -> None:
            raise _Killed

        with pytest.raises(_Killed):
            deliver(sqs, letter, _Host(die))
        findings.put_findings(scan.scan_id, 1, [make_issue(number) for number in range(30)])
        now.advance(2_520)
        deliver(sqs, letter, FakeHost(archives={SHA: archive(FILES)}))
        ended = reads.get_scan(scan.scan_id)
        assert (ended.status, ended.findings_attempt) == ("completed", 2)
        assert findings.list_findings(scan.scan_id, 1, 500) == []

    def test_any_number_of_findings_and_histories_is_stored_and_removed(self, repository: RepositoryItem):
        scan = make_scan(repository, status="running")
        found = [make_issue(number) for number in range(1, 251)]
        history.put_history(lease_of(scan), [history_of(scan, issue) for issue in found])
        assert len(history.list_history(repository.repository_id)) == 250
        for attempt in (1, 2, 3):
            findings.put_findings(scan.scan_id, attempt, found)
        findings.delete_attempts_before(scan.scan_id, 3)
        assert [len(findings.list_findings(scan.scan_id, attempt, 500)) for attempt in (1, 2, 3)] == [0, 0, 250]

    def test_a_stale_lease_can_neither_report_nor_finish(self, repository: RepositoryItem, now):
        scan = make_scan(repository, status="queued")
        stale, _ = execution.acquire_scan(scan.scan_id, 420)
        now.advance(421)
        execution.acquire_scan(scan.scan_id, 420)
        before = table_dump()
        deleted = ScanId.of(repository.organization_id, ids.new_local())
        for late in (
            lambda: failures.fail_attempted(deleted, Failure("X", "x"), None),
            lambda: execution.report_stage(stale, "publish", "completed"),
            lambda: execution.complete_scan(scan, stale, 1, 1, Coverage(1, 1, {})),
            lambda: failures.fail_attempted(scan.scan_id, Failure("X", "x"), stale),
            lambda: failures.fail_attempted(scan.scan_id, Failure("X", "x"), None),  # two attempts are left
        ):
            with pytest.raises(leases.LeaseLost):
                late()
        assert table_dump() == before

    def test_a_scan_is_attempted_four_times_each_once_the_lease_before_has_ended(self, repository: RepositoryItem, now):
        scan = make_scan(repository, status="queued")
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
            requests.acquire_request(requests.new_request_id(repository.organization_id), 30)
        assert table_dump() == before

    def test_leaves_no_files_on_disk(
        self, repository: RepositoryItem, sqs: FakeSqs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        import tempfile

        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        run(sqs, make_scan(repository, status="queued"))
        assert shutil.disk_usage(tmp_path)
        assert list(tmp_path.iterdir()) == []
