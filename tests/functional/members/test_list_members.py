"""GET /v1/members: an organization's members."""

import pytest

from controlplane.core.ids import MemberId
from controlplane.store import default_organizations, keys
from controlplane.store.table import Put, table
from tests.support.api import Api
from tests.support.each import each
from tests.support.table import PREPARED
from tests.support.world import ALL_SCOPES, World

PATH = "/v1/members"


class Test200:
    def test_lists_a_member_with_role_joining_time_and_user(self, api: Api, world: World):
        company = world.company()
        owner = company.owner
        reply = api.get(PATH, owner.token)
        assert reply.status == 200
        assert reply.data == [
            {
                "id": MemberId.of_user(company.organization_id, owner.user_id),
                "role": "owner",
                "joinedAt": "2026-03-04T05:06:07.000Z",
                "user": {"id": owner.user_id, "name": owner.name, "email": owner.email, "image": None},
            }
        ]
        assert reply.body["pagination"] == {"nextCursor": None, "hasMore": False}

    def test_a_members_picture_is_shown(self, api: Api, world: World):
        company = world.company()
        roster = table.get(keys.member(company.organization_id, company.owner.user_id))
        table.put(Put({**roster, "image": "https://images.example.com/ada.png"}), PREPARED)
        (listed,) = api.get(PATH, company.owner.token).data
        assert listed["user"]["image"] == "https://images.example.com/ada.png"

    @pytest.mark.parametrize("role", ["member", "admin", "owner"])
    def test_any_member_can_list_members(self, api: Api, world: World, role):
        company = world.company()
        person = world.member(company, role)
        roles = {item["user"]["id"]: item["role"] for item in api.get(PATH, person.token).data}
        assert roles == {company.owner.user_id: "owner", person.user_id: role}

    @each("limit", [1, 2, 3, 6, 7, 100])
    def test_pages_show_every_member_once(self, api: Api, world: World, limit: int):
        company = world.company()
        people = {company.owner.user_id, *(world.member(company).user_id for _ in range(5))}
        seen: list[str] = []
        cursor = ""
        while True:
            reply = api.get(f"{PATH}?limit={limit}{cursor}", company.owner.token)
            assert len(reply.data) <= limit
            seen += [item["user"]["id"] for item in reply.data]
            following = reply.body["pagination"]["nextCursor"]
            if following is None:
                break
            cursor = f"&cursor={following}"
        assert len(seen) == len(people)
        assert set(seen) == people

    def test_paging_continues_after_the_last_shown_member_was_removed(self, api: Api, world: World):
        company = world.company()
        people = [company.owner, *(world.member(company) for _ in range(3))]
        first = api.get(f"{PATH}?limit=1", company.owner.token)
        shown = first.data[0]["user"]["id"]
        world.leave(company, next(person for person in people if person.user_id == shown))
        reader = next(person for person in people if person.user_id != shown)
        rest = api.get(f"{PATH}?cursor={first.body['pagination']['nextCursor']}", reader.token)
        assert {item["user"]["id"] for item in rest.data} == {person.user_id for person in people} - {shown}

    def test_the_default_page_size_is_50(self, api: Api, world: World):
        company = world.company()
        for _ in range(50):
            world.member(company)
        reply = api.get(PATH, company.owner.token)
        assert len(reply.data) == 50
        assert reply.body["pagination"]["hasMore"] is True

    def test_uses_the_named_the_saved_or_the_only_organization(self, api: Api, world: World):
        first = world.company()
        second = world.company(owner=first.owner)
        third = world.member(second)
        named = api.get(f"{PATH}?organizationId={second.organization_id}", first.owner.token)
        assert {item["user"]["id"] for item in named.data} == {first.owner.user_id, third.user_id}
        default_organizations.save(first.owner.user_id, first.organization_id)
        assert len(api.get(PATH, first.owner.token).data) == 1
        assert len(api.get(PATH, third.token).data) == 2


class Test400:
    @each("limit", ["0", "101", "-1", "1.5", "5_0", "+5", " 5", "", "abc", "1e1", "\u0665", "9" * 99])
    def test_returns_400_for_a_limit_outside_1_to_100(self, api: Api, world: World, limit: str):
        reply = api.get(f"{PATH}?limit={limit.replace('+', '%2B')}", world.company().owner.token)
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
        assert reply.error["details"][0]["path"] == ["limit"]

    def test_a_cursor_only_works_where_it_was_issued(self, api: Api, world: World):
        company = world.company()
        world.member(company)
        other = world.company(owner=company.owner)
        query = f"{PATH}?limit=1&organizationId="
        cursor = api.get(query + company.organization_id, company.owner.token).body["pagination"]["nextCursor"]
        for target in (
            f"{query}{other.organization_id}&cursor={cursor}",
            f"/v1/invitations?organizationId={company.organization_id}&cursor={cursor}",
            f"{query}{company.organization_id}&cursor={cursor[:-1]}",
            f"{query}{company.organization_id}&cursor={'A' * len(cursor)}",
            f"{query}{company.organization_id}&cursor=",
        ):
            assert api.get(target, company.owner.token).error["details"][0]["path"] == ["cursor"]

    def test_returns_400_if_several_organizations_and_none_is_named(self, api: Api, world: World):
        first = world.company()
        world.company(owner=first.owner)
        world.clear_default(first.owner)
        assert api.get(PATH, first.owner.token).error["details"][0]["path"] == ["organizationId"]

    def test_returns_400_for_an_empty_organization_id(self, api: Api, world: World):
        reply = api.get(f"{PATH}?organizationId=", world.company().owner.token)
        assert reply.error["details"][0]["path"] == ["organizationId"]


class Test403:
    def test_returns_403_for_an_api_key(self, api: Api, world: World):
        reply = api.get(PATH, world.key(world.company()))
        assert reply.code == "INSUFFICIENT_SCOPE"
        assert reply.error["details"] == {"requiredScope": "members.read"}

    def test_returns_403_without_the_scope(self, api: Api, world: World):
        company = world.company()
        token = world.token(company.owner.user_id, [scope for scope in ALL_SCOPES if scope != "members.read"])
        assert api.get(PATH, token).error["details"] == {"requiredScope": "members.read"}

    def test_returns_403_for_an_organization_of_others(self, api: Api, world: World):
        mine, other = world.company(), world.company()
        foreign = api.get(f"{PATH}?organizationId={other.organization_id}", mine.owner.token)
        unknown = api.get(f"{PATH}?organizationId=org_0000000000000000", mine.owner.token)
        assert (foreign.status, foreign.code) == (403, "FORBIDDEN")
        assert foreign.text == unknown.text

    def test_returns_403_for_a_user_without_an_organization(self, api: Api, world: World):
        assert api.get(PATH, world.person().token).code == "FORBIDDEN"
