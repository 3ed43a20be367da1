"""The worker that turns a request into a scan: the scanned commit, its access level, and every request's outcome."""

import re
from functools import cached_property

import pytest

from controlplane.code_host import repositories
from controlplane.code_host.github import errors
from controlplane.code_host.items import Link
from controlplane.erasure import deletions
from controlplane.platform.core.ids import ScanRequestId
from controlplane.platform.queues import messages, outbox
from controlplane.platform.queues.messages import PrepareScan, Queue
from controlplane.platform.table.leases import MAX_ATTEMPTS
from controlplane.projects import store as projects
from controlplane.scans import failures, reads, requests
from controlplane.scans.items import RequestItem, ScanItem
from tests.support.audits import describe, make_request, make_scan, preparation_worker, serving, stored_repository
from tests.support.cleanup import swept
from tests.support.code_host import SHA, FakeHost
from tests.support.sqs import FakeSqs, SqsMessage
from tests.support.world import Company, World, table_dump

QUEUE, SCANS = Queue.SCAN_PREPARATION, Queue.SCAN_EXECUTION.url


class Line:
    """A repository, the request for its scan, and the code host that the worker asks."""

    def __init__(self, world: World, sqs: FakeSqs, company: Company | None = None) -> None:
        self.sqs = sqs
        self.repository = world.connected_repository(company or world.company())
        self.host = serving(self.repository)

    @cached_property
    def request_id(self) -> ScanRequestId:
        return make_request(repositories.get_repository(self.repository.repository_id))

    def send(self) -> SqsMessage:
        messages.send(QUEUE.value, PrepareScan(request_id=self.request_id).model_dump(by_alias=True))
        return self.sqs.at(QUEUE.url)[-1]

    def deliver(self, letter: SqsMessage | None = None, host: FakeHost | None = None) -> None:
        """Delivers the message, by default a new one."""
        self.sqs.deliver(letter or self.send(), preparation_worker(host or self.host), QUEUE.dead_letters_url)

    @property
    def request(self) -> RequestItem:
        return reads.get_request(self.request_id)

    @property
    def scan(self) -> ScanItem:
        return reads.get_scan(self.request.scan_id or "")

    def check_failed(self, code: str) -> None:
        request = self.request
        assert (request.status, request.failure and request.failure.code) == ("failed", code)
        assert "activeRequestId" not in stored_repository(self.repository)


@pytest.fixture
def line(world: World, sqs: FakeSqs) -> Line:
    return Line(world, sqs)


class TestScan:
    def test_is_created_for_the_head_of_the_default_branch_and_enqueued_once(self, line):
        second = line.send()
        line.deliver()
        scan = line.scan
        assert (line.request.status, scan.status) == ("started", "queued")
        assert (scan.branch, scan.head_commit_sha) == ("main", SHA)
        assert (scan.project_id, line.host.installations) == (line.repository.links[0].project_id, [4711])
        (letter,) = line.sqs.at(SCANS)
        assert letter.body == f'{{"version": 1, "kind": "execute-scan", "scanId": "{scan.scan_id}"}}'
        before = table_dump()
        line.deliver(second)
        assert (table_dump(), line.sqs.letters) == (before, [letter])

    def test_uses_the_links_production_branch_and_folder(self, line):
        link = Link(line.repository.links[0].project_id, "release", "apps/web", False)
        repositories.link_project(line.repository.repository_id, link)
        line.host = serving(line.repository, branch="release")
        line.deliver()
        assert (line.scan.branch, line.scan.root_directory) == ("release", "apps/web")

    @pytest.mark.parametrize(
        ("plan", "access", "price"),
        [
            ("free", "free-preview", 50),
            ("starter", "free-preview", 50),
            ("pro", "full", None),
            ("enterprise", "full", None),
        ],
    )
    def test_the_first_completed_one_is_a_free_preview_and_the_next_depends_on_the_plan(
        self, plan, access, price, world, sqs
    ):
        line = Line(world, sqs, world.company(plan))
        for status in ("failed", "queued", "completed"):
            scan = make_scan(line.repository, status=status)
            assert scan.access == "free-preview"
            if status == "queued":
                failures.cancel_scan(scan)
        line.deliver()
        assert (line.scan.access, line.scan.unlock_credits) == (access, price)


class TestRequestEndsAsFailed:
    def test_on_a_permanent_error_of_the_code_host(self, world, sqs):
        for failure, code in (
            (errors.RepositoryGone(), "REPOSITORY_GONE"),
            (errors.AccessLost(), "ACCESS_LOST"),
            (errors.BranchGone(), "BRANCH_GONE"),
            (errors.Refused(451), "CODE_HOST_REFUSED"),
            (errors.InvalidName("branch"), "REPOSITORY_GONE"),
        ):
            line = Line(world, sqs)
            line.host.failures = [failure]
            line.deliver()
            line.check_failed(code)
            assert sqs.letters == []

    def test_if_the_project_was_deleted_or_unlinked(self, world, sqs):
        deleted, unlinked = Line(world, sqs), Line(world, sqs)
        letters = [line.send() for line in (deleted, unlinked)]
        projects.delete_project(projects.get_project(deleted.repository.links[0].project_id))
        repositories.unlink_project(unlinked.repository.repository_id, unlinked.repository.links[0].project_id)
        for line, letter in zip((deleted, unlinked), letters, strict=True):
            line.deliver(letter)
            line.check_failed("REPOSITORY_NOT_LINKED")

    def test_unless_it_is_left_to_a_deletion(self, world, sqs):
        disconnected, deleted = Line(world, sqs), Line(world, sqs)
        letters = [line.send() for line in (disconnected, deleted)]
        repositories.disconnect_repository(disconnected.repository.repository_id)
        deletions.delete_organization(deleted.repository.organization_id)
        for line, letter in zip((disconnected, deleted), letters, strict=True):
            line.deliver(letter)
            assert line.host.asked == []
        assert sqs.letters == []

    def test_if_the_repository_has_no_commit_yet(self, line):
        describe(line.repository, default_branch=None)
        line.deliver()
        line.check_failed("BRANCH_GONE")
        assert line.host.asked == []


class TestTransientFailure:
    def test_a_rate_limit_postpones_all_scans_of_the_installation_without_attempts(self, world, sqs, now):
        company = world.company()
        line, other = Line(world, sqs, company), Line(world, sqs, company)
        line.host.failures, other.host = [errors.RateLimitedByHost(3_000)], line.host
        assert other.request_id
        for _ in range(MAX_ATTEMPTS + 2):  # an operator redrives it, or it is a duplicate
            line.deliver()
            other.deliver()
        assert (len(line.host.asked), line.request.status, line.request.lease.attempts) == (1, "starting", 0)
        assert sqs.letters == []
        now.advance(2_999)
        assert swept(messages.resend) == 2  # those that came with the requests
        sqs.letters.clear()
        now.advance(2)
        assert swept(messages.resend) > 0
        for letter in sqs.due(QUEUE.url):
            line.deliver(letter)
        assert line.request.status == "started"

    def test_the_message_is_redelivered_and_another_one_can_do_the_work_at_once(self, world, sqs, now):
        for failure, seconds in (
            (errors.HostUnavailable(), 30),
            (errors.AppKeyUnreadable(), 300),
            (errors.AppNotConfigured(), 300),
            (errors.Refused(401), 300),
        ):
            line = Line(world, sqs)
            line.host.failures = [failure]
            letter = line.send()
            line.deliver(letter)
            assert letter.visible_at == now() + seconds
            line.deliver()
            assert line.request.status == "started"

    @pytest.mark.parametrize(
        ("failure", "code", "reason"),
        [
            (errors.HostUnavailable(), "CODE_HOST_UNAVAILABLE", "code host unavailable"),
            (ValueError("a secret"), "INTERNAL_ERROR", r"ValueError at code_host\.py:\d+ _fail"),
            (None, "INTERNAL_ERROR", "no attempt came to an end"),
        ],
        ids=["code host", "unexpected", "crash"],
    )
    def test_after_the_last_attempt_the_request_fails_and_the_message_is_kept_with_its_reason(
        self, failure, code, reason, line, now
    ):
        letter = line.send()
        for _ in range(MAX_ATTEMPTS):
            if failure:
                line.deliver(letter, FakeHost(failures=[failure]))
            else:
                requests.acquire_request(line.request_id, 30)  # and dies while holding the lease
                letter.receives += 1
            now.advance(1_000)
        if not failure:
            line.deliver(letter)
        line.check_failed(code)
        (dead,) = line.sqs.at(QUEUE.dead_letters_url)
        assert re.fullmatch(reason, dead.attributes["reason"]["StringValue"])


class TestDelivery:
    def test_of_leased_work_waits_for_the_lease_to_expire(self, line, now):
        letter = line.send()
        requests.acquire_request(line.request_id, 30)
        line.deliver(letter)
        assert (letter.visible_at, line.request.status) == (now() + 30, "starting")

    def test_of_the_scans_message_is_repeated_from_the_outbox(self, line, now):
        letter = line.send()
        line.sqs.broken = True
        line.deliver(letter)
        line.sqs.broken = False
        assert line.sqs.at(SCANS) == []
        now.advance(outbox.RESEND_AFTER_SECONDS + 1)
        swept(messages.resend)
        assert len(line.sqs.at(SCANS)) == 1
