"""The organizations that the caller belongs to, and a person's default organization."""

import pytest

from controlplane.organizations import store as organizations
from controlplane.platform.core.roles import RANK
from tests.support.api import Api, Reply
from tests.support.world import Person

PATH = "/v1/organizations"
LAST_PAGE = {"nextCursor": None, "hasMore": False}


def test_all_organizations_are_listed_by_slug_on_one_page_with_the_callers_role(api, world):
    person = world.person()
    companies = [world.company(owner=person, name="Acme Shops"), world.company(), world.company(owner=person)]
    world.member(companies[1], "admin", person)
    organizations.save_default(person.user_id, companies[2].organization_id)
    world.company()
    reply = api.get(PATH, person.token)
    assert (reply.status, reply.body["pagination"]) == (200, LAST_PAGE)
    assert reply.data == [
        {
            "organizationId": company.organization_id,
            "organizationSlug": company.slug,
            "organizationName": company.name,
            "role": role,
        }
        for company, role in sorted(
            zip(companies, ("owner", "admin", "owner"), strict=True), key=lambda listed: listed[0].slug
        )
    ]


def test_a_key_sees_its_own_organization_and_a_person_each_change_in_the_next_call(api, world):
    company = world.company()
    world.company(owner=company.owner)
    listed = api.get(PATH, world.key(company)).data
    assert [(it["organizationId"], it["role"]) for it in listed] == [(company.organization_id, "admin")]
    person = world.member(company)
    member_id = f"mem_{company.organization_id[4:]}{person.user_id[4:]}"
    for role in ("member", "admin"):
        api.patch(f"/v1/members/{member_id}", company.owner.token, json_body={"role": role})
        assert [it["role"] for it in api.get(PATH, person.token).data] == [role]
    world.leave(company, person)
    assert api.get(PATH, person.token).body == {"success": True, "data": [], "pagination": LAST_PAGE}


def test_the_organization_is_shown_with_the_callers_role(api, world):
    company = world.company(name="Acme Shops")
    world.company(owner=company.owner)
    for role, token in (("admin", world.key(company)), *((it, world.member(company, it).token) for it in RANK)):
        shown = api.get(f"{PATH}/{company.organization_id}", token).data
        assert shown == {"id": company.organization_id, "slug": company.slug, "name": "Acme Shops", "role": role}


DEFAULT_PATH = "/v1/me/active-organization"


def save(api: Api, token: str, organization_id: object) -> Reply:
    return api.put(DEFAULT_PATH, token, json_body={"organizationId": organization_id})


def create(api: Api, person: Person, name: str) -> str:
    made: str = api.post("/v1/organizations", person.token, json_body={"name": name}).data["id"]
    return made


def active(api: Api, token: str) -> str | None:
    """Returns the default organization, which both fields of `GET /v1/me` name."""
    shown = api.get("/v1/me", token).data
    assert shown["principal"]["activeOrganizationId"] == shown["activeOrganizationId"]
    return shown["activeOrganizationId"]


@pytest.fixture
def person(world):
    return world.person()


@pytest.fixture
def companies(world, person):
    """Returns three organizations of the person, of which the first one is the default."""
    return [world.company(owner=person) for _ in range(3)]


def test_the_saved_organization_is_used_by_default_on_every_device(api, world, person, companies):
    device = world.token(person.user_id, ["organizations.read", "billing.read"])
    for company in (*companies[1:], companies[0], companies[0]):
        reply = save(api, person.token, company.organization_id)
        assert (reply.status, reply.data) == (200, {"activeOrganizationId": company.organization_id})
        assert active(api, person.token) == active(api, device) == company.organization_id
        assert api.get("/v1/billing", device).data["organizationId"] == company.organization_id
    key = world.key(companies[0])
    save(api, person.token, companies[1].organization_id)
    assert active(api, key) == companies[0].organization_id  # keys always use their own
    assert save(api, key, companies[0].organization_id).code == "INSUFFICIENT_SCOPE"
    member = world.member(companies[0])
    world.member(companies[1], person=member)
    assert active(api, member.token) is None
    assert save(api, member.token, companies[1].organization_id).status == 200
    assert active(api, member.token) == companies[1].organization_id


def test_every_organization_of_others_gets_the_same_403(api, world, person, companies):
    left = world.company()
    world.leave(left, world.member(left, person=person))
    unknown = ("org_" + "0" * 16, "x", "ORG#x", "é", world.company().organization_id, left.organization_id)
    replies = [save(api, person.token, named) for named in unknown]
    assert {(reply.status, reply.code, reply.text) for reply in replies} == {(403, "FORBIDDEN", replies[0].text)}
    assert active(api, person.token) == companies[0].organization_id


def test_further_organizations_keep_the_default_and_none_is_chosen_among_several(api, world, person):
    first, second, _ = (create(api, person, name) for name in ("First", "Second", "Third"))
    assert active(api, person.token) == api.get("/v1/billing", person.token).data["organizationId"] == first
    save(api, person.token, second)
    create(api, person, "Another")
    assert active(api, person.token) == second
    world.clear_default(person)
    create(api, person, "Fifth")
    assert active(api, person.token) is None


def test_the_only_organization_becomes_the_default(api, world, person):
    first = world.company(owner=person)
    world.clear_default(person)
    create(api, person, "Second")
    assert active(api, person.token) == first.organization_id


def test_after_the_default_is_lost_the_one_that_remains_becomes_it(api, world):
    member, first, second = world.person(), world.company(), world.company()
    for company in (first, second):
        world.member(company, person=member)
    save(api, member.token, first.organization_id)
    own = f"mem_{first.organization_id[4:]}{member.user_id[4:]}"
    assert api.delete(f"/v1/members/{own}", first.owner.token).status == 200
    assert active(api, member.token) == second.organization_id
    create(api, member, "Third")
    assert active(api, member.token) == second.organization_id
    person, kept = world.person(), world.company()
    lost = world.company(owner=person)
    world.member(kept, person=person)
    world.member(lost, "owner")
    # Removed by a process that died before it cleared the default.
    world.leave(lost, person)
    create(api, person, "Fourth")
    assert active(api, person.token) == kept.organization_id
