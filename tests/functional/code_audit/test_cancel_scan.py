"""POST /v1/code-audit/scans/{scanId}/cancel: ends an open scan, which leaves no findings and no charge."""

import pytest

from controlplane.code_host import repositories
from controlplane.findings import inbox
from controlplane.platform.core.actions import Action
from controlplane.platform.queues.messages import ExecuteScan
from controlplane.scans import execution, reads
from tests.functional.code_audit.conftest import SCANS
from tests.functional.scan_execution.test_execute_scan import FILES, deliver, send
from tests.support.audit_log import all_entries
from tests.support.audits import lease_of, make_request, stored_repository
from tests.support.code_host import SHA, FakeHost, archive
from tests.support.each import each
from tests.support.world import table_dump


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


def test_another_organizations_scan_is_unknown(free, acme, cancel):
    scan = acme.scan(status="queued")
    assert (cancel(scan).status, reads.get_scan(scan.scan_id).status) == (404, "queued")
    repositories.disconnect_repository(scan.repository_id)
    assert cancel(scan, acme.owner.token).status == 404


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
