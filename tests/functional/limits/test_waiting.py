"""Requests that wait for a worker use at most a tenth of the concurrency; further requests don't wait."""

import pytest

from controlplane.platform.core import clock
from controlplane.platform.core.settings import settings
from controlplane.platform.table import waiting
from tests.functional.limits.test_owners import throttled
from tests.support.api import Api
from tests.support.recorded import recorded_calls
from tests.support.world import World


@pytest.fixture(autouse=True)
def _thirty(limit):
    assert settings.account_concurrency == 1_000
    limit(account_concurrency=30)


def take(times: int = 40) -> list[tuple[int, str]]:
    return [held for _ in range(times) if (held := waiting.acquire_slot(8))]


class TestSlots:
    def test_a_tenth_of_the_concurrency_can_wait(self):
        held = take()
        assert sorted(number for number, _ in held) == [0, 1, 2]

    def test_a_released_slot_is_free_again(self):
        for number, holder in take():
            waiting.release_slot(number, holder)
        assert len(take()) == 3

    def test_of_a_crashed_request_are_free_after_its_lease(self, now):
        assert len(take()) == 3
        now.advance(9)
        assert take() == []
        now.advance(1)
        assert len(take()) == 3

    def test_are_not_released_by_a_former_holder(self, now):
        late = take()
        now.advance(10)
        assert len(take()) == 3
        for number, holder in late:
            waiting.release_slot(number, holder)
        assert take() == []

    def test_number_at_least_one(self, limit):
        limit(account_concurrency=10)
        assert len(take()) == 1

    def test_are_not_acquired_while_the_table_throttles(self):
        with throttled("WAITSLOT#"), waiting.slot(8) as may_wait:
            assert not may_wait
        with waiting.slot(8) as may_wait, throttled("WAITSLOT#"):
            assert may_wait

    def test_cost_one_write_to_acquire_and_one_to_release(self):
        with recorded_calls() as calls:
            with waiting.slot(8):
                pass
            with waiting.slot(0):
                pass
        assert [call.operation for call in calls] == ["UpdateItem"] * 2


class TestScans:
    @pytest.fixture
    def pauses(self, monkeypatch: pytest.MonkeyPatch, limit) -> list[float]:
        monkeypatch.setitem(settings.__dict__, "scan_start_wait_seconds", 3)
        pauses: list[float] = []

        async def pause(seconds: float) -> None:
            pauses.append(seconds)

        monkeypatch.setattr(clock, "pause", pause)
        return pauses

    def start(self, api: Api, world: World):
        company = world.company()
        body = {"repositoryId": world.connected_repository(company).repository_id}
        return api.post("/v1/code-audit/scans", company.owner.token, json_body=body)

    def test_with_a_slot_starting_a_scan_waits_three_seconds(self, api: Api, world: World, sqs, pauses: list[float]):
        reply = self.start(api, world)
        assert (reply.status, reply.data["status"]) == (202, "starting")
        assert sum(pauses) == pytest.approx(3)
        assert len(take()) == 3

    def test_without_a_slot_the_response_is_immediate(self, api: Api, world: World, sqs, pauses: list[float]):
        take()
        reply = self.start(api, world)
        assert (reply.status, reply.data["status"], reply.headers["retry-after"]) == (202, "starting", "2")
        assert pauses == []
