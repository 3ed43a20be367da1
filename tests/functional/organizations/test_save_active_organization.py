"""PUT /v1/me/active-organization: a person's default organization."""

import pytest

from tests.support.api import Api, Reply
from tests.support.each import each
from tests.support.world import Company, Person, World

PATH = "/v1/me/active-organization"


def save(api: Api, token: str, organization_id: object) -> Reply:
    return api.put(PATH, token, json_body={"organizationId": organization_id})


def active(api: Api, token: str) -> str | None:
    """Returns the default organization, which both fields of `GET /v1/me` name."""
    shown = api.get("/v1/me", token).data
    assert shown["principal"]["activeOrganizationId"] == shown["activeOrganizationId"]
    return shown["activeOrganizationId"]


@pytest.fixture
def person(world: World) -> Person:
    return world.person()


@pytest.fixture
def companies(world: World, person: Person) -> list[Company]:
    """Three organizations of the person, the first one created first."""
    return [world.company(owner=person), world.company(owner=person), world.company(owner=person)]


class Test200:
    def test_the_saved_organization_is_used_by_default_on_every_device(
        self, api: Api, world: World, person: Person, companies: list[Company]
    ):
        device = world.token(person.user_id, ["organizations.read", "billing.read"])
        for company in [*companies[1:], companies[0]]:
            reply = save(api, person.token, company.organization_id)
            assert (reply.status, reply.data) == (200, {"activeOrganizationId": company.organization_id})
            assert active(api, person.token) == active(api, device) == company.organization_id
            assert api.get("/v1/billing", device).data["organizationId"] == company.organization_id

    def test_saving_the_same_organization_again_changes_nothing(
        self, api: Api, person: Person, companies: list[Company]
    ):
        for _ in range(2):
            assert save(api, person.token, companies[1].organization_id).status == 200
        assert active(api, person.token) == companies[1].organization_id

    def test_a_member_without_a_role_of_power_can_save_it(self, api: Api, world: World, companies: list[Company]):
        member = world.member(companies[0])
        world.member(companies[1], person=member)
        assert active(api, member.token) is None
        assert save(api, member.token, companies[1].organization_id).status == 200
        assert active(api, member.token) == companies[1].organization_id

    def test_keys_always_use_their_own_organization(self, api: Api, world: World, companies: list[Company]):
        key = world.key(companies[0])
        save(api, companies[0].owner.token, companies[1].organization_id)
        assert active(api, key) == companies[0].organization_id


class Test400:
    @each("named", [None, "", 17, ["x"], {}])
    def test_returns_400_if_the_organization_is_missing_or_no_text(self, api: Api, person: Person, named: object):
        body = {} if named is None else {"organizationId": named}
        reply = api.put(PATH, person.token, json_body=body)
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
        assert reply.error["details"][0]["path"] == ["organizationId"]

    def test_returns_400_for_null_because_a_default_cannot_be_cleared(
        self, api: Api, person: Person, companies: list[Company]
    ):
        assert save(api, person.token, None).code == "INVALID_PAYLOAD"
        assert active(api, person.token) == companies[0].organization_id


class Test403:
    def test_returns_403_for_an_organization_outside_the_callers_memberships(
        self, api: Api, world: World, person: Person, companies: list[Company]
    ):
        left = world.company()
        world.leave(left, world.member(left, person=person))
        unknown = ("org_" + "0" * 16, "x", "ORG#x", "é", world.company().organization_id, left.organization_id)
        replies = [save(api, person.token, named) for named in unknown]
        assert {(reply.status, reply.code) for reply in replies} == {(403, "FORBIDDEN")}
        assert len({reply.text for reply in replies}) == 1
        assert active(api, person.token) == companies[0].organization_id

    def test_returns_403_without_the_scope_so_a_narrow_token_cannot_redirect_other_devices(
        self, api: Api, world: World, person: Person, companies: list[Company]
    ):
        token = world.token(person.user_id, ["organizations.read", "organizations.write", "projects.write"])
        reply = save(api, token, companies[1].organization_id)
        assert (reply.status, reply.code) == (403, "INSUFFICIENT_SCOPE")
        assert reply.error["details"]["requiredScope"] == "sessions.write"
        assert active(api, token) == companies[0].organization_id

    def test_returns_403_for_an_api_key(self, api: Api, world: World, companies: list[Company]):
        assert save(api, world.key(companies[0]), companies[0].organization_id).status == 403


class TestASecondOrganization:
    """The default organization of a person who gets another membership."""

    def test_creating_an_organization_keeps_the_first_one_as_the_default(self, api: Api, person: Person):
        ids = [
            api.post("/v1/organizations", person.token, json_body={"name": name}).data["id"]
            for name in ("First", "Second", "Third")
        ]
        assert active(api, person.token) == ids[0]
        assert api.get("/v1/billing", person.token).data["organizationId"] == ids[0]

    def test_the_only_organization_becomes_the_default_if_there_is_none(self, api: Api, world: World, person: Person):
        first = world.company(owner=person)
        world.clear_default(person)
        api.post("/v1/organizations", person.token, json_body={"name": "Second"})
        assert active(api, person.token) == first.organization_id

    def test_nothing_is_chosen_among_several_if_there_is_no_default(
        self, api: Api, world: World, person: Person, companies: list[Company]
    ):
        world.clear_default(person)
        api.post("/v1/organizations", person.token, json_body={"name": "Another"})
        assert active(api, person.token) is None

    def test_a_saved_organization_stays_the_default(self, api: Api, person: Person, companies: list[Company]):
        save(api, person.token, companies[1].organization_id)
        api.post("/v1/organizations", person.token, json_body={"name": "Another"})
        assert active(api, person.token) == companies[1].organization_id

    def test_after_the_default_is_lost_the_one_that_remains_becomes_it(self, api: Api, world: World):
        member, first, second = world.person(), world.company(), world.company()
        for company in (first, second):
            world.member(company, person=member)
        save(api, member.token, first.organization_id)
        roster = api.get("/v1/members", first.owner.token).data
        own = next(it["id"] for it in roster if it["user"]["id"] == member.user_id)
        assert api.delete(f"/v1/members/{own}", first.owner.token).status == 200
        assert active(api, member.token) == second.organization_id
        api.post("/v1/organizations", member.token, json_body={"name": "Third"})
        assert active(api, member.token) == second.organization_id

    def test_a_default_that_no_longer_counts_is_replaced(self, api: Api, world: World, person: Person):
        lost, kept = world.company(owner=person), world.company()
        world.member(kept, person=person)
        world.member(lost, "owner")
        # Removed by a process that died before it cleared the default.
        world.leave(lost, person)
        api.post("/v1/organizations", person.token, json_body={"name": "Third"})
        assert active(api, person.token) == kept.organization_id
