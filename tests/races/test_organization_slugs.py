"""A slug belongs to one organization, and an organization is created completely or not at all."""

from collections import Counter
from collections.abc import Callable

import pytest

from tests.races.stage import Stage
from tests.races.verdicts import check_first
from tests.support.api import Reply
from tests.support.asgi import DirectApi
from tests.support.faults import Case, Trial
from tests.support.outcomes import Outcome
from tests.support.schedules import Race
from tests.support.threads import run_repeatedly
from tests.support.world import Person, World

pytestmark = pytest.mark.races


def creator(api: DirectApi, person: Person) -> Callable[[], Reply]:
    body = {"name": "Acme", "slug": "acme"}
    return lambda: api.post("/v1/organizations", person.token, json_body=body)


def test_of_two_creators_one_gets_the_slug(stage: Stage) -> None:
    def scenario(world: World) -> Race:
        people = [world.person(), world.person()]

        def check(outcomes: list[Outcome]) -> None:
            replies: list[Reply] = [outcome.get() for outcome in outcomes]
            assert sorted(reply.status for reply in replies) == [201, 409]
            for person, reply in zip(people, replies, strict=True):
                mine = stage.api.get("/v1/organizations", person.token).data
                assert [shown["organizationSlug"] for shown in mine] == (["acme"] if reply.status == 201 else [])
                if reply.status == 409:
                    assert reply.code == "CONFLICT"
                    assert reply.error["details"]["field"] == "slug"

        return Race([creator(stage.api, person) for person in people], check)

    stage.race(scenario)


def test_of_sixteen_threads_one_gets_the_slug(stage: Stage) -> None:
    world = stage.fresh()
    replies = [outcome.get() for outcome in run_repeatedly([creator(stage.api, world.person()) for _ in range(16)])]
    assert Counter(reply.status for reply in replies) == {201: 1, 409: 15}
    stage.check_invariants()


class TestEveryFault:
    def test_under_every_fault_an_organization_is_complete_or_missing(self, stage: Stage) -> None:
        def scenario(world: World) -> Trial:
            person = world.person()

            def check(case: Case) -> None:
                first = check_first(case, 201)
                second: Reply = case.second.get()
                if first is not None and first.status == 201:
                    assert second.status == 409
                else:
                    assert second.status in {201, 409}
                mine = stage.api.get("/v1/organizations", person.token).data
                assert [(shown["organizationSlug"], shown["role"]) for shown in mine] == [("acme", "owner")]

            return Trial(creator(stage.api, person), check)

        assert stage.faults(scenario) > 15
