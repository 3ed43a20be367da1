"""Writes about people: members, accounts, identities, and invitations."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from controlplane.erasure import deletions
from controlplane.organizations import defaults as default_organizations
from controlplane.organizations import invitations, members, resends
from controlplane.organizations import store as organizations
from controlplane.organizations.items import InvitationItem
from controlplane.organizations.store import MemberItem, Membership
from controlplane.people import identities, users
from controlplane.people.identities import IdentityItem, Subject
from controlplane.platform.core.ids import InvitationId
from controlplane.platform.core.roles import Role
from controlplane.platform.table import keys
from controlplane.platform.table.retry import WriteConflict
from controlplane.platform.table.table import Delete, Leg, LegFailed, Put, Update, table
from ops.accounts import remove_profile
from tests.functional.stale_writes.cases import Act, Case, Make, cases, check_refused
from tests.support.api import Api
from tests.support.table import PREPARED
from tests.support.world import World, get_profile

IDENTITY = Subject("https://issuer.example", "ada")


def _member(world: World, write: Callable[[MemberItem, str], Any]) -> Case:
    """Writes a member, whose role an owner changes, in the name of that owner."""
    company = world.company()
    member = members.get_member(company.organization_id, world.member(company).user_id)
    owner = company.owner.user_id
    return lambda: write(member, owner), lambda: members.change_role(member, "admin", owner, "owner"), WriteConflict


def member_with_another_role(world: World) -> Case:
    return _member(world, lambda member, owner: members.change_role(member, "owner", owner, "owner"))


def member_with_another_role_who_is_removed(world: World) -> Case:
    return _member(world, lambda member, owner: members.delete_member(member, owner, "owner"))


def member_with_another_role_who_owns_too_many(world: World) -> Case:
    return _member(world, lambda member, owner: members.change_role(member, "owner", owner, "owner", limit=0))


def account_with_another_address(world: World) -> Case:
    profile = get_profile(world.person().user_id)
    return (
        lambda: users.change_address(profile, "stale@example.com"),
        lambda: users.change_address(profile, "other@example.com"),
        WriteConflict,
    )


def default_organization_of_a_deleted_account(world: World) -> Case:
    company = world.company()
    user_id = company.owner.user_id
    return (
        lambda: default_organizations.save(user_id, company.organization_id),
        lambda: table.delete(Delete(keys.user(user_id)), PREPARED),
        LegFailed,
    )


def _identity(
    world: World,
    prepare: Callable[[IdentityItem], Act],
    earlier: Callable[[str], Update],
    error: type[Exception] = LegFailed,
) -> Case:
    """Changes an account with one identity."""
    user_id = world.person().user_id
    table.transact(identities.first_legs(IDENTITY, user_id), PREPARED)
    (identity,) = identities.list_identities(user_id)
    return prepare(identity), lambda: table.update(earlier(user_id), PREPARED), error


def _erase(identity: IdentityItem) -> Act:
    legs = identities.erasure(identity.user_id, identities.list_listings(identity.user_id))
    return lambda: table.transact(legs, PREPARED)


def _unlist(identity: IdentityItem) -> Act:
    leg = identities._list(IDENTITY, identity.user_id, [IDENTITY.digest], [])
    return lambda: table.transact({"issuer": leg}, PREPARED)


def _give_away(_: str) -> Update:
    return Update(IDENTITY.key, "SET #userId = :other", None, {"other": "usr_other"})


def _list_another(user_id: str) -> Update:
    change = "SET #identities = list_append(#identities, :others)"
    return Update(IDENTITY.issuer_key(user_id), change, None, {"others": ["another"]})


def identity_of_another_account_that_is_erased(world: World) -> Case:
    return _identity(world, _erase, _give_away)


def identity_of_another_account_that_is_replaced(world: World) -> Case:
    return _identity(world, lambda it: lambda: identities.replace(it, "grace"), _give_away, WriteConflict)


def identity_of_another_account_that_is_moved(world: World) -> Case:
    target = world.person().user_id
    return _identity(world, lambda it: lambda: identities.move(it, target), _give_away, WriteConflict)


def identity_of_a_deleted_account(world: World) -> Case:
    """Replaces an identity without a list, so that only the account can be missing."""
    user_id = world.person().user_id
    table.transact({"identity": identities._put(IDENTITY, user_id)}, PREPARED)
    identity = identities.find_identity(IDENTITY)
    assert identity is not None
    return (
        lambda: identities.replace(identity, "grace"),
        lambda: table.delete(Delete(keys.user(user_id)), PREPARED),
        WriteConflict,
    )


def identity_that_another_account_has_taken(world: World) -> Case:
    taken = identities._put(Subject(IDENTITY.issuer, "grace"), "usr_other")
    write, _, _ = _identity(world, lambda it: lambda: identities.replace(it, "grace"), _give_away)
    return write, lambda: table.transact({"identity": taken}, PREPARED), identities.IdentityTaken


def account_with_another_identity(world: World) -> Case:
    return _identity(world, _erase, _list_another)


def list_with_another_identity(world: World) -> Case:
    return _identity(world, _unlist, _list_another)


def _invitation(world: World, earlier: Callable[[InvitationItem, Mapping[str, Leg]], Any]) -> Case:
    """Sends an invitation again."""
    owner = world.company().owner
    body = {"email": "grace@example.com", "role": "member"}
    invitation_id = InvitationId.stored(Api().post("/v1/invitations", owner.token, json_body=body).data["id"])
    read = invitations.find_invitation(invitation_id)
    assert read is not None
    legs = resends._legs(owner.user_id, read, resends._renew(read, resends.ResendLimits(9, 9)))
    return lambda: table.transact(legs, PREPARED), lambda: earlier(read, legs), LegFailed


def invitation_that_was_deleted(world: World) -> Case:
    return _invitation(world, lambda read, _: table.delete(Delete(read.key), PREPARED))


def invitation_that_was_sent_again(world: World) -> Case:
    return _invitation(world, lambda _, legs: table.transact({"invitation": legs["invitation"]}, PREPARED))


def invitation_whose_sender_left(world: World) -> Case:
    def leave(read: InvitationItem, _: Mapping[str, Leg]) -> None:
        key = keys.membership(read.invited_by.id, read.invitation_id.organization_id)
        table.delete(Delete(key), PREPARED)

    return _invitation(world, leave)


def invitation_whose_address_was_invited_again(world: World) -> Case:
    def invite(read: InvitationItem, _: Mapping[str, Leg]) -> None:
        table.update(Update(read.lock_key, "SET #invitationId = :other", None, {"other": "inv_other"}), PREPARED)

    return _invitation(world, invite)


def _join(world: World, user_id: str, role: Role) -> Act:
    """Makes the person a member of another person's organization."""
    company = world.company()
    joined = Membership(organization_id=company.organization_id, slug=company.slug, name="Acme", role=role)
    legs = organizations.join(joined, organizations.get_account(user_id), 3).legs
    return lambda: table.transact(legs, PREPARED)


def _joining(world: World, role: Role, change: str) -> Case:
    user_id = world.person().user_id
    other = Update(keys.user(user_id), change, None, {"other": "other"})
    return _join(world, user_id, role), lambda: table.update(other, PREPARED), LegFailed


def member_who_left_the_only_organization(world: World) -> Case:
    company = world.company()
    user_id = world.member(company).user_id
    left = Delete(keys.membership(user_id, company.organization_id))
    return _join(world, user_id, "member"), lambda: table.delete(left, PREPARED), LegFailed


def member_who_joined_the_lost_default_again(world: World) -> Case:
    company = world.company()
    user_id = company.owner.user_id
    membership = table.delete(Delete(keys.membership(user_id, company.organization_id)), PREPARED)
    assert membership is not None
    return _join(world, user_id, "member"), lambda: table.put(Put(membership), PREPARED), LegFailed


def _give_address_away(email: str) -> None:
    table.update(Update(keys.user_email(email), "SET #userId = :other", None, {"other": "usr_other"}), PREPARED)


def account_whose_former_address_another_one_has(world: World) -> Case:
    profile = get_profile(world.person().user_id)
    return (
        lambda: users.change_address(profile, "stale@example.com"),
        lambda: _give_address_away(profile.email),
        WriteConflict,
    )


def account_whose_address_another_one_has_that_is_deleted(world: World) -> Case:
    profile = get_profile(world.person().user_id)
    return lambda: deletions.delete_account(profile, [], []), lambda: _give_address_away(profile.email), WriteConflict


def account_whose_address_another_one_has_that_the_operator_deletes(world: World) -> Case:
    profile = get_profile(world.person().user_id)
    return lambda: remove_profile(profile), lambda: _give_address_away(profile.email), LegFailed


def _deleting(world: World, changed: str, value: Any, *, owner: bool) -> Case:
    """Deletes an account, of one of the two owners of an organization or of a person without one."""
    company = world.company()
    world.member(company, "owner")
    user_id = company.owner.user_id if owner else world.person().user_id
    account = organizations.get_account(user_id)
    profile = account.profile
    assert profile is not None
    other = Update(keys.user(user_id), f"SET #{changed} = :other", None, {"other": value})
    return (
        lambda: deletions.delete_account(profile, account.memberships, []),
        lambda: table.update(other, PREPARED),
        WriteConflict,
    )


def owner_with_another_address_who_is_deleted(world: World) -> Case:
    return _deleting(world, "email", "other@example.com", owner=True)


def owner_of_another_organization_who_is_deleted(world: World) -> Case:
    return _deleting(world, "ownerships", 2, owner=True)


def person_with_another_address_who_is_deleted(world: World) -> Case:
    return _deleting(world, "email", "other@example.com", owner=False)


def person_who_became_an_owner_and_is_deleted(world: World) -> Case:
    return _deleting(world, "ownerships", 1, owner=False)


def member_with_another_address(world: World) -> Case:
    return _joining(world, "member", "SET #email = :other")


def member_with_another_default(world: World) -> Case:
    return _joining(world, "member", "SET #savedOrganizationId = :other")


def owner_with_another_address(world: World) -> Case:
    return _joining(world, "owner", "SET #email = :other")


def owner_with_another_default(world: World) -> Case:
    return _joining(world, "owner", "SET #savedOrganizationId = :other")


@pytest.mark.parametrize("make", cases(globals()), ids=lambda make: make.__name__)
def test_an_outdated_write_is_refused_and_changes_nothing(make: Make, world: World):
    check_refused(make, world)
