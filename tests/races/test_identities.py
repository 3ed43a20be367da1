"""An account has one identity per issuer, and an address one account, despite concurrent sign-ins."""

from collections.abc import Callable
from functools import partial

import pytest

from controlplane.store import identities, keys, organizations, sign_in, users
from controlplane.store.sign_in import AnotherIdentity, Claims
from controlplane.store.table import table
from controlplane.store.users import UserItem
from ops.identities import move_identity
from tests.races.stage import Stage
from tests.races.yields import only_writes
from tests.support import invariants
from tests.support.faults import Case, Crashed, Kind, Trial
from tests.support.outcomes import Outcome
from tests.support.schedules import Race
from tests.support.threads import run_repeatedly
from tests.support.world import World, get_profile

pytestmark = pytest.mark.races

ISSUER, GRACE = "https://issuer.example", "grace@example.com"


def signs_in(subject: str, email: str = GRACE, issuer: str = ISSUER) -> Callable[[], UserItem]:
    claims = Claims(issuer=issuer, subject=subject, email=email, email_verified=True, name="Grace", image=None)
    return lambda: sign_in.sign_in(claims)


def address_holds() -> None:
    """Checks that each account has exactly one pointer, from its own address, and that no other pointers exist."""
    items = invariants.read_items(table.client, table.name)
    pointers = {key.pk.removeprefix("EMAIL#"): item["userId"] for key, item in items.items() if key.sk == "USER"}
    profiles = {item["email"]: item["userId"] for key, item in items.items() if key.sk == "PROFILE"}
    assert pointers == profiles
    listed = sorted(digest for item in items.values() for digest in item.get("identities", ()))
    assert listed == sorted(key.pk.removeprefix("IDENTITY#") for key in items if key.sk == "IDENTITY")


class TestFirstSignIns:
    @pytest.mark.parametrize("pre_made", [False, True])
    def test_of_two_subjects_one_gets_the_account(self, stage: Stage, pre_made: bool) -> None:
        def scenario(world: World) -> Race:
            if pre_made:
                users.create_user(GRACE, "Grace")

            def check(outcomes: list[Outcome]) -> None:
                (profile,) = [outcome.value for outcome in outcomes if outcome.error is None]
                (failure,) = [outcome.error for outcome in outcomes if outcome.error is not None]
                assert isinstance(failure, AnotherIdentity)
                assert get_profile(GRACE).user_id == profile.user_id
                assert len(identities.list_identities(profile.user_id)) == 1
                address_holds()

            return Race([signs_in("a"), signs_in("b")], check)

        stage.race(scenario)

    def test_two_first_sign_ins_of_one_subject_create_one_account(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            def check(outcomes: list[Outcome]) -> None:
                assert len({outcome.get().user_id for outcome in outcomes}) == 1
                address_holds()

            return Race([signs_in("a"), signs_in("a")], check)

        stage.race(scenario)

    def test_first_sign_ins_at_two_issuers_create_one_account(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            def check(outcomes: list[Outcome]) -> None:
                (user_id,) = {outcome.get().user_id for outcome in outcomes}
                assert len(identities.list_identities(user_id)) == 2
                address_holds()

            return Race([signs_in("a"), signs_in("a", issuer="https://other.example")], check)

        stage.race(scenario)

    def test_sixteen_subjects_create_one_account(self, stage: Stage) -> None:
        stage.fresh()
        outcomes = run_repeatedly([signs_in(str(number)) for number in range(16)])
        assert sum(outcome.error is None for outcome in outcomes) == 1
        assert {type(outcome.error) for outcome in outcomes} == {type(None), AnotherIdentity}
        address_holds()


class TestMove:
    def test_moving_an_identity_during_its_sign_in_leaves_one_identity(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            user_id = signs_in("old")().user_id

            def move() -> object:
                return move_identity(user_id, "old", None, to="new", is_user=False)

            def check(outcomes: list[Outcome]) -> None:
                assert outcomes[0].error is None
                assert outcomes[1].error is None or isinstance(outcomes[1].error, AnotherIdentity)
                assert [item.subject for item in identities.list_identities(user_id)] == ["new"]
                address_holds()

            return Race([move, signs_in("old")], check)

        stage.race(scenario)

    def test_two_moves_give_the_account_one_identity(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            owners = [signs_in(subject, f"{subject}@example.com")().user_id for subject in ("a", "b")]
            target = users.create_user(GRACE, "Grace").user_id

            def move(number: int) -> Callable[[], object]:
                return lambda: move_identity(owners[number], "ab"[number], None, to=target, is_user=True)

            def check(outcomes: list[Outcome]) -> None:
                (failure,) = [outcome.error for outcome in outcomes if outcome.error is not None]
                assert isinstance(failure, identities.AccountHasIdentity)
                assert len(identities.list_identities(target)) == 1
                address_holds()

            return Race([move(0), move(1)], check)

        stage.race(scenario)


class TestChangedAddress:
    def test_a_new_address_that_two_accounts_take_is_given_to_one(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            for subject in ("a", "b"):
                signs_in(subject, f"{subject}@example.com")()

            def check(outcomes: list[Outcome]) -> None:
                profiles = [outcome.get() for outcome in outcomes]
                assert sorted(profile.email == GRACE for profile in profiles) == [False, True]
                address_holds()

            return Race([signs_in("a"), signs_in("b")], check)

        stage.race(scenario)

    def test_a_new_address_that_another_person_signs_in_with_belongs_to_one(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            first = signs_in("a", "ada@example.com")().user_id

            def check(outcomes: list[Outcome]) -> None:
                moved, joined = outcomes
                assert moved.get().user_id == first
                if joined.error is None:
                    assert joined.value.user_id != first
                    assert get_profile(first).email == "ada@example.com"
                else:
                    assert isinstance(joined.error, AnotherIdentity)
                    assert get_profile(first).email == GRACE
                address_holds()

            return Race([signs_in("a"), signs_in("b")], check)

        stage.race(scenario)

    def test_two_address_changes_leave_rosters_with_the_accounts_address(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            profile = signs_in("a", "ada@example.com")()
            made = organizations.create_organization("Acme", "acme", profile.user_id)

            def check(outcomes: list[Outcome]) -> None:
                assert [outcome.error for outcome in outcomes] == [None, None]
                after = users.find_user(profile.user_id)
                roster = table.get(keys.member(made.organization_id, profile.user_id))
                assert after is not None
                assert roster["email"] == after.email
                assert not after.rosters_pending
                address_holds()

            return Race([signs_in("a", "b@example.com"), signs_in("a", "c@example.com")], check)

        stage.race(scenario, yields_at=only_writes)

    def test_an_organization_that_is_created_meanwhile_shows_the_accounts_address(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            user_id = signs_in("a", "ada@example.com")().user_id

            def check(outcomes: list[Outcome]) -> None:
                made = [outcome.get() for outcome in outcomes][1]
                after = users.find_user(user_id)
                assert after is not None
                assert table.get(keys.member(made.organization_id, user_id))["email"] == after.email == "b@example.com"

            create = partial(organizations.create_organization, "Acme", "acme", user_id)
            return Race([signs_in("a", "b@example.com"), create], check)

        stage.race(scenario)

    def test_an_address_change_interrupted_anywhere_is_finished_by_the_next_sign_in(self, stage: Stage) -> None:
        def scenario(world: World) -> Trial:
            profile = signs_in("a", "ada@example.com")()
            made = [organizations.create_organization(slug, slug, profile.user_id) for slug in ("one", "two")]

            def check(case: Case) -> None:
                if case.fault.kind is Kind.CRASH:
                    assert isinstance(case.first.error, Crashed)
                after = case.second.get()
                assert after.email == GRACE
                assert not after.rosters_pending
                for it in made:
                    assert table.get(keys.member(it.organization_id, profile.user_id))["email"] == GRACE
                address_holds()

            return Trial(signs_in("a"), check)

        assert stage.faults(scenario) > 20

    def test_a_first_sign_in_interrupted_anywhere_is_finished_by_the_next(self, stage: Stage) -> None:
        def scenario(world: World) -> Trial:
            user_id = users.create_user(GRACE, "Grace").user_id

            def check(case: Case) -> None:
                assert case.second.get().user_id == user_id
                assert [it.subject for it in identities.list_identities(user_id)] == ["a"]
                address_holds()

            return Trial(signs_in("a"), check)

        assert stage.faults(scenario) > 20
