"""Writes about people and what they belong to: members, accounts, identities, invitations, and deletions."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from controlplane.code_host import repositories
from controlplane.erasure import cleanup, deletions
from controlplane.organizations import invitations, members, sending
from controlplane.organizations import store as organizations
from controlplane.organizations.items import InvitationItem
from controlplane.organizations.store import MemberItem, Membership
from controlplane.people import identities, users
from controlplane.people.identities import IdentityItem, Subject
from controlplane.platform.core.ids import InvitationId
from controlplane.platform.core.roles import Role
from controlplane.platform.queues.deletion_items import DeletionItem
from controlplane.platform.table import keys
from controlplane.platform.table.retry import WriteConflict
from controlplane.platform.table.table import Leg, LegFailed, Put, Update, table
from controlplane.projects import store as projects
from tests.functional.projects.builders import make_project
from tests.functional.stale_writes.cases import (
    Act,
    Case,
    Make,
    Refused,
    check_refused,
    deletes,
    happens,
    sets,
    transacts,
    updates,
)
from tests.support.api import Api
from tests.support.calls import before_the_transaction
from tests.support.table import PREPARED
from tests.support.world import World, get_profile

IDENTITY = Subject("https://issuer.example", "ada")


def _member(world: World, write: Callable[[MemberItem, str], Any]) -> Case:
    """Writes a member, whose role an owner changes, in the name of that owner."""
    company = world.company()
    member = members.get_member(company.organization_id, world.member(company).user_id)
    owner = company.owner.user_id
    return lambda: write(member, owner), lambda: members.change_role(member, "admin", owner, "owner"), WriteConflict


def _default(world: World) -> Case:
    company = world.company()
    user_id = company.owner.user_id
    return lambda: organizations.save_default(user_id, company.organization_id), deletes(keys.user(user_id)), LegFailed


def _forgotten(world: World, *, joins: bool) -> Case:
    """Clears the default of a person who has left that organization, and who joins it again or saves another one."""
    company = world.company()
    user_id = company.owner.user_id
    organizations.save_default(user_id, company.organization_id)
    membership = deletes(keys.membership(user_id, company.organization_id))()
    saves = sets(keys.user(user_id), savedOrganizationId="org_other")

    def forget() -> bool:
        organizations.forget_default(user_id, company.organization_id)
        return get_profile(user_id).saved_organization_id is None

    return happens(forget), (lambda: table.put(Put(membership), PREPARED)) if joins else saves, Refused


def _identity(
    world: World, prepare: Callable[[IdentityItem], Act], earlier: Callable[[str], Act], error: type[Exception]
) -> Case:
    """Changes an account with one identity."""
    user_id = world.person().user_id
    table.transact(identities.first_legs(IDENTITY, user_id), PREPARED)
    (identity,) = identities.list_identities(user_id)
    return prepare(identity), earlier(user_id), error


def _erase(identity: IdentityItem) -> Act:
    return transacts(**identities.erasure(identity.user_id, identities.list_listings(identity.user_id)))


def _unlist(identity: IdentityItem) -> Act:
    return transacts(issuer=identities._list(IDENTITY, identity.user_id, [IDENTITY.digest], []))


def _replace(identity: IdentityItem) -> Act:
    return lambda: identities.replace(identity, "grace")


def _give_away(_: str) -> Act:
    return sets(IDENTITY.key, userId="usr_other")


def _take_the_next(_: str) -> Act:
    return transacts(identity=identities._put(Subject(IDENTITY.issuer, "grace"), "usr_other"))


def _list_another(user_id: str) -> Act:
    change = "SET #identities = list_append(#identities, :others)"
    return updates(Update(IDENTITY.issuer_key(user_id), change, None, {"others": ["another"]}))


def _moved_identity(world: World, *, target_is_deleted: bool = False) -> Case:
    target = world.person().user_id
    delete = deletes(keys.user(target))
    earlier = (lambda _: delete) if target_is_deleted else _give_away
    return _identity(world, lambda it: lambda: identities.move(it, target), earlier, WriteConflict)


def _unlisted_identity(world: World) -> Case:
    """Replaces an identity without a list, so that only the account can be missing."""
    user_id = world.person().user_id
    table.transact({"identity": identities._put(IDENTITY, user_id)}, PREPARED)
    identity = identities.find_identity(IDENTITY)
    assert identity is not None
    return _replace(identity), deletes(keys.user(user_id)), WriteConflict


def _invitation(world: World, earlier: Callable[[InvitationItem, Mapping[str, Leg]], Act]) -> Case:
    """Sends an invitation again."""
    owner = world.company().owner
    body = {"email": "grace@example.com", "role": "member"}
    invitation_id = InvitationId.stored(Api().post("/v1/invitations", owner.token, json_body=body).data["id"])
    read = invitations.find_invitation(invitation_id)
    assert read is not None
    legs = sending._legs(owner.user_id, read, sending._renew(read))
    return transacts(**legs), earlier(read, legs), LegFailed


def _join(world: World, user_id: str, role: Role = "member") -> Act:
    """Makes the person a member of another person's organization."""
    company = world.company()
    joined = Membership(organization_id=company.organization_id, slug=company.slug, name="Acme", role=role)
    return transacts(**organizations.join(joined, organizations.get_account(user_id), 3).legs)


def _joining(world: World, role: Role, changed: str) -> Case:
    user_id = world.person().user_id
    return _join(world, user_id, role), sets(keys.user(user_id), **{changed: "other"}), LegFailed


def _joined_twice(world: World) -> Case:
    company = world.company()
    organizations.save_default(company.owner.user_id, company.organization_id)
    join = _join(world, company.owner.user_id)
    return join, join, LegFailed


def _left_the_only_organization(world: World) -> Case:
    company = world.company()
    user_id = world.member(company).user_id
    return _join(world, user_id), deletes(keys.membership(user_id, company.organization_id)), LegFailed


def _joined_the_lost_default(world: World) -> Case:
    company = world.company()
    user_id = company.owner.user_id
    membership = deletes(keys.membership(user_id, company.organization_id))()
    return _join(world, user_id), lambda: table.put(Put(membership), PREPARED), LegFailed


def _address(world: World, write: Callable[[Any], Any], error: type[Exception] = WriteConflict) -> Case:
    """Changes an account whose address another one gets."""
    profile = get_profile(world.person().user_id)
    return lambda: write(profile), sets(keys.user_email(profile.email), userId="usr_other"), error


def _changed_address(world: World) -> Case:
    profile = get_profile(world.person().user_id)
    return (
        lambda: users.change_address(profile, "stale@example.com"),
        lambda: users.change_address(profile, "other@example.com"),
        WriteConflict,
    )


def _deleting(world: World, *, owner: bool, **changed: Any) -> Case:
    """Deletes an account, of one of the two owners of an organization or of a person without one."""
    company = world.company()
    world.member(company, "owner")
    user_id = company.owner.user_id if owner else world.person().user_id
    profile, memberships = organizations.get_account(user_id)
    assert profile is not None
    return (
        lambda: deletions.delete_account(profile, memberships, []),
        sets(keys.user(user_id), **changed),
        WriteConflict,
    )


def _project(world: World) -> Case:
    project = make_project(world.company())
    organization = keys.organization(project.project_id.organization_id)
    return lambda: projects.delete_project(project), deletes(organization), projects.UnknownProject


def _repository(world: World) -> Case:
    company = world.company()
    organization = keys.organization(company.organization_id)
    return lambda: world.connected_repository(company, linked=False), deletes(organization), LegFailed


def _finished_deletion(world: World) -> Case:
    project = make_project(world.company())
    projects.delete_project(project)
    deletion = DeletionItem.from_item(table.get(keys.deletion(project.project_id)) or {})
    position = {"step": 1, "after": "x", "final": False}
    advance = happens(lambda: cleanup._store_position(deletion, position) is not None)
    return advance, deletes(deletion.key), Refused


CASES: dict[str, Make] = {
    "member with another role": lambda it: _member(
        it, lambda member, owner: members.change_role(member, "owner", owner, "owner")
    ),
    "member with another role who is removed": lambda it: _member(
        it, lambda member, owner: members.end_membership(member, owner, "owner")
    ),
    "member with another role who owns too many": lambda it: _member(
        it, lambda member, owner: members.change_role(member, "owner", owner, "owner", limit=0)
    ),
    "default organization of a deleted account": _default,
    "lost default that was joined again": lambda it: _forgotten(it, joins=True),
    "lost default that was replaced": lambda it: _forgotten(it, joins=False),
    "identity of another account that is erased": lambda it: _identity(it, _erase, _give_away, LegFailed),
    "identity of another account that is replaced": lambda it: _identity(it, _replace, _give_away, WriteConflict),
    "identity of another account that is moved": _moved_identity,
    "identity that is moved to a deleted account": lambda it: _moved_identity(it, target_is_deleted=True),
    "identity of a deleted account": _unlisted_identity,
    "identity that another account has taken": lambda it: _identity(
        it, _replace, _take_the_next, identities.IdentityTaken
    ),
    "account with another identity": lambda it: _identity(it, _erase, _list_another, LegFailed),
    "list with another identity": lambda it: _identity(it, _unlist, _list_another, LegFailed),
    "invitation that was sent again": lambda it: _invitation(
        it, lambda _, legs: transacts(invitation=legs["invitation"])
    ),
    "invitation whose address was invited again": lambda it: _invitation(
        it, lambda read, _: sets(read.lock_key, invitationId="inv_other")
    ),
    "member who has joined": _joined_twice,
    "member who left the only organization": _left_the_only_organization,
    "member who joined the lost default again": _joined_the_lost_default,
    "member with another address": lambda it: _joining(it, "member", "email"),
    "member with another default": lambda it: _joining(it, "member", "savedOrganizationId"),
    "owner with another address": lambda it: _joining(it, "owner", "email"),
    "owner with another default": lambda it: _joining(it, "owner", "savedOrganizationId"),
    "account with another address": _changed_address,
    "account whose former address another one has": lambda it: _address(
        it, lambda profile: users.change_address(profile, "stale@example.com")
    ),
    "account whose address another one has that is deleted": lambda it: _address(
        it, lambda profile: deletions.delete_account(profile, [], [])
    ),
    "owner with another address who is deleted": lambda it: _deleting(it, owner=True, email="other@example.com"),
    "owner of another organization who is deleted": lambda it: _deleting(it, owner=True, ownerships=2),
    "person with another address who is deleted": lambda it: _deleting(it, owner=False, email="other@example.com"),
    "person who became an owner and is deleted": lambda it: _deleting(it, owner=False, ownerships=1),
    "project of a deleted organization": _project,
    "repository of a deleted organization": _repository,
    "deletion that another sweep finished": _finished_deletion,
}


@pytest.mark.parametrize("name", CASES)
def test_an_outdated_write_is_refused_and_changes_nothing(name, world):
    check_refused(CASES[name], world)


def test_a_repository_that_is_disconnected_leaves_its_name_to_another_one(world):
    repository = world.connected_repository(world.company())
    name = keys.repository_name(repository.organization_id, repository.owner, repository.name)
    sets(name, repositoryId="rep_other")()
    repositories.disconnect_repository(repository.repository_id)
    assert (repositories.find_repository(repository.repository_id), (table.get(name) or {}).get("repositoryId")) == (
        None,
        "rep_other",
    )


def test_a_repository_that_is_disconnected_while_it_is_renamed_leaves_no_name(world):
    repository = world.connected_repository(world.company())
    moved = keys.repository_name(repository.organization_id, "other", repository.name)

    def rename() -> None:
        sets(repository.key, owner="other")()
        sets(moved, repositoryId=repository.repository_id)()

    with before_the_transaction(table.client, rename):
        repositories.disconnect_repository(repository.repository_id)
    assert (repositories.find_repository(repository.repository_id), table.get(moved)) == (None, None)
