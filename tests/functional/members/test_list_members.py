"""GET /v1/members: an organization's members."""

from controlplane.organizations import store as organizations
from controlplane.platform.table import keys
from controlplane.platform.table.table import Put, table
from tests.functional.members.conftest import Organization, all_pages
from tests.support.api import Api
from tests.support.each import each
from tests.support.table import PREPARED
from tests.support.world import World

PATH = "/v1/members"


def test_a_member_is_listed_with_role_joining_time_and_user(acme: Organization):
    owner = acme.owner
    reply = acme.call("GET", "members")
    assert (reply.status, reply.body["pagination"]) == (200, {"nextCursor": None, "hasMore": False})
    assert reply.data == [
        {
            "id": acme.member_id(owner),
            "role": "owner",
            "joinedAt": "2026-03-04T05:06:07.000Z",
            "user": {"id": owner.user_id, "name": owner.name, "email": owner.email, "image": None},
        }
    ]


def test_a_members_picture_is_shown(acme: Organization):
    roster = table.get(keys.member(acme.id, acme.owner.user_id))
    table.put(Put({**(roster or {}), "image": "https://images.example.com/ada.png"}), PREPARED)
    (listed,) = acme.call("GET", "members").data
    assert listed["user"]["image"] == "https://images.example.com/ada.png"


def test_any_member_can_list_members(acme: Organization):
    people = {acme.owner.user_id: "owner"}
    for role in ("member", "admin", "owner"):
        person = acme.member(role)
        people[person.user_id] = role
        assert {it["user"]["id"]: it["role"] for it in acme.call("GET", "members", person).data} == people


def test_pages_show_every_member_once(acme: Organization):
    people = [acme.owner.user_id, *(acme.member().user_id for _ in range(5))]
    for limit in (1, 2, 6, 7):
        seen = [it["user"]["id"] for it in all_pages(acme, "members", limit)]
        assert sorted(seen) == sorted(people)


def test_paging_continues_after_the_last_shown_member_was_removed(acme: Organization):
    people = {person.user_id: person for person in (acme.owner, *(acme.member() for _ in range(3)))}
    first = acme.call("GET", "members", query="&limit=1")
    acme.world.leave(acme.company, people.pop(first.data[0]["user"]["id"]))
    reader, query = next(iter(people.values())), f"&cursor={first.body['pagination']['nextCursor']}"
    assert {it["user"]["id"] for it in acme.call("GET", "members", reader, query).data} == {*people}


def test_the_default_page_size_is_50(acme: Organization):
    for _ in range(50):
        acme.member()
    reply = acme.call("GET", "members")
    assert (len(reply.data), reply.body["pagination"]["hasMore"]) == (50, True)


def test_the_named_the_saved_or_the_only_organization_is_used(acme: Organization, api: Api, world: World):
    owner, other = acme.owner, world.company(owner=acme.owner)
    person = world.member(other)
    named = api.get(f"{PATH}?organizationId={other.organization_id}", owner.token)
    assert {it["user"]["id"] for it in named.data} == {owner.user_id, person.user_id}
    organizations.save_default(owner.user_id, acme.id)
    assert [len(api.get(PATH, token).data) for token in (owner.token, person.token)] == [1, 2]
    assert api.get(f"{PATH}?organizationId=", owner.token).error["details"][0]["path"] == ["organizationId"]
    assert api.get(PATH, world.person().token).code == "FORBIDDEN"


@each("path", ["members", "invitations"])
def test_a_cursor_only_works_for_its_list_and_organization(path: str, acme: Organization, api: Api, world: World):
    other = Organization(api, world, owner=acme.owner)
    acme.member()
    for number in range(2):
        acme.invite(f"guest{number}@example.com")
    cursor = acme.call("GET", path, query="&limit=1").body["pagination"]["nextCursor"]
    another_list = "invitations" if path == "members" else "members"
    for reply in (
        acme.call("GET", another_list, query=f"&cursor={cursor}"),
        other.call("GET", path, query=f"&cursor={cursor}"),
        acme.call("GET", path, query=f"&cursor={cursor[:-1]}"),
        acme.call("GET", path, query="&cursor="),
    ):
        assert (reply.code, reply.error["details"][0]["path"]) == ("INVALID_PAYLOAD", ["cursor"])
