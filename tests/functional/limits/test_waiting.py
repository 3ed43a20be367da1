"""Requests that wait for a worker use at most a tenth of the concurrency; further requests don't wait."""

import pytest

from controlplane.platform.core import clock
from controlplane.platform.core.settings import settings
from controlplane.platform.table import waiting
from tests.functional.limits.conftest import throttled
from tests.support.calls import recorded_calls


@pytest.fixture(autouse=True)
def _thirty(limit):
    assert settings.account_concurrency == 1_000
    limit(account_concurrency=30)


def take(times=40):
    return [held for _ in range(times) if (held := waiting.acquire_slot(8))]


def release(slots):
    for number, holder in slots:
        waiting.release_slot(number, holder)


def test_a_tenth_of_the_concurrency_can_wait_and_at_least_one_request(limit):
    held = take()
    assert sorted(number for number, _ in held) == [0, 1, 2]
    release(held)
    limit(account_concurrency=10)
    assert len(take()) == 1


def test_slots_of_a_crashed_request_are_free_after_its_lease_and_not_released_by_it(now):
    late = take()
    now.advance(9)
    assert take() == []
    now.advance(1)
    assert len(take()) == 3
    release(late)
    assert take() == []


def test_slots_cost_one_write_to_acquire_and_one_to_release_and_none_is_acquired_while_throttled():
    with recorded_calls() as calls:
        with waiting.slot(8):
            pass
        with waiting.slot(0):
            pass
    assert [call.operation for call in calls] == ["UpdateItem"] * 2
    with throttled("WAITSLOT#"), waiting.slot(8) as may_wait:
        assert not may_wait
    with waiting.slot(8) as may_wait, throttled("WAITSLOT#"):
        assert may_wait


@pytest.fixture
def pauses(limit, sqs, monkeypatch):
    """Makes a start of a scan wait for up to three seconds. Returns the pauses, which take no time."""
    made = []

    async def pause(seconds):
        made.append(seconds)

    limit(scan_start_wait_seconds=3)
    monkeypatch.setattr(clock, "pause", pause)
    return made


@pytest.mark.parametrize(("others", "seconds"), [(0, 3), (40, 0)])
def test_starting_a_scan_waits_three_seconds_unless_all_slots_are_taken(others, seconds, api, world, pauses):
    taken = take(others)
    company = world.company()
    body = {"repositoryId": world.connected_repository(company).repository_id}
    reply = api.post("/v1/code-audit/scans", company.owner.token, json_body=body)
    assert (reply.status, reply.data["status"], reply.headers["retry-after"]) == (202, "starting", "2")
    assert sum(pauses) == pytest.approx(seconds)
    assert len(take()) == 3 - len(taken)
