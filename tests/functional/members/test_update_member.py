"""PATCH /v1/members/{memberId}: a member's role."""

from typing import Any

import pytest

from controlplane.people import users
from controlplane.platform.core.roles import Role
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from tests.functional.members.conftest import Organization
from tests.support.calls import before_the_transaction
from tests.support.each import each
from tests.support.world import get_profile, table_dump

ROLES: list[Role] = ["owner", "admin", "member"]
# Who may change which role to which.
ALLOWED: dict[Role, set[tuple[Role, Role]]] = {
    "owner": {(old, new) for old in ROLES for new in ROLES},
    "admin": {("admin", "admin"), ("admin", "member"), ("member", "admin"), ("member", "member")},
    "member": set(),
}


@each("caller", ROLES)
@each("old", ROLES)
@each("new", ROLES)
def test_owners_change_every_role_and_admins_those_below_owner(caller: Role, old: Role, new: Role, acme: Organization):
    person = acme.member(old)
    reply = acme.give(person, new, by=acme.member(caller))
    if (old, new) in ALLOWED[caller]:
        assert (reply.status, reply.data) == (200, {"updated": old != new})
        assert acme.role_of(person) == new
        return
    assert (reply.status, reply.code) == (403, "FORBIDDEN")
    assert reply.error.get("details") == ({"reason": "owner_required"} if caller == "admin" else None)
    assert acme.role_of(person) == old


@each(("old", "new"), [("owner", "admin"), ("owner", "member"), ("admin", "member")])
def test_a_person_can_step_down(old: Role, new: Role, acme: Organization):
    person = acme.member(old)
    assert acme.give(person, new, by=person).data == {"updated": True}
    assert acme.role_of(person) == new


def test_a_person_can_not_promote_themselves(acme: Organization):
    admin, member = acme.member("admin"), acme.member()
    assert acme.give(admin, "owner", by=admin).error["details"] == {"reason": "owner_required"}
    assert acme.give(member, "admin", by=member).code == "FORBIDDEN"
    assert (acme.role_of(admin), acme.role_of(member)) == ("admin", "member")


@each("role", ["admin", "member"])
def test_the_last_owner_can_not_be_demoted(role: Role, acme: Organization):
    acme.member("admin")
    reply = acme.give(acme.owner, role)
    assert (reply.status, reply.code, reply.error["details"]) == (403, "FORBIDDEN", {"reason": "last_owner"})
    assert acme.role_of(acme.owner) == "owner"


def test_a_repeated_request_changes_nothing(acme: Organization):
    person = acme.member()
    assert [acme.give(person, "owner").data for _ in range(2)] == [{"updated": True}, {"updated": False}]
    organization = table.get(keys.organization(acme.id))
    assert organization is not None
    assert organization["owners"] == 2


def test_a_concurrent_change_to_the_same_role_is_reported(acme: Organization):
    person = acme.member()
    with before_the_transaction(table.client, lambda: acme.promote_in_the_store(person, "admin")):
        assert acme.give(person, "admin").data == {"updated": True}


def test_an_admin_can_not_demote_who_concurrently_becomes_an_owner(acme: Organization):
    admin, person = acme.member("admin"), acme.member()
    with before_the_transaction(table.client, lambda: acme.promote_in_the_store(person)):
        reply = acme.give(person, "admin", by=admin)
    assert reply.error["details"] == {"reason": "owner_required"}
    assert acme.role_of(person) == "owner"


def test_the_new_owners_address_can_change_concurrently(acme: Organization):
    person = acme.member()
    profile = get_profile(person.user_id)
    with before_the_transaction(table.client, lambda: users.change_address(profile, "new@example.com")):
        assert acme.give(person, "owner").data == {"updated": True}


@each("role", [None, "", "Owner", "owner ", "root", 1, True, ["admin"], {"a": 1}, "x" * 9000])
def test_an_invalid_role_is_named_and_nothing_is_written(role: Any, acme: Organization):
    person = acme.member()
    before = len(table_dump())
    reply = acme.give(person, role)
    assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
    assert [problem["path"] for problem in reply.error["details"]] == [["role"]]
    assert (acme.role_of(person), len(table_dump())) == ("member", before)


def test_a_former_member_and_a_former_caller_get_404(acme: Organization):
    admin, person = acme.member("admin"), acme.member()
    acme.world.leave(acme.company, admin)
    assert acme.give(admin, "member").status == 404
    assert acme.give(person, "admin", by=admin).status == 404


@pytest.mark.parametrize("leaves", ["caller", "member"])
def test_returns_404_if_either_leaves_concurrently(leaves: str, acme: Organization):
    admin, person = acme.member("admin"), acme.member()
    leaving = admin if leaves == "caller" else person
    with before_the_transaction(table.client, lambda: acme.world.leave(acme.company, leaving)):
        assert acme.give(person, "admin", by=admin).status == 404
