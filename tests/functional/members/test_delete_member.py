"""DELETE /v1/members/{memberId}: ends a membership."""

from controlplane.platform.core.roles import Role
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from tests.functional.members.conftest import Organization
from tests.support.api import Api
from tests.support.calls import before_the_transaction
from tests.support.each import each
from tests.support.world import World, get_profile, table_dump


@each(
    ("caller", "allowed", "refused", "details"),
    [
        ("owner", ["owner", "admin", "member"], [], None),
        ("admin", ["admin", "member"], ["owner"], {"reason": "owner_required"}),
        ("member", [], ["owner", "admin", "member"], None),
    ],
)
def test_owners_remove_everyone_and_admins_all_but_owners(caller: Role, allowed, refused, details, acme: Organization):
    by = acme.member(caller)
    for role in allowed:
        person = acme.member(role)
        reply = acme.remove(person, by)
        assert (reply.status, reply.data) == (200, {"deleted": True})
        assert acme.role_of(person) is None
        assert table.get(keys.member(acme.id, person.user_id)) is None
        assert acme.remove(person).code == "NOT_FOUND"
    for role in refused:
        person = acme.member(role)
        reply = acme.remove(person, by)
        assert (reply.status, reply.code) == (403, "FORBIDDEN")
        assert details is None or reply.error["details"] == details
        assert acme.role_of(person) == role


@each("role", ["owner", "admin"])
def test_a_person_can_not_remove_themselves(role: Role, acme: Organization):
    for person in (acme.member(role), acme.owner):
        reply = acme.remove(person, by=person)
        assert (reply.status, reply.code, reply.error["details"]) == (403, "FORBIDDEN", {"reason": "self"})
        assert acme.role_of(person) is not None


def test_removing_the_founder_clears_the_saved_organization_and_keeps_their_keys(acme: Organization):
    key, second = acme.world.key(acme.company), acme.member("owner")
    assert get_profile(acme.owner.user_id).saved_organization_id == acme.id
    assert acme.remove(acme.owner, by=second).status == 200
    assert acme.role_of(acme.owner) is None
    assert get_profile(acme.owner.user_id).saved_organization_id is None
    assert acme.call("GET", "members").status == 403
    assert acme.call("GET", f"organizations/{acme.id}").status == 404
    assert acme.api.get("/v1/organizations", key).status == 200


def test_other_memberships_of_the_person_remain(acme: Organization, api: Api, world: World):
    person = acme.member()
    other = Organization(api, world, owner=person)
    acme.remove(person)
    assert (acme.role_of(person), other.role_of(person)) == (None, "owner")


def test_an_admin_can_not_remove_who_concurrently_becomes_an_owner(acme: Organization):
    admin, person = acme.member("admin"), acme.member()
    with before_the_transaction(table.client, lambda: acme.promote_in_the_store(person)):
        reply = acme.remove(person, by=admin)
    assert reply.error["details"] == {"reason": "owner_required"}
    assert acme.role_of(person) == "owner"


def test_a_member_of_another_organization_looks_like_an_unknown_one(acme: Organization, api: Api, world: World):
    other = Organization(api, world)
    theirs = other.member_id(other.member())
    before = len(table_dump())
    for method, body in (("PATCH", {"role": "admin"}), ("DELETE", None)):
        replies = [acme.call(method, f"members/{it}", json_body=body) for it in (theirs, f"mem_{'0' * 32}")]
        assert {(reply.status, reply.text) for reply in replies} == {(404, replies[0].text)}
    assert len(table_dump()) == before
