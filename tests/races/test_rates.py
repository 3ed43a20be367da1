"""A key and a person are admitted exactly as often per minute as their limits say, and refusals recorded to a bound."""

from collections import Counter
from typing import Any

import pytest

from controlplane.people import sessions
from controlplane.platform.core.settings import settings
from controlplane.platform.core.tokens import digest
from controlplane.platform.table import keys, refusals, waiting
from controlplane.platform.table.table import Update, table
from tests.races.faults import Kind
from tests.races.schedules import every_call
from tests.races.stage import RACE_TIME, faults, race
from tests.races.threads import run_repeatedly
from tests.support.table import PREPARED
from tests.support.world import World

MINUTE = int(RACE_TIME) // 60


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda name, number: monkeypatch.setitem(settings.__dict__, name, number)


def key_with_limit(world: World, limit: int) -> str:
    """Creates a key with this limit and returns its secret."""
    secret = world.key(world.company())
    table.update(Update(keys.key_secret(digest(secret)), "SET #rateLimit = :limit", values={"limit": limit}), PREPARED)
    return secret


def test_sixteen_threads_get_exactly_the_limit_of_a_key(stage):
    secret = key_with_limit(stage.fresh(), 100)
    replies = [outcome.get() for outcome in run_repeatedly([lambda: stage.api.get("/v1/me", secret)] * 16, times=10)]
    assert Counter(reply.status for reply in replies) == {200: 100, 429: 60}
    admitted = [int(reply.headers["x-ratelimit-remaining"]) for reply in replies if reply.status == 200]
    assert sorted(admitted) == list(range(100))
    assert stage.check_invariants()[keys.key_secret(digest(secret))]["hits"] == 160


# With blocks of four, which end at half of the limit, some requests that race with that are reserved twice.
@pytest.mark.parametrize(("number", "times", "least"), [(100, 10, 100), (400, 30, 360)])
def test_sixteen_threads_with_four_credentials_get_the_limit_of_a_person(stage, limit, number, times, least):
    limit("requests_per_minute_user", number)
    world = stage.fresh()
    person = world.person()
    secrets = [person.token, world.token(person.user_id), *(sessions.create(person.user_id) for _ in range(2))]
    acts = [lambda secret=secret: stage.api.get("/v1/me", secret) for secret in secrets * 4]
    admitted = [outcome.get().status for outcome in run_repeatedly(acts, times=times)].count(200)
    assert least <= admitted <= number
    assert stage.check_invariants()[keys.owner_count(person.user_id, MINUTE)]["hits"] >= admitted


@pytest.mark.parametrize("opened", [False, True], ids=["first use", "window open"])
@race(yields_at=lambda call: call.operation == "UpdateItem")
def test_no_minute_admits_more_or_fewer_than_the_limit(world, stage, thread_clock, opened):
    """Requests before and after the minute ends, by the clocks of the instances that serve them."""
    secret = key_with_limit(world, 2)
    if opened:
        stage.api.get("/v1/me", secret)

    def request(seconds: float) -> Any:
        return lambda: (thread_clock(seconds), stage.api.get("/v1/me", secret))[1]

    late, early = MINUTE * 60 + 59.999, (MINUTE + 1) * 60 + 0.0
    replies = yield [request(late), request(early), request(early)]
    windows: dict[str, list[int]] = {}
    for reply in replies:
        windows.setdefault(reply.headers["x-ratelimit-reset"], []).append(reply.status)
    before, after = (str((MINUTE + minutes) * 60) for minutes in (1, 2))
    assert set(windows) <= {before, after}
    room = 1 if opened else 2
    assert windows.get(before, []).count(200) == min(room, len(windows.get(before, [])))
    assert windows[after].count(200) == min(2, len(windows[after]))
    assert {reply.status for reply in replies} <= {200, 429}


@faults(breaks=every_call)
def test_no_request_is_admitted_uncounted_if_a_keys_counter_fails(world, stage):
    secret = key_with_limit(world, 100)
    case = yield lambda: stage.api.get("/v1/me", secret)
    replies = [outcome.get() for outcome in (case.first, case.second) if outcome.error is None]
    hits = (table.get(keys.key_secret(digest(secret))) or {})["hits"]
    assert hits >= sum(reply.status == 200 for reply in replies)
    assert case.second.get().status == 200
    if case.fault.kind in {Kind.CONFLICT, Kind.LOST_ON_THE_WIRE, Kind.THROTTLED}:
        assert case.first.get().status in ({200, 429} if case.fault.kind is Kind.THROTTLED else {200})


@race(yields_at=every_call)
def test_credentials_of_a_person_share_the_remainder(world, stage, limit):
    limit("requests_per_minute_user", 2)
    person = world.person()
    secrets = [person.token, world.token(person.user_id), sessions.create(person.user_id)]
    replies = yield [lambda secret=secret: stage.api.get("/v1/me", secret) for secret in secrets]
    assert sorted(reply.status for reply in replies) == [200, 200, 429]


@faults(breaks=every_call)
def test_no_request_is_admitted_uncounted_if_a_persons_counter_fails(world, stage, limit):
    limit("requests_per_minute_user", 100)
    person = world.person()
    case = yield lambda: stage.api.get("/v1/me", person.token)
    admitted = [outcome.get().status for outcome in (case.first, case.second) if outcome.error is None].count(200)
    assert case.second.get().status == 200
    assert stage.check_invariants()[keys.owner_count(person.user_id, MINUTE)]["hits"] >= admitted


@race(yields_at=every_call)
def test_one_of_three_gets_the_last_slot_for_waiting(world, limit):
    limit("account_concurrency", 10)
    held = yield [lambda: waiting.acquire_slot(8)] * 3
    assert [slot is None for slot in held].count(False) == 1


def test_racing_refusals_of_a_caller_are_recorded_exactly_up_to_the_bound(stage):
    world = stage.fresh()
    company = world.company()
    key = world.key(company)
    refusals._full.clear()
    outcomes = run_repeatedly([lambda: stage.api.get("/v1/projects/prj_unknown", key)] * 8, times=5)
    replies = [outcome.get() for outcome in outcomes]
    assert {reply.status for reply in replies} == {404}
    items = table.query(keys.refusals_pk(company.organization_id), consistent=True).items
    assert all(item["count"] == len(item["refusals"]) <= refusals.RECORDS_PER_ITEM for item in items)
    found = [record["requestId"] for item in items for record in item["refusals"]]
    assert len(found) == refusals.RECORDS_PER_ITEM
    assert {*found} <= {reply.headers["x-request-id"] for reply in replies}
    explained = stage.api.get(f"/v1/requests/{found[0]}", company.owner.token)
    assert explained.data["refusal"]["code"] == "NOT_FOUND"
