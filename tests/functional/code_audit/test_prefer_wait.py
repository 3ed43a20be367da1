"""Prefer: wait (RFC 7240), for starting and for reading a scan."""

import json
from collections.abc import Callable

import pytest

from controlplane.core import clock
from controlplane.core.ids import ScanRequestId
from controlplane.core.settings import settings
from controlplane.http.preferences import read_wait
from controlplane.queues import messages
from controlplane.store import waiting
from controlplane.store.repository_items import RepositoryItem
from controlplane.store.scans import execution, failures, reads, requests
from controlplane.store.scans.items import Failure, ScanItem
from controlplane.store.table import table
from tests.functional.code_audit.test_start_scan import KEY, _AtOnce
from tests.support.api import Api, Reply
from tests.support.audits import end_scan, make_scan
from tests.support.each import each
from tests.support.recorded import recorded_calls
from tests.support.sqs import FakeSqs
from tests.support.table import PREPARED
from tests.support.world import Company, World

LEFT_ALONE = [
    None, "", " ", ",", "respond-async", "wait", "wait=", "wait=x", "wait=-1", "wait=1.5", 'wait="', "wait = = 5",
    "waits=5", "5", "wait 5", "return=minimal; wait=5", "wait=" + "9" * 10, "x" * 100_000, '"wait=5"', "wait=x, wait=5",
]  # fmt: skip
UNDERSTOOD = {
    "wait=5": 5, "WAIT=5": 5, "wait=0": 0, 'wait="5"': 5, "wait = 5": 5, "respond-async, wait=5": 5, "wait=5; x=y": 5,
    "wait=5, wait=7": 5, 'foo="bar", wait=5, baz': 5, "wait=3600": 20, "wait=999999999": 20, "wait=007": 7,
}  # fmt: skip


@each("prefer", LEFT_ALONE)
def test_what_is_no_preference_to_wait_is_ignored(prefer: str | None):
    assert read_wait(prefer) is None


@each("prefer", UNDERSTOOD)
def test_a_preference_to_wait_is_understood_as_the_standard_says(prefer: str):
    assert read_wait(prefer) == UNDERSTOOD[prefer]


@pytest.fixture
def company(world: World) -> Company:
    return world.company()


@pytest.fixture
def repository(world: World, company: Company) -> RepositoryItem:
    return world.connected_repository(company)


@pytest.fixture
def pausing(monkeypatch: pytest.MonkeyPatch, now) -> Callable[..., list[float]]:
    """Replaces pauses: returns their lengths, and calls `then` once that many seconds have passed."""

    def replace(after: float = 1e9, then: Callable[[], None] = lambda: None) -> list[float]:
        pauses: list[float] = []

        async def pause(seconds: float) -> None:
            pauses.append(seconds)
            now.advance(seconds)
            if sum(pauses) - seconds < after <= sum(pauses):
                then()

        monkeypatch.setattr(clock, "pause", pause)
        return pauses

    return replace


def read(api: Api, company: Company, scan: ScanItem, prefer: str | None) -> Reply:
    headers = {"Prefer": prefer} if prefer is not None else {}
    return api.get(f"/v1/code-audit/scans/{scan.scan_id}", company.owner.token, headers=headers)


def start(api: Api, company: Company, repository: RepositoryItem, prefer: str, **headers: str) -> Reply:
    body = {"repositoryId": repository.repository_id}
    headers = {"Prefer": prefer, **headers}
    return api.post("/v1/code-audit/scans", company.owner.token, json_body=body, headers=headers)


class TestReading:
    def test_waits_until_the_scan_has_ended(self, api: Api, company: Company, repository: RepositoryItem, pausing):
        scan = make_scan(repository, status="queued")

        def run() -> None:
            execution.acquire_scan(scan.scan_id, 420)
            end_scan(scan)

        pauses = pausing(7, run)
        reply = read(api, company, scan, "wait=15")
        assert (reply.data["status"], reply.headers["preference-applied"]) == ("completed", "wait=15")
        assert sum(pauses) == 7

    def test_returns_the_running_scan_after_that_time(self, api: Api, company: Company, repository, pausing):
        scan, pauses = make_scan(repository, status="running"), pausing()
        reply = read(api, company, scan, "wait=5")
        assert (reply.status, reply.data["status"], reply.headers["preference-applied"]) == (200, "running", "wait=5")
        assert sum(pauses) == 5
        assert reply.data == read(api, company, scan, None).data

    def test_a_scan_that_is_deleted_in_the_meantime_is_unknown(
        self, api: Api, company: Company, repository: RepositoryItem, pausing
    ):
        scan = make_scan(repository, status="running")
        pausing(2, lambda: table.delete_all([scan.key], PREPARED))
        assert read(api, company, scan, "wait=5").code == "NOT_FOUND"

    def test_the_time_and_the_reads_are_bounded(self, api: Api, company: Company, repository: RepositoryItem, pausing):
        scan, pauses = make_scan(repository, status="running"), pausing()
        with recorded_calls() as calls:
            reply = read(api, company, scan, "wait=3600")
        assert reply.headers["preference-applied"] == "wait=20"
        assert sum(pauses) == 20
        # Each reads the scan and its inventory; one is that of any request. The slot takes two writes.
        assert [call.operation for call in calls].count("BatchGetItem") <= 12 + 17 + 1
        assert len(calls) <= 12 + 17 + 1 + 4

    def test_an_ended_scan_is_returned_at_once(self, api: Api, company: Company, repository: RepositoryItem, pausing):
        scan, pauses = make_scan(repository), pausing()
        read(api, company, scan, None)  # the first request in a minute writes more
        with recorded_calls() as calls:
            reply = read(api, company, scan, "wait=5")
        assert (reply.data["status"], reply.headers["preference-applied"]) == ("completed", "wait=5")
        assert pauses == []
        with recorded_calls() as usual:
            read(api, company, scan, None)
        assert len(calls) == len(usual)

    @each("prefer", [None, "wait=x", "respond-async"])
    def test_without_the_preference_nothing_changes(
        self, prefer: str | None, api: Api, world: World, company: Company, pausing
    ):
        scan, pauses = make_scan(world.connected_repository(company), status="running"), pausing()
        reply = read(api, company, scan, prefer)
        assert (reply.data["status"], "preference-applied" in reply.headers, pauses) == ("running", False, [])

    def test_without_a_slot_it_does_not_wait_and_does_not_say_that_it_did(
        self, api: Api, company: Company, repository: RepositoryItem, pausing, monkeypatch
    ):
        monkeypatch.setitem(settings.__dict__, "account_concurrency", 30)
        scan, pauses = make_scan(repository, status="running"), pausing()
        while any(waiting.acquire_slot(60) for _ in range(20)):
            pass
        reply = read(api, company, scan, "wait=5")
        assert (reply.data["status"], "preference-applied" in reply.headers, pauses) == ("running", False, [])

    def test_releases_its_slot(self, api: Api, company: Company, repository, pausing, monkeypatch):
        monkeypatch.setitem(settings.__dict__, "account_concurrency", 10)
        scan, _ = make_scan(repository, status="running"), pausing()
        for _ in range(3):
            assert "preference-applied" in read(api, company, scan, "wait=2").headers


class TestStarting:
    def test_waits_for_the_scan_that_it_starts(
        self, api: Api, company: Company, repository: RepositoryItem, pausing, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(messages.sender, "client", _AtOnce(repository))

        def end() -> None:
            (scan,) = reads.list_scans(company.organization_id, 1, None).scans
            execution.acquire_scan(scan.scan_id, 420)
            end_scan(scan)

        pauses = pausing(6, end)
        reply = start(api, company, repository, "wait=15")
        assert (reply.status, reply.data["status"]) == (202, "started")
        assert reply.data["scan"]["status"] == "completed"
        assert reply.headers["preference-applied"] == "wait=15"
        assert sum(pauses) == 6

    def test_returns_the_request_if_the_scan_does_not_exist_in_time(
        self, api: Api, company: Company, repository: RepositoryItem, sqs: FakeSqs, pausing
    ):
        pauses = pausing()
        reply = start(api, company, repository, "wait=8", **KEY)
        assert (reply.data["status"], reply.headers["preference-applied"]) == ("starting", "wait=8")
        assert sum(pauses) == 8
        again = start(api, company, repository, "wait=1", **KEY)
        assert (again.data, again.headers["idempotency-replayed"]) == (reply.data, "true")

    def test_returns_the_request_as_soon_as_it_has_failed(
        self, api: Api, company: Company, repository: RepositoryItem, sqs: FakeSqs, pausing
    ):
        def fail() -> None:
            (letter,) = sqs.at(messages.Queue.SCAN_PREPARATION.url)
            request_id = ScanRequestId.stored(json.loads(letter.body)["requestId"])
            lease, _ = requests.acquire_request(request_id, 30)
            failures.fail_attempted(request_id, Failure("BRANCH_GONE", "It does not exist."), lease)

        pauses = pausing(4, fail)
        assert start(api, company, repository, "wait=8").data["status"] == "failed"
        assert sum(pauses) == 4

    def test_a_shorter_wait_than_the_usual_one_is_honored(
        self, api: Api, company: Company, repository: RepositoryItem, sqs: FakeSqs, pausing
    ):
        pauses = pausing()
        assert start(api, company, repository, "wait=0").headers["preference-applied"] == "wait=0"
        assert pauses == []
