"""A creation with an Idempotency-Key takes effect at most once, despite lost, late, or repeated calls."""

from collections.abc import Callable

import pytest

from tests.races.stage import RACE_TIME, Stage
from tests.races.verdicts import check_first
from tests.support.api import Reply
from tests.support.asgi import DirectApi
from tests.support.faults import Case, Kind, Trial
from tests.support.outcomes import Outcome
from tests.support.schedules import Race
from tests.support.threads import run_repeatedly
from tests.support.world import Company, World

pytestmark = pytest.mark.races

# Longer than the lease of an attempt, shorter than the lifetime of a token.
LATER_SECONDS = 120


class Client:
    """A client that repeats the same key creation with the same Idempotency-Key."""

    def __init__(self, world: World, api: DirectApi) -> None:
        self.api = api
        self.company: Company = world.company()

    def create(self) -> Reply:
        path = f"/v1/api-keys?organizationId={self.company.organization_id}"
        headers = {"Idempotency-Key": "one-of-mine"}
        return self.api.post(path, self.company.owner.token, json_body={"name": "deploy"}, headers=headers)

    def made(self) -> list[str]:
        listed = self.api.get(f"/v1/api-keys?organizationId={self.company.organization_id}", self.company.owner.token)
        return [shown["keyId"] for shown in listed.data]


def check_replies(client: Client, replies: list[Reply]) -> None:
    """Checks that at most one key was created, that all 201 replies are equal, and that the others ask to retry."""
    created = [reply.data for reply in replies if reply.status == 201]
    assert all(shown == created[0] for shown in created)
    assert {reply.code for reply in replies if reply.status not in {201, 429, 503}} <= {"CONFLICT"}
    made = client.made()
    assert len(made) <= 1
    assert {shown["keyId"] for shown in created} <= set(made)


def test_two_concurrent_requests_create_one(stage: Stage) -> None:
    def scenario(world: World) -> Race:
        client = Client(world, stage.api)

        def check(outcomes: list[Outcome]) -> None:
            replies: list[Reply] = [outcome.get() for outcome in outcomes]
            assert 201 in {reply.status for reply in replies}
            check_replies(client, replies)

        return Race([client.create] * 2, check)

    stage.race(scenario)


def test_a_slow_request_and_its_repetition_after_the_lease_create_one(
    stage: Stage, thread_clock: Callable[[float], None]
) -> None:
    def scenario(world: World) -> Race:
        client = Client(world, stage.api)

        def repeat_later() -> Reply:
            thread_clock(RACE_TIME + LATER_SECONDS)
            return client.create()

        def check(outcomes: list[Outcome]) -> None:
            check_replies(client, [outcome.get() for outcome in outcomes])

        return Race([client.create, repeat_later], check)

    stage.race(scenario)


def test_sixteen_threads_create_one(stage: Stage) -> None:
    client = Client(stage.fresh(), stage.api)
    replies: list[Reply] = [outcome.get() for outcome in run_repeatedly([client.create] * 16)]
    assert 201 in {reply.status for reply in replies}
    check_replies(client, replies)
    assert client.create().headers["idempotency-replayed"] == "true"
    stage.check_invariants()


class TestEveryFault:
    @pytest.mark.parametrize("wait_seconds", [0, LATER_SECONDS], ids=["at once", "after the lease"])
    def test_under_every_fault_a_retry_never_creates_a_second_one(
        self, wait_seconds: int, stage: Stage, thread_clock: Callable[[float], None]
    ) -> None:
        def scenario(world: World) -> Trial:
            client = Client(world, stage.api)
            thread_clock(RACE_TIME)

            def again() -> Reply:
                thread_clock(RACE_TIME + wait_seconds)
                return client.create()

            def check(case: Case) -> None:
                first, second = check_first(case, 201), case.second.get()
                check_replies(client, [reply for reply in (first, second) if reply is not None])
                if case.fault.kind in {Kind.NONE, Kind.CONFLICT, Kind.LOST_ON_THE_WIRE, Kind.LOST_THEN_CONFLICT}:
                    assert second.status == 201
                if wait_seconds and not client.made():
                    assert second.status != 409

            return Trial(client.create, check, again)

        assert stage.faults(scenario) > 20

    @pytest.mark.parametrize("wait_seconds", [0, LATER_SECONDS], ids=["at once", "after the lease"])
    def test_a_retry_never_creates_a_second_one_if_every_response_is_lost(
        self, wait_seconds: int, stage: Stage, thread_clock: Callable[[float], None]
    ) -> None:
        def scenario(world: World) -> Trial:
            client = Client(world, stage.api)
            thread_clock(RACE_TIME)

            def again() -> Reply:
                thread_clock(RACE_TIME + wait_seconds)
                return client.create()

            def check(case: Case) -> None:
                check_replies(client, [case.first.get(), case.second.get()])

            return Trial(client.create, check, again)

        kinds = frozenset({Kind.LOST, Kind.SERVER_ERROR})
        assert stage.faults(scenario, kinds=kinds, every_time=True) > 10
