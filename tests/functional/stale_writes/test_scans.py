"""Writes about scans and pull requests."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from controlplane.code_host import pull_requests
from controlplane.code_host.items import RepositoryItem
from controlplane.code_host.pull_requests import PullRequestItem
from controlplane.code_host.repositories import ProjectGone, UnknownRepository
from controlplane.organizations.items import LedgerItem
from controlplane.platform.core import clock
from controlplane.platform.core.ids import ProjectId, RepositoryId, ScanId, ScanRequestId
from controlplane.platform.queues import outbox
from controlplane.platform.table import keys, leases
from controlplane.platform.table.leases import Lease, LeaseLost
from controlplane.platform.table.table import Check, Delete, LegFailed, Put, Update, table
from controlplane.scans import execution, failures, history, queue, reads, requests, unlocks
from controlplane.scans.items import STAGES, Cause, Failure, QueuedScan, RequestItem, ScanItem
from tests.functional.conftest import FakeClock
from tests.functional.stale_writes.cases import ORGANIZATION, Act, Case, Make, Refused, cases, check_refused
from tests.support.audits import end_scan, history_of, lease_of, make_issue, make_request, make_scan
from tests.support.code_host import SHA
from tests.support.table import PREPARED
from tests.support.world import World

PULL_REQUEST = PullRequestItem(
    repository_id=RepositoryId.of(ORGANIZATION, "r1"),
    project_id=ProjectId.of(ORGANIZATION, "p1"),
    number=12,
    head_sha="1f0c",
)


def _scan(
    world: World,
    write: Callable[[ScanItem, Lease], Any],
    earlier: Callable[[ScanItem], Any] = failures.cancel_superseded,
    error: type[Exception] = LeaseLost,
) -> Case:
    """Writes to a scan as its worker does."""
    scan = make_scan(world.connected_repository(world.company()), status="running")
    lease = lease_of(scan)
    return lambda: write(scan, lease), lambda: earlier(scan), error


def stage_of_a_canceled_scan(world: World) -> Case:
    return _scan(world, lambda _, lease: execution.report_stage(lease, STAGES[0], "completed"))


def history_of_a_canceled_scan(world: World) -> Case:
    return _scan(world, lambda scan, lease: history.put_history(lease, [history_of(scan, make_issue())]))


def completed_scan_that_is_acquired(world: World) -> Case:
    def complete(scan: ScanItem) -> None:
        lease = lease_of(scan)
        end_scan(scan)
        leases.release(lease)

    return _scan(world, lambda scan, _: execution.acquire_scan(scan.scan_id, 420), complete, leases.Finished)


def _retry(scan: ScanItem, _: Lease) -> None:
    if not failures._retry(scan, outbox.new_entry("scan-execution", {})):
        raise Refused


def completed_scan_that_is_retried(world: World) -> Case:
    return _scan(world, _retry, end_scan, Refused)


def abandoned_scan_that_its_worker_gives_back(world: World) -> Case:
    return _scan(world, _retry, lambda scan: leases.release(lease_of(scan)), Refused)


def waiting_scan_that_was_attempted_again(world: World) -> Case:
    scan_id = make_scan(world.connected_repository(world.company()), status="running").scan_id
    leases.release(lease_of(reads.get_scan(scan_id)))
    read = reads.get_scan(scan_id)

    def fail() -> None:
        if not failures.fail_abandoned(read):
            raise Refused

    return fail, lambda: leases.release(execution.acquire_scan(scan_id, 420)[0]), Refused


def failed_scan_that_is_completed(world: World) -> Case:
    def fail(scan: ScanItem) -> None:
        table.update(Update(scan.key, "SET #status = :failed", None, {"failed": "failed"}), PREPARED)

    return _scan(world, lambda scan, _: end_scan(scan), fail)


def _unlocked(world: World, change: str, value: object) -> Case:
    """Unlocks a scan."""
    company = world.company("free")
    world.credits(company, 100)
    scan = make_scan(world.connected_repository(company), issues=[make_issue(number) for number in range(1, 6)])

    def unlock() -> None:
        if unlocks.charge(scan, company.owner.user_id, outbox.new_entry("scan-execution", {})) == "already":
            raise Refused

    other = Update(scan.key, change, None, {"value": value})
    return unlock, lambda: table.update(other, PREPARED), Refused


def deleted_scan_that_its_worker_gives_up(world: World) -> Case:
    def give_up(scan: ScanItem, lease: Lease) -> None:
        failures.fail_attempted(scan.scan_id, Failure("REPOSITORY_TOO_LARGE", "Too large."), lease)

    return _scan(world, give_up, lambda scan: table.delete(Delete(scan.key), PREPARED))


def scan_of_a_disconnected_repository_that_is_completed(world: World) -> Case:
    def disconnect(scan: ScanItem) -> None:
        table.delete(Delete(keys.repository(*scan.repository_id.location)), PREPARED)

    return _scan(world, lambda scan, _: end_scan(scan), disconnect)


def _request(world: World, gone: Callable[[RepositoryItem], keys.Key], error: type[Exception]) -> Case:
    """Requests a scan of what another request deletes."""
    repository = world.connected_repository(world.company())
    return lambda: make_request(repository), lambda: table.delete(Delete(gone(repository)), PREPARED), error


def scan_of_a_deleted_project(world: World) -> Case:
    return _request(world, lambda it: keys.project(*it.links[0].project_id.location), ProjectGone)


def scan_of_a_disconnected_repository(world: World) -> Case:
    return _request(world, lambda it: it.key, UnknownRepository)


def queued_scan_that_a_newer_one_replaced(_: World) -> Case:
    repository_id, project_id = PULL_REQUEST.repository_id, PULL_REQUEST.project_id
    queued = QueuedScan.of(repository_id, project_id, Cause("push"))
    queue.enqueue(queued)
    return (
        lambda: table.transact({"queued": queued.taken_leg()}, PREPARED),
        lambda: queue.enqueue(replace(queued, queued_at="2026-03-04T05:06:08.000Z")),
        LegFailed,
    )


def late_finding_that_is_found_again(world: World) -> Case:
    scan = make_scan(world.connected_repository(world.company()))
    read = replace(history_of(scan, make_issue()), gone=history.Absence(scan.scan_id, scan.created_at))
    table.put(Put(read.to_item()), PREPARED)
    same = history._if_unchanged(read.key, read.gone)
    return (
        lambda: table.transact({"history": same}, PREPARED),
        lambda: table.put(Put(replace(read, gone=None).to_item()), PREPARED),
        LegFailed,
    )


def scan_that_was_unlocked(world: World) -> Case:
    return _unlocked(world, "SET #access = :value", "full")


def scan_with_another_price(world: World) -> Case:
    return _unlocked(world, "SET #unlockCredits = :value", 51)


def scan_that_is_no_longer_completed(world: World) -> Case:
    return _unlocked(world, "SET #status = :value", "failed")


def _start(world: World, change: Callable[[RequestItem], Update]) -> Case:
    """Starts the scan of a request."""
    repository = world.connected_repository(world.company())
    lease, request = requests.acquire_request(make_request(repository), 30)
    target = requests.Target(repository, repository.links[0], "main", SHA)
    return (
        lambda: requests.start_scan(request, lease, target, "free-preview"),
        lambda: table.update(change(request), PREPARED),
        LeaseLost,
    )


def failed_request_whose_scan_is_started(world: World) -> Case:
    return _start(world, lambda it: Update(it.key, "SET #status = :failed", None, {"failed": "failed"}))


def freed_repository_whose_scan_is_started(world: World) -> Case:
    return _start(world, lambda it: failures.free_repository(it.repository_id, it.request_id))


def repository_with_another_preview(world: World) -> Case:
    def use(request: RequestItem) -> Update:
        return Update(
            keys.repository(*request.repository_id.location), "SET #previewUsed = :true", None, {"true": True}
        )

    return _start(world, use)


def _pull_request(earlier: ScanRequestId | None, later: ScanRequestId | None, head_sha: str = "1f0c") -> Case:
    """Checks that the scan of a pull request is still the one that was read."""
    item = replace(PULL_REQUEST, request_id=earlier)
    table.put(Put(item.to_item()), PREPARED)
    same = Check(item.key, *pull_requests._as_read(item))
    changed = replace(item, request_id=later, head_sha=head_sha)
    return (
        lambda: table.transact({"pullRequest": same}, PREPARED),
        lambda: table.put(Put(changed.to_item()), PREPARED),
        LegFailed,
    )


def pull_request_with_another_commit(_: World) -> Case:
    return _pull_request(None, None, head_sha="2a1b")


def report_that_another_worker_makes(_: World) -> Case:
    """Records what was reported on a pull request, after the claim has expired."""
    table.put(Put({**PULL_REQUEST.to_item(), "claim": "mine"}), PREPARED)
    other = Update(PULL_REQUEST.key, "SET #claim = :claim", None, {"claim": "other"})
    return (
        lambda: pull_requests.record(PULL_REQUEST.key, "mine", comment="stale"),
        lambda: table.update(other, PREPARED),
        leases.LeaseLost,
    )


def pull_request_whose_scan_was_requested(_: World) -> Case:
    return _pull_request(None, ScanRequestId.of(ORGANIZATION, "q1"))


def pull_request_whose_scan_was_requested_again(_: World) -> Case:
    return _pull_request(ScanRequestId.of(ORGANIZATION, "q1"), ScanRequestId.of(ORGANIZATION, "q2"))


def _deleted_pull_request(write: Act) -> Case:
    table.put(Put(PULL_REQUEST.to_item()), PREPARED)
    return write, lambda: table.delete(Delete(PULL_REQUEST.key), PREPARED), LegFailed


def closed_pull_request_that_was_deleted(_: World) -> Case:
    return _deleted_pull_request(lambda: pull_requests.close(PULL_REQUEST, outbox.new_entry("github-events", {})))


def requested_pull_request_that_was_deleted(_: World) -> Case:
    leg = pull_requests.requested_leg(PULL_REQUEST.key, ScanRequestId.of(ORGANIZATION, "q1"))
    return _deleted_pull_request(lambda: table.transact({"pullRequest": leg}, PREPARED))


def pull_request_whose_scan_was_requested_before_another_starts(_: World) -> Case:
    earlier, later = (ScanRequestId.of(ORGANIZATION, name) for name in ("q1", "q2"))
    table.put(Put(replace(PULL_REQUEST, request_id=earlier).to_item()), PREPARED)
    leg = pull_requests.started_leg(PULL_REQUEST.key, earlier, ScanId.of(ORGANIZATION, "s1"), "2a1b")
    return (
        lambda: table.transact({"pullRequest": leg}, PREPARED),
        lambda: table.update(pull_requests.requested_leg(PULL_REQUEST.key, later), PREPARED),
        LegFailed,
    )


def scan_that_was_charged(_: World) -> Case:
    key = keys.ledger_of_scan(ORGANIZATION, "s1")
    charged = LedgerItem(key=key, kind="unlock", credits=-50, at=clock.timestamp()).leg

    def charge() -> None:
        table.transact({"ledger": charged}, PREPARED)

    return charge, charge, LegFailed


@pytest.mark.parametrize("make", cases(globals()), ids=lambda make: make.__name__)
def test_an_outdated_write_is_refused_and_changes_nothing(make: Make, world: World):
    check_refused(make, world)


def test_the_scan_of_a_deleted_project_ends_though_a_worker_has_begun_it_since(world: World):
    read = make_scan(world.connected_repository(world.company()), status="queued")
    execution.acquire_scan(read.scan_id, 420)
    ended = failures.fail_deleted(read)
    assert (ended.status, reads.get_scan(read.scan_id).status) == ("failed", "failed")


def test_a_scan_is_started_again_only_before_the_time_of_its_last_retry(world: World, now: FakeClock):
    repository = world.connected_repository(world.company())
    failure = Failure(failures.CODE_HOST_UNAVAILABLE, "The code host did not answer.")
    for seconds_left, is_queued in ((1, True), (0, False)):
        cause = Cause("push", retry_until=int(now.seconds) + seconds_left)
        scan = replace(make_scan(repository, status="running"), cause=cause)
        failures._fail(scan, failure, "attribute_exists(pk)", {})
        assert queue.is_queued(repository.repository_id, scan.project_id, cause) is is_queued
        queue.drop_subject(repository.repository_id, scan.project_id, cause)
