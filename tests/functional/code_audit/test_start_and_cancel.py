"""The start of a scan of a linked repository, and its cancellation, which leaves no findings and no charge."""

import pytest

from controlplane.code_host import repositories
from controlplane.code_host.items import Link
from controlplane.findings import inbox
from controlplane.platform.core.actions import Action
from controlplane.platform.core.ids import ScanRequestId
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import ExecuteScan, Queue
from controlplane.platform.table.leases import MAX_ATTEMPTS
from controlplane.platform.table.table import table
from controlplane.projects import store as projects
from controlplane.scans import execution, reads
from tests.functional.code_audit.conftest import KEY, SCANS, AtOnce, Organization
from tests.functional.scan_execution.test_execute_scan import FILES, deliver, send
from tests.support.audit_log import all_entries
from tests.support.audits import (
    end_scan,
    lease_of,
    make_request,
    make_scan,
    stored_repository,
)
from tests.support.calls import item_of, refused
from tests.support.code_host import SHA, FakeHost, archive
from tests.support.crashes import dies_at
from tests.support.each import each
from tests.support.world import table_dump


@pytest.fixture
def repository(acme):
    return acme.connect()


def waiting():
    return [item for item in table_dump() if item["pk"]["S"].startswith("OUTBOX#")]


def scanned_project(reply):
    return reads.get_request(ScanRequestId.stored(reply.data["preparationId"])).project_id


def delete_project_of(repository):
    projects.delete_project(projects.get_project(repository.links[0].project_id))


def test_returns_202_and_sends_the_message_if_the_scan_doesnt_exist_yet(acme, repository, sqs, world):
    reply = acme.start(repository, world.member(acme.company).token)
    assert (reply.status, reply.headers["retry-after"]) == (202, "2")
    preparation_id = reply.data["preparationId"]
    assert reply.data == {
        "status": "starting",
        "preparationId": preparation_id,
        "repositoryId": repository.repository_id,
        "createdAt": "2026-03-04T05:06:07.000Z",
        "retryAfterSeconds": 2,
    }
    (letter,) = sqs.at(Queue.SCAN_PREPARATION.url)
    assert letter.body == f'{{"version": 1, "kind": "prepare-scan", "requestId": "{preparation_id}"}}'
    assert waiting() == []


def test_a_scan_that_exists_in_time_is_returned_also_by_a_dry_run_of_a_retry(acme, repository, sqs, monkeypatch):
    monkeypatch.setattr(messages.sender, "client", AtOnce(repository))
    reply = acme.start(repository, headers=KEY)
    assert (reply.status, reply.data["status"], "retry-after" in reply.headers) == (202, "started", False)
    scan = reply.data["scan"]
    assert {**scan, "inventory": None} == acme.get(scan["id"]).data
    assert (scan["status"], scan["access"], scan["headCommitSha"]) == ("queued", "free-preview", SHA)
    body = {"repositoryId": repository.repository_id}
    assert acme.send("POST", f"{SCANS}?dryRun=true", body, **KEY).text == reply.text


@pytest.mark.parametrize("code", ["ThrottlingException", "InternalServerError", "AccessDeniedException"])
def test_a_message_that_was_sent_may_stay_in_the_outbox(code, acme, repository, sqs):
    with refused(table.client, lambda call: call.operation == "DeleteItem", code):
        assert acme.start(repository).status == 202
    assert (len(sqs.at(Queue.SCAN_PREPARATION.url)), len(waiting())) == (1, 1)


def test_the_named_project_is_scanned_or_the_first_that_still_exists(acme, repository):
    other, last = (acme.connect().links[0].project_id for _ in range(2))
    repositories.link_project(repository.repository_id, Link(other, "release", None, False))
    reply = acme.start(repository, projectId=other)
    assert scanned_project(reply) == other
    repository = acme.connect()
    for project_id in (other, last):
        repositories.link_project(repository.repository_id, Link(project_id, None, None, False))
    delete_project_of(repository)
    assert scanned_project(acme.start(repository)) == other


def test_a_scan_without_remaining_attempts_does_not_block_the_repository(acme, repository, now):
    dead = acme.scan(repository, status="running")
    for _ in range(MAX_ATTEMPTS - 1):
        now.advance(420 + 61)
        assert acme.start(repository).code == "SCAN_IN_PROGRESS"  # it is retried
        execution.acquire_scan(dead.scan_id, 420)
    now.advance(420 + 61)
    reply = acme.start(repository)
    assert reply.status == 202
    ended = acme.get(dead).data
    assert (ended["status"], ended["failure"]["code"], ended["completedAt"] is None) == ("failed", "ABANDONED", False)
    assert stored_repository(repository)["activeRequestId"] == reply.data["preparationId"]


@pytest.mark.parametrize("block", [make_request, lambda it: make_scan(it, status="queued")])
def test_a_lost_message_blocks_the_repository_for_at_most_five_days(block, acme, repository, world, now):
    block(repository)
    now.advance(5 * 86_400)
    token = world.token(acme.owner.user_id)
    assert acme.start(repository, token).status == 409
    now.advance(1)
    assert acme.start(repository, token).status == 202


def test_a_retry_after_a_crash_before_the_answer_says_that_it_is_one(acme, repository):
    with dies_at("UpdateItem", applied=True):
        assert acme.start(repository, headers=KEY).status == 500
    reply = acme.start(repository, headers=KEY)
    assert (reply.status, reply.data["status"], reply.headers["idempotency-replayed"]) == (202, "starting", "true")


def test_a_request_that_cant_be_read_right_after_its_creation_is_read_again(acme, repository, sqs):
    failures = iter([True])

    def first_read(call):
        is_read = call.operation == "GetItem" and item_of(call.parameters)[1].startswith("SCANREQ#")
        return is_read and next(failures, False)

    with refused(table.client, first_read, "ThrottlingException"):
        reply = acme.start(repository)
    assert (reply.status, reply.data["status"], next(failures, None)) == (202, "starting", None)


def test_unknown_foreign_and_malformed_repositories_give_the_same_404(acme, api, world):
    foreign = Organization(api, world).connect().repository_id
    named = (foreign, f"rep_{acme.id[4:]}{'0' * 18}", "nonsense", "REPO#x")
    replies = [acme.send("POST", SCANS, {"repositoryId": repository_id}) for repository_id in named]
    assert {(it.status, it.code, it.text) for it in replies} == {(404, "NOT_FOUND", replies[0].text)}


def test_a_repository_without_that_project_returns_409(acme, repository):
    other = acme.connect()
    replies = [acme.start(acme.connect(linked=False)), acme.start(repository, projectId=other.links[0].project_id)]
    delete_project_of(repository)
    replies.append(acme.start(repository))
    assert [(it.status, it.code) for it in replies] == [(409, "REPOSITORY_NOT_LINKED")] * 3


def test_returns_409_with_the_request_or_the_scan_until_it_has_ended(acme, repository):
    first, second = acme.start(repository), acme.start(repository)
    assert (second.status, second.code) == (409, "SCAN_IN_PROGRESS")
    assert second.error["details"] == {"preparationId": first.data["preparationId"]}
    for status in ("queued", "running", "failed", "completed"):
        repository = acme.connect()
        scan = acme.scan(repository, status=status)
        before, once = stored_repository(repository), {"Idempotency-Key": status}
        reply = acme.start(repository, headers=once)
        if status in {"failed", "completed"}:
            assert reply.status == 202
        else:
            assert (reply.status, reply.code) == (409, "SCAN_IN_PROGRESS")
            assert (reply.error["details"], stored_repository(repository)) == ({"scanId": scan.scan_id}, before)
        if status == "running":
            end_scan(scan)
            assert acme.start(repository, headers=once).status == 202


@pytest.fixture
def cancel(free):
    return lambda scan, who=None: free.send("POST", f"{SCANS}/{scan.scan_id}/cancel", None, who)


@each("status", ["queued", "running"])
def test_an_open_scan_is_canceled_for_any_member_and_frees_its_repository(status, free, cancel, world):
    scan = free.scan(repository := free.connect(), status=status)
    reply = cancel(scan, world.member(free.company, "member").token)
    assert (reply.status, reply.data["status"], reply.data["progress"]["stageStatus"]) == (200, "canceled", "canceled")
    assert reply.data["failure"] == {"code": "CANCELED", "message": "A member of the organization canceled it."}
    assert {**free.get(scan).data, "inventory": None} == {**reply.data, "inventory": None}
    assert [it["resource"] for it in all_entries() if it["action"] == Action.SCAN_CANCEL].count(scan.scan_id) == 1
    before = table_dump()
    assert cancel(scan).data == reply.data
    assert len(table_dump()) == len(before)
    # It neither used the free preview nor blocks the next scan.
    assert not repositories.get_repository(repository.repository_id).preview_used
    assert make_request(repository)


@each("status", ["completed", "failed"])
def test_a_scan_that_has_ended_stays_as_it_is(status, free, cancel):
    scan = free.scan(status=status)
    reply = cancel(scan)
    assert (reply.status, reply.code, reply.error["details"]) == (409, "CONFLICT", {"currentStatus": status})
    assert reads.get_scan(scan.scan_id) == scan


def test_a_scan_that_publishes_its_findings_is_no_longer_canceled(free, cancel):
    scan = free.scan(status="running")
    for stage in ("publish", "fetch"):  # the second attempt begins again after the first one may have published
        execution.report_stage(lease_of(scan), stage, "running", reached=3)
        reply = cancel(scan)
        assert (reply.status, reply.error["details"]) == (409, {"currentStatus": "running"})
        assert "begun to publish findings" in reply.error["message"]


@each("is_running", [False, True])
def test_the_worker_of_a_canceled_scan_publishes_and_charges_nothing(is_running, free, cancel, sqs):
    scan = free.scan(repository := free.connect(), status="queued")
    letter = send(sqs, ExecuteScan(scan_id=scan.scan_id))

    class Canceling(FakeHost):
        def stream_tarball(self, *args, **options):
            assert cancel(scan).status == 200
            return super().stream_tarball(*args, **options)

    if not is_running:
        cancel(scan)
    host = Canceling(archives={SHA: archive(FILES)})
    deliver(sqs, letter, host)
    assert bool(host.asked) is is_running
    stored = reads.get_scan(scan.scan_id)
    assert (stored.status, stored.finding_count) == ("canceled", None)
    assert (sqs.at(letter.queue_url), free.balance) == ([], 80)
    assert inbox.list_items(free.id, None, 100, None).items == []
    assert "activeRequestId" not in stored_repository(repository)
