"""The worker that turns a request into a scan: the scanned commit, its access level, and every request's outcome."""

import re
from typing import Any

import pytest

from controlplane.github import errors
from controlplane.queues import messages
from controlplane.queues.messages import PrepareScan, Queue
from controlplane.store import deletions, outbox, projects, repositories
from controlplane.store.leases import MAX_ATTEMPTS
from controlplane.store.repository_items import Link, RepositoryItem
from controlplane.store.scans import reads, requests
from controlplane.store.scans.items import RequestItem
from tests.support.audits import describe, make_request, make_scan, preparation_worker, serving, stored_repository
from tests.support.code_host import SHA, FakeHost
from tests.support.each import each
from tests.support.sqs import FakeSqs, SqsMessage
from tests.support.sweeping import swept
from tests.support.world import World, table_dump

QUEUE = Queue.SCAN_PREPARATION


def send(sqs: FakeSqs, request_id: str) -> SqsMessage:
    messages.send(QUEUE.value, PrepareScan(request_id=request_id).model_dump(by_alias=True))
    return sqs.at(QUEUE.url)[-1]


def deliver(sqs: FakeSqs, letter: SqsMessage, host: FakeHost) -> None:
    sqs.deliver(letter, preparation_worker(host), QUEUE.dead_letters_url)


def prepare(sqs: FakeSqs, repository: RepositoryItem, host: FakeHost) -> RequestItem:
    request_id = make_request(repositories.get_repository(repository.repository_id))
    deliver(sqs, send(sqs, request_id), host)
    return reads.get_request(request_id)


def reason(letter: SqsMessage) -> str:
    return str(letter.attributes["reason"]["StringValue"])


class TestScan:
    def test_is_created_for_the_head_of_the_default_branch_and_enqueued(self, world: World, sqs: FakeSqs):
        repository = world.connected_repository(world.company())
        host = serving(repository)
        request = prepare(sqs, repository, host)
        assert request.status == "started"
        scan = reads.get_scan(request.scan_id or "")
        assert (scan.branch, scan.head_commit_sha, scan.status) == ("main", SHA, "queued")
        assert scan.project_id == repository.links[0].project_id
        assert host.installations == [4711]
        (letter,) = sqs.at(Queue.SCAN_EXECUTION.url)
        assert letter.body == f'{{"version": 1, "kind": "execute-scan", "scanId": "{scan.scan_id}"}}'
        assert sqs.at(QUEUE.url) == []

    def test_uses_the_links_production_branch_and_folder(self, world: World, sqs: FakeSqs):
        repository = world.connected_repository(world.company())
        link = Link(repository.links[0].project_id, "release", "apps/web", False)
        repository = repositories.link_project(repository.repository_id, link)
        request = prepare(sqs, repository, serving(repository, branch="release"))
        scan = reads.get_scan(request.scan_id or "")
        assert (scan.branch, scan.root_directory) == ("release", "apps/web")

    @pytest.mark.parametrize("plan", ["free", "starter", "pro", "enterprise"])
    def test_the_first_is_a_free_preview_on_every_plan_and_the_second_depends_on_the_plan(
        self, plan: str, world: World, sqs: FakeSqs
    ):
        repository = world.connected_repository(world.company(plan))
        first = make_scan(repository)
        assert first.access == "free-preview"
        request = prepare(sqs, repository, serving(repository))
        second = reads.get_scan(request.scan_id or "")
        assert second.access == ("full" if plan in {"pro", "enterprise"} else "locked")
        assert second.unlock_credits == (None if plan in {"pro", "enterprise"} else 50)

    def test_a_failed_preview_is_restored(self, world: World, sqs: FakeSqs):
        repository = world.connected_repository(world.company())
        assert make_scan(repository, status="failed").access == "free-preview"
        request = prepare(sqs, repository, serving(repository))
        assert reads.get_scan(request.scan_id or "").access == "free-preview"


class TestRequestEndsAsFailed:
    @pytest.mark.parametrize(
        ("failure", "code"),
        [
            (errors.RepositoryGone(), "REPOSITORY_GONE"),
            (errors.AccessLost(), "ACCESS_LOST"),
            (errors.BranchGone(), "BRANCH_GONE"),
            (errors.Refused(451), "CODE_HOST_REFUSED"),
            (errors.InvalidName("branch"), "REPOSITORY_GONE"),
        ],
        ids=lambda value: value if isinstance(value, str) else type(value).__name__,
    )
    def test_on_a_permanent_error_of_the_code_host(self, failure: Exception, code: str, world: World, sqs: FakeSqs):
        repository = world.connected_repository(world.company())
        request = prepare(sqs, repository, FakeHost(failures=[failure]))
        assert (request.status, request.failure and request.failure.code) == ("failed", code)
        assert sqs.letters == []
        assert "activeRequestId" not in stored_repository(repository)

    def test_if_the_project_was_deleted_or_unlinked(self, world: World, sqs: FakeSqs):
        company = world.company()
        for lose in (_delete_project, _unlink):
            repository = world.connected_repository(company)
            request_id = make_request(repository)
            lose(repository)
            deliver(sqs, send(sqs, request_id), serving(repository))
            request = reads.get_request(request_id)
            assert request.failure is not None
            assert request.failure.code == "REPOSITORY_NOT_LINKED"

    def test_is_left_to_the_deletion_of_the_repository_or_the_organization(self, world: World, sqs: FakeSqs):
        for lose in (
            lambda it: repositories.disconnect_repository(it.repository_id),
            lambda it: deletions.delete_organization(it.organization_id),
        ):
            repository = world.connected_repository(world.company())
            letter = send(sqs, make_request(repository))
            lose(repository)
            host = serving(repository)
            deliver(sqs, letter, host)
            assert (sqs.letters, host.asked) == ([], [])

    def test_if_the_repository_has_no_commit_yet(self, world: World, sqs: FakeSqs):
        repository = world.connected_repository(world.company())
        describe(repository, default_branch=None)
        host = serving(repository)
        request = prepare(sqs, repository, host)
        assert (request.status, request.failure and request.failure.code) == ("failed", "BRANCH_GONE")
        assert host.asked == []


def _delete_project(repository: RepositoryItem) -> None:
    projects.delete_project(projects.get_project(repository.links[0].project_id))


def _unlink(repository: RepositoryItem) -> None:
    repositories.unlink_project(repository.repository_id, repository.links[0].project_id)


class TestTransientFailure:
    def test_a_rate_limit_postpones_all_scans_of_the_installation_without_attempts(self, world: World, sqs, now):
        company = world.company()
        first, second = (make_request(world.connected_repository(company)) for _ in range(2))
        repository = repositories.get_repository(reads.get_request(first).repository_id)
        host = serving(repository)
        host.failures = [errors.RateLimitedByHost(3_000)]
        deliver(sqs, send(sqs, first), host)
        for _ in range(MAX_ATTEMPTS + 1):  # an operator redrives it, or it is a duplicate
            deliver(sqs, send(sqs, first), host)
            deliver(sqs, send(sqs, second), host)
        assert len(host.asked) == 1
        assert reads.get_request(first).status == "starting"
        assert reads.get_request(first).lease.attempts == 0
        assert sqs.letters == []
        now.advance(2_999)
        assert swept(messages.resend) == 2  # those that came with the requests
        sqs.letters.clear()
        now.advance(2)
        assert swept(messages.resend) > 0
        for letter in sqs.due(QUEUE.url):
            deliver(sqs, letter, host)
        assert reads.get_request(first).status == "started"

    @each(
        ("failure", "seconds"),
        [
            (errors.HostUnavailable(), 30),
            (errors.AppKeyUnreadable(), 300),
            (errors.AppNotConfigured(), 300),
            (errors.Refused(401), 300),
        ],
        ids=repr,
    )
    def test_the_message_is_redelivered_and_another_one_can_do_the_work_at_once(
        self, failure: Exception, seconds: int, world: World, sqs: FakeSqs, now
    ):
        repository = world.connected_repository(world.company())
        request_id = make_request(repository)
        host = serving(repository)
        host.failures = [failure]
        letter = send(sqs, request_id)
        deliver(sqs, letter, host)
        assert letter.visible_at == now() + seconds
        deliver(sqs, send(sqs, request_id), host)
        assert reads.get_request(request_id).status == "started"

    def test_after_the_last_attempt_the_request_fails_and_the_message_is_kept_with_its_reason(
        self, world: World, sqs: FakeSqs, now
    ):
        repository = world.connected_repository(world.company())
        request_id = make_request(repository)
        letter = send(sqs, request_id)
        host = FakeHost(failures=[errors.HostUnavailable() for _ in range(9)])
        for _ in range(MAX_ATTEMPTS):
            deliver(sqs, letter, host)
            now.advance(1_000)
        request = reads.get_request(request_id)
        assert request.failure is not None
        assert request.failure.code == "CODE_HOST_UNAVAILABLE"
        (dead,) = sqs.at(QUEUE.dead_letters_url)
        assert reason(dead) == "code host unavailable"
        assert "activeRequestId" not in stored_repository(repository)

    def test_an_unexpected_error_ends_the_request_with_the_last_attempt(self, world: World, sqs: FakeSqs, now):
        request_id = make_request(world.connected_repository(world.company()))
        letter = send(sqs, request_id)
        for _ in range(MAX_ATTEMPTS):
            deliver(sqs, letter, FakeHost(failures=[ValueError("a secret")]))
            now.advance(1_000)
        request = reads.get_request(request_id)
        assert (request.status, request.failure and request.failure.code) == ("failed", "INTERNAL_ERROR")
        (dead,) = sqs.at(QUEUE.dead_letters_url)
        assert re.fullmatch(r"ValueError at code_host\.py:\d+ _fail", reason(dead))

    def test_work_that_crashes_its_worker_ends_too(self, world: World, sqs: FakeSqs, now):
        repository = world.connected_repository(world.company())
        request_id = make_request(repository)
        letter = send(sqs, request_id)
        for _ in range(MAX_ATTEMPTS):
            requests.acquire_request(request_id, 30)  # and dies while holding the lease
            letter.receives += 1
            now.advance(180)
        deliver(sqs, letter, serving(repository))
        request = reads.get_request(request_id)
        assert (request.status, request.failure and request.failure.code) == ("failed", "INTERNAL_ERROR")
        (dead,) = sqs.at(QUEUE.dead_letters_url)
        assert reason(dead) == "no attempt came to an end"
        assert "activeRequestId" not in stored_repository(repository)


class TestDelivery:
    def test_twice_creates_one_scan_and_one_message(self, world: World, sqs: FakeSqs):
        repository = world.connected_repository(world.company())
        request_id = make_request(repository)
        first, second = send(sqs, request_id), send(sqs, request_id)
        host = serving(repository)
        deliver(sqs, first, host)
        before = table_dump()
        deliver(sqs, second, host)
        assert table_dump() == before
        assert len(sqs.at(Queue.SCAN_EXECUTION.url)) == 1

    def test_of_leased_work_waits_for_the_lease_to_expire(self, world: World, sqs: FakeSqs, now):
        repository = world.connected_repository(world.company())
        request_id = make_request(repository)
        requests.acquire_request(request_id, 30)
        letter = send(sqs, request_id)
        deliver(sqs, letter, serving(repository))
        assert letter.visible_at == now() + 30
        assert reads.get_request(request_id).status == "starting"

    def test_a_worker_that_lost_its_lease_changes_nothing(self, world: World, sqs: FakeSqs, now):
        repository = world.connected_repository(world.company())
        request_id = make_request(repository)
        host = serving(repository)
        slow = _Slow(host, lambda: (now.advance(31), deliver(sqs, send(sqs, request_id), host)))
        deliver(sqs, send(sqs, request_id), slow)
        made = [item for item in table_dump() if item["sk"]["S"].startswith("SCAN#") and "scanId" in item]
        assert len(made) == 1
        assert len(sqs.at(Queue.SCAN_EXECUTION.url)) == 1

    def test_an_unsent_scan_message_waits_in_the_outbox(self, world: World, sqs: FakeSqs, now):
        repository = world.connected_repository(world.company())
        letter = send(sqs, make_request(repository))
        sqs.broken = True
        deliver(sqs, letter, serving(repository))
        sqs.broken = False
        assert sqs.at(Queue.SCAN_EXECUTION.url) == []
        now.advance(outbox.RESEND_AFTER_SECONDS + 1)
        swept(messages.resend)
        assert len(sqs.at(Queue.SCAN_EXECUTION.url)) == 1

    def test_after_a_crash_repeats_the_attempt(self, world: World, sqs: FakeSqs, now):
        repository = world.connected_repository(world.company())
        request_id = make_request(repository)
        letter = send(sqs, request_id)

        with pytest.raises(_Killed):
            deliver(sqs, letter, _Slow(serving(repository), _kill))
        now.advance(360)
        deliver(sqs, letter, serving(repository))
        assert reads.get_request(request_id).status == "started"


class _Killed(BaseException):
    """No handler catches it, just as none can catch the death of a process."""


def _kill() -> None:
    raise _Killed


class _Slow(FakeHost):
    """Runs a callback when it is asked for the branch."""

    def __init__(self, host: FakeHost, on_read: Any) -> None:
        super().__init__(host.heads, host.archives)
        self._on_read = on_read

    def get_branch_head(self, owner: str, name: str, branch: str) -> str:
        self._on_read()
        return super().get_branch_head(owner, name, branch)
