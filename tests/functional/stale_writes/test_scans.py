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
from controlplane.platform.table.table import Check, LegFailed, Put, table
from controlplane.scans import execution, failures, history, queue, reads, requests, unlocks
from controlplane.scans.items import STAGES, Cause, Failure, RequestItem, ScanItem
from tests.functional.stale_writes.cases import (
    ORGANIZATION,
    Act,
    Case,
    Make,
    Refused,
    check_refused,
    deletes,
    happens,
    sets,
    transacts,
    updates,
)
from tests.support.audits import RULES_VERSION, end_scan, history_of, lease_of, make_issue, make_request, make_scan
from tests.support.code_host import SHA
from tests.support.table import PREPARED
from tests.support.world import World

PULL_REQUEST = PullRequestItem(
    repository_id=RepositoryId.of(ORGANIZATION, "r1"),
    project_id=ProjectId.of(ORGANIZATION, "p1"),
    number=12,
    head_sha="1f0c",
)
FIRST, SECOND = (ScanRequestId.of(ORGANIZATION, name) for name in ("q1", "q2"))
TOO_LARGE = Failure("REPOSITORY_TOO_LARGE", "Too large.")


def _scan(
    world: World,
    write: Callable[[ScanItem, Lease], Any],
    earlier: Callable[[ScanItem], Any] = failures.cancel_scan,
    error: type[Exception] = LeaseLost,
) -> Case:
    """Writes to a scan as its worker does."""
    scan = make_scan(world.connected_repository(world.company()), status="running")
    lease = lease_of(scan)
    return lambda: write(scan, lease), lambda: earlier(scan), error


def _end(scan: ScanItem, _: Lease) -> None:
    end_scan(scan)


def _complete(scan: ScanItem) -> None:
    lease = lease_of(scan)
    end_scan(scan)
    leases.release(lease)


def _retry(scan: ScanItem, _: Lease) -> None:
    happens(lambda: failures._retry(scan, outbox.new_entry("scan-execution", {})))()


def _waiting(world: World) -> Case:
    scan_id = make_scan(world.connected_repository(world.company()), status="running").scan_id
    leases.release(lease_of(reads.get_scan(scan_id)))
    read = reads.get_scan(scan_id)
    fail = happens(lambda: failures.fail_abandoned(read))
    return fail, lambda: leases.release(execution.acquire_scan(scan_id, 420)[0]), Refused


def _unlocked(world: World, **changed: object) -> Case:
    """Unlocks a scan."""
    company = world.company("free")
    world.credits(company, 100)
    scan = make_scan(world.connected_repository(company), issues=[make_issue(number) for number in range(1, 6)])
    message = outbox.new_entry("scan-execution", {})
    unlock = happens(lambda: unlocks.charge(scan, company.owner.user_id, message) != "already")
    return unlock, sets(scan.key, **changed), Refused


def _locked(world: World) -> Case:
    """Completes a locked scan, whose report is paid for with another scan."""
    scan = make_scan(world.connected_repository(world.company("free")), status="running", again="locked")
    read = replace(scan, rules_version=RULES_VERSION)
    assert read.report is not None
    paid = Put({**unlocks._paid_key(read, read.report)._asdict(), "at": scan.created_at})
    return lambda: _end(read, lease_of(read)), lambda: table.put(paid, PREPARED), execution.ReportPaid


def _request(world: World, gone: Callable[[RepositoryItem], keys.Key], error: type[Exception]) -> Case:
    """Requests a scan of what another request deletes."""
    repository = world.connected_repository(world.company())
    return lambda: make_request(repository), deletes(gone(repository)), error


def _found_again(world: World) -> Case:
    scan = make_scan(world.connected_repository(world.company()))
    read = replace(history_of(scan, make_issue()), gone=history.Absence(scan.scan_id, scan.created_at))
    table.put(Put(read.to_item()), PREPARED)
    again = Put(replace(read, gone=None).to_item())
    return (
        transacts(history=history._if_unchanged(read.key, read.gone)),
        lambda: table.put(again, PREPARED),
        LegFailed,
    )


def _start(world: World, earlier: Callable[[RequestItem], Act]) -> Case:
    """Starts the scan of a request."""
    repository = world.connected_repository(world.company())
    lease, request = requests.acquire_request(make_request(repository), 30)
    target = requests.Target(repository, repository.links[0], "main", SHA)
    return (
        lambda: requests.start_scan(request, lease, target, "free-preview"),
        earlier(request),
        LeaseLost,
    )


def _pull_request(earlier: ScanRequestId | None, later: ScanRequestId | None, head_sha: str = "1f0c") -> Case:
    """Checks that the scan of a pull request is still the one that was read."""
    item = replace(PULL_REQUEST, request_id=earlier)
    table.put(Put(item.to_item()), PREPARED)
    changed = Put(replace(item, request_id=later, head_sha=head_sha).to_item())
    same = Check(item.key, *pull_requests._as_read(item))
    return transacts(pullRequest=same), lambda: table.put(changed, PREPARED), LegFailed


def _report(_: World) -> Case:
    """Records what was reported on a pull request, after the claim has expired."""
    table.put(Put({**PULL_REQUEST.to_item(), "claim": "mine"}), PREPARED)
    return (
        lambda: pull_requests.record(PULL_REQUEST.key, "mine", comment="stale"),
        sets(PULL_REQUEST.key, claim="other"),
        LeaseLost,
    )


def _deleted_pull_request(write: Act) -> Case:
    table.put(Put(PULL_REQUEST.to_item()), PREPARED)
    return write, deletes(PULL_REQUEST.key), LegFailed


def _started_pull_request(_: World) -> Case:
    table.put(Put(replace(PULL_REQUEST, request_id=FIRST).to_item()), PREPARED)
    started = pull_requests.started_leg(PULL_REQUEST.key, FIRST, ScanId.of(ORGANIZATION, "s1"), "2a1b")
    return (
        transacts(pullRequest=started),
        updates(pull_requests.requested_leg(PULL_REQUEST.key, SECOND)),
        LegFailed,
    )


def _charged(_: World) -> Case:
    key = keys.ledger_of_scan(ORGANIZATION, "s1")
    charge = transacts(ledger=LedgerItem(key=key, kind="unlock", credits=-50, at=clock.timestamp()).leg)
    return charge, charge, LegFailed


CASES: dict[str, Make] = {
    "stage of a canceled scan": lambda it: _scan(
        it, lambda _, lease: execution.report_stage(lease, STAGES[0], "completed")
    ),
    "history of a canceled scan": lambda it: _scan(
        it, lambda scan, lease: history.put_history(lease, [history_of(scan, make_issue())])
    ),
    "canceled scan that is acquired": lambda it: _scan(
        it, lambda scan, _: execution.acquire_scan(scan.scan_id, 420), error=leases.Finished
    ),
    "canceled scan that is completed": lambda it: _scan(it, _end),
    "completed scan that is acquired": lambda it: _scan(
        it, lambda scan, _: execution.acquire_scan(scan.scan_id, 420), _complete, leases.Finished
    ),
    "completed scan that is retried": lambda it: _scan(it, _retry, end_scan, Refused),
    "abandoned scan that its worker gives back": lambda it: _scan(
        it, _retry, lambda scan: leases.release(lease_of(scan)), Refused
    ),
    "waiting scan that was attempted again": _waiting,
    "failed scan that is completed": lambda it: _scan(it, _end, lambda scan: sets(scan.key, status="failed")()),
    "deleted scan that its worker gives up": lambda it: _scan(
        it,
        lambda scan, lease: failures.fail_attempted(scan.scan_id, TOO_LARGE, lease),
        lambda scan: deletes(scan.key)(),
    ),
    "scan of a disconnected repository that is completed": lambda it: _scan(
        it, _end, lambda scan: deletes(keys.repository(*scan.repository_id.location))()
    ),
    "scan of a deleted project": lambda it: _request(
        it, lambda repository: keys.project(*repository.links[0].project_id.location), ProjectGone
    ),
    "scan of a disconnected repository": lambda it: _request(it, lambda repository: repository.key, UnknownRepository),
    "late finding that is found again": _found_again,
    "locked scan whose report was paid for": _locked,
    "scan that was unlocked": lambda it: _unlocked(it, access="full"),
    "scan with another price": lambda it: _unlocked(it, unlockCredits=51),
    "scan that is no longer completed": lambda it: _unlocked(it, status="failed"),
    "failed request whose scan is started": lambda it: _start(it, lambda request: sets(request.key, status="failed")),
    "freed repository whose scan is started": lambda it: _start(
        it, lambda request: updates(failures.free_repository(request.repository_id, request.request_id))
    ),
    "pull request with another commit": lambda _: _pull_request(None, None, "2a1b"),
    "pull request whose scan was requested": lambda _: _pull_request(None, FIRST),
    "pull request whose scan was requested again": lambda _: _pull_request(FIRST, SECOND),
    "report that another worker makes": _report,
    "closed pull request that was deleted": lambda _: _deleted_pull_request(
        lambda: pull_requests.close(PULL_REQUEST, outbox.new_entry("github-events", {}))
    ),
    "requested pull request that was deleted": lambda _: _deleted_pull_request(
        transacts(pullRequest=pull_requests.requested_leg(PULL_REQUEST.key, FIRST))
    ),
    "pull request whose scan was requested before another starts": _started_pull_request,
    "scan that was charged": _charged,
}


@pytest.mark.parametrize("name", CASES)
def test_an_outdated_write_is_refused_and_changes_nothing(name, world):
    check_refused(CASES[name], world)


def test_the_scan_of_a_deleted_project_ends_though_a_worker_has_begun_it_since(world):
    read = make_scan(world.connected_repository(world.company()), status="queued")
    execution.acquire_scan(read.scan_id, 420)
    ended = failures.fail_deleted(read)
    assert (ended.status, reads.get_scan(read.scan_id).status) == ("failed", "failed")


def test_a_scan_is_started_again_only_before_the_time_of_its_last_retry(world, now):
    repository = world.connected_repository(world.company())
    failure = Failure(failures.CODE_HOST_UNAVAILABLE, "The code host did not answer.")
    for seconds_left, is_queued in ((1, True), (0, False)):
        cause = Cause("push", retry_until=int(now.seconds) + seconds_left)
        scan = replace(make_scan(repository, status="running"), cause=cause)
        failures._fail(scan, failure, "attribute_exists(pk)", {})
        assert queue.is_queued(repository.repository_id, scan.project_id, cause) is is_queued
        queue.drop_subject(repository.repository_id, scan.project_id, cause)
