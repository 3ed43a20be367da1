"""The sweep starts scans that wait and those that are due, and resends the messages of GitHub's events."""

import pytest

from controlplane.code_host import pull_requests, repositories
from controlplane.code_host.items import RepositoryItem
from controlplane.code_host.pull_requests import PullRequestItem, report_entry
from controlplane.platform.queues import outbox
from controlplane.platform.queues.messages import Queue
from controlplane.platform.table.table import Put
from controlplane.scans import failures, queue, reads, requests
from controlplane.scans import queue as scan_starts
from controlplane.scans.items import Cause, Failure, QueuedScan, RequestItem
from sweeper.service import sweep
from tests.support.audits import stored_repository
from tests.support.code_host import SHA
from tests.support.world import World


def linked(world: World, **changes: object) -> RepositoryItem:
    repository = world.connected_repository(world.company())
    link = repository.links[0]._replace(**changes)
    return repositories.link_project(repository.repository_id, link)


def fail(repository: RepositoryItem, code: str) -> RequestItem:
    """Lets the active request fail. Returns it."""
    request = reads.get_active_work(stored_repository(repository))
    assert isinstance(request, RequestItem)
    lease, _ = requests.acquire_request(request.request_id, 30)
    failures.fail_attempted(request.request_id, Failure(code, "It isn't available."), lease)
    return request


def test_a_scan_that_is_due_is_queued_and_started_in_one_sweep(world, sqs, now):
    repository = linked(world, schedule="daily")
    now.advance(86_401)
    counts = sweep()
    assert (counts["ScheduledScans"], counts["StartedScans"]) == (1, 1)
    assert len(sqs.at(Queue.SCAN_PREPARATION.url)) == 1
    repositories.unlink_project(repository.repository_id, repository.links[0].project_id)
    now.advance(86_401)
    assert sweep()["ScheduledScans"] == 0


def test_a_pull_request_that_waits_is_started_and_an_unwanted_one_dropped(world, sqs):
    wanted, unwanted = linked(world, pull_request_scans_enabled=True), linked(world)
    for repository in (wanted, unwanted):
        repository_id, project_id = repository.repository_id, repository.links[0].project_id
        item = PullRequestItem(repository_id=repository_id, project_id=project_id, number=12, head_sha=SHA)
        queued = QueuedScan.of(repository_id, project_id, Cause("pull_request", 12))
        pull_requests.want_scan(item, Put(queued.to_item()), report_entry(repository_id, project_id, 12), again=False)
    assert sweep()["StartedScans"] == 1
    assert reads.get_active_work(stored_repository(wanted)).cause.pull_request_number == 12
    assert queue.list_queued(unwanted.repository_id) == []
    assert "activeRequestId" not in stored_repository(unwanted)


@pytest.mark.parametrize(("code", "wait"), [("CODE_HOST_UNAVAILABLE", 300), ("ACCESS_LOST", 3_600)])
def test_a_scan_that_the_code_host_prevents_is_started_again_after_a_while_for_a_day(code, wait, world, sqs, now):
    repository = linked(world, scan_on_push=True)
    repository_id, cause = repository.repository_id, Cause("push")

    def fails() -> bool:
        """Returns whether the scan waits to be started again after its request failed."""
        fail(repository, code)
        return queue.is_queued(repository_id, repository.links[0].project_id, cause)

    queue.enqueue(QueuedScan.of(repository_id, repository.links[0].project_id, cause))
    assert scan_starts.start_next(repository_id, in_turn=True)
    assert fails()
    now.advance(wait - 1)
    assert not scan_starts.start_next(repository_id, in_turn=True)
    now.advance(1)
    assert scan_starts.start_next(repository_id, in_turn=True)
    now.advance(86_400 - wait - 1)
    assert fails()
    now.advance(wait)
    assert scan_starts.start_next(repository_id, in_turn=True)
    assert not fails()


def test_a_scan_that_is_started_again_replaces_no_newer_one(world, sqs, now):
    repository = linked(world, scan_on_push=True, schedule="daily")
    repository_id, project_id = repository.repository_id, repository.links[0].project_id
    queue.enqueue(QueuedScan.of(repository_id, project_id, Cause("push")))
    assert scan_starts.start_next(repository_id, in_turn=True)
    now.advance(60)
    newer = QueuedScan.of(repository_id, project_id, Cause("scheduled"))
    queue.enqueue(newer)
    request = fail(repository, "CODE_HOST_UNAVAILABLE")
    assert queue.list_queued(repository_id) == [newer]
    assert reads.get_request(request.request_id).status == "failed"
    assert "activeRequestId" not in stored_repository(repository)


def test_a_report_that_was_not_sent_is_sent(world, sqs, now):
    repository = linked(world)
    outbox.write(report_entry(repository.repository_id, repository.links[0].project_id, 12))
    now.advance(61)
    assert sweep()["ResentMessages"] == 1
    assert len(sqs.at(Queue.GITHUB_EVENTS.url)) == 1


def test_scans_wait_until_they_may_start_the_oldest_first_and_a_newer_entry_is_never_dropped(world, now):
    repository = linked(world)
    place, cause = (repository.repository_id, repository.links[0].project_id), Cause("pull_request", 9)
    older = QueuedScan.of(*place, cause, wait_seconds=5)
    queue.enqueue(older)
    now.advance(1)
    newer = QueuedScan.of(*place, Cause("pull_request", 1))
    queue.enqueue(newer)
    for seconds, waiting in ((3.5, [newer]), (0.5, [older, newer])):
        now.advance(seconds)
        assert queue.list_queued(repository.repository_id) == waiting
    replaced = QueuedScan.of(*place, cause)
    queue.enqueue(replaced)
    for dropped, left in ((older, [newer, replaced]), (replaced, [newer])):
        queue.drop(dropped)
        assert queue.list_queued(repository.repository_id) == left
