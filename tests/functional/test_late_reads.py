"""Decisions on a table whose reads are late unless they are consistent. `make lagging` runs the other tests on it."""

import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import CodeType, FunctionType
from typing import Any

from controlplane.api_keys import store as api_keys
from controlplane.api_keys.items import ApiKeyItem
from controlplane.billing import store as billing
from controlplane.erasure import deletions
from controlplane.organizations import invitations, invitees
from controlplane.organizations import store as organizations
from controlplane.people import credential_index, identities, revocations
from controlplane.people import tokens as user_tokens
from controlplane.people.identities import Subject
from controlplane.platform.core import ids
from controlplane.platform.core.ids import InvitationId, KeyId, MemberId
from controlplane.platform.core.plans import KEYS_IN_GRACE_PER_ORGANIZATION
from controlplane.platform.table import keys
from controlplane.platform.table.table import Table, table
from tests.support.api import Api
from tests.support.lagging import EVERYTHING, deciding, late_by
from tests.support.table import PREPARED, own_table
from tests.support.world import World, get_profile

CONSISTENT = ("ConsistentRead=True", "ConsistentRead=False")
CONSISTENT_BATCH = ('"ConsistentRead": True', '"ConsistentRead": False')
CONSISTENT_QUERY = ("consistent=True", "consistent=False")


def on_a_late_table(bound: int, story: Callable[[], None]) -> None:
    """Runs the story on a table of its own. All that is read by the end must be right."""
    with late_by(bound), own_table():
        story()


def a_membership_applies_at_once() -> None:
    """A member who is named, added, and removed: read by the organization that the request names."""
    api, world = Api(), World()
    company = world.company()
    person = world.member(company)
    path = f"/v1/projects?organizationId={company.organization_id}"
    body = {"name": "Shop", "region": "eu-central"}
    assert api.post(path, person.token, json_body=body).status == 201
    world.leave(company, person)
    assert api.post(path, person.token, json_body=body).status == 403


def a_change_of_a_role_applies_at_once() -> None:
    """An admin who becomes a member: read together with the project."""
    api, world = Api(), World()
    company = world.company()
    person = world.member(company, "admin")
    body = {"name": "Shop", "region": "eu-central"}
    path = f"/v1/projects?organizationId={company.organization_id}"
    made = [api.post(path, company.owner.token, json_body=body).data["id"] for _ in range(2)]
    assert api.delete(f"/v1/projects/{made[0]}", person.token).status == 200
    change = {"role": "member"}
    member_id = MemberId.of_user(company.organization_id, person.user_id)
    assert api.patch(f"/v1/members/{member_id}", company.owner.token, json_body=change).status == 200
    assert api.delete(f"/v1/projects/{made[1]}", person.token).status == 403


def the_only_organization_is_the_active_one() -> None:
    """A person's organizations, which decide where a request without organizationId acts."""
    api, world = Api(), World()
    company = world.company()
    body = {"name": "Shop", "region": "eu-central"}
    assert api.post("/v1/projects", company.owner.token, json_body=body).status == 201
    world.company(owner=company.owner)
    world.clear_default(company.owner)
    assert api.post("/v1/projects", company.owner.token, json_body=body).status == 400


def a_downgrade_disables_every_key() -> None:
    """The newest key included, which the plan's change finds by a query."""
    api, world = Api(), World()
    company = world.company()
    key = world.key(company)
    with deciding():
        billing.change_plan(company.organization_id, "free")
    assert api.get("/v1/projects", key).status == 402


def a_deleted_organization_has_no_key_and_no_member() -> None:
    """The newest of both included."""
    api, world = Api(), World()
    company = world.company()
    person, key = world.member(company), world.key(company)
    with deciding():
        deletions.delete_organization(company.organization_id)
    assert api.get("/v1/projects", key).status == 401
    assert organizations.find_membership(person.user_id, company.organization_id) is None


def signing_out_everywhere_ends_every_session() -> None:
    """The newest one included, which is found by a query."""
    api, world = Api(), World()
    person = world.person()
    newest = world.token(person.user_id)
    with deciding():
        assert revocations.revoke_others(person.user_id, None, 10) == (2, False)
    assert api.get("/v1/me", newest).status == 401


def a_deleted_account_has_no_credential() -> None:
    """The newest one included, which is found by a query."""
    person = World().person()
    account = organizations.get_account(person.user_id)
    with deciding():
        deletions.delete_own_account(account, person.user_id)
    assert user_tokens.find_token(person.token) is None


def _with_an_identity(delete: Callable[[str], Any]) -> None:
    user_id, subject = World().person().user_id, Subject("https://issuer.example", "ada")
    table.transact(identities.first_legs(subject, user_id), PREPARED)
    with deciding():
        delete(user_id)
    assert identities.find_identity(subject) is None
    assert identities.list_listings(user_id) == []


def a_deleted_account_has_no_identity() -> None:
    """The identity that it just got included."""
    _with_an_identity(lambda user_id: deletions.delete_own_account(organizations.get_account(user_id), user_id))


def the_identities_of_a_former_account_are_deleted() -> None:
    """The newest one included, which is found by a query."""
    _with_an_identity(identities.delete_all)


def the_last_invitation_of_an_organization_counts() -> None:
    """Another invitation counts the others by a query."""
    company = World().company()
    limits = invitations.Limits(organization=1, address=20)

    def invite(email: str) -> None:
        with deciding():
            invitations.create_invitation(
                company.organization_id, email, "member", inviter_id=company.owner.user_id, limits=limits, extra_legs={}
            )

    invite("ada@example.com")
    try:
        invite("grace@example.com")
    except invitations.TooManyInvitations:
        return
    raise AssertionError("one more invitation is pending")


def an_address_is_invited_once() -> None:
    """Its pending invitation is found by a query."""
    api, company = Api(), World().company()
    body = {"email": "ada@example.com", "role": "member"}
    assert [api.post("/v1/invitations", company.owner.token, json_body=body).status for _ in range(2)] == [201, 409]


def a_deleted_account_leaves_no_invitation_and_no_block() -> None:
    """The newest ones included, which are found by queries."""
    api, world = Api(), World()
    profile, company = get_profile(world.person().user_id), world.company()
    body = {"email": profile.email, "role": "member"}

    def invite() -> InvitationId:
        return InvitationId.stored(api.post("/v1/invitations", company.owner.token, json_body=body).data["id"])

    invite()
    with deciding():
        assert invitees.decline_all(profile.email) == 1
    invitees.block_organization(invite(), profile)
    invite()
    with deciding():
        deletions.remove_choices(deletions.FormerAccount(profile.user_id, None), None)
        invitees.forget_address(profile.email)
    assert not table.query(keys.blocks_pk(profile.user_id), consistent=True).items
    assert not invitees.list_for_address(profile.email)


def the_last_key_in_a_grace_period_counts() -> None:
    """A roll counts the others by a query."""
    world = World()
    company = world.company()

    def roll() -> ApiKeyItem:
        made = api_keys.create_key(company.organization_id, "deploys", company.owner.user_id, "test").item
        with deciding():
            return api_keys.roll_key(made.key_id, company.owner.user_id, "test", grace_seconds=60).item

    rolled = roll()
    others = [KeyId.of(company.organization_id, ids.new_local()) for _ in range(KEYS_IN_GRACE_PER_ORGANIZATION - 2)]
    table.put_all([replace(rolled, key_id=key_id).to_item() for key_id in others], PREPARED)
    roll()
    try:
        roll()
    except api_keys.TooManyInGrace:
        return
    raise AssertionError("one more key is in a grace period")


def a_deleted_organization_has_no_member_of_many() -> None:
    """The newest included, when there are more than one transaction removes."""
    world = World()
    company = world.company()
    people = [world.member(company) for _ in range(27)]
    with deciding():
        deletions.delete_organization(company.organization_id)
    assert not any(organizations.find_membership(person.user_id, company.organization_id) for person in people)


def fails(story: Callable[[], None], bound: int) -> bool:
    """Returns whether the story, which passes on the product as it is, fails."""
    try:
        on_a_late_table(bound, story)
    except Exception:  # noqa: BLE001  # whatever the late read leads to
        return True
    return False


STORIES = (
    a_membership_applies_at_once,
    a_change_of_a_role_applies_at_once,
    the_only_organization_is_the_active_one,
    a_downgrade_disables_every_key,
    a_deleted_organization_has_no_key_and_no_member,
    a_deleted_organization_has_no_member_of_many,
    signing_out_everywhere_ends_every_session,
    a_deleted_account_has_no_credential,
    a_deleted_account_has_no_identity,
    the_identities_of_a_former_account_are_deleted,
    the_last_invitation_of_an_organization_counts,
    an_address_is_invited_once,
    a_deleted_account_leaves_no_invitation_and_no_block,
    the_last_key_in_a_grace_period_counts,
)
MUTANTS: tuple[tuple[Any, tuple[str, str], Callable[[], None]], ...] = (
    (Table.get, CONSISTENT, a_membership_applies_at_once),
    (Table.batch_get, CONSISTENT_BATCH, a_change_of_a_role_applies_at_once),
    (organizations.get_account, CONSISTENT_QUERY, the_only_organization_is_the_active_one),
    (api_keys.key_secrets, CONSISTENT_QUERY, a_downgrade_disables_every_key),
    (api_keys.key_secrets, CONSISTENT_QUERY, a_deleted_organization_has_no_key_and_no_member),
    (deletions.delete_organization, CONSISTENT_QUERY, a_deleted_organization_has_no_key_and_no_member),
    (deletions._delete_memberships, CONSISTENT_QUERY, a_deleted_organization_has_no_member_of_many),
    (credential_index.list_credentials, CONSISTENT_QUERY, signing_out_everywhere_ends_every_session),
    (credential_index.list_all_credentials, CONSISTENT_QUERY, a_deleted_account_has_no_credential),
    (identities.list_listings, CONSISTENT_QUERY, a_deleted_account_has_no_identity),
    (identities.list_identities, CONSISTENT_QUERY, the_identities_of_a_former_account_are_deleted),
    (Table.delete_partition, CONSISTENT_QUERY, the_identities_of_a_former_account_are_deleted),
    (invitations._count_sent, CONSISTENT_QUERY, the_last_invitation_of_an_organization_counts),
    (invitations._read_state, CONSISTENT_QUERY, an_address_is_invited_once),
    (invitees.list_for_address, CONSISTENT_QUERY, a_deleted_account_leaves_no_invitation_and_no_block),
    (Table.delete_partition, CONSISTENT_QUERY, a_deleted_account_leaves_no_invitation_and_no_block),
    (invitees.forget_address, CONSISTENT_QUERY, a_deleted_account_leaves_no_invitation_and_no_block),
    (api_keys._require_grace_left, CONSISTENT_QUERY, the_last_key_in_a_grace_period_counts),
)


@contextmanager
def mutant(function: FunctionType, text: str, replacement: str) -> Iterator[None]:
    """While open, the function runs with the first occurrence of `text` in its source replaced, for every caller."""
    source = textwrap.dedent(inspect.getsource(function))
    assert text in source, f"{function.__qualname__} has no {text}"
    module = compile(source.replace(text, replacement, 1), inspect.getfile(function), "exec", dont_inherit=True)
    original = function.__code__
    codes = [code for code in module.co_consts if isinstance(code, CodeType)]
    function.__code__ = next(code for code in codes if code.co_name == function.__name__)
    try:
        yield
    finally:
        function.__code__ = original


class TestDecisions:
    def test_are_right_on_a_table_that_is_late_by_any_number_of_writes(self):
        for bound in (1, 2, 3, 5, 8, EVERYTHING):
            for story in STORIES:
                on_a_late_table(bound, story)

    def test_are_wrong_if_their_read_is_not_consistent(self):
        for function, change, story in MUTANTS:
            with mutant(function, *change):
                noticed = any(fails(story, bound) for bound in (1, 2, EVERYTHING))
            assert noticed, f"{function.__qualname__} may read late: {story.__name__} doesn't notice"
