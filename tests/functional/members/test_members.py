"""GET, PATCH, and DELETE /v1/members: an organization's members and their roles."""

from controlplane.platform.core.roles import Role
from controlplane.platform.table import keys
from controlplane.platform.table.table import Put, table
from tests.functional.members.conftest import ADMIN_REQUIRED, OWNER_REQUIRED, Organization
from tests.support.each import each
from tests.support.table import PREPARED
from tests.support.world import get_profile

PATH = "/v1/members"


def test_members_are_listed_with_role_joining_time_and_user_to_each_of_them(acme):
    owner = acme.owner
    roster = table.get(keys.member(acme.id, owner.user_id))
    table.put(Put({**roster, "image": "https://images.example.com/ada.png"}), PREPARED)
    user = {"id": owner.user_id, "name": owner.name, "email": owner.email}
    reply = acme.call("GET", "members")
    assert (reply.status, reply.body["pagination"]) == (200, {"nextCursor": None, "hasMore": False})
    assert reply.data == [
        {
            "id": acme.member_id(owner),
            "role": "owner",
            "joinedAt": "2026-03-04T05:06:07.000Z",
            "user": {**user, "image": "https://images.example.com/ada.png"},
        }
    ]
    people = {owner.user_id: "owner"}
    for role in ("member", "admin", "owner"):
        person = acme.member(role)
        people[person.user_id] = role
        assert {it["user"]["id"]: it["role"] for it in acme.call("GET", "members", person).data} == people


def test_a_page_has_50_members_by_default(acme):
    for _ in range(50):
        acme.member()
    reply = acme.call("GET", "members")
    assert (len(reply.data), reply.body["pagination"]["hasMore"]) == (50, True)


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
def test_owners_change_every_role_and_admins_those_below_owner(caller, old, new, acme):
    person = acme.member(old)
    reply = acme.give(person, new, by=acme.member(caller))
    if (old, new) in ALLOWED[caller]:
        assert (reply.status, reply.data) == (200, {"updated": old != new})
        assert acme.role_of(person) == new
        return
    assert (reply.status, reply.code) == (403, "FORBIDDEN")
    assert reply.error.get("details") == (OWNER_REQUIRED if caller == "admin" else ADMIN_REQUIRED)
    assert acme.role_of(person) == old


@each(("old", "new"), [("owner", "admin"), ("owner", "member"), ("admin", "member")])
def test_a_person_can_step_down_and_not_up(old, new, acme):
    person = acme.member(old)
    assert acme.give(person, new, by=person).data == {"updated": True}
    assert acme.role_of(person) == new
    details = OWNER_REQUIRED if new == "admin" else ADMIN_REQUIRED
    assert acme.give(person, "owner", by=person).error.get("details") == details
    assert acme.role_of(person) == new


@each("role", ["admin", "member"])
def test_the_last_owner_can_not_be_demoted(role, acme):
    acme.member("admin")
    reply = acme.give(acme.owner, role)
    assert (reply.status, reply.code, reply.error["details"]) == (403, "FORBIDDEN", {"reason": "last_owner"})
    assert acme.role_of(acme.owner) == "owner"


def test_a_repeated_change_counts_once(acme):
    person = acme.member()
    assert [acme.give(person, "owner").data["updated"] for _ in range(2)] == [True, False]
    assert table.get(keys.organization(acme.id))["owners"] == 2


def test_a_former_member_and_a_former_caller_get_404(acme):
    admin, person = acme.member("admin"), acme.member()
    acme.world.leave(acme.company, admin)
    assert [acme.give(admin, "member").status, acme.give(person, "admin", by=admin).status] == [404, 404]


@each(
    ("caller", "allowed", "refused", "details"),
    [
        ("owner", ["owner", "admin", "member"], [], None),
        ("admin", ["admin", "member"], ["owner"], OWNER_REQUIRED),
        ("member", [], ["owner", "admin", "member"], ADMIN_REQUIRED),
    ],
)
def test_owners_remove_everyone_and_admins_all_but_owners(caller, allowed, refused, details, acme):
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
def test_a_person_can_not_remove_themselves(role, acme):
    for person in (acme.member(role), acme.owner):
        reply = acme.remove(person, by=person)
        assert (reply.status, reply.code, reply.error["details"]) == (403, "FORBIDDEN", {"reason": "self"})
        assert acme.role_of(person) is not None


def test_removing_the_founder_clears_the_saved_organization_and_keeps_their_keys(acme, api, world):
    key, second, other = world.key(acme.company), acme.member("owner"), Organization(api, world, owner=acme.owner)
    assert get_profile(acme.owner.user_id).saved_organization_id == acme.id
    assert acme.remove(acme.owner, by=second).status == 200
    assert (acme.role_of(acme.owner), other.role_of(acme.owner)) == (None, "owner")
    assert get_profile(acme.owner.user_id).saved_organization_id is None
    assert acme.call("GET", "members").status == 403
    assert acme.call("GET", f"organizations/{acme.id}").status == 404
    assert acme.api.get("/v1/organizations", key).status == 200
