"""GET /v1/invitations: pending invitations."""

import pytest

from controlplane.store import keys
from controlplane.store.table import table
from tests.functional.conftest import FakeClock
from tests.support.api import Api
from tests.support.each import each
from tests.support.world import ALL_SCOPES, Company, World

PATH = "/v1/invitations"
WEEK = 7 * 24 * 3600


def invite(api: Api, company: Company, email: str) -> str:
    """Creates an invitation and returns its ID."""
    reply = api.post(PATH, company.owner.token, json_body={"email": email, "role": "member"})
    assert reply.status == 201
    return str(reply.data["id"])


@pytest.fixture
def company(world: World) -> Company:
    return world.company()


class Test200:
    def test_an_invitation_is_listed_as_returned_at_its_creation(self, api: Api, company: Company):
        created = api.post(PATH, company.owner.token, json_body={"email": "grace@example.com", "role": "admin"}).data
        reply = api.get(PATH, company.owner.token)
        assert reply.status == 200
        assert reply.data == [created]
        assert reply.body["pagination"] == {"nextCursor": None, "hasMore": False}

    def test_any_member_can_list_invitations(self, api: Api, world: World, company: Company):
        invite(api, company, "grace@example.com")
        assert len(api.get(PATH, world.member(company).token).data) == 1

    def test_an_empty_list_omits_other_organizations_invitations(self, api: Api, world: World, company: Company):
        invite(api, world.company(), "grace@example.com")
        assert api.get(PATH, company.owner.token).data == []

    @pytest.mark.parametrize("limit", [1, 2, 5, 100])
    def test_lists_the_newest_first_over_all_pages(self, api: Api, company: Company, now: FakeClock, limit: int):
        made = []
        for number in range(5):
            made.append(invite(api, company, f"grace{number}@example.com"))
            now.advance(0.002)
        seen: list[str] = []
        cursor = ""
        while True:
            reply = api.get(f"{PATH}?limit={limit}{cursor}", company.owner.token)
            seen += [item["id"] for item in reply.data]
            if not reply.body["pagination"]["hasMore"]:
                break
            cursor = f"&cursor={reply.body['pagination']['nextCursor']}"
        assert seen == made[::-1]

    def test_a_page_is_full_despite_a_void_invitation(self, api: Api, world: World, company: Company, now: FakeClock):
        made, admin = list[str](), world.member(company, "admin")
        for number in range(4):
            made.append(invite(api, company, f"grace{number}@example.com"))
            now.advance(0.002)
        api.post(PATH, admin.token, json_body={"email": "void@example.com", "role": "member"})
        world.leave(company, admin)
        first = api.get(f"{PATH}?limit=2", company.owner.token)
        assert [item["id"] for item in first.data] == [made[3], made[2]]
        second = api.get(f"{PATH}?limit=2&cursor={first.body['pagination']['nextCursor']}", company.owner.token)
        assert [item["id"] for item in second.data] == [made[1], made[0]]

    def test_omits_an_expired_invitation_that_is_still_stored(
        self, api: Api, world: World, company: Company, now: FakeClock
    ):
        now.seconds += 0.75
        first = invite(api, company, "first@example.com")
        now.advance(60)
        second = invite(api, company, "second@example.com")
        token = world.token(company.owner.user_id, lifetime_seconds=2 * WEEK)
        now.seconds = int(now.seconds) - 60 + WEEK - 0.001
        assert [item["id"] for item in api.get(PATH, token).data] == [second, first]
        now.seconds += 0.001
        assert [item["id"] for item in api.get(PATH, token).data] == [second]
        assert table.get(keys.invitation(company.organization_id, first[20:])) is not None
        now.advance(60)
        assert api.get(PATH, token).data == []

    def test_paging_ends_if_the_rest_expired_since(self, api: Api, world: World, company: Company, now: FakeClock):
        for number in range(3):
            invite(api, company, f"grace{number}@example.com")
        token = world.token(company.owner.user_id, lifetime_seconds=2 * WEEK)
        cursor = api.get(f"{PATH}?limit=1", token).body["pagination"]["nextCursor"]
        now.advance(WEEK)
        reply = api.get(f"{PATH}?cursor={cursor}", token)
        assert reply.body == {"success": True, "data": [], "pagination": {"nextCursor": None, "hasMore": False}}


class Test400:
    @each("limit", ["0", "101", "-1", "ten", ""])
    def test_returns_400_for_a_limit_outside_1_to_100(self, api: Api, company: Company, limit: str):
        assert api.get(f"{PATH}?limit={limit}", company.owner.token).error["details"][0]["path"] == ["limit"]

    def test_returns_400_for_a_cursor_of_another_list(self, api: Api, world: World, company: Company):
        world.member(company)
        cursor = api.get("/v1/members?limit=1", company.owner.token).body["pagination"]["nextCursor"]
        assert api.get(f"{PATH}?cursor={cursor}", company.owner.token).error["details"][0]["path"] == ["cursor"]

    def test_returns_400_for_a_cursor_of_another_organization(self, api: Api, world: World, company: Company):
        for number in range(2):
            invite(api, company, f"grace{number}@example.com")
        cursor = api.get(f"{PATH}?limit=1", company.owner.token).body["pagination"]["nextCursor"]
        reply = api.get(f"{PATH}?cursor={cursor}", world.company().owner.token)
        assert reply.error["details"][0]["path"] == ["cursor"]


class Test403:
    def test_returns_403_for_an_api_key_and_for_a_token_without_the_scope(
        self, api: Api, world: World, company: Company
    ):
        scopes = [scope for scope in ALL_SCOPES if scope != "members.read"]
        for token in (world.key(company), world.token(company.owner.user_id, scopes)):
            assert api.get(PATH, token).error["details"] == {"requiredScope": "members.read"}

    def test_returns_403_for_an_organization_of_others(self, api: Api, world: World, company: Company):
        other = world.company()
        assert api.get(f"{PATH}?organizationId={other.organization_id}", company.owner.token).code == "FORBIDDEN"
