"""PUT /v1/me/active-organization: a person's default organization."""

import pytest

from tests.support.api import Api, Reply
from tests.support.each import each
from tests.support.world import Company, Person, World

PATH = "/v1/me/active-organization"


def save(api: Api, token: str, organization_id: object) -> Reply:
    return api.put(PATH, token, json_body={"organizationId": organization_id})


def create(api: Api, person: Person, name: str) -> str:
    made: str = api.post("/v1/organizations", person.token, json_body={"name": name}).data["id"]
    return made


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
    """Returns three organizations of the person, of which the first one is the default."""
    return [world.company(owner=person) for _ in range(3)]


def test_the_saved_organization_is_used_by_default_on_every_device(
    api: Api, world: World, person: Person, companies: list[Company]
):
    device = world.token(person.user_id, ["organizations.read", "billing.read"])
    for company in (*companies[1:], companies[0], companies[0]):
        reply = save(api, person.token, company.organization_id)
        assert (reply.status, reply.data) == (200, {"activeOrganizationId": company.organization_id})
        assert active(api, person.token) == active(api, device) == company.organization_id
        assert api.get("/v1/billing", device).data["organizationId"] == company.organization_id


def test_any_member_can_save_it(api: Api, world: World, companies: list[Company]):
    member = world.member(companies[0])
    world.member(companies[1], person=member)
    assert active(api, member.token) is None
    assert save(api, member.token, companies[1].organization_id).status == 200
    assert active(api, member.token) == companies[1].organization_id


def test_keys_always_use_their_own_organization(api: Api, world: World, companies: list[Company]):
    key = world.key(companies[0])
    save(api, companies[0].owner.token, companies[1].organization_id)
    assert active(api, key) == companies[0].organization_id
    assert save(api, key, companies[0].organization_id).code == "INSUFFICIENT_SCOPE"


# A default can't be cleared.
@each("body", [{}, *({"organizationId": value} for value in (None, "", 17, ["x"], {}))])
def test_an_invalid_organization_id_changes_nothing(body: object, api: Api, person: Person, companies: list[Company]):
    reply = api.put(PATH, person.token, json_body=body)
    assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
    assert reply.error["details"][0]["path"] == ["organizationId"]
    assert active(api, person.token) == companies[0].organization_id


def test_every_organization_of_others_gets_the_same_403(
    api: Api, world: World, person: Person, companies: list[Company]
):
    left = world.company()
    world.leave(left, world.member(left, person=person))
    unknown = ("org_" + "0" * 16, "x", "ORG#x", "é", world.company().organization_id, left.organization_id)
    replies = [save(api, person.token, named) for named in unknown]
    assert {(reply.status, reply.code, reply.text) for reply in replies} == {(403, "FORBIDDEN", replies[0].text)}
    assert active(api, person.token) == companies[0].organization_id


def test_further_organizations_keep_the_first_one_as_the_default(api: Api, person: Person):
    first, *_ = (create(api, person, name) for name in ("First", "Second", "Third"))
    assert active(api, person.token) == first
    assert api.get("/v1/billing", person.token).data["organizationId"] == first


def test_a_saved_organization_stays_the_default(api: Api, person: Person, companies: list[Company]):
    save(api, person.token, companies[1].organization_id)
    create(api, person, "Another")
    assert active(api, person.token) == companies[1].organization_id


def test_the_only_organization_becomes_the_default(api: Api, world: World, person: Person):
    first = world.company(owner=person)
    world.clear_default(person)
    create(api, person, "Second")
    assert active(api, person.token) == first.organization_id


@pytest.mark.usefixtures("companies")
def test_no_organization_is_chosen_among_several(api: Api, world: World, person: Person):
    world.clear_default(person)
    create(api, person, "Another")
    assert active(api, person.token) is None


def test_after_the_default_is_lost_the_one_that_remains_becomes_it(api: Api, world: World):
    member, first, second = world.person(), world.company(), world.company()
    for company in (first, second):
        world.member(company, person=member)
    save(api, member.token, first.organization_id)
    own = f"mem_{first.organization_id[4:]}{member.user_id[4:]}"
    assert api.delete(f"/v1/members/{own}", first.owner.token).status == 200
    assert active(api, member.token) == second.organization_id
    create(api, member, "Third")
    assert active(api, member.token) == second.organization_id


def test_a_default_that_no_longer_counts_is_replaced(api: Api, world: World, person: Person):
    lost, kept = world.company(owner=person), world.company()
    world.member(kept, person=person)
    world.member(lost, "owner")
    # Removed by a process that died before it cleared the default.
    world.leave(lost, person)
    create(api, person, "Third")
    assert active(api, person.token) == kept.organization_id
