"""An account has one identity per issuer, and an address one account, despite concurrent sign-ins."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from controlplane.access import sign_in
from controlplane.access.sign_in import AnotherIdentity, Claims
from controlplane.organizations import store as organizations
from controlplane.people import identities, users
from controlplane.people.users import UserItem
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from ops.users import move_identity
from tests.races.stage import faults, race
from tests.races.yields import only_writes
from tests.support import invariants
from tests.support.world import get_profile

ISSUER, GRACE, ADA = "https://issuer.example", "grace@example.com", "ada@example.com"


def signs_in(subject: str = "a", email: str = GRACE, issuer: str = ISSUER) -> Callable[[], UserItem]:
    claims = Claims(issuer=issuer, subject=subject, email=email, email_verified=True, name="Grace", image=None)
    return lambda: sign_in.sign_in(claims)


def check_addresses() -> None:
    """Checks that each account has exactly one pointer, from its own address, and that no other pointers exist."""
    items = invariants.read_items(table.client, table.name)
    pointers = {key.pk.removeprefix("EMAIL#"): item["userId"] for key, item in items.items() if key.sk == "USER"}
    assert pointers == {item["email"]: item["userId"] for key, item in items.items() if key.sk == "PROFILE"}
    listed = sorted(digest for item in items.values() for digest in item.get("identities", ()))
    assert listed == sorted(key.pk.removeprefix("IDENTITY#") for key in items if key.sk == "IDENTITY")


def subjects_of(user_id: str) -> list[str]:
    check_addresses()
    return [item.subject for item in identities.list_identities(user_id)]


def roster_of(organization_id: str, user_id: str) -> str:
    item: Any = table.get(keys.member(organization_id, user_id))
    return str(item["email"])


@pytest.mark.parametrize("pre_made", [False, True])
@race(AnotherIdentity)
def test_of_two_subjects_one_gets_the_account(world, pre_made):
    if pre_made:
        users.create_user(GRACE, "Grace")
    results = yield [signs_in("a"), signs_in("b")]
    (profile,) = [it for it in results if not isinstance(it, AnotherIdentity)]
    assert get_profile(GRACE).user_id == profile.user_id
    assert len(subjects_of(profile.user_id)) == 1


@pytest.mark.parametrize(("issuer", "count"), [(ISSUER, 1), ("https://other.example", 2)])
@race()
def test_two_first_sign_ins_create_one_account(world, issuer, count):
    (user_id,) = {profile.user_id for profile in (yield [signs_in("a"), signs_in("a", issuer=issuer)])}
    assert len(subjects_of(user_id)) == count


@race(AnotherIdentity)
def test_moving_an_identity_during_its_sign_in_leaves_one_identity(world):
    user_id = signs_in("old")().user_id
    move = lambda: move_identity(user_id, "old", None, to="new", is_user=False)  # noqa: E731
    moved, _ = yield [move, signs_in("old")]
    assert not isinstance(moved, AnotherIdentity)
    assert subjects_of(user_id) == ["new"]


@race(identities.AccountHasIdentity)
def test_two_moves_give_the_account_one_identity(world):
    owners = {subject: signs_in(subject, f"{subject}@example.com")().user_id for subject in "ab"}
    target = users.create_user(GRACE, "Grace").user_id
    moved = yield [
        partial(move_identity, user_id, subject, None, to=target, is_user=True) for subject, user_id in owners.items()
    ]
    assert sorted(isinstance(it, identities.AccountHasIdentity) for it in moved) == [False, True]
    assert len(subjects_of(target)) == 1


@race()
def test_a_new_address_that_two_accounts_take_is_given_to_one(world):
    for subject in ("a", "b"):
        signs_in(subject, f"{subject}@example.com")()
    profiles = yield [signs_in("a"), signs_in("b")]
    assert sorted(profile.email == GRACE for profile in profiles) == [False, True]
    check_addresses()


@race(AnotherIdentity, ends={True, False})
def test_a_new_address_that_another_person_signs_in_with_belongs_to_one(world):
    first = signs_in("a", ADA)().user_id
    moved, joined = yield [signs_in("a"), signs_in("b")]
    is_refused = isinstance(joined, AnotherIdentity)
    assert moved.user_id == first
    assert is_refused or joined.user_id != first
    assert get_profile(first).email == (GRACE if is_refused else ADA)
    check_addresses()
    return is_refused


@race(yields_at=only_writes)
def test_two_address_changes_leave_rosters_with_the_accounts_address(world):
    user_id = signs_in("a", ADA)().user_id
    made = organizations.create_organization("Acme", "acme", user_id)
    yield [signs_in("a", "b@example.com"), signs_in("a", "c@example.com")]
    after = get_profile(user_id)
    assert (roster_of(made.organization_id, user_id), bool(after.rosters_pending)) == (after.email, False)
    check_addresses()


@race()
def test_an_organization_that_is_created_meanwhile_shows_the_accounts_address(world):
    user_id = signs_in("a", ADA)().user_id
    create = partial(organizations.create_organization, "Acme", "acme", user_id)
    _, made = yield [signs_in("a", "b@example.com"), create]
    assert roster_of(made.organization_id, user_id) == get_profile(user_id).email == "b@example.com"


@faults()
def test_an_address_change_interrupted_anywhere_is_finished_by_the_next_sign_in(world):
    user_id = signs_in("a", ADA)().user_id
    made = [organizations.create_organization(slug, slug, user_id).organization_id for slug in ("one", "two")]
    case = yield signs_in("a")
    after = case.second.get()
    assert (after.email, bool(after.rosters_pending)) == (GRACE, False)
    assert {roster_of(organization_id, user_id) for organization_id in made} == {GRACE}
    check_addresses()


@faults()
def test_a_first_sign_in_interrupted_anywhere_is_finished_by_the_next(world):
    user_id = users.create_user(GRACE, "Grace").user_id
    case = yield signs_in("a")
    assert case.second.get().user_id == user_id
    assert subjects_of(user_id) == ["a"]
