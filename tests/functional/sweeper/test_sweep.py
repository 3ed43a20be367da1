"""The sweep starts what is due, finishes what a crash interrupted, and leaves alone what is live or merely expires."""

import json
from pathlib import Path

import pytest

from controlplane.code_host import pull_requests, repositories
from controlplane.code_host.items import RepositoryItem
from controlplane.code_host.pull_requests import PullRequestItem, report_entry
from controlplane.erasure import deletions
from controlplane.erasure.cleanup import SETTLED_AFTER_SECONDS
from controlplane.findings import issue_attempts
from controlplane.organizations import invitations
from controlplane.platform.core import clock
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import PrepareScan, Queue
from controlplane.platform.table.table import Put, table
from controlplane.projects import store as projects
from controlplane.scans import failures, queue, reads, requests
from controlplane.scans import queue as scan_starts
from controlplane.scans.items import Cause, Failure, QueuedScan, RequestItem
from sweeper.app import handler
from sweeper.service import StepsFailed
from tests.functional.projects.builders import make_project
from tests.functional.sweeper.conftest import NOTHING
from tests.support.audits import make_issue, make_scan, stored_repository
from tests.support.code_host import SHA
from tests.support.crashes import dies_at
from tests.support.populated_organization import populate_organization
from tests.support.table import PREPARED
from tests.support.world import World, table_dump

REQUEST_ID = "spr_" + "0" * 34
EVENT = Path(__file__).parents[3] / "events" / "sweeper_sweep.json"


def waits(queue: Queue = Queue.SCAN_PREPARATION) -> None:
    """Stores a message in the outbox, as a function does that dies before sending it."""
    entry = messages.entry(queue, PrepareScan(request_id=REQUEST_ID))
    table.transact({"message": entry.leg}, PREPARED)


def stored_partitions(prefix: str) -> int:
    return sum(item["pk"]["S"].startswith(prefix) for item in table_dump())


def test_a_sweep_without_work_changes_nothing_and_leaves_expiring_items_alone(company, api, world, sqs, now):
    world.invitation(company, "grace@example.com")
    code = {"clientId": "assent-cli", "codeChallenge": "x" * 43, "codeChallengeMethod": "S256"}
    assert api.post("/v1/auth/device/code", json_body=code).status == 201
    assert handler(json.loads(EVENT.read_text()), None) == NOTHING  # notes that all are due for the list of advisories
    for days in (0, 8):
        now.advance(days * 86_400)
        before = table_dump()
        assert handler(json.loads(EVENT.read_text()), None) == NOTHING
        assert (table_dump(), sqs.letters) == (before, [])
    # The expired ones aren't listed, though they still exist.
    assert invitations.list_invitations(company.organization_id, 50, None).items == []


def test_messages_are_sent_to_their_own_queues_after_a_minute_and_once(sweep, sqs, now):
    for _ in range(20):
        waits()
    now.advance(60)
    assert sweep() == NOTHING
    now.advance(1)
    # These get their messages from the runtime, and from audits.
    resent = [it for it in Queue if it not in {Queue.FINDING_INTAKE, Queue.AUDIT_REPORTS}]
    for it in resent:
        waits(it)
    assert sweep() == {**NOTHING, "ResentMessages": 20}
    assert {letter.queue_url for letter in sqs.letters} == {Queue.SCAN_PREPARATION.url}
    expected = {"kind": "prepare-scan", "version": 1, "requestId": REQUEST_ID}
    assert [json.loads(letter.body) for letter in sqs.letters] == [expected] * 20
    now.advance(61)
    assert [sweep()["ResentMessages"] for _ in range(2)] == [len(resent), 0]
    assert sorted(letter.queue_url for letter in sqs.letters[20:]) == sorted(it.url for it in resent)
    assert stored_partitions("OUTBOX#") == 0


def test_unsent_messages_remain_delay_no_other_step_and_are_sent_again_after_a_crash(sweep, company, sqs, now):
    waits()
    projects.delete_project(make_project(company))
    now.advance(SETTLED_AFTER_SECONDS)
    sqs.broken = True
    assert sweep() == {**NOTHING, "FinishedDeletions": 1}
    assert stored_partitions("DELETIONS") == 0
    sqs.broken = False
    with dies_at("DeleteItem", applied=False), pytest.raises(StepsFailed):
        sweep()
    assert sweep() == {**NOTHING, "ResentMessages": 1}
    assert len(sqs.letters) == 2


def test_issue_attempts_without_a_worker_are_resumed(sweep, company, world, sqs, now):
    found = world.finding(company, source="code-audit", rule_id="r")
    issue_attempts.begin_attempt(found.item_id, company.owner.user_id)
    assert sweep() == NOTHING
    now.advance(61)
    # The message is the event of the finding.
    assert sweep() == {**NOTHING, "ResumedIssueAttempts": 1, "ResentMessages": 1}
    (letter,) = sqs.at(Queue.ISSUE_CREATION.url)
    assert json.loads(letter.body)["itemId"] == found.item_id


def test_a_finding_opens_at_the_end_of_its_dismissal(sweep, company, api, world, now):
    """test_dismissals_with_an_end.py covers what opens; here the function itself does it, with its own permissions."""
    item = world.finding(company)
    until = clock.timestamp(clock.now() + 86_400)
    body = {"status": "dismissed", "version": item.version, "until": until}
    assert api.patch(f"/v1/inbox/{item.item_id}", company.owner.token, json_body=body).status == 200
    assert sweep()["ReopenedFindings"] == 0
    now.advance(86_401)
    assert sweep()["ReopenedFindings"] == 1
    assert stored_partitions("SNOOZES#") == 0


def test_every_kind_of_deletion_is_finished(sweep, world, company, now):
    """test_deletions.py covers what is removed; here the function itself does it, with its own permissions."""
    estates = [populate_organization(world, company if number else None) for number in range(3)]
    repositories.disconnect_repository(estates[1].repository.repository_id)
    projects.delete_project(estates[2].project)
    deletions.delete_organization(estates[0].company.organization_id)
    assert sweep()["FinishedDeletions"] == 0
    now.advance(SETTLED_AFTER_SECONDS)
    assert sweep()["FinishedDeletions"] == 3
    assert stored_partitions("DELETIONS") == 0


def test_superseded_scans_expire_from_then_on(sweep, world, company, now):
    repository = world.connected_repository(company)
    first = make_scan(repository, issues=[make_issue()])
    now.advance(1)
    make_scan(repository)
    # The event of the first scan's end, and the repository's packages.
    assert sweep() == {**NOTHING, "ResentMessages": 1, "MatchedRepositories": 1}
    assert reads.get_scan(first.scan_id).findings_expire_at is not None


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


def test_a_scan_that_is_due_is_queued_and_started_in_one_sweep(sweep, world, sqs, now):
    repository = linked(world, schedule="daily")
    now.advance(86_401)
    counts = sweep()
    assert (counts["ScheduledScans"], counts["StartedScans"]) == (1, 1)
    assert len(sqs.at(Queue.SCAN_PREPARATION.url)) == 1
    repositories.unlink_project(repository.repository_id, repository.links[0].project_id)
    now.advance(86_401)
    assert sweep()["ScheduledScans"] == 0


def test_a_pull_request_that_waits_is_started_and_an_unwanted_one_dropped(sweep, world, sqs):
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
