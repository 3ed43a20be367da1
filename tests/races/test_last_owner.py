"""An organization always has an owner, and only owners can make others owners."""

from collections.abc import Callable

import pytest

from controlplane.core.ids import MemberId
from controlplane.store import keys
from controlplane.store.table import table
from tests.races.stage import Stage
from tests.races.verdicts import check_first
from tests.races.yields import came_first
from tests.support.api import Reply
from tests.support.asgi import DirectApi
from tests.support.faults import Case, Kind, Trial
from tests.support.schedules import Race
from tests.support.threads import run_repeatedly
from tests.support.world import Person, World

pytestmark = pytest.mark.races


class Team:
    """An organization with two owners, A and B, and a member, M."""

    def __init__(self, world: World, api: DirectApi) -> None:
        self.api = api
        self.company = world.company()
        self.a = self.company.owner
        self.b = world.member(self.company, "owner")
        self.m = world.member(self.company, "member")

    def change(self, caller: Person, person: Person, role: str) -> Callable[[], Reply]:
        return lambda: self.api.patch(self._path(person), caller.token, json_body={"role": role})

    def remove(self, caller: Person, person: Person) -> Callable[[], Reply]:
        return lambda: self.api.delete(self._path(person), caller.token)

    def role(self, person: Person) -> str | None:
        item = table.get(keys.member(self.company.organization_id, person.user_id))
        return item["role"] if item else None

    def _path(self, person: Person) -> str:
        return f"/v1/members/{MemberId.of_user(self.company.organization_id, person.user_id)}"


type Acts = Callable[[Team], list[Callable[[], Reply]]]
type Replies = list[Reply]


@pytest.fixture
def race(stage: Stage) -> Callable[..., None]:
    """Runs two acts of one team in every order. Calls `check` with the replies."""

    def run(acts: Acts, check: Callable[[Team, Replies], None]) -> None:
        def scenario(world: World) -> Race:
            team = Team(world, stage.api)
            return Race(acts(team), lambda outcomes: check(team, [outcome.get() for outcome in outcomes]))

        stage.race(scenario)

    return run


class TestEveryOrder:
    @pytest.mark.parametrize(
        "acts",
        [
            pytest.param(
                lambda team: [team.change(team.a, team.b, "admin"), team.change(team.b, team.a, "admin")],
                id="demote each other",
            ),
            pytest.param(
                lambda team: [team.remove(team.a, team.b), team.remove(team.b, team.a)], id="remove each other"
            ),
            pytest.param(
                lambda team: [team.change(team.a, team.a, "admin"), team.change(team.b, team.b, "member")],
                id="demote themselves",
            ),
            pytest.param(
                lambda team: [team.change(team.a, team.b, "member"), team.remove(team.b, team.a)],
                id="demote against remove",
            ),
        ],
    )
    def test_two_owners_cant_both_step_down(self, acts: Acts, race: Callable[..., None]) -> None:
        def check(team: Team, replies: Replies) -> None:
            # The later caller is no longer an owner (403), or not even a member (404).
            assert sorted(reply.status for reply in replies) in ([200, 403], [200, 404])
            assert [team.role(team.a), team.role(team.b)].count("owner") == 1

        race(acts, check)

    def test_two_demotions_of_the_same_owner_leave_an_owner(self, race: Callable[..., None]) -> None:
        def check(team: Team, replies: Replies) -> None:
            assert {reply.status for reply in replies} <= {200, 403}
            assert team.role(team.b) in {"admin", "member"}

        race(lambda team: [team.change(team.a, team.b, "admin"), team.change(team.a, team.b, "member")], check)

    def test_owner_is_granted_only_by_a_current_owner(self, stage: Stage, race: Callable[..., None]) -> None:
        def check(team: Team, replies: Replies) -> None:
            demotion, grant = replies
            assert demotion.status == 200
            assert grant.status == (403 if came_first(stage.ran, 0) else 200)
            assert (team.role(team.m) == "owner") == (grant.status == 200)

        race(lambda team: [team.change(team.a, team.b, "admin"), team.change(team.b, team.m, "owner")], check)

    def test_a_removed_owner_grants_nothing(self, stage: Stage, race: Callable[..., None]) -> None:
        def check(team: Team, replies: Replies) -> None:
            removal, grant = replies
            assert removal.status == 200
            assert grant.status in ({403, 404} if came_first(stage.ran, 0) else {200})
            assert (team.role(team.m) == "owner") == (grant.status == 200)

        race(lambda team: [team.remove(team.a, team.b), team.change(team.b, team.m, "owner")], check)

    def test_a_member_is_removed_or_promoted_and_removed(self, race: Callable[..., None]) -> None:
        def check(team: Team, replies: Replies) -> None:
            promotion, removal = replies
            assert promotion.status in {200, 404}
            assert removal.status in {200, 409}
            if removal.status == 200:
                assert team.role(team.m) is None

        race(lambda team: [team.change(team.a, team.m, "admin"), team.remove(team.b, team.m)], check)


def test_sixteen_owners_demoting_each_other_leave_an_owner(stage: Stage) -> None:
    world = stage.fresh()
    team = Team(world, stage.api)
    owners = [team.a, team.b] + [world.member(team.company, "owner") for _ in range(14)]
    acts = [team.change(caller, owners[number - 1], "admin") for number, caller in enumerate(owners)]
    replies: Replies = [outcome.get() for outcome in run_repeatedly(acts)]
    # The organization's item is contended on purpose: a caller that conflicts every time gets a 429.
    assert {reply.status for reply in replies} <= {200, 403, 429}
    stage.check_invariants()


class TestEveryFault:
    @pytest.mark.parametrize(
        ("act", "settled"),
        [
            pytest.param(lambda team: team.change(team.a, team.b, "admin"), "admin", id="demotion"),
            pytest.param(lambda team: team.change(team.a, team.m, "owner"), "owner", id="grant"),
            pytest.param(lambda team: team.remove(team.a, team.b), None, id="removal"),
        ],
    )
    def test_under_every_fault_a_retry_ends_as_requested(
        self, act: Callable[[Team], Callable[[], Reply]], settled: str | None, stage: Stage
    ) -> None:
        def scenario(world: World) -> Trial:
            team = Team(world, stage.api)

            def check(case: Case) -> None:
                check_first(case, 200)
                assert case.second.get().status in ({200, 404} if settled is None else {200})
                target = team.m if settled == "owner" else team.b
                assert team.role(target) == settled

            return Trial(act(team), check)

        assert stage.faults(scenario) > 15


def test_endless_contention_is_given_up_within_a_second(stage: Stage) -> None:
    def scenario(world: World) -> Trial:
        team = Team(world, stage.api)

        def check(case: Case) -> None:
            if case.fault.kind is Kind.CONFLICT:
                assert case.first.get().status in {429, 503}
                assert sum(case.paused_seconds) < 1
            assert case.second.get().status == 200

        return Trial(team.change(team.a, team.b, "admin"), check)

    stage.faults(scenario, kinds=frozenset({Kind.CONFLICT}), every_time=True)
