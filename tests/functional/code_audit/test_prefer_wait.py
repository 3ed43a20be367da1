"""Prefer: wait (RFC 7240), for starting and for reading a scan."""

import json

import pytest

from code_audit.preferences import read_wait
from controlplane.platform.core import clock
from controlplane.platform.core.ids import ScanRequestId
from controlplane.platform.core.settings import settings
from controlplane.platform.queues import messages
from controlplane.platform.table import waiting
from controlplane.platform.table.table import table
from controlplane.scans import execution, failures, reads, requests
from controlplane.scans.items import Failure
from tests.functional.code_audit.conftest import KEY, AtOnce
from tests.support.audits import end_scan
from tests.support.calls import recorded_calls
from tests.support.table import PREPARED

LEFT_ALONE = [
    None, "", " ", ",", "respond-async", "wait", "wait=", "wait=x", "wait=-1", "wait=1.5", 'wait="', "wait = = 5",
    "waits=5", "5", "wait 5", "return=minimal; wait=5", "wait=" + "9" * 10, "x" * 100_000, '"wait=5"', "wait=x, wait=5",
]  # fmt: skip
UNDERSTOOD = {
    "wait=5": 5, "WAIT=5": 5, "wait=0": 0, 'wait="5"': 5, "wait = 5": 5, "respond-async, wait=5": 5, "wait=5; x=y": 5,
    "wait=5, wait=7": 5, 'foo="bar", wait=5, baz': 5, "wait=3600": 20, "wait=999999999": 20, "wait=007": 7,
}  # fmt: skip


def test_only_a_preference_to_wait_is_understood_as_the_standard_says():
    assert {prefer: read_wait(prefer) for prefer in UNDERSTOOD} == UNDERSTOOD
    assert {prefer: read_wait(prefer) for prefer in LEFT_ALONE} == dict.fromkeys(LEFT_ALONE)


@pytest.fixture
def pausing(monkeypatch, now):
    """Replaces pauses: returns their lengths, and calls `then` once that many seconds have passed."""

    def replace(after=1e9, then=lambda: None):
        pauses = []

        async def pause(seconds):
            pauses.append(seconds)
            now.advance(seconds)
            if sum(pauses) - seconds < after <= sum(pauses):
                then()

        monkeypatch.setattr(clock, "pause", pause)
        return pauses

    return replace


def complete(scan):
    execution.acquire_scan(scan.scan_id, 420)
    end_scan(scan)


def read(acme, scan, prefer):
    """Returns the response, the status of the scan in it, and the wait that it says was applied."""
    reply = acme.get(scan, Prefer=prefer)
    return reply, reply.data["status"], reply.headers.get("preference-applied")


def test_a_request_waits_until_the_scan_has_ended(acme, pausing):
    scan = acme.scan(status="queued")
    pauses = pausing(7, lambda: complete(scan))
    assert read(acme, scan, "wait=15")[1:] == ("completed", "wait=15")
    assert sum(pauses) == 7


def test_a_scan_that_is_still_running_after_the_wait_is_returned(acme, pausing):
    scan, pauses = acme.scan(status="running"), pausing()
    reply, *rest = read(acme, scan, "wait=5")
    assert (rest, sum(pauses)) == (["running", "wait=5"], 5)
    assert reply.data == acme.get(scan).data


def test_a_scan_that_is_deleted_during_the_wait_is_unknown(acme, pausing):
    scan = acme.scan(status="running")
    pausing(2, lambda: table.delete_all([scan.key], PREPARED))
    assert acme.get(scan, Prefer="wait=5").code == "NOT_FOUND"


def test_the_time_and_the_reads_are_bounded(acme, pausing):
    scan, pauses = acme.scan(status="running"), pausing()
    with recorded_calls() as calls:
        assert read(acme, scan, "wait=3600")[2] == "wait=20"
    assert sum(pauses) == 20
    # Each reads the scan and its inventory; one is that of any request. The slot takes two writes.
    assert [call.operation for call in calls].count("BatchGetItem") <= 12 + 17 + 1
    assert len(calls) <= 12 + 17 + 1 + 4


def test_an_ended_scan_is_returned_at_once(acme, pausing):
    scan, pauses = acme.scan(), pausing()
    acme.get(scan)  # the first request in a minute writes more
    with recorded_calls() as calls:
        assert read(acme, scan, "wait=5")[1:] == ("completed", "wait=5")
    with recorded_calls() as usual:
        acme.get(scan)
    assert (pauses, len(calls)) == ([], len(usual))


def test_a_request_without_the_preference_or_a_slot_does_not_wait(acme, pausing, monkeypatch):
    scan, pauses = acme.scan(status="running"), pausing()
    for prefer in ("wait=x", "respond-async"):
        assert read(acme, scan, prefer)[1:] == ("running", None)
    monkeypatch.setitem(settings.__dict__, "account_concurrency", 30)
    while any(waiting.acquire_slot(60) for _ in range(20)):
        pass
    assert read(acme, scan, "wait=5")[1:] == ("running", None)
    assert pauses == []


def test_a_request_releases_its_slot(acme, pausing, monkeypatch):
    monkeypatch.setitem(settings.__dict__, "account_concurrency", 10)
    scan, _ = acme.scan(status="running"), pausing()
    assert [read(acme, scan, "wait=2")[2] for _ in range(3)] == ["wait=2"] * 3


def start(acme, prefer, repository=None, **headers):
    """Returns the response, and the wait that it says was applied."""
    reply = acme.start(repository or acme.connect(), headers={"Prefer": prefer, **headers})
    return reply, reply.headers["preference-applied"]


def test_a_start_waits_for_the_scan_that_it_starts(acme, pausing, monkeypatch):
    repository = acme.connect()
    monkeypatch.setattr(messages.sender, "client", AtOnce(repository))
    pauses = pausing(6, lambda: complete(reads.list_scans(acme.id, 1, None).items[0]))
    reply, applied = start(acme, "wait=15", repository)
    assert (reply.status, applied, sum(pauses)) == (202, "wait=15", 6)
    assert (reply.data["status"], reply.data["scan"]["status"]) == ("started", "completed")


def test_a_start_returns_the_request_if_the_scan_does_not_exist_in_time(acme, sqs, pausing):
    repository, pauses = acme.connect(), pausing()
    reply, applied = start(acme, "wait=8", repository, **KEY)
    assert (reply.data["status"], applied, sum(pauses)) == ("starting", "wait=8", 8)
    again, _ = start(acme, "wait=1", repository, **KEY)
    assert (again.data, again.headers["retry-after"]) == (reply.data, "2")
    assert again.headers["idempotency-replayed"] == "true"


def test_a_start_returns_the_request_as_soon_as_it_has_failed(acme, sqs, pausing):
    def fail():
        (letter,) = sqs.at(messages.Queue.SCAN_PREPARATION.url)
        request_id = ScanRequestId.stored(json.loads(letter.body)["requestId"])
        lease, _ = requests.acquire_request(request_id, 30)
        failures.fail_attempted(request_id, Failure("BRANCH_GONE", "It does not exist."), lease)

    pauses = pausing(4, fail)
    assert (start(acme, "wait=8")[0].data["status"], sum(pauses)) == ("failed", 4)


def test_a_start_honors_a_shorter_wait_than_the_usual_one(acme, sqs, pausing):
    pauses = pausing()
    assert (start(acme, "wait=0")[1], pauses) == ("wait=0", [])
